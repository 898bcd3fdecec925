// What passes note in the meta of nodes, read with its type.
import { ArgumentError } from '../../../errors/index.ts'
import { checkDepth, isPlainObject, isTensorLike } from '../../../protocol/index.ts'
import { checkNode } from '../../../protocol/graphChecks.ts'
import { isTensorRecord, recordOf } from '../../graph/nodeValue.ts'
import type { Node } from '../../graph/node.ts'

/** What is recorded about a tensor. */
export interface TensorMetadata {
  readonly shape: readonly number[]
  readonly dtype: string
  readonly requiresGrad: boolean
  /** Strides, in elements. */
  readonly strides: readonly number[]
}

/** Whether a note is that of one tensor, not of an array or object of them. */
export function isTensorMetadata(note: unknown): note is TensorMetadata {
  return isPlainObject(note) && isTensorRecord(note)
}

/** The metadata of a tensor. Arrays and plain objects are mapped item by item; other values stay unchanged. */
export function extractTensorMetadata(value: unknown): unknown {
  return metadataOf(value, 0)
}

function metadataOf(value: unknown, depth: number): unknown {
  checkDepth(depth)
  if (isTensorLike(value)) {
    const { shape, dtype, strides = [] } = recordOf(value)
    return { shape, dtype, requiresGrad: value.requiresGrad, strides } satisfies TensorMetadata
  }
  if (Array.isArray(value)) return value.map((item) => metadataOf(item, depth + 1))
  return isPlainObject(value) ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, metadataOf(item, depth + 1)])) : value
}

/** What ShapeProp has recorded about a node's value; null if that is not one tensor, or if nothing is recorded. */
export function tensorMetaOf(node: Node): TensorMetadata | null {
  const note = node.meta['tensor_meta']
  return isTensorMetadata(note) ? note : null
}

/** Whether ShapeProp has found no tensor in a node's value. */
export const isWithoutTensor = (node: Node): boolean => !('tensor_meta' in node.meta)

/** Whether ShapeProp has recorded that a node's value is one tensor: not a number, and not an array of tensors. PyTorch's is_node_output_tensor. */
export function isNodeOutputTensor(node: Node): boolean {
  checkNode('isNodeOutputTensor', node)
  return tensorMetaOf(node) !== null
}

/**
 * What ShapeProp has recorded about a node's value. PyTorch's get_tensor_meta.
 * @throws ArgumentError if it has recorded nothing, or if the value is not one tensor.
 */
export function getTensorMeta(node: Node): TensorMetadata {
  checkNode('getTensorMeta', node)
  const meta = tensorMetaOf(node)
  if (meta !== null) return meta
  throw new ArgumentError(
    isWithoutTensor(node)
      ? `Node ${node.name} has no tensor metadata associated with it! Check that shape propagation has run.`
      : `getTensorMeta: the value of node '${node.name}' holds several tensors; ask for the nodes that take them out, such as getitem.`,
  )
}

/** The part that a node is to be in, `meta.tag`. PyTorch's node.tag. */
export const tagOf = (node: Node): unknown => node.meta['tag']
