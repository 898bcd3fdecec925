// What the splitter, the minimizer and operator support ask about nodes, and which nodes must stay together. PyTorch's torch.fx.passes.tools_common.
import { checkArgument, checkCount, isFunction } from '../../protocol/index.ts'
import { checkGraphModule, checkNode } from '../../protocol/graphChecks.ts'
import { ArgumentError } from '../../errors/index.ts'
import { Module } from '../../module/index.ts'
import { targetText } from '../graph/node.ts'
import type { CallFunctionNode, CallMethodNode, CallModuleNode, Node, Target } from '../graph/node.ts'
import type { GraphModule } from '../run/graphModule.ts'
import { isTensorMetadata } from './shapeProp.ts'

/** A node that computes something. PyTorch's CALLABLE_NODE_OPS. */
export type CallableNode = CallFunctionNode | CallMethodNode | CallModuleNode

/** Whether a node calls a function, a method or a module. */
export const isCallable = (node: Node): node is CallableNode => node.op === 'call_function' || node.op === 'call_method' || node.op === 'call_module'

/**
 * What a node calls, as text: the name of a module's class, the qualified name of a function (`torch.relu`), or the name of a method. PyTorch's get_node_target, which
 * takes the submodules instead of `gm`.
 * @throws ArgumentError for other nodes, and if the module does not exist.
 */
export function getNodeTarget(gm: GraphModule, node: Node): string {
  checkCount('getNodeTarget', arguments, 2)
  checkGraphModule('getNodeTarget', gm)
  checkNode('getNodeTarget', node)
  if (!isCallable(node))
    throw new ArgumentError(
      `getNodeTarget: node '${node.name}' must be one of call_function, call_method and call_module, which have a target, but it is a ${node.op}.`,
    )
  if (node.op !== 'call_module') return targetText(node.target)
  const module = gm.attribute(node.target)
  if (!(module instanceof Module))
    throw new ArgumentError(`getNodeTarget: node '${node.name}' calls '${node.target}', but the GraphModule has no such module.`)
  return module.getName()
}

/** Whether ShapeProp has recorded that a node's value is one tensor: not a number, and not an array of tensors. PyTorch's is_node_output_tensor. */
export function isNodeOutputTensor(node: Node): boolean {
  checkNode('isNodeOutputTensor', node)
  return isTensorMetadata(node.meta['tensor_meta'])
}

/** The name of a target as accelerator operators have it: `acc_ops.linear` for a function registered in a module `acc_ops`. PyTorch's get_acc_ops_name. */
export function getAccOpsName(target: Target): string {
  checkArgument(typeof target === 'string' || isFunction(target), 'getAccOpsName', 'target', 'a function or a path', target)
  const name = targetText(target)
  const parts = name.split('.')
  return typeof target !== 'string' && parts.slice(0, -1).includes('acc_ops') ? `acc_ops.${parts.at(-1) ?? ''}` : name
}

/**
 * Finds groups of nodes that pass values to each other that are not tensors, such as sizes. An accelerator can only exchange tensors, so a group runs on it as a whole
 * or not at all. Needs the notes of ShapeProp. PyTorch's FxNetAccFusionsFinder.
 *
 *     const fusions = new FxNetAccFusionsFinder(gm, accNodes).run()
 */
export class FxNetAccFusionsFinder {
  readonly #accNodes: Set<Node>
  readonly #nodes: readonly Node[]

  /** `accNodes`: the nodes that the accelerator supports. `run` removes from it the groups that it supports only in part. */
  constructor(gm: GraphModule, accNodes: Set<Node>) {
    checkCount('FxNetAccFusionsFinder', arguments, 2)
    checkGraphModule('FxNetAccFusionsFinder', gm)
    this.#accNodes = accNodes
    this.#nodes = gm.graph.numberNodes()
  }

  /** From each node in a group to the nodes of that group, in graph order. */
  run(): Map<Node, ReadonlySet<Node>> {
    const groups = new Map<Node, ReadonlySet<Node>>()
    for (const node of this.#nodes) {
      if (!this.#accNodes.has(node) || groups.has(node) || !isWithoutTensor(node)) continue
      const found = this.#groupOf(node)
      if ([...found].every((n) => this.#accNodes.has(n))) for (const n of found) groups.set(n, found)
      else for (const n of found) this.#accNodes.delete(n)
    }
    return groups
  }

  /** The smallest group around a node from which no value but tensors goes in or out, and which nothing leaves and comes back to. */
  #groupOf(start: Node): ReadonlySet<Node> {
    const group = new Set([start])
    let joined = [start]
    while (joined.length > 0) {
      this.#joinNeighbours(group, joined)
      joined = this.#between(group)
      for (const node of joined) group.add(node)
    }
    return new Set([...group].sort((a, b) => a.compareTo(b)))
  }

  /** Adds what exchanges values that are not tensors with `joined`, and with what it adds. */
  #joinNeighbours(group: Set<Node>, joined: readonly Node[]): void {
    const waiting = [...joined]
    const join = (node: Node): void => {
      if (!isCallable(node) || group.has(node)) return
      group.add(node)
      waiting.push(node)
    }
    for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
      if (isWithoutTensor(node)) for (const user of node.users) join(user)
      for (const input of node.allInputNodes) if (isWithoutTensor(input)) join(input)
    }
  }

  /** The nodes outside the group that depend on it and that it depends on. */
  #between(group: ReadonlySet<Node>): Node[] {
    const positions = [...group].map((node) => node.position)
    const range = this.#nodes.slice(
      positions.reduce((a, b) => Math.min(a, b)),
      positions.reduce((a, b) => Math.max(a, b)) + 1,
    )
    const below = new Set(group)
    for (const node of range) if (node.allInputNodes.some((n) => below.has(n))) below.add(node)
    const above = new Set(group)
    for (const node of range.toReversed()) if ([...node.users].some((n) => above.has(n))) above.add(node)
    return range.filter((node) => below.has(node) && above.has(node) && !group.has(node))
  }
}

/** Whether ShapeProp has found no tensor in a node's value. */
const isWithoutTensor = (node: Node): boolean => !('tensor_meta' in node.meta)
