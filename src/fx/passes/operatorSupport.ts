// Predicates that tell which nodes a backend supports, and how to combine them. PyTorch's torch.fx.passes.operator_support.
import { getAttribute } from '../../module/index.ts'
import { targetText } from '../graph/node.ts'
import type { GraphModule } from '../run/graphModule.ts'
import type { Node } from '../graph/node.ts'

/** Tells which nodes are supported; PyTorch's OperatorSupportBase. */
export interface OperatorSupportBase {
  /** Whether a node is supported. `gm` owns the graph: the module that a call_module calls is `gm.attribute(node.target)`. */
  isNodeSupported(gm: GraphModule, node: Node): boolean
}

/** Whether ShapeProp has recorded that a node's value has one of these dtypes. */
const hasDtype = (node: Node, dtypes: readonly string[]): boolean => dtypes.some((dtype) => getAttribute(node.meta['tensor_meta'], 'dtype') === dtype)

/**
 * Supports the targets in a table. The keys are functions by the names that graphs print (`torch.relu`, `operator.add`), methods by their names, and modules by the
 * names of their classes. A value lists, for each input, the dtypes that it may have; null allows any inputs. Placeholders, attributes and the output are always
 * supported. PyTorch's OperatorSupport.
 */
export class OperatorSupport implements OperatorSupportBase {
  readonly #table: ReadonlyMap<string, readonly (readonly string[])[] | null>

  constructor(table: Readonly<Record<string, readonly (readonly string[])[] | null>> = {}) {
    this.#table = new Map(Object.entries(table))
  }

  isNodeSupported(gm: GraphModule, node: Node): boolean {
    if (!node.op.startsWith('call_')) return true
    const name = node.op === 'call_module' ? gm.attribute(node.target)?.constructor.name : targetText(node.target)
    const dtypes = name === undefined ? undefined : this.#table.get(name)
    if (dtypes === undefined) return false
    const inputs = node.allInputNodes
    return dtypes === null || dtypes.every((allowed, i) => inputs[i] === undefined || hasDtype(inputs[i], allowed))
  }
}

/** Supports the nodes for which a function returns true. PyTorch's create_op_support. */
export const createOpSupport = (isNodeSupported: (gm: GraphModule, node: Node) => boolean): OperatorSupportBase => ({ isNodeSupported })

/** Supports the nodes that all of these support. PyTorch's chain. */
export const chain = (...supports: readonly OperatorSupportBase[]): OperatorSupportBase =>
  createOpSupport((gm, node) => supports.every((s) => s.isNodeSupported(gm, node)))

/** Supports the nodes that any of these supports. PyTorch's any_chain. */
export const anyChain = (...supports: readonly OperatorSupportBase[]): OperatorSupportBase =>
  createOpSupport((gm, node) => supports.some((s) => s.isNodeSupported(gm, node)))

/** Common predicates; PyTorch's OpSupports. */
export const OpSupports: {
  /** Does not support nodes with an input of this dtype, as recorded by ShapeProp. */
  declineIfInputDtype(dtype: string): OperatorSupportBase
  /** Does not support the nodes with these names. */
  declineIfNodeInNames(names: ReadonlySet<string>): OperatorSupportBase
} = {
  declineIfInputDtype: (dtype) => createOpSupport((_gm, node) => !node.allInputNodes.some((input) => hasDtype(input, [dtype]))),
  declineIfNodeInNames: (names) => createOpSupport((_gm, node) => !names.has(node.name)),
}
