// The random primitives: operators whose results depend on (size, seed, offset) alone. Their eager kernels compute four words per counter. The
// decompositions say the same per element, so that a compiler can fuse them into what follows.
//
// Element i of n is word floor(i / q) of counter i mod q, where q = ceil(n / 4).
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
} from '../../kernels/index.ts'
import type { CompiledKernel, Expr, Stmt } from '../../kernels/index.ts'
import type { Size } from '../../protocol/index.ts'
import { numbersFor } from '../shared/shapes.ts'
import { Tensor, numelOf, philox, windowOf } from '../../tensor/index.ts'
import type { RandomDraw, TensorSpec } from '../../tensor/index.ts'
import { arange } from '../create/creation.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { emptyPadded, kernelCache, launch } from '../eager/launch.ts'
import { add, mul } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { cos, log, sqrt } from '../pointwise/unary.ts'
import { reshape } from '../view/reshape.ts'

const DYNAMIC: readonly string[] = ['seedLo', 'seedHi', 'offsetLo', 'offsetHi']
const KEYS = 'int seed_lo, int seed_hi, int offset_lo, int offset_hi'
const int = (value: number): Expr => constant('int32', value | 0)

type Words = readonly [Expr, Expr, Expr, Expr]

/** The ten rounds; `index` and the scalars are int32 expressions. The same function as `philox` in tensor/generator.ts. */
function words(index: Expr, seedLo: Expr, seedHi: Expr, offsetLo: Expr, offsetHi: Expr): Words {
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
/** The upper 24 bits of a word, as a float in [0, 1). */
const unit = (word: Expr): Expr => call('mul', cast(call('shrU', word, int(8)), 'float32'), constant('float32', SCALE))

/** Two normal numbers from two words, by Box and Muller. */
function normalPair(a: Expr, b: Expr): readonly [Expr, Expr] {
  // 1 - u is in (0, 1], so the logarithm is finite.
  const radius = call('sqrt', call('mul', constant('float32', -2), call('log', call('add', constant('float32', 1), call('neg', unit(a))))))
  const angle = call('mul', unit(b), constant('float32', 2 * Math.PI))
  return [call('mul', radius, call('cos', angle)), call('mul', radius, call('cos', call('add', angle, constant('float32', -Math.PI / 2))))]
}

type Kind = 'uniform' | 'normal' | 'integer'

/** The values of the four words of one counter. */
function values(kind: Kind, w: Words, range: Expr, low: Expr): readonly Expr[] {
  if (kind === 'integer') return w.map((word) => call('add', call('mulHiU', word, range), low))
  return kind === 'uniform' ? w.map(unit) : [...normalPair(w[0], w[1]), ...normalPair(w[2], w[3])]
}

const kernelOf = kernelCache((kind: Kind): CompiledKernel => {
  const out = bufferParam('out', kind === 'integer' ? 'int32' : 'float32', 'write')
  const quarter = sizeParam('quarter')
  const [seedLo, seedHi] = [scalarParam('seedLo', 'int32'), scalarParam('seedHi', 'int32')]
  const [offsetLo, offsetHi] = [scalarParam('offsetLo', 'int32'), scalarParam('offsetHi', 'int32')]
  const [range, low] = [scalarParam('range', 'int32'), scalarParam('low', 'int32')]
  const j = loopVar('j', quarter)
  const w = words(iota(j), scalar(seedLo), scalar(seedHi), scalar(offsetLo), scalar(offsetHi))
  const body: Stmt[] = values(kind, w, scalar(range), scalar(low)).map((value, word) => {
    const dynamic = word === 0 ? [] : [{ value: call('mul', sizeOf(quarter), int(word)), stride: 1 }]
    return store(out, { ...at([j, 1]), dynamic }, value)
  })
  return compileKernel({
    name: `philox_${kind}`,
    params: [out, quarter, seedLo, seedHi, offsetLo, offsetHi, ...(kind === 'integer' ? [range, low] : [])],
    body: [forLoop(j, 'simd', body)],
  })
})

function runPhilox(kind: Kind, size: readonly number[], numbers: readonly number[]): Tensor {
  const quarter = Math.ceil(numelOf(size) / 4)
  const out = emptyPadded(size, kind === 'integer' ? 'int32' : 'float32', quarter * 4)
  if (quarter > 0) launch(kernelOf(kind), [out], [quarter, ...numbers])
  return out
}

/**
 * 24 random bits per element of `index` (0 to n - 1): from word `word` of the element's counter or, with word -1, from the word that the element is in.
 * The per-element form of the random primitives. Internal; PyTorch has no such operator.
 *
 * Shape: that of `index`, which is int32.
 *
 * @throws ArgumentError if an argument is not an integer.
 * @example torch.ops.tensorfx.philoxBits(torch.arange(4, { dtype: 'int32' }), 1, -1, 8, 0, 0, 0, 0).shape // [4]
 */
export const philoxBits: Op['philoxBits'] = defineOp({
  schema: `philox_bits(Tensor index, int quarter, int word, int shift, ${KEYS}) -> Tensor`,
  namespace: 'torch.ops.tensorfx',
  dynamicScalars: DYNAMIC,
  pointwise: {
    promotion: 'promote',
    dtypes: 'int32',
    baked: ['word', 'shift'],
    compute: (index, quarter, word, shift, seedLo, seedHi, offsetLo, offsetHi) => {
      const double = call('add', quarter, quarter)
      const triple = call('add', double, quarter)
      const past = (limit: Expr, yes: Expr, no: Expr): Expr => call('where', call('ge', index, limit), yes, no)
      const counter = call('sub', index, past(triple, triple, past(double, double, past(quarter, quarter, int(0)))))
      const w = words(counter, seedLo, seedHi, offsetLo, offsetHi)
      // Words 0 and 1 of a normal pair are used by the elements in words 0 and 1, words 2 and 3 by the others.
      const chosen =
        word === -1
          ? past(triple, w[3], past(double, w[2], past(quarter, w[1], w[0])))
          : word === 0
            ? past(double, w[2], w[0])
            : past(double, w[3], w[1])
      return shift === 0 ? chosen : call('shrU', chosen, int(shift))
    },
  },
})

function indexOf(size: readonly number[]): { index: Tensor; quarter: number } {
  const n = numelOf(size)
  return { index: reshape(arange(n, { dtype: 'int32' }), size), quarter: Math.max(1, Math.ceil(n / 4)) }
}

const float32 = (size: readonly Size[]): TensorSpec<Size> => ({ shape: size, dtype: 'float32' })
const unitOf = (bits: Tensor): Tensor => mul(to(bits, 'float32'), SCALE)

/**
 * Uniform random numbers in [0, 1); `torch.rand` draws the seed and the offset. Internal; PyTorch has no such operator.
 *
 * Shape: `size`.
 *
 * @throws ArgumentError if an argument is not an integer.
 * @example torch.ops.tensorfx.philoxUniform([2], 0, 0, 0, 0).lt(1).all().item() // true
 */
export const philoxUniform: Op['philoxUniform'] = defineOp({
  schema: `philox_uniform(SymInt[] size, ${KEYS}) -> Tensor`,
  namespace: 'torch.ops.tensorfx',
  dynamicScalars: DYNAMIC,
  meta: float32,
  kernel: (size, ...draw) => runPhilox('uniform', size, draw),
  decompose: (size, ...draw) => {
    const { index, quarter } = indexOf(numbersFor('torch.rand', size))
    return unitOf(philoxBits(index, quarter, -1, 8, ...draw))
  },
  // There is nothing to differentiate, but an operator without derivative would be decomposed.
  derivative: () => [null, null, null, null, null],
})

/**
 * Random numbers of the normal distribution with mean 0 and variance 1; `torch.randn` draws the seed and the offset. Internal; PyTorch has no such operator.
 *
 * Shape: `size`.
 *
 * @throws ArgumentError if an argument is not an integer.
 * @example torch.ops.tensorfx.philoxNormal([2], 0, 0, 0, 0).shape // [2]
 */
export const philoxNormal: Op['philoxNormal'] = defineOp({
  schema: `philox_normal(SymInt[] size, ${KEYS}) -> Tensor`,
  namespace: 'torch.ops.tensorfx',
  dynamicScalars: DYNAMIC,
  meta: float32,
  kernel: (size, ...draw) => runPhilox('normal', size, draw),
  decompose: (size, ...draw) => {
    const { index, quarter } = indexOf(numbersFor('torch.rand', size))
    const radius = sqrt(mul(log(add(mul(unitOf(philoxBits(index, quarter, 0, 8, ...draw)), -1), 1)), -2))
    const angle = mul(unitOf(philoxBits(index, quarter, 1, 8, ...draw)), 2 * Math.PI)
    return mul(radius, cos(add(angle, mul(to(philoxOddWord(index, quarter), 'float32'), -Math.PI / 2))))
  },
  derivative: () => [null, null, null, null, null],
})

/**
 * 0 for the elements that take the cosine of their normal pair, 1 for those that take the sine. Internal; PyTorch has no such operator.
 *
 * Shape: that of `index`, which is int32.
 *
 * @throws ArgumentError if `quarter` is not an integer.
 * @example torch.ops.tensorfx.philoxOddWord(torch.arange(4, { dtype: 'int32' }), 1).toArray() // [0, 1, 0, 1]
 */
export const philoxOddWord: Op['philoxOddWord'] = defineOp({
  schema: 'philox_odd_word(Tensor index, int quarter) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  pointwise: {
    promotion: 'promote',
    dtypes: 'int32',
    compute: (index, quarter) => {
      const twice = call('add', quarter, quarter)
      const odd = call('or', call('and', call('ge', index, quarter), call('lt', index, twice)), call('ge', index, call('add', twice, quarter)))
      return call('where', odd, int(1), int(0))
    },
  },
})

