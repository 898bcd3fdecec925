// C code of kernels against WebAssembly code of the same kernels: the same bits, for scalar operations and conversions, sums of every length, every schedule, and drawn kernels.
import { describe, expect, test } from 'vitest'
import { hashOf, randomFrom } from '../../../scripts/fuzz/random.mjs'
import type { Random } from '../../../scripts/fuzz/random.mjs'
import { emitSource, whyKernelIsNotInC } from '../../../src/kernels/c/emitC.ts'
import { withStrict } from '../../../src/kernels/engine/computing.ts'
import { processEngine } from '../../../src/kernels/engine/engine.ts'
import {
  accumulate,
  at,
  bufferParam,
  call,
  cast,
  declare,
  forLoop,
  identityOf,
  load,
  local,
  loopVar,
  read,
  scalar,
  scalarParam,
  sizeParam,
  store,
} from '../../../src/kernels/ir/loopIr.ts'
import type { Combine, Expr, Kernel } from '../../../src/kernels/ir/loopIr.ts'
import { verifyKernel } from '../../../src/kernels/ir/verify.ts'
import { dtypeInfo } from '../../../src/kernels/numbers/dtype.ts'
import type { DType, ElementValue, RealDType, StorageArray } from '../../../src/kernels/numbers/dtype.ts'
import { scalarOps } from '../../../src/kernels/scalars/rareOps.ts'
import { isDefinedFor } from '../../../src/kernels/scalars/scalarOps.ts'
import type { ScalarOp } from '../../../src/kernels/scalars/scalarOps.ts'
import { seeds, tenth, turn } from '../../helpers/rotation.ts'
import { arrayOf, runWasm, valuesOf } from '../harness.ts'
import type { Args } from '../harness.ts'
import { problemsOf } from '../problems/all.ts'
import { RandomKernel } from '../problems/randomKernel.ts'
import { hasCompiler, runInC } from './runC.ts'
import type { CaseInC } from './runC.ts'

const DTYPES: readonly RealDType[] = ['bool', 'uint8', 'int8', 'int16', 'int32', 'int64', 'float16', 'bfloat16', 'float32', 'float64']
const EDGES = [
  0,
  -0,
  1,
  -1,
  0.5,
  -2.5,
  3,
  7,
  -7,
  31,
  33,
  88,
  -88,
  104,
  1e-40,
  -1e-45,
  1e38,
  65504,
  1e5,
  -2e5,
  2000,
  2 ** 31,
  -(2 ** 31),
  2 ** 53,
  1e300,
]
const SPECIAL = [NaN, Infinity, -Infinity]

/** Elements of a dtype: edges, and numbers of every size. */
function elements({ int, pick }: Random, dtype: DType, count: number): StorageArray {
  const { floating, lowest, highest } = dtypeInfo[dtype]
  const one = (): ElementValue => {
    const number = int(3) === 0 ? pick([...EDGES, ...(floating ? SPECIAL : [])]) : (int(2 ** 30) / 2 ** 30 - 0.5) * 2 ** (int(40) - 12)
    if (floating) return number
    if (dtype === 'bool') return int(2)
    if (dtype === 'int64')
      return int(5) === 0 ? pick([BigInt(lowest), BigInt(highest), -1n]) : BigInt(Math.round(number)) * BigInt(pick([1, 1, 2 ** 20]))
    return Math.max(Number(lowest), Math.min(Number(highest), Math.round(number)))
  }
  return arrayOf(dtype, Array.from({ length: count }, one))
}

/** Runs kernels both ways: every element of every buffer must be the same. Says how many there were. */
function expectSame(all: readonly CaseInC[]): void {
  const cases = all.filter(({ kernel }) => whyKernelIsNotInC(kernel) === null)
  expect(cases.length).toBeGreaterThan(0)
  const results = runInC(cases)
  cases.forEach(({ what, kernel, args, inWasm = kernel }, i) => {
    const wanted = runWasm(inWasm, args)
    for (const param of kernel.params) {
      if (param.kind !== 'buffer') continue
      const valuesIn = (data: StorageArray | undefined): readonly ElementValue[] =>
        valuesOf(param.dtype, new dtypeInfo[param.dtype].array((data ?? new Uint8Array()).buffer))
      const [got, right] = [valuesIn(results[i]?.[param.name]), valuesIn(wanted[param.name])]
      const place = right.findIndex((value, k) => !Object.is(got[k], value))
      if (place >= 0) expect(got[place], `${what}: element ${place} of ${param.name}`).toBe(right[place])
      expect(got.length).toBe(right.length)
    }
  })
}

