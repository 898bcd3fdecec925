// Nested values as messages between threads: tensors as copies of their data, all else by structured clone.
import { treeFlatten, treeUnflatten } from '../pytree/index.ts'
import type { TreeSpec } from '../pytree/index.ts'
import { Tensor, fromTransfer } from '../tensor/index.ts'
import type { TensorTransfer } from '../tensor/index.ts'

/** A value that can be sent. */
export interface Encoded {
  readonly spec: TreeSpec
  /** A tensor's message, or the value itself. */
  readonly leaves: readonly ({ readonly tensor: TensorTransfer } | { readonly value: unknown })[]
}

export function encodeMessage(value: unknown): Encoded {
  const { leaves, spec } = treeFlatten(value)
  return { spec, leaves: leaves.map((leaf) => (leaf instanceof Tensor ? { tensor: leaf.detach().transfer() } : { value: leaf })) }
}

/** The buffers that can be moved instead of copied. */
export const buffersOf = ({ leaves }: Encoded): ArrayBuffer[] => leaves.flatMap((leaf) => ('tensor' in leaf ? [leaf.tensor.buffer] : []))

export const decodeMessage = ({ spec, leaves }: Encoded): unknown =>
  treeUnflatten(
    leaves.map((leaf) => ('tensor' in leaf ? fromTransfer(leaf.tensor) : leaf.value)),
    spec,
  )
