// Every entry of the table of scalar operations on the GPU against the interpreter that defines it: special values and drawn ones. Integers and bools are exact, functions of
// float32Math within 2 units of the last place, the rest within 4; erf, the same code as in WebAssembly, has its 7 (everyFloat32.test.ts). Division and square roots are exact. Subnormal operands are left out, and so are those whose
// remainder is subnormal: GPUs may take them for 0.
import { describe, expect, test } from 'vitest'
import { DTYPES, dtypeInfo } from '../../../src/kernels/numbers/dtype.ts'
import type { DType, ElementValue } from '../../../src/kernels/numbers/dtype.ts'
import { rounded } from '../../../src/kernels/numbers/numbers.ts'
import { scalarOps } from '../../../src/kernels/scalars/rareOps.ts'
import { isDefinedFor } from '../../../src/kernels/scalars/scalarOps.ts'
import type { ScalarOp } from '../../../src/kernels/scalars/scalarOps.ts'
import { whyNotOnDevice } from '../../../src/kernels/wgsl/scalars.ts'
import { third } from '../../helpers/rotation.ts'
import { runCast, runOp, ulps } from './harness.ts'
import type { Outcome } from './harness.ts'

const FLOATS = [
  0,
  -0,
  1,
  -1,
  0.5,
  -0.5,
  1.5,
  2.5,
  -2.5,
  3,
  7,
  -7,
  0.1,
  1e-3,
  1e-20,
  1e20,
  -1e20,
  16777216,
  16777217,
  8388607.5,
  2147483648,
  -2147483648,
  1e10,
  88.5,
  -88.5,
  100,
  -104,
  1024.5,
  1e5,
  1e7,
  3.4028234e38,
  1.1754944e-38,
  Infinity,
  -Infinity,
  NaN,
]
const INTS = [0, 1, -1, 2, -2, 3, 7, -7, 31, 32, 33, 64, 100, -100, 65535, 65536, 16777217, 2147483647, -2147483648, -2147483647]
const LONGS = [
  ...INTS.map(BigInt),
  4294967295n,
  4294967296n,
  -4294967296n,
  6442450941n,
  9007199254740993n,
  -9007199254740993n,
  2n ** 62n,
  2n ** 63n - 1n,
  -(2n ** 63n),
  -(2n ** 63n) + 1n,
]

/** Numbers from a generator with a fixed seed. */
function drawer(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0
    return state
  }
}
const float = new Float32Array(1)
const word = new Int32Array(float.buffer)

function drawn(dtype: DType, count: number, seed: number): readonly ElementValue[] {
  const next = drawer(seed)
  return Array.from({ length: count }, (_, i): ElementValue => {
    const bits = next()
    if (dtypeInfo[dtype].kind === 'bool') return bits & 1
    if (dtype === 'int64') return rounded('int64', (BigInt(bits) << BigInt((next() >>> 3) & 31)) ^ BigInt(next()))
    if (dtypeInfo[dtype].kind === 'integer') return rounded(dtype, i % 2 === 0 ? bits : bits >> 24)
    // Half of them of magnitudes that functions know, half of all bits.
    word[0] = i % 2 === 0 ? ((bits & 0x80ffffff) | ((120 + (i % 16)) << 23)) & ~0 : bits
    const value = float[0] ?? 0
    return Number(rounded(dtype, Math.abs(value) < 2 ** -126 ? 0.75 : value))
  })
}

function special(dtype: DType): readonly ElementValue[] {
  if (dtypeInfo[dtype].kind === 'bool') return [0, 1]
  if (dtype === 'int64') return LONGS
  if (dtypeInfo[dtype].kind === 'integer') return [...new Set(INTS.map((value) => rounded(dtype, value)))]
  return FLOATS.map((value) => Number(rounded(dtype, value)))
}

const worst = ({ dtype, device, oracle }: Outcome): { error: number; at: number } => {
  let [error, at] = [0, -1]
  device.forEach((value, i) => {
    const expected = oracle[i]
    const one = dtypeInfo[dtype].floating ? ulps(Number(value), Number(expected)) : value === expected ? 0 : Infinity
    if (one > error) [error, at] = [one, i]
  })
  return { error, at }
}

