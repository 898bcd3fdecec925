// What the mode of vmap and its rules have in common.
import type { Arg, OpDef, Result } from '../dispatch/index.ts'
import type { Tensor } from '../tensor/index.ts'

/** What rules need to know of a batch. */
export interface Batch {
  readonly size: number
  /** The tensor behind a batched one, with the batch first; null if all examples share the tensor. */
  behind(tensor: Tensor): Tensor | null
  /** The same, and for a shared tensor as many views of it as there are examples. */
  whole(tensor: Tensor): Tensor
}

/** Computes an operator on what is behind its arguments. Null if the rule does not hold for these arguments. */
export type Rule = (op: OpDef, args: readonly Arg[], batch: Batch) => (() => Result) | null