/** Numbers whose sums depend on their order, in place of those that schedules are tested with. */
const withNoise = (random: Random, args: Args): Args =>
  Object.fromEntries(
    Object.entries(args).map(([name, value]) => [
      name,
      value instanceof Float32Array ? value.map(() => (random.int(2 ** 24) / 2 ** 23 - 1) * 2 ** random.int(4)) : value,
    ]),
  )

/** out[i] = f(a[i], …), in vectors and with a rest. */
function pointwise(name: string, dtypes: readonly DType[], result: DType, value: (operands: readonly Expr[]) => Expr, random: Random): CaseInC {
  const count = 61
  const i = loopVar('i', sizeParam('n'))
  const inputs = dtypes.map((dtype, k) => bufferParam(`a${k}`, dtype))
  const out = bufferParam('out', result, 'write')
  const body = [forLoop(i, 'simd', [store(out, at([i, 1]), value(inputs.map((input) => load(input, at([i, 1])))))])]
  const kernel: Kernel = { name, params: [out, ...inputs, ...(typeof i.extent === 'object' && i.extent.kind === 'size' ? [i.extent] : [])], body }
  const operands = Object.fromEntries(dtypes.map((dtype, k) => [`a${k}`, elements(random, dtype, count)]))
  return { what: name, kernel, args: { ...operands, out: arrayOf(result, count), n: count } }
}

const OPS = (Object.keys(scalarOps) as ScalarOp[]).flatMap((op) => DTYPES.filter((dtype) => isDefinedFor(op, dtype)).map((dtype) => ({ op, dtype })))

/** A sum along rows of a length that is known or not, of values that cost little or much. */
function reduction(random: Random, combine: Combine, dtype: RealDType, length: number): CaseInC {
  const [rows, known] = [3, random.chance(1 / 2)]
  const columns = known ? length : sizeParam('n')
  const [out, a] = [bufferParam('out', dtype, 'write'), bufferParam('a', dtype)]
  const [r, c, sum] = [loopVar('r', rows), loopVar('c', columns), local('sum', dtype)]
  const costly = dtypeInfo[dtype].compute === 'float32' && random.chance(1 / 2)
  const loaded = load(a, at([r, columns], [c, 1]))
  const value = costly ? call('tanh', loaded) : loaded
  const body = [
    forLoop(r, 'serial', [
      declare(sum, identityOf(combine, dtype)),
      forLoop(c, 'simd', [accumulate(sum, combine, value)]),
      store(out, at([r, 1]), read(sum)),
    ]),
  ]
  const args = { out: arrayOf(dtype, rows), a: elements(random, dtype, rows * length), ...(known ? {} : { n: length }) }
  const params = [out, a, ...(typeof columns === 'number' ? [] : [columns])]
  return { what: `${combine} of ${length} ${dtype}${costly ? ', costly' : ''}${known ? ', known' : ''}`, kernel: { name: 'sum', params, body }, args }
}

