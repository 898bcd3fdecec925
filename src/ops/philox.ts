// The random primitives: operators whose result is a function of (size, seed, offset) alone. Eager kernels compute four words per counter;
// the decompositions say the same per element, so that a compiler can fuse them into what follows.
//
// Element i of n lies in word floor(i / q) at counter i mod q, where q = ceil(n / 4).
import {
  at,
  bufferParam,
  call,
  cast,
  compileKernel,
  constant,
  forLoop,
  iota,
  loopVar,
  scalar,
  scalarParam,
  sizeOf,
  sizeParam,
  store,
} from '../kernels/index.ts'
import type { CompiledKernel, DType, Expr, Stmt } from '../kernels/index.ts'
import { numelOf, philox } from '../tensor/index.ts'
import type { RandomDraw, Tensor, TensorSpec } from '../tensor/index.ts'
import { arange, tensor } from './creation.ts'
import { defineOp } from './defineOp.ts'
import type { OpFunction } from './defineOp.ts'
import { emptyPadded, launch } from './eager/launch.ts'
import { add, mul } from './pointwise/arithmetic.ts'
import { to } from './pointwise/cast.ts'
import { cos, log, sqrt } from './pointwise/unary.ts'
import { reshape } from './view/index.ts'

const DYNAMIC: readonly string[] = ['seedLo', 'seedHi', 'offsetLo', 'offsetHi']
const KEYS = 'int seed_lo, int seed_hi, int offset_lo, int offset_hi'
const int = (value: number): Expr => constant('int32', value | 0)

/** The ten rounds; `index` and the scalars are int32 expressions. Equals `philox` in tensor/generator.ts. */
function words(index: Expr, seedLo: Expr, seedHi: Expr, offsetLo: Expr, offsetHi: Expr): [Expr, Expr, Expr, Expr] {
  let [c0, c1, c2, c3] = [offsetLo, offsetHi, index, int(0)]
  for (let round = 0; round < 10; round++) {
    const k0 = call('add', seedLo, int(Math.imul(0x9e3779b9, round)))
    const k1 = call('add', seedHi, int(Math.imul(0xbb67ae85, round)))
    const hi0 = call('mulHiU', c0, int(0xd2511f53))
    const lo0 = call('mul', c0, int(0xd2511f53))
    const hi1 = call('mulHiU', c2, int(0xcd9e8d57))
    const lo1 = call('mul', c2, int(0xcd9e8d57))
    ;[c0, c1, c2, c3] = [call('bitXor', call('bitXor', hi1, c1), k0), lo1, call('bitXor', call('bitXor', hi0, c3), k1), lo0]
  }
  return [c0, c1, c2, c3]
}

const SCALE = 2 ** -24
/** 24 random bits as a float in [0, 1). */
const unit = (bits: Expr): Expr => call('mul', cast(bits, 'float32'), constant('float32', SCALE))

type Kind = 'uniform' | 'normal' | 'integer'

/** The values of the four words of one counter. */
function values(kind: Kind, w: readonly [Expr, Expr, Expr, Expr], range: Expr | null, low: Expr | null): readonly Expr[] {
  if (kind === 'integer') return w.map((word) => call('add', call('mulHiU', word, range as Expr), low as Expr))
  const bits = w.map((word) => call('shrU', word, int(8)))
  if (kind === 'uniform') return bits.map(unit)
  const pair = (a: Expr, b: Expr): [Expr, Expr] => {
    // Box and Muller: 1 - u is in (0, 1], so that the logarithm is finite.
    const radius = call('sqrt', call('mul', constant('float32', -2), call('log', call('add', constant('float32', 1), call('neg', unit(a))))))
    const angle = call('mul', unit(b), constant('float32', 2 * Math.PI))
    return [call('mul', radius, call('cos', angle)), call('mul', radius, call('cos', call('add', angle, constant('float32', -Math.PI / 2))))]
  }
  return [...pair(bits[0] as Expr, bits[1] as Expr), ...pair(bits[2] as Expr, bits[3] as Expr)]
}

const kernels = new Map<Kind, CompiledKernel>()

