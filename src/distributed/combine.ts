// Reductions of whole tensors, with the operators of the table: for backends that have no reductions of their own.
import { add, bitwiseAnd, bitwiseOr, bitwiseXor, maximum, minimum, mul } from '../ops/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { BackendReduceOp } from './collective.ts'

const COMBINE: Readonly<Record<BackendReduceOp, (a: Tensor, b: Tensor) => Tensor>> = {
  sum: add,
  product: mul,
  min: minimum,
  max: maximum,
  band: bitwiseAnd,
  bor: bitwiseOr,
  bxor: bitwiseXor,
}

/** For booleans a sum is "or", a product "and". */
export const OF_BOOLEANS: Readonly<Record<BackendReduceOp, BackendReduceOp>> = {
  sum: 'bor',
  product: 'band',
  min: 'band',
  max: 'bor',
  band: 'band',
  bor: 'bor',
  bxor: 'bxor',
}

/** Reduces tensors of one dtype and shape, from the first to the last: every rank that does so gets the same bits. */
export function combine(op: BackendReduceOp, [first, ...others]: readonly [Tensor, ...Tensor[]]): Tensor {
  const operation = COMBINE[first.dtype === 'bool' ? OF_BOOLEANS[op] : op]
  return others.reduce((sum, other) => operation(sum, other), first)
}