/**
 * Random integers from `low` to `low + range - 1`; `torch.randint` draws the seed and the offset. Internal; PyTorch has no such operator.
 *
 * Shape: `size`. The result is int32.
 *
 * @throws ArgumentError if an argument is not an integer.
 * @example torch.ops.tensorfx.philoxInteger([2], 7, 1, 0, 0, 0, 0).toArray() // [7, 7]
 */
export const philoxInteger: Op['philoxInteger'] = defineOp({
  schema: `philox_integer(SymInt[] size, int low, int range, ${KEYS}) -> Tensor`,
  namespace: 'torch.ops.tensorfx',
  dynamicScalars: DYNAMIC,
  vmap: { none: 'it takes no tensors' },
  onnx: { none: 'runtimes draw other random numbers' },
  autocast: 'as is',
  meta: (size) => ({ shape: size, dtype: 'int32' }),
  kernel: (size, low, range, ...draw) => runPhilox('integer', size, [...draw, range | 0, low]),
})

/**
 * The numbers 0 to n - 1 in random order; `torch.randperm` draws the seed and the offset. Internal; PyTorch has no such operator.
 *
 * Shape: [n]. The result is int32.
 *
 * @throws ArgumentError if an argument is not an integer.
 * @example torch.ops.tensorfx.philoxPermutation(4, 0, 0, 0, 0).sum().item() // 6
 */
export const philoxPermutation: Op['philoxPermutation'] = defineOp({
  schema: `philox_permutation(SymInt n, ${KEYS}) -> Tensor`,
  namespace: 'torch.ops.tensorfx',
  dynamicScalars: DYNAMIC,
  vmap: { none: 'it takes no tensors' },
  onnx: { none: 'runtimes draw other random numbers' },
  autocast: 'as is',
  meta: (n) => ({ shape: [n], dtype: 'int32' }),
  kernel: (n, seedLo, seedHi, offsetLo, offsetHi) => {
    const draw: RandomDraw = { seedLo, seedHi, offsetLo, offsetHi }
    const out = Tensor.empty([n], 'int32')
    const { data, base } = windowOf(out)
    const order = data.subarray(base, base + n)
    for (let i = 0; i < n; i++) order[i] = i
    // Fisher and Yates.
    for (let i = n - 1; i > 0; i--) {
      const [word = 0] = philox(draw, i)
      const j = Math.floor((word / 2 ** 32) * (i + 1))
      const [a = 0, b = 0] = [order[i], order[j]]
      order[i] = b
      order[j] = a
    }
    return out
  },
})
