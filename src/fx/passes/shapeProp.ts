// ShapeProp: runs a graph on example inputs and notes shape and dtype of every value in `meta.tensor_meta`.
import { isTensorLike } from '../../protocol/index.ts'
import { Interpreter } from '../interpreter.ts'
import type { Node } from '../node.ts'

/** What is noted of a tensor. */
export interface TensorMetadata {
  readonly shape: readonly number[]
  readonly dtype: string
  readonly requiresGrad: boolean
  /** In elements. */
  readonly strides: readonly number[]
}

/** The metadata of a tensor; nested arrays of it for arrays; null for anything else. */
export function extractTensorMetadata(value: unknown): TensorMetadata | readonly unknown[] | null {
  if (isTensorLike(value)) {
    const { shape, dtype, requiresGrad } = value
    return { shape, dtype, requiresGrad, strides: (value as unknown as { strides?: readonly number[] }).strides ?? [] }
  }
  if (Array.isArray(value)) return value.map(extractTensorMetadata)
  return null
}

/** Shape propagation; PyTorch's torch.fx.passes.shape_prop.ShapeProp. `new ShapeProp(gm).propagate(...inputs)`. */
export class ShapeProp extends Interpreter {
  override runNode(node: Node): unknown {
    const value = super.runNode(node)
    const meta = extractTensorMetadata(value)
    if (meta !== null) node.meta['tensor_meta'] = meta
    node.meta['type'] = value === null ? 'null' : typeof value === 'object' ? (value as object).constructor.name : typeof value
    return value
  }

  /** Runs the graph and returns its output. */
  propagate(...inputs: readonly unknown[]): unknown {
    return this.run(...inputs)
  }
}
