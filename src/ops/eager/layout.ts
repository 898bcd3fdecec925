// Layouts of operands that are walked together, in as few dimensions as possible.
import { collapseDims, sameShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'

/** The loops over several operands: sizes and strides, with dimensions merged where all operands allow it. */
export interface Layout {
  readonly dims: readonly number[]
  /** One list per operand, in the order given. */
  readonly strides: readonly (readonly number[])[]
  /** For each dimension, whether it is reduced. */
  readonly reduced: readonly boolean[]
}

/**
 * Drops dimensions of size 1 and merges neighbours that every operand walks as one. A reduced dimension is not merged with one that is kept.
 * At least one dimension remains; if all were dropped, it counts as reduced.
 */
export function collapseLayout(shape: readonly number[], strides: readonly (readonly number[])[], reducedDims: readonly boolean[] = []): Layout {
  const layout = collapseDims(shape, strides, reducedDims)
  return layout.dims.length === 0 ? { dims: [1], strides: strides.map(() => [1]), reduced: [true] } : layout
}

/** The strides by which `tensor` is walked along `shape`: 0 where it is broadcast. */
export function broadcastStrides(tensor: Tensor, shape: readonly number[]): readonly number[] {
  if (sameShape(tensor.sizes, shape)) return tensor.steps
  const lead = shape.length - tensor.ndim
  return shape.map((_, i) => (i < lead || tensor.sizes[i - lead] === 1 ? 0 : (tensor.steps[i - lead] ?? 0)))
}
