// fuseByPartitions: replaces groups of nodes with calls of submodules. PyTorch's torch.fx.passes.utils.fuser_utils.
import { checkGraphModule } from '../../../protocol/graphChecks.ts'
import { checkArgument, checkArray, checkCount, checkIterable, isObject } from '../../../protocol/index.ts'
import { ArgumentError } from '../../../errors/index.ts'
import { GraphError } from '../../graph/errors.ts'
import { Graph } from '../../graph/graph.ts'
import { mapArg } from '../../graph/mapArg.ts'
import { Dependencies, LastReady, nodesOf, topoSort } from '../nodes/order.ts'
import { stableTopologicalSort } from '../each/legalize.ts'
import { GraphModule } from '../../run/graphModule.ts'
import type { Node } from '../../graph/node.ts'
import { operator } from '../../graph/operator.ts'
import { tuple } from '../../graph/pythonValues.ts'

/** The node that comes last in the graph; undefined if there is none. */
const lastOf = (nodes: Iterable<Node>): Node | undefined => {
  let last: Node | undefined
  for (const node of nodes) if (last === undefined || node.compareTo(last) > 0) last = node
  return last
}

/** Whether every node stands behind those that it needs. */
function isSorted(nodes: readonly Node[]): boolean {
  const waiting = new Set(nodes)
  return nodes.every((node) => {
    waiting.delete(node)
    return !node.allInputNodes.some((input) => waiting.has(input))
  })
}

/** Whether a group of nodes can become one: no value leaves the group and comes back to it. PyTorch's validate_partition. */
export function validatePartition(nodes: Iterable<Node>): boolean {
  checkCount('validatePartition', arguments, 1)
  const inside = new Set(nodesOf('validatePartition', nodes))
  const seen = new Set<Node>()
  const queue = [...inside].flatMap((node) => [...node.users]).filter((user) => !inside.has(user))
  for (let node = queue.pop(); node !== undefined; node = queue.pop()) {
    if (seen.has(node)) continue
    seen.add(node)
    for (const user of node.users) {
      if (inside.has(user)) return false
      queue.push(user)
    }
  }
  return true
}

/** A group of nodes as a module. */
export interface FusedModule {
  readonly graphModule: GraphModule
  /** The nodes of the original graph whose values it takes, in the order of its parameters. */
  readonly inputs: readonly Node[]
  /** The nodes of the original graph whose values it returns. If there is only one, it returns the value (a tuple, with `alwaysReturnTuple`), else a tuple. */
  readonly outputs: readonly Node[]
}

/**
 * Makes a GraphModule of some nodes of `gm`, which does not change. The nodes keep the order given, or get that of {@link topoSort} if one stands before a node that it
 * needs; inputs are in the order of first need. With `alwaysReturnTuple`, it returns a tuple also of a single value. Throws ArgumentError for an empty list and for nodes of another graph, and GraphError if a value
 * leaves the group and comes back to it. PyTorch's fuse_as_graphmodule.
 */
export function fuseAsGraphModule(
  gm: GraphModule,
  nodes: Iterable<Node>,
  name: string,
  options: { readonly alwaysReturnTuple?: boolean } = {},
): FusedModule {
  checkCount('fuseAsGraphModule', arguments, 4)
  checkGraphModule('fuseAsGraphModule', gm)
  const given = nodesOf('fuseAsGraphModule', nodes)
  const group = isSorted(given) ? given : topoSort(given)
  checkGroup(gm, group)
  checkAlone(group)
  return fuse(gm, group, name, options.alwaysReturnTuple === true)
}

function checkGroup(gm: GraphModule, group: readonly Node[]): void {
  if (group.length === 0) throw new ArgumentError('fuseAsGraphModule: the list of nodes is empty.')
  const foreign = group.find((node) => node.graph !== gm.graph || node.erased)
  if (foreign !== undefined)
    throw new ArgumentError(`fuseAsGraphModule: node '${foreign.name}' is not in the graph of the module${foreign.erased ? ' any more' : ''}.`)
}

function checkAlone(group: readonly Node[]): void {
  if (!validatePartition(group)) throw new GraphError(`Invalid partition, found dependency cycles: ${group.map((n) => n.name).join(', ')}`)
}

/** {@link fuseAsGraphModule} for a group that has been checked. */
function fuse(gm: GraphModule, group: readonly Node[], name: string, alwaysReturnTuple: boolean): FusedModule {
  const inside = new Set(group)
  const graph = new Graph()
  const inputs = [...new Set(group.flatMap((node) => node.allInputNodes))].filter((node) => !inside.has(node))
  const copies = new Map<Node, Node>()
  for (const input of inputs) {
    const placeholder = graph.placeholder(input.name, input.type)
    placeholder.copyMeta(input)
    copies.set(input, placeholder)
  }
  for (const node of group)
    copies.set(
      node,
      graph.nodeCopy(node, (n) => copies.get(n)),
    )
  const outputs = group.filter((node) => [...node.users].some((user) => !inside.has(user)))
  const results = outputs.map((node) => copies.get(node))
  graph.output(results.length === 1 && !alwaysReturnTuple ? results[0] : tuple(...results))
  graph.lint()
  return { graphModule: new GraphModule(gm, graph, name), inputs, outputs }
}

/**
 * Replaces each group of nodes with a call of a submodule: `fused_0`, `fused_1`, … The nodes can be in any order. Changes `gm` and returns it. Throws GraphError,
 * before changing anything, for groups that overlap and for groups that would need their own result. PyTorch's fuse_by_partitions.
 * Throws ArgumentError if `gm` is no GraphModule.
 */
