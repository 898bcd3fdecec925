// What rounding can do to a run: inputs, and what each operator gives, moved by a few units in the last place. Moved inputs show what the sums inside of an operator may
// come to in another order; moved results show what is left where operators cancel each other. An operator that jumps (`floor`, a comparison, `argmax`, `fmod`) is on the other side of its
// threshold in one of these runs if rounding decides on which side it is.
import { noGrad } from '../../autograd/index.ts'
import { dispatchBelowAutograd, withoutModes } from '../../dispatch/index.ts'
import type { Arg, DispatchMode, OpDef, Result } from '../../dispatch/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { copyInto } from '../../ops/eager/copy.ts'
import { clone, expand, to } from '../../ops/index.ts'
import { treeLeaves } from '../../pytree/index.ts'
import { Tensor, finfo, numbersOf, tensorFromValues } from '../../tensor/index.ts'
import { elementsOf } from './closeness.ts'

/** By how many units in the last place inputs are moved, and results of operators. */
export const INPUTS = 8
const RESULTS = 4

/** Seeds of runs, in pairs of opposites: whatever one of a pair moves up, the other moves down. */
export const SEED_PAIRS: readonly (readonly [number, number])[] = [
  [1, -1],
  [2, -2],
]

/** The seed of the n-th of several tensors. */
const nthSeed = (seed: number, n: number): number => Math.sign(seed) * (Math.abs(seed) * 1000 + n)

/** Moves what a run begins with, in its memory: each tensor in other directions than all others, and than what operators compute later. */
export function moveInputs(tensors: Iterable<unknown>, seed: number): void {
  let count = 0
  for (const tensor of tensors) if (tensor instanceof Tensor) move(tensor, nthSeed(seed, --count), INPUTS)
}

/**
 * The verdict of `judge` on no runs; while that is not `fine`, with more pairs of them, which `run` makes from seeds. A run that is null could not be made: a moved input may be one that a
 * graph rejects.
 */
export function judgedWithRuns<R, V>(run: (seed: number) => R | null, judge: (runs: readonly R[]) => V, isFine: (verdict: V) => boolean): V {
  const runs: R[] = []
  let verdict = judge(runs)
  for (const pair of SEED_PAIRS) {
    if (isFine(verdict)) break
    const [first, second] = pair.map(run)
    if (first !== null && first !== undefined && second !== null && second !== undefined) runs.push(first, second)
    verdict = judge(runs)
  }
  return verdict
}

/** The smallest number of a dtype: what is about as small has no digits left, and may be zero. */
export const leastOf = (dtype: DType): number => finfo(dtype).tiny * finfo(dtype).eps

/** As many of the smallest numbers count as small. */
const FEW = 16

/** A value that was moved. Rounding makes a zero of a small one, and no number of the other sign. */
export function movedBy(value: number, by: number, dtype: DType, sign = Math.sign(value)): number {
  if (!Number.isFinite(value)) return value
  const to = value + by
  return Math.abs(value) <= FEW * leastOf(dtype) && to * sign < 0 ? 0 : to
}

/** Whether no implementation rounds an element. */
type IsExact = (value: number, i: number) => boolean

/** Moves the elements of a floating-point tensor, in its memory. Integral values stay if nothing else is said: sums and products of them are exact, and often at a threshold. */
export function move(tensor: Tensor, seed: number, units: number, isExact: IsExact = Number.isInteger): void {
  const { dtype, shape } = tensor
  if (!dtypeInfo[dtype].floating) return
  const by = units * finfo(dtype).eps
  const values = Array.from(tensor.toTypedArray(), (value, i) =>
    isExact(value, i) ? value : movedBy(value, (signOf(i, seed) ? 1 : -1) * Math.max(by * Math.abs(value), leastOf(dtype)), dtype),
  )
  copyInto(tensorFromValues(values, shape, dtype), tensor)
}

