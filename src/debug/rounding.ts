// What rounding can do to a run: inputs, and what each operator gives, moved by a few units in the last place. Moved inputs show what the sums inside of an operator may
// come to in another order; moved results show what is left where operators cancel each other.
import { dispatchBelowAutograd } from '../dispatch/index.ts'
import type { Arg, DispatchMode, OpDef, Result } from '../dispatch/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import type { DType } from '../kernels/index.ts'
import { copyInto } from '../ops/eager/copy.ts'
import { treeLeaves } from '../pytree/index.ts'
import { Tensor, finfo, tensorFromValues } from '../tensor/index.ts'

/** By how many units in the last place inputs are moved, and results of operators. */
export const INPUTS = 8
const RESULTS = 4

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

/** Moves the elements of a floating-point tensor, in its memory. Integral values stay: they are exact, and often at a threshold. */
export function move(tensor: Tensor, seed: number, units: number): void {
  const { dtype, shape } = tensor
  if (!dtypeInfo[dtype].floating) return
  const by = units * finfo(dtype).eps
  const values = Array.from(tensor.toTypedArray(), (value, i) =>
    Number.isInteger(value) ? value : movedBy(value, (signOf(i, seed) ? 1 : -1) * Math.max(by * Math.abs(value), leastOf(dtype)), dtype),
  )
  copyInto(tensorFromValues(values, shape, dtype), tensor)
}

/** Signs without a pattern that sums would cancel. */
export function signOf(i: number, seed: number): boolean {
  let bits = Math.imul(i + 1, 0x9e3779b1) ^ Math.imul(seed + 1, 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 15), 0x2c1b3c6d)
  return ((bits ^ (bits >>> 12)) & 1) === 0
}

/** Moves what operators compute. Views, writes and new tensors are left alone. */
export class Rounding implements DispatchMode {
  readonly name = 'rounding'
  #seed: number

  constructor(seed: number) {
    this.#seed = seed * 1000
  }

  handle(op: OpDef, args: readonly Arg[]): Result {
    const result = dispatchBelowAutograd(op, args)
    if (op.tags.has('creation')) return result
    // Views and writes lie in the memory of an argument.
    const taken = new Set(treeLeaves(args).map((arg) => (arg instanceof Tensor ? arg.storage?.home : null)))
    for (const tensor of result instanceof Tensor ? [result] : result) if (!taken.has(tensor.storage?.home)) move(tensor, ++this.#seed, RESULTS)
    return result
  }
}