function kernelOf(kind: Kind): CompiledKernel {
  let kernel = kernels.get(kind)
  if (kernel !== undefined) return kernel
  const out = bufferParam('out', kind === 'integer' ? 'int32' : 'float32', 'write')
  const quarter = sizeParam('quarter')
  const [seedLo, seedHi, offsetLo, offsetHi, range, low] = ['seedLo', 'seedHi', 'offsetLo', 'offsetHi', 'range', 'low'].map((name) =>
    scalarParam(name, 'int32'),
  ) as [
    ReturnType<typeof scalarParam>,
    ReturnType<typeof scalarParam>,
    ReturnType<typeof scalarParam>,
    ReturnType<typeof scalarParam>,
    ReturnType<typeof scalarParam>,
    ReturnType<typeof scalarParam>,
  ]
  const j = loopVar('j', quarter)
  const w = words(iota(j), scalar(seedLo), scalar(seedHi), scalar(offsetLo), scalar(offsetHi))
  const ends = kind === 'integer' ? [range, low] : []
  const body: Stmt[] = values(kind, w, scalar(range), scalar(low)).map((value, word) => {
    const index = at([j, 1])
    return store(out, { ...index, dynamic: word === 0 ? [] : [{ value: call('mul', sizeOf(quarter), int(word)), stride: 1 }] }, value)
  })
  kernel = compileKernel({
    name: `philox_${kind}`,
    params: [out, quarter, seedLo, seedHi, offsetLo, offsetHi, ...ends],
    body: [forLoop(j, 'simd', body)],
  })
  kernels.set(kind, kernel)
  return kernel
}

function runPhilox(kind: Kind, size: readonly number[], draw: readonly number[], extra: readonly number[]): Tensor {
  const quarter = Math.ceil(numelOf(size) / 4)
  const out = emptyPadded(size, kind === 'integer' ? 'int32' : 'float32', quarter * 4)
  if (quarter > 0) launch(kernelOf(kind), [out], [quarter, ...draw, ...extra])
  return out
}

/**
 * 24 random bits per element of `index` (int32, 0 to n - 1), from word `word` of the element's counter; or, with word -1, of the word where the element lies.
 * Internal: the per-element form of the random primitives.
 */
export const philoxBits: OpFunction<
  (index: Tensor, quarter: number, word: number, shift: number, seedLo: number, seedHi: number, offsetLo: number, offsetHi: number) => Tensor
> = defineOp({
  schema: `philox_bits(Tensor index, int quarter, int word, int shift, ${KEYS}) -> Tensor`,
  namespace: 'torch.ops.tensorfx',
  tags: ['pointwise'],
  dynamicScalars: DYNAMIC,
  pointwise: {
    promotion: 'promote',
    baked: ['word', 'shift'],
    compute: (index: Expr, quarter: Expr, word: number, shift: number, seedLo: Expr, seedHi: Expr, offsetLo: Expr, offsetHi: Expr): Expr => {
      const double = call('add', quarter, quarter)
      const triple = call('add', double, quarter)
      const past = (limit: Expr, yes: Expr, no: Expr): Expr => call('where', call('ge', index, limit), yes, no)
      const counter = call('sub', index, past(triple, triple, past(double, double, past(quarter, quarter, int(0)))))
      const w = words(counter, seedLo, seedHi, offsetLo, offsetHi)
      // Words 0 and 1 of a normal pair are used by the elements in words 0 and 1, words 2 and 3 by the others.
      const chosen =
        word === -1 ? past(triple, w[3], past(double, w[2], past(quarter, w[1], w[0]))) : past(double, w[2 + word] as Expr, w[word] as Expr)
      return shift === 0 ? chosen : call('shrU', chosen, int(shift))
    },
  },
})

function indexOf(size: readonly number[]): { index: Tensor; quarter: number } {
  const n = numelOf(size)
  return { index: reshape(arange(n, { dtype: 'int32' }), size), quarter: Math.max(1, Math.ceil(n / 4)) }
}

const float32 = (size: readonly number[]): TensorSpec => ({ shape: size, dtype: 'float32' })
const unitOf = (bits: Tensor): Tensor => mul(to(bits, 'float32'), SCALE)

type Primitive = (size: readonly number[], seedLo: number, seedHi: number, offsetLo: number, offsetHi: number) => Tensor