const OPS = (Object.keys(scalarOps) as ScalarOp[]).filter((op) => whyNotOnDevice(op, 'float32') === null)
const OF_FLOAT32_MATH = new Set<ScalarOp>(['exp', 'expm1', 'log', 'log1p', 'sin', 'cos', 'tanh', 'erf', 'sigmoid', 'sinh', 'cosh'])
/** Arithmetic with one rounding, as in WebAssembly. */
const EXACT = new Set<ScalarOp>(['add', 'sub', 'mul', 'div', 'sqrt', 'reciprocal'])
/** Whose remainders may be subnormal. */
const DIVISIONS = new Set<ScalarOp>(['remainder', 'floorDiv'])

function operandsOf(op: ScalarOp, dtype: DType): readonly (readonly ElementValue[])[] {
  const { arity, conditions } = scalarOps[op]
  const values = special(dtype)
  const isFar = (value: ElementValue): boolean => DIVISIONS.has(op) && dtypeInfo[dtype].floating && value !== 0 && Math.abs(Number(value)) < 2 ** -90
  const drawnOf = (seed: number): readonly ElementValue[] => drawn(dtype, 1000, seed).map((value) => (isFar(value) ? 0.75 : value))
  if (arity === 1) return [[...values, ...drawn(dtype, 2000, 7)]]
  const near = values.filter((value) => !isFar(value))
  const pairs = near.flatMap((a) => near.map((b) => [a, b] as const))
  const [left, right] = [
    [...pairs.map(([a]) => a), ...drawnOf(7)],
    [...pairs.map(([, b]) => b), ...drawnOf(8)],
  ]
  if (arity === 2) return [left, right]
  // Products that are subnormal would be added as 0.
  if (op === 'mulAdd')
    return [
      left.map((a, i) => (Math.abs(Number(a) * Number(right[i])) < 2 ** -126 ? 1 : a)),
      right,
      right.map((_, i) => left[(i * 7) % left.length] ?? 0),
    ]
  return conditions === 1 ? [left.map((_, i) => i % 2), left, right] : [left, right, right.map((_, i) => left[(i * 7) % left.length] ?? 0)]
}

/** The interpreter rounds a * b + c once, in float64; shaders round once or twice, as the driver likes: the outcome is compared with what is nearer. */
function roundedOnceOrTwice(outcome: Outcome, operands: readonly (readonly ElementValue[])[]): Outcome {
  const [a = [], b = [], c = []] = operands.map((values) => values.map(Number))
  const oracle = outcome.oracle.map((once, i) => {
    const twice = Number(rounded(outcome.dtype, Math.fround(Math.fround((a[i] ?? NaN) * (b[i] ?? NaN)) + (c[i] ?? NaN))))
    const value = Number(outcome.device[i])
    return ulps(value, Number(once)) < ulps(value, twice) ? once : twice
  })
  return { ...outcome, oracle }
}

describe('the table of scalar operations on the GPU', () => {
  const table = OPS.flatMap((op) =>
    DTYPES.filter((dtype) => isDefinedFor(op, dtype) && dtypeInfo[dtype].compute !== 'float64').map((dtype) => [op, dtype] as const),
  )
  test.each(third(table))('%s of %s', async (op, dtype) => {
    const operands = operandsOf(op, dtype)
    const outcome = op === 'mulAdd' ? roundedOnceOrTwice(await runOp(op, dtype, operands), operands) : await runOp(op, dtype, operands)
    const { error, at } = worst(outcome)
    const isExact = !dtypeInfo[outcome.dtype].floating || EXACT.has(op)
    const bound = isExact ? 0 : OF_FLOAT32_MATH.has(op) ? (op === 'erf' ? 7 : 2) : 4
    const scale = dtype === 'float16' ? 2 ** 13 : dtype === 'bfloat16' ? 2 ** 16 : 1
    expect(
      error / scale,
      `at ${operands.map((values) => values[at]).join(', ')}: ${outcome.device[at]} for ${outcome.oracle[at]}`,
    ).toBeLessThanOrEqual(bound)
  })
})

describe('conversions on the GPU', () => {
  const onDevice = DTYPES.filter((dtype) => dtypeInfo[dtype].compute !== 'float64')
  test.each(third(onDevice.flatMap((from) => onDevice.filter((to) => to !== from).map((to) => [from, to] as const))))(
    '%s to %s are exact',
    async (from, to) => {
      const values = [...special(from), ...drawn(from, 1000, 9)]
      const outcome = await runCast(from, to, values)
      const { error, at } = worst(outcome)
      expect(error, `at ${values[at]}: ${outcome.device[at]} for ${outcome.oracle[at]}`).toBe(0)
    },
  )
})
