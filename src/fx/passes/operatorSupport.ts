// What a backend can take: predicates on nodes, and how they combine. PyTorch's torch.fx.passes.operator_support.
import { targetText } from '../format.ts'
import type { GraphModule } from '../graphModule.ts'
import type { Node } from '../node.ts'

/** Says which nodes are supported; PyTorch's OperatorSupportBase. */
export interface OperatorSupportBase {
  /** Whether the node is supported. `gm` owns the graph: `gm.attribute(node.target)` is the module that a call_module calls. */
  isNodeSupported(gm: GraphModule, node: Node): boolean
}

/** The dtype of a node's value as ShapeProp has noted it, or null. */
function dtypeOf(node: Node): string | null {
  return (node.meta['tensor_meta'] as { readonly dtype?: string } | undefined)?.dtype ?? null
}

/**
 * Supports the targets of a table. Keys are qualified names: functions as graphs print them (`torch.relu`, `operator.add`), methods by name, modules by class name.
 * Values are null for any arguments, or the dtypes that each positional argument may have. Placeholders, attributes and the output are always supported. PyTorch's OperatorSupport.
 */
export class OperatorSupport implements OperatorSupportBase {
  readonly #table: ReadonlyMap<string, readonly (readonly string[])[] | null>

  constructor(table: Readonly<Record<string, readonly (readonly string[])[] | null>> = {}) {
    this.#table = new Map(Object.entries(table))
  }

  isNodeSupported(gm: GraphModule, node: Node): boolean {
    if (!node.op.startsWith('call_')) return true
    const name = node.op === 'call_module' ? gm.attribute(node.target as string)?.constructor.name : targetText(node.target)
    const dtypes = name === undefined ? undefined : this.#table.get(name)
    if (dtypes === undefined) return false
    const inputs = node.allInputNodes
    return dtypes === null || dtypes.every((allowed, i) => inputs[i] === undefined || allowed.includes(dtypeOf(inputs[i]) ?? ''))
  }
}

/** Support by a function. PyTorch's create_op_support. */
export const createOpSupport = (isNodeSupported: (gm: GraphModule, node: Node) => boolean): OperatorSupportBase => ({ isNodeSupported })

/** Supported by all of these. PyTorch's chain. */
export const chain = (...supports: readonly OperatorSupportBase[]): OperatorSupportBase =>
  createOpSupport((gm, node) => supports.every((s) => s.isNodeSupported(gm, node)))

/** Supported by any of these. PyTorch's any_chain. */
export const anyChain = (...supports: readonly OperatorSupportBase[]): OperatorSupportBase =>
  createOpSupport((gm, node) => supports.some((s) => s.isNodeSupported(gm, node)))

/** Common predicates; PyTorch's OpSupports. */
export const OpSupports: {
  /** Refuses nodes with an input of the dtype, as far as ShapeProp has noted it. */
  declineIfInputDtype(dtype: string): OperatorSupportBase
  /** Refuses nodes of these names. */
  declineIfNodeInNames(names: ReadonlySet<string>): OperatorSupportBase
} = {
  declineIfInputDtype: (dtype) => createOpSupport((_gm, node) => !node.allInputNodes.some((input) => dtypeOf(input) === dtype)),
  declineIfNodeInNames: (names) => createOpSupport((_gm, node) => !names.has(node.name)),
}
