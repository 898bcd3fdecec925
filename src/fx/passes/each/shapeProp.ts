// ShapeProp: runs a graph on example inputs and records the shape and dtype of every value in `meta.tensor_meta`.
import type { Pass } from '../../../pipeline/index.ts'
import { isParameter, isPlainObject, isTensorLike, kindOf } from '../../../protocol/index.ts'
import type { GraphModule } from '../../run/graphModule.ts'
import { Interpreter } from '../../run/interpreter.ts'
import type { Node } from '../../graph/node.ts'
import { annotation } from '../../text/annotation.ts'
import { setMessage } from '../../text/explain.ts'
import { extractTensorMetadata } from '../nodes/meta.ts'
import { interpreterPass } from '../run/pass.ts'

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

/** A pass that runs the graph on these inputs and records the shape and dtype of every value. The graph does not change. See {@link ShapeProp}. */
export function propagateShapes(...inputs: readonly unknown[]): Pass<GraphModule> {
  return interpreterPass(ShapeProp, inputs)
}