/** Uniform numbers in [0, 1). Internal: `torch.rand` draws the scalars. */
export const philoxUniform: OpFunction<Primitive> = defineOp({
  schema: `philox_uniform(int[] size, ${KEYS}) -> Tensor`,
  namespace: 'torch.ops.tensorfx',
  dynamicScalars: DYNAMIC,
  meta: float32,
  kernel: (size: readonly number[], ...draw: number[]): Tensor => runPhilox('uniform', size, draw, []),
  decompose: (size: readonly number[], ...draw: [number, number, number, number]): Tensor => {
    const { index, quarter } = indexOf(size)
    return unitOf(philoxBits(index, quarter, -1, 8, ...draw))
  },
  // A function of numbers: nothing to differentiate, but a primitive (an operator without derivative would be decomposed).
  derivative: () => [],
})

/** Normal numbers of mean 0 and variance 1. Internal: `torch.randn` draws the scalars. */
export const philoxNormal: OpFunction<Primitive> = defineOp({
  schema: `philox_normal(int[] size, ${KEYS}) -> Tensor`,
  namespace: 'torch.ops.tensorfx',
  dynamicScalars: DYNAMIC,
  meta: float32,
  kernel: (size: readonly number[], ...draw: number[]): Tensor => runPhilox('normal', size, draw, []),
  decompose: (size: readonly number[], ...draw: [number, number, number, number]): Tensor => {
    const { index, quarter } = indexOf(size)
    const radius = sqrt(mul(log(add(mul(unitOf(philoxBits(index, quarter, 0, 8, ...draw)), -1), 1)), -2))
    const angle = mul(unitOf(philoxBits(index, quarter, 1, 8, ...draw)), 2 * Math.PI)
    return mul(radius, cos(add(angle, mul(to(philoxOddWord(index, quarter), 'float32'), -Math.PI / 2))))
  },
  derivative: () => [],
})

/** 0 for the elements that take the cosine of their pair, 1 for those that take the sine. */
const philoxOddWord: OpFunction<(index: Tensor, quarter: number) => Tensor> = defineOp({
  schema: 'philox_odd_word(Tensor index, int quarter) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  tags: ['pointwise'],
  pointwise: {
    promotion: 'promote',
    compute: (index: Expr, quarter: Expr): Expr => {
      const twice = call('add', quarter, quarter)
      const odd = call('or', call('and', call('ge', index, quarter), call('lt', index, twice)), call('ge', index, call('add', twice, quarter)))
      return call('where', odd, int(1), int(0))
    },
  },
})

/** Integers from low to low + range - 1. Internal: `torch.randint` draws the scalars. */
export const philoxInteger: OpFunction<
  (size: readonly number[], low: number, range: number, seedLo: number, seedHi: number, offsetLo: number, offsetHi: number) => Tensor
> = defineOp({
  schema: `philox_integer(int[] size, int low, int range, ${KEYS}) -> Tensor`,
  namespace: 'torch.ops.tensorfx',
  dynamicScalars: DYNAMIC,
  meta: (size: readonly number[]): TensorSpec => ({ shape: size, dtype: 'int32' }),
  kernel: (size: readonly number[], low: number, range: number, ...draw: number[]): Tensor => runPhilox('integer', size, draw, [range | 0, low]),
})

/** A random order of 0 to n - 1. Internal: `torch.randperm` draws the scalars. */
export const philoxPermutation: OpFunction<(n: number, seedLo: number, seedHi: number, offsetLo: number, offsetHi: number) => Tensor> = defineOp({
  schema: `philox_permutation(int n, ${KEYS}) -> Tensor`,
  namespace: 'torch.ops.tensorfx',
  dynamicScalars: DYNAMIC,
  meta: (n: number): TensorSpec => ({ shape: [n], dtype: 'int32' }),
  kernel: (n: number, seedLo: number, seedHi: number, offsetLo: number, offsetHi: number): Tensor => {
    const draw: RandomDraw = { seedLo, seedHi, offsetLo, offsetHi }
    const order = Int32Array.from({ length: n }, (_, i) => i)
    // Fisher and Yates.
    for (let i = n - 1; i > 0; i--) {
      const j = Math.floor(((philox(draw, i)[0] as number) / 2 ** 32) * (i + 1))
      const kept = order[i] as number
      order[i] = order[j] as number
      order[j] = kept
    }
    return tensor(order)
  },
})

/** dtypes that random floats can have. */
export const isFloatDType = (dtype: DType): boolean => dtype === 'float32' || dtype === 'float64'
