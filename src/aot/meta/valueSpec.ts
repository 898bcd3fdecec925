// What captured graphs say of a node's value, in `meta.val`: shape, dtype and strides of a tensor, or of each of several.
import type { Node } from '../../fx/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'

const isSpec = (value: unknown): value is TensorSpec =>
  typeof value === 'object' && value !== null && 'shape' in value && 'dtype' in value && Array.isArray(value.shape) && typeof value.dtype === 'string'

/** The spec of a node's tensor, an array for several tensors; undefined if nothing is known, or the value is not a tensor. */
export function valueSpec(node: Node): TensorSpec | readonly TensorSpec[] | undefined {
  const value = node.meta['val']
  if (isSpec(value)) return value
  return Array.isArray(value) && value.every(isSpec) ? value : undefined
}