describe.skipIf(!hasCompiler)(`the bits of C code are those of WebAssembly code${hasCompiler ? '' : ': skipped, there is no C compiler'}`, () => {
  test.each(turn([false, true]))('for each operation, dtype and conversion; strict: %s', (strict) => {
    withStrict(strict, () => {
      const random = randomFrom(hashOf(`scalars ${strict}`))
      const operations = OPS.map(({ op, dtype }) => {
        const { arity, conditions, yieldsBool } = scalarOps[op]
        const dtypes = Array.from({ length: arity }, (_, k) => (k < conditions ? 'bool' : dtype))
        return pointwise(`${op} of ${dtype}`, dtypes, yieldsBool ? 'bool' : dtype, (operands) => call(op, ...operands), random)
      })
      const casts = DTYPES.flatMap((from) => DTYPES.map((to) => pointwise(`${from} to ${to}`, [from], to, ([a]) => cast(a as Expr, to), random)))
      const scalars = DTYPES.map((dtype) => {
        const given = scalarParam('s', dtype)
        const { kernel, args, what } = pointwise(
          `scalar of ${dtype}`,
          [dtype],
          dtype,
          ([a]) => call('where', call('eq', a as Expr, a as Expr), scalar(given), a as Expr),
          random,
        )
        return { what, kernel: { ...kernel, params: [...kernel.params, given] }, args: { ...args, s: 2.7 } }
      })
      const all = [...operations, ...casts, ...scalars]
      for (const { kernel } of all) verifyKernel(kernel)
      // Functions that JavaScript computes, and those alone.
      const missing = operations.filter(({ kernel }) => whyKernelIsNotInC(kernel) !== null).map(({ what }) => what)
      expect(missing.filter((what) => !what.endsWith(' of float64')).every((what) => !/^(exp|log|tanh|sin|cos|erf|sigmoid|pow) of/.test(what))).toBe(
        true,
      )
      expectSame(tenth(all, ({ what }) => what))
    })
  })

  test('for sums, products and extremes of every length', () => {
    const random = randomFrom(29)
    const lengths = [0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 20, 31, 32, 33, 63, 64, 67, 100, 131]
    const combines: readonly Combine[] = ['add', 'mul', 'min', 'max']
    const all = combines.flatMap((combine) =>
      DTYPES.flatMap((dtype) => (combine === 'mul' && dtype === 'bool' ? [] : lengths.map((length) => reduction(random, combine, dtype, length)))),
    )
    expectSame(tenth(all, ({ what }) => what))
  })

  // All of them with TENSORFX_FULL=1: compilers take their time.
  test('for problems of schedules, in the tiles of WebAssembly and in those of machine code', () => {
    const problems = Object.entries(problemsOf).flatMap(([name, draw]) => Array.from({ length: 30 }, (_, i) => ({ id: `${name} ${i}`, draw })))
    const some = tenth(
      tenth(problems, ({ id }) => `in C ${id}`),
      ({ id }) => id,
    )
    const all = some.flatMap(({ id, draw }) => {
      const random = randomFrom(hashOf(id))
      const { what, kernels, args } = draw(random)
      const noise = withNoise(random, args)
      const own = kernels(processEngine())
      // The same problem in the tiles of machine code, whose kernels have the same operands.
      const machine = (['native16', 'native8', 'native4'] as const).flatMap((engine) =>
        kernels(engine)
          .slice(0, 1)
          .map(({ tile, kernel }) => ({ tile: `${engine} ${tile}`, kernel, inWasm: own[0]?.kernel ?? kernel })),
      )
      return [...own, ...machine].flatMap((built) => [
        { what: `${id}, ${built.tile}: ${what}`, args, ...built },
        { what: `${id}, ${built.tile}, noise: ${what}`, args: noise, ...built },
      ])
    })
    for (let from = 0; from < all.length; from += 200) expectSame(all.slice(from, from + 200))
  })

  test('for drawn kernels of loops that are written out, arrays and scratch memory', () => {
    const args = (n: number): Args => ({
      out: Float32Array.from({ length: 4000 }, (_, i) => i / 7),
      a: Float32Array.from({ length: 4000 }, (_, i) => Math.sin(i)),
      n,
    })
    expectSame(
      seeds('TENSORFX_FUZZ_SEED', 60, 2900).flatMap((seed) => {
        const kernel = new RandomKernel(seed).kernel()
        verifyKernel(kernel)
        return [{ what: `seed ${seed}`, kernel, args: args(1 + (seed % 3)) }]
      }),
    )
  })
})

test('kernels with functions of JavaScript have no C code, which says which', () => {
  const random = randomFrom(1)
  const { kernel } = pointwise('lgamma', ['float32'], 'float32', ([a]) => call('lgamma', a as Expr), random)
  expect(whyKernelIsNotInC(kernel)).toBe('lgamma of float32 is a function of JavaScript')
  const { kernel: exp64 } = pointwise('exp', ['float64'], 'float64', ([a]) => call('exp', a as Expr), random)
  expect(whyKernelIsNotInC(exp64)).toBe('exp of float64 is a function of JavaScript')
  const { kernel: exp } = pointwise('exp', ['float32'], 'float32', ([a]) => call('exp', a as Expr), random)
  expect(whyKernelIsNotInC(exp)).toBeNull()
  expect(emitSource([{ kernel: exp, name: 'k0' }], true)).toContain('void k0(int32_t a0, int32_t a1, int32_t a2) {')
})