export function fuseByPartitions(gm: GraphModule, partitions: readonly Iterable<Node>[], prefix: string = 'fused_'): GraphModule {
  checkCount('fuseByPartitions', arguments, 3)
  checkGraphModule('fuseByPartitions', gm)
  checkArray('fuseByPartitions', 'partitions', partitions)
  const groups = partitions.map((nodes) => nodesOf('fuseByPartitions', nodes))
  const seen = new Set<Node>()
  for (const node of groups.flat()) {
    if (seen.has(node)) throw new GraphError(`Invalid partition, node '${node.name}' is in more than one group.`)
    seen.add(node)
  }
  checkTogether(gm, groups)
  // A node takes the results of calls when it is fused itself, or at the end: once, because a call can have thousands of inputs from as many groups.
  const results = new Map<Node, Node>()
  groups.forEach((group, i) => {
    for (const node of group) useResults(gm, node, results)
    const fused = fuse(gm, topoSort(group), `${prefix}${i}`, false)
    for (const [n, result] of insertCall(gm, fused, lastOf(group)).entries()) {
      const output = fused.outputs[n]
      output?.replaceAllUsesWith(result, () => false, { propagateMeta: true })
      if (output !== undefined) results.set(output, result)
    }
  })
  for (const node of gm.graph.nodes) if (!seen.has(node)) useResults(gm, node, results)
  for (const group of groups) eraseNodes(gm, group)
  stableTopologicalSort(gm)
  gm.recompile()
  return gm
}

/** Replaces the inputs of a node that have become results of calls. */
function useResults(gm: GraphModule, node: Node, results: ReadonlyMap<Node, Node>): void {
  let isUser = false
  for (const input of node.allInputNodes) {
    const result = results.get(input)
    if (result === undefined) continue
    gm.fireReplaceHooks(input, result.name, node)
    isUser = true
  }
  if (!isUser) return
  node.args = mapArg(node.args, (input) => results.get(input) ?? input)
  node.kwargs = mapArg(node.kwargs, (input) => results.get(input) ?? input)
}

/** Throws GraphError if a group is invalid, or if the groups together need each other's results. */
function checkTogether(gm: GraphModule, groups: readonly (readonly Node[])[]): void {
  for (const group of groups) checkGroup(gm, group)
  const groupOf = new Map<Node, number>(groups.flatMap((group, i) => group.map((node): [Node, number] => [node, i])))
  const unitOf = (node: Node): Node | number => groupOf.get(node) ?? node
  const units = new Dependencies<Node | number>()
  for (const node of gm.graph.nodes) {
    units.add(unitOf(node))
    for (const input of node.allInputNodes) units.require(unitOf(node), unitOf(input))
  }
  if (units.order(new LastReady()).cyclic.length === 0) return
  for (const group of groups) checkAlone(group)
  throw new GraphError("Invalid partition, found dependency cycles: the groups need each other's results.")
}

/**
 * Adds a module of {@link fuseAsGraphModule} to `gm`, calls it behind the last of its outputs (or behind `after`), and lets the call's results replace the nodes that it
 * computes. These stay in the graph; see {@link eraseNodes}. PyTorch's insert_subgm.
 */
export function insertSubgm(gm: GraphModule, fused: FusedModule, after?: Node): GraphModule {
  checkCount('insertSubgm', arguments, 3)
  checkGraphModule('insertSubgm', gm)
  checkArgument(isObject(fused), 'insertSubgm', 'fused', 'what fuseAsGraphModule returned', fused)
  const { graphModule, inputs, outputs } = fused
  checkGraphModule('insertSubgm', graphModule, 'fused.graphModule')
  const results = insertCall(gm, fused, after)
  const inside = insideOf(outputs, inputs)
  for (const [i, result] of results.entries()) outputs[i]?.replaceAllUsesWith(result, (user) => !inside.has(user), { propagateMeta: true })
  return gm
}

/** Adds the module and a call of it. Returns the nodes with the values of its outputs. */
function insertCall(gm: GraphModule, { graphModule, inputs, outputs }: FusedModule, after: Node | undefined): Node[] {
  const path = graphModule.className
  const { graph } = gm
  gm.addSubmodule(path, graphModule)
  const isSingle = !Array.isArray(graphModule.graph.outputNode().args[0])
  return graph.insertingAfter(after ?? lastOf(outputs) ?? null, () => {
    const call = graph.callModule(path, inputs)
    return isSingle ? [call] : outputs.map((_, i) => graph.callFunction(operator.getitem, [call, i]))
  })
}

/** The nodes that `outputs` are computed by from `inputs`. */
function insideOf(outputs: readonly Node[], inputs: readonly Node[]): ReadonlySet<Node> {
  const inside = new Set(outputs)
  const outer = new Set(inputs)
  for (const node of inside) for (const input of node.allInputNodes) if (!outer.has(input)) inside.add(input)
  return inside
}

/** Erases nodes whose values only they themselves use, the last one first. PyTorch's erase_nodes. @throws GraphError if another node uses one of them. */
export function eraseNodes(gm: GraphModule, nodes: Iterable<Node>): void {
  checkCount('eraseNodes', arguments, 2)
  checkGraphModule('eraseNodes', gm)
  checkIterable('eraseNodes', 'nodes', nodes)
  for (const node of topoSort(nodes).toReversed()) gm.graph.eraseNode(node)
}
