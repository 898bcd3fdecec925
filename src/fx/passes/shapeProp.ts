// ShapeProp: runs a graph on example inputs and records the shape and dtype of every value in `meta.tensor_meta`.
import { checkDepth, isParameter, isTensorLike, isPlainObject, kindOf } from '../../protocol/index.ts'
import { Interpreter } from '../run/interpreter.ts'
import type { Node } from '../graph/node.ts'
import { annotation } from '../text/annotation.ts'
import { setMessage } from '../text/explain.ts'

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
  return isPlainObject(note) && Array.isArray(note['shape']) && typeof note['dtype'] === 'string'
}

/** The metadata of a tensor. Arrays and plain objects are mapped item by item; other values stay unchanged. */
export function extractTensorMetadata(value: unknown): unknown {
  return metadataOf(value, 0)
}

function metadataOf(value: unknown, depth: number): unknown {
  checkDepth(depth)
  if (isTensorLike(value)) {
    const { shape, dtype, requiresGrad } = value
    const strides = 'strides' in value && Array.isArray(value.strides) ? value.strides : []
    return { shape, dtype, requiresGrad, strides } satisfies TensorMetadata
  }
  if (Array.isArray(value)) return value.map((item) => metadataOf(item, depth + 1))
  return isPlainObject(value) ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, metadataOf(item, depth + 1)])) : value
}

function typeName(value: unknown): string {
  if (value === null) return 'null'
  return isParameter(value) ? 'Parameter' : kindOf(value)
}

function holdsTensor(value: unknown): boolean {
  if (isTensorLike(value)) return true
  return (Array.isArray(value) || isPlainObject(value)) && Object.values(value).some(holdsTensor)
}

/**
 * Shape propagation: `new ShapeProp(gm).propagate(...inputs)`. If a node fails, its error says which shapes its inputs have. PyTorch's
 * torch.fx.passes.shape_prop.ShapeProp.
 */
export class ShapeProp extends Interpreter {
  override runNode(node: Node): unknown {
    const value = this.#valueOf(node)
    if (holdsTensor(value)) node.meta['tensor_meta'] = extractTensorMetadata(value)
    node.meta['type'] = typeName(value)
    return value
  }

  #valueOf(node: Node): unknown {
    try {
      return super.runNode(node)
    } catch (error) {
      // The message names the node and shows the user's line after this.
      if (error instanceof Error) {
        const inputs = node.allInputNodes.map((input) => `%${input.name}: ${annotation(input) ?? 'no tensor'}`)
        setMessage(error, `ShapeProp error for: node=%${node.name} with ${inputs.length === 0 ? 'no inputs' : inputs.join(', ')}\n${error.message}`)
      }
      throw error
    }
  }

  /** Runs the graph and returns its output. */
  propagate(...inputs: readonly unknown[]): unknown {
    return this.run(...inputs)
  }
}
