// ShapeProp: runs a graph on example inputs and notes shape and dtype of every value in `meta.tensor_meta`.
import { isParameter, isTensorLike } from '../../protocol/index.ts'
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

/** The metadata of a tensor; arrays and plain objects of it for nested values; other values, and what is in them, as they are. */
export function extractTensorMetadata(value: unknown): unknown {
  if (isTensorLike(value)) {
    const { shape, dtype, requiresGrad } = value
    return { shape, dtype, requiresGrad, strides: (value as unknown as { strides?: readonly number[] }).strides ?? [] } satisfies TensorMetadata
  }
  if (Array.isArray(value)) return value.map(extractTensorMetadata)
  return isPlain(value) ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, extractTensorMetadata(item)])) : value
}

function typeName(value: unknown): string {
  if (value === null) return 'null'
  return isParameter(value) ? 'Parameter' : typeof value === 'object' ? value.constructor.name : typeof value
}

function holdsTensor(value: unknown): boolean {
  if (isTensorLike(value)) return true
  return (Array.isArray(value) || isPlain(value)) && Object.values(value).some(holdsTensor)
}

const isPlain = (value: unknown): value is object => typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype

/** Shape propagation; PyTorch's torch.fx.passes.shape_prop.ShapeProp. `new ShapeProp(gm).propagate(...inputs)`. */
export class ShapeProp extends Interpreter {
  override runNode(node: Node): unknown {
    const value = super.runNode(node)
    if (holdsTensor(value)) node.meta['tensor_meta'] = extractTensorMetadata(value)
    node.meta['type'] = typeName(value)
    return value
  }

  /** Runs the graph and returns its output. */
  propagate(...inputs: readonly unknown[]): unknown {
    return this.run(...inputs)
  }
}
