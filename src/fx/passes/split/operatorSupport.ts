// Predicates that tell which nodes a backend supports, and how to combine them. PyTorch's torch.fx.passes.operator_support.
import { ArgumentError } from '../../../errors/index.ts'
import { checkArgument, checkCount, isPlainObject } from '../../../protocol/index.ts'
import { Node } from '../../graph/node.ts'
import type { Argument } from '../../graph/node.ts'
import type { GraphModule } from '../../run/graphModule.ts'
import { tensorMetaOf } from '../nodes/meta.ts'
import { getNodeTarget, isCall } from '../nodes/calls.ts'

/** Tells which nodes are supported; PyTorch's OperatorSupportBase. */
export interface OperatorSupportBase {
  /** Whether a node is supported. `gm` owns the graph: the module that a call_module calls is `gm.attribute(node.target)`. */
  isNodeSupported(gm: GraphModule, node: Node): boolean
}

/** Which dtypes each argument may have, by position; null and missing positions are not looked at. */
type PositionalDtypes = readonly (readonly string[] | null)[]

/**
 * What {@link OperatorSupport} allows for a target: null for any arguments, a list of dtypes for each position, or that together with lists for arguments by name. The dtype
 * of a value that is not a tensor is its type, such as `number`.
 */
export type SupportedDtypes =
  | null
  | PositionalDtypes
  | { readonly args?: PositionalDtypes; readonly kwargs?: Readonly<Record<string, readonly string[]>> }

/** The dtype of a node's value as ShapeProp recorded it. */
function dtypeOf(node: Node): unknown {
  const dtype = tensorMetaOf(node)?.dtype ?? node.meta['type']
  if (dtype === undefined)
    throw new ArgumentError(`OperatorSupport: the dtype of node '${node.name}' is not known; run ShapeProp on the graph first.`)
  return dtype
}

const isAllowed = (arg: Argument, dtypes: readonly string[] | null | undefined): boolean =>
  dtypes === null || dtypes === undefined || !(arg instanceof Node) || dtypes.some((dtype) => dtype === dtypeOf(arg))

/**
 * Supports the targets in a table. The keys are functions by the names that graphs print (`torch.relu`, `operator.add`), methods by their names, and modules by the
 * names of their classes. A value says which dtypes the arguments may have ({@link SupportedDtypes}); null allows any. Placeholders, attributes and the output are always
 * supported. PyTorch's OperatorSupport.
 *
 *     new OperatorSupport({ 'torch.relu': null, 'operator.add': [['float32'], null] })
 */
export class OperatorSupport implements OperatorSupportBase {
  readonly #table: ReadonlyMap<string, SupportedDtypes>

  constructor(table: Readonly<Record<string, SupportedDtypes>> = {}) {
    checkCount('OperatorSupport', arguments, 1)
    checkArgument(isPlainObject(table), 'OperatorSupport', 'table', 'an object of dtypes by target', table)
    this.#table = new Map(Object.entries(table))
  }

  /** See {@link OperatorSupportBase}. @throws ArgumentError if an argument's dtype matters and ShapeProp has not run. */
  isNodeSupported(gm: GraphModule, node: Node): boolean {
    if (!isCall(node)) return true
    const dtypes = this.#table.get(getNodeTarget(gm, node))
    if (dtypes === undefined || dtypes === null) return dtypes === null
    const { args = [], kwargs = {} } = isPositional(dtypes) ? { args: dtypes } : dtypes
    return (
      node.args.every((arg, i) => isAllowed(arg, args[i])) && Object.entries(kwargs).every(([name, allowed]) => isAllowed(node.kwargs[name], allowed))
    )
  }
}

const isPositional = (dtypes: NonNullable<SupportedDtypes>): dtypes is PositionalDtypes => Array.isArray(dtypes)

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
  declineIfInputDtype: (dtype) => createOpSupport((_gm, node) => !node.allInputNodes.some((input) => dtypeOf(input) === dtype)),
  declineIfNodeInNames: (names) => createOpSupport((_gm, node) => !names.has(node.name)),
}
