// The errors of exp, expm1, tanh, sigmoid, log and erf over all float32, in units of the last place, for both engines. A run takes one number in 1009, another one each day;
// TENSORFX_FULL=1 takes every number.
import { expect, test } from 'vitest'
import { withStrict } from '../../../src/kernels/engine/computing.ts'
import { at, bufferParam, call, forLoop, load, loopVar, store } from '../../../src/kernels/ir/loopIr.ts'
import { erf, sigmoid } from '../../../src/kernels/numbers/numbers.ts'
import { hostFunctions } from '../../../src/kernels/scalars/scalarOps.ts'
import type { ScalarOp } from '../../../src/kernels/scalars/scalarOps.ts'
import { emitKernel } from '../../../src/kernels/emit/emit.ts'
import { isFull, rotation } from '../../helpers/rotation.ts'

/** This many numbers are computed at once. */
const STRETCH = 2 ** 16
const NUMBERS = 2 ** 32
/** One of this many neighbours is taken; a prime, so that all patterns of low bits come to their turn. */
const EVERY = 1009

interface Case {
  readonly op: ScalarOp
  readonly reference: (x: number) => number
  /** The largest errors, in units of the last place: of strict code, and of fused multiply-add. */
  readonly ulps: readonly [number, number]
}

/** The value where |x| is so small or so large that no function needs to be called, which would take most of the time. */
const limits = (x: number, small: number, atZero: (x: number) => number, low: number, atLow: number, high: number, atHigh: number): number | null =>
  Math.abs(x) < small ? atZero(x) : x < low ? atLow : x > high ? atHigh : null

const CASES: readonly Case[] = [
  { op: 'exp', reference: (x) => limits(x, 2 ** -30, () => 1, -110, 0, 90, Infinity) ?? Math.exp(x), ulps: [1, 1] },
  { op: 'expm1', reference: (x) => limits(x, 2 ** -30, (y) => y, -30, -1, 90, Infinity) ?? Math.expm1(x), ulps: [2, 1] },
  { op: 'tanh', reference: (x) => limits(x, 2 ** -15, (y) => y, -12, -1, 12, 1) ?? Math.tanh(x), ulps: [2, 2] },
  { op: 'sigmoid', reference: (x) => limits(x, 2 ** -30, () => 0.5, -110, 0, 30, 1) ?? sigmoid(x), ulps: [2, 2] },
  { op: 'log', reference: (x) => (x < 0 ? NaN : Math.log(x)), ulps: [1, 1] },
  { op: 'erf', reference: (x) => limits(x, 2 ** -15, (y) => y * (2 / Math.sqrt(Math.PI)), -5, -1, 5, 1) ?? erf(x), ulps: [7, 6] },
]

/** A function of stretches: it takes the numbers in `input`, and leaves results in `output`. */
function compiled(op: ScalarOp): { readonly input: Int32Array; readonly output: Float32Array; readonly run: () => void } {
  const i = loopVar('i', STRETCH)
  const [out, a] = [bufferParam('out', 'float32', 'write'), bufferParam('a', 'float32')]
  const wasm = emitKernel({ name: op, params: [out, a], body: [forLoop(i, 'simd', [store(out, at([i, 1]), call(op, load(a, at([i, 1]))))])] })
  const memory = new WebAssembly.Memory({ initial: (8 * STRETCH) / 2 ** 16 })
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(wasm), { env: { memory }, math: hostFunctions })
  const run = exports['run'] as (out: number, a: number) => void
  return {
    input: new Int32Array(memory.buffer, 0, STRETCH),
    output: new Float32Array(memory.buffer, 4 * STRETCH, STRETCH),
    run: () => run(4 * STRETCH, 0),
  }
}

/** The smallest float32 that is not subnormal. */
const SMALLEST_NORMAL = 2 ** -126

/** The place of a float32 in their order, from its bits. */
const place = (bits: number): number => (bits < 0 ? -2147483648 - bits : bits)

interface Worst {
  readonly ulps: number
  /** The number that has this error. */
  readonly x: number
}

/** The largest errors of strict code and of fused multiply-add. */
function worst({ op, reference }: Case, first: number, step: number): readonly Worst[] {
  const engines = [true, false].map((strict) => withStrict(strict, () => compiled(op)))
  const largest = engines.map(() => ({ ulps: 0, x: 0 }))
  const [bits, expected] = [new Int32Array(STRETCH), new Float32Array(STRETCH)]
  const [numbers, expectedBits] = [new Float32Array(bits.buffer), new Int32Array(expected.buffer)]
  for (let start = first; start < NUMBERS; start += STRETCH * step) {
    for (let k = 0; k < STRETCH; k++) bits[k] = start + k * step
    for (let k = 0; k < STRETCH; k++) expected[k] = reference(numbers[k] ?? NaN)
    engines.forEach(({ input, output, run }, i) => {
      input.set(bits)
      run()
      const outputBits = new Int32Array(output.buffer, output.byteOffset, STRETCH)
      for (let k = 0; k < STRETCH; k++) {
        if (expectedBits[k] === outputBits[k]) continue
        const [got, right] = [output[k] ?? NaN, expected[k] ?? NaN]
        if (Number.isNaN(got) && Number.isNaN(right)) continue
        // Below -88.72 the exponential of -x overflows: sigmoid is 0 there, as PyTorch's is, in the place of a subnormal number.
        if (op === 'sigmoid' && got === 0 && right < SMALLEST_NORMAL) continue
        const error = Number.isNaN(got) !== Number.isNaN(right) ? Infinity : Math.abs(place(outputBits[k] ?? 0) - place(expectedBits[k] ?? 0))
        if (error > (largest[i]?.ulps ?? 0)) largest[i] = { ulps: error, x: numbers[k] ?? NaN }
      }
    })
  }
  return largest
}

const [first, step] = isFull ? [0, 1] : [rotation % EVERY, EVERY]

test.each(CASES)('$op of every float32 is within $ulps units in the last place, strict and fused', { timeout: 1_800_000 }, (of) => {
  worst(of, first, step).forEach(({ ulps, x }, i) => {
    expect(ulps, `${of.op}(${x})`).toBeLessThanOrEqual(of.ulps[i] ?? 0)
  })
})