/** Signs without a pattern that sums would cancel. Those of a negative seed are the opposite ones. */
export function signOf(i: number, seed: number): boolean {
  let bits = Math.imul(i + 1, 0x9e3779b1) ^ Math.imul(Math.abs(seed) + 1, 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 15), 0x2c1b3c6d)
  return (((bits ^ (bits >>> 12)) & 1) === 0) !== seed < 0
}

const isPowerOfTwo = (value: number): boolean => Number.isInteger(Math.log2(Math.abs(value)))

/**
 * Moves quotients by their dividend, so that a quotient which is rounded (`fmod`, `remainder`, `floorDivide`) comes to another whole number where rounding decides. A whole quotient is not exact: 49 times the
 * reciprocal of 49 is less than 1. By a power of two it is.
 */
export class Quotients implements DispatchMode {
  readonly name: string = 'quotients'
  readonly #seed: number
  #count = 0

  constructor(seed: number) {
    this.#seed = seed
  }

  protected next(): number {
    return nthSeed(this.#seed, ++this.#count)
  }

  handle(op: OpDef, args: readonly Arg[]): Result {
    return dispatchBelowAutograd(op, this.dividing(op, args))
  }

  /** The arguments, with a moved dividend. An operator that writes finds it in the memory that it is about to write. */
  protected dividing(op: OpDef, args: readonly Arg[]): readonly Arg[] {
    const [dividend, divisor, ...rest] = args
    if (!isQuotient(op) || !isOperand(dividend) || !isOperand(divisor)) return args
    const specs = op.meta(...args)
    const [spec] = 'dtype' in specs ? [specs] : specs
    if (spec === undefined || !dtypeInfo[spec.dtype].floating) return args
    const { shape, dtype } = numbersOf(spec)
    const into = op.tags.has('mutates') && dividend instanceof Tensor ? dividend : filled(dividend, shape, dtype)
    const by = elementsOf(filled(divisor, shape, 'float64'))
    move(into, this.next(), RESULTS, (value, i) => value === 0 || (Number.isInteger(value) && isPowerOfTwo(by[i] ?? NaN)))
    return [into, divisor, ...rest]
  }
}

const isQuotient = (op: OpDef): boolean => (op.functional ?? op).tags.has('quotient')

const isOperand = (arg: Arg | undefined): arg is Tensor | number => typeof arg === 'number' || arg instanceof Tensor

/** A new tensor with the elements of an operand. */
function filled(operand: Tensor | number, shape: readonly number[], dtype: DType): Tensor {
  const given = typeof operand === 'number' ? tensorFromValues([operand], [], dtype) : operand
  return withoutModes(() => noGrad(() => clone(to(expand(given, shape), dtype))))
}

/** Moves what operators compute. Views, writes and new tensors are left alone. */
export class Rounding extends Quotients {
  override readonly name = 'rounding'

  override handle(op: OpDef, args: readonly Arg[]): Result {
    const given = this.dividing(op, args)
    const result = dispatchBelowAutograd(op, given)
    if (op.tags.has('creation') || given !== args) return result
    // Views and writes lie in the memory of an argument.
    const taken = new Set(treeLeaves(args).map((arg) => (arg instanceof Tensor ? arg.storage?.home : null)))
    for (const tensor of result instanceof Tensor ? [result] : result)
      if (!taken.has(tensor.storage?.home)) move(tensor, this.next(), RESULTS, exactnessOf(op, args, tensor))
    return result
  }
}

/** Which results of an operator are exact. A function that is not made for integers, or that ends in a division, may miss a whole number. At its ends (`sigmoid(100)`, `exp(0)`) it does not. */
function exactnessOf(op: OpDef, [input]: readonly Arg[], { numel }: Tensor): IsExact {
  if (op.pointwise?.promotion === 'float') return (value) => Number.isInteger(value) && Math.abs(value) <= 1
  const isDivided = op.reduction?.finish !== undefined && input instanceof Tensor && !isPowerOfTwo(input.numel / numel)
  return isDivided ? (value) => value === 0 : Number.isInteger
}
