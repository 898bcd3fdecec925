// Nodes that call something: which do, what they call, and calling something else.
import { ArgumentError } from '../../../errors/index.ts'
import { Module } from '../../../module/index.ts'
import { checkGraphModule, checkNode } from '../../../protocol/graphChecks.ts'
import { checkArgument, checkCount, isFunction } from '../../../protocol/index.ts'
import { OPCODES, targetText } from '../../graph/node.ts'
import type { CallFunctionNode, CallMethodNode, CallModuleNode, Node, Opcode, Target } from '../../graph/node.ts'
import type { GraphModule } from '../../run/graphModule.ts'

/** A node that computes something. PyTorch's CALLABLE_NODE_OPS. */
export type CallNode = CallFunctionNode | CallMethodNode | CallModuleNode

/** Whether a node calls a function, a method or a module. */
export const isCall = (node: Node): node is CallNode => node.op === 'call_function' || node.op === 'call_method' || node.op === 'call_module'

/**
 * What a node calls, as text: the name of a module's class, the qualified name of a function (`torch.relu`), or the name of a method. PyTorch's get_node_target, which
 * takes the submodules instead of `gm`.
 * @throws ArgumentError for other nodes, and if the module does not exist.
 */
export function getNodeTarget(gm: GraphModule, node: Node): string {
  checkCount('getNodeTarget', arguments, 2)
  checkGraphModule('getNodeTarget', gm)
  checkNode('getNodeTarget', node)
  if (!isCall(node))
    throw new ArgumentError(
      `getNodeTarget: node '${node.name}' must be one of call_function, call_method and call_module, which have a target, but it is a ${node.op}.`,
    )
  if (node.op !== 'call_module') return targetText(node.target)
  const module = gm.attribute(node.target)
  if (!(module instanceof Module))
    throw new ArgumentError(`getNodeTarget: node '${node.name}' calls '${node.target}', but the GraphModule has no such module.`)
  return module.getName()
}

/** The name of a target as accelerator operators have it: `acc_ops.linear` for a function registered in a module `acc_ops`. PyTorch's get_acc_ops_name. */
export function getAccOpsName(target: Target): string {
  checkArgument(typeof target === 'string' || isFunction(target), 'getAccOpsName', 'target', 'a function or a path', target)
  const name = targetText(target)
  const parts = name.split('.')
  return typeof target !== 'string' && parts.slice(0, -1).includes('acc_ops') ? `acc_ops.${parts.at(-1) ?? ''}` : name
}

/**
 * Makes every node with `oldOp` and `oldTarget` one with `newOp` and `newTarget`. Names and arguments stay. Call `gm.recompile()` afterwards. PyTorch's
 * replace_target_nodes_with.
 *
 *     replaceTargetNodesWith(gm, 'call_function', torch.relu, 'call_function', torch.sigmoid)
 *
 * @throws ArgumentError if `newTarget` is not a target for `newOp`.
 */
export function replaceTargetNodesWith(gm: GraphModule, oldOp: Opcode, oldTarget: Target, newOp: Opcode, newTarget: Target): void {
  checkCount('replaceTargetNodesWith', arguments, 5)
  checkGraphModule('replaceTargetNodesWith', gm)
  checkArgument(OPCODES.has(newOp), 'replaceTargetNodesWith', 'newOp', `one of ${[...OPCODES].join(', ')}`, newOp)
  const expected = newOp === 'call_function' ? 'function' : 'string'
  if (typeof newTarget !== expected)
    throw new ArgumentError(`replaceTargetNodesWith: newTarget must be a ${expected} for the op '${newOp}', got a ${typeof newTarget}.`)
  for (const node of gm.graph.nodes) {
    if (node.op !== oldOp || node.target !== oldTarget) continue
    node.op = newOp
    node.target = newTarget
  }
}
