// fuseByPartitions: groups of nodes become submodules. PyTorch's torch.fx.passes.utils.fuser_utils.
import { ArgumentError } from '../../errors/index.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import { GraphError } from '../errors.ts'
import { Graph } from '../graph.ts'
import { GraphModule } from '../graphModule.ts'
import type { Node } from '../node.ts'
import { operator } from '../operator.ts'
import { tuple } from '../tuple.ts'

const inOrder = (nodes: Iterable<Node>): Node[] => [...nodes].sort((a, b) => a.sortKey - b.sortKey)

/** Whether the nodes can become one: no value goes out of the group and comes back. PyTorch's validate_partition. */
export function validatePartition(nodes: Iterable<Node>): boolean {
  const inside = new Set(nodes)
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

/** A group as a module of its own. */
export interface FusedModule {
  readonly graphModule: GraphModule
  /** Nodes of the original graph whose values it takes, in the order of its parameters. */
  readonly inputs: readonly Node[]
  /** Nodes of the original graph whose values it returns: one alone, or a tuple of them. */
  readonly outputs: readonly Node[]
}

/**
 * A GraphModule of these nodes of `gm`; nothing is changed. Throws ArgumentError for no nodes or nodes of another graph, GraphError when a value leaves the group and comes back
 * ("Invalid partition, found dependency cycles"). PyTorch's fuse_as_graphmodule.
 */
export function fuseAsGraphModule(gm: GraphModule, nodes: Iterable<Node>, name: string): FusedModule {
  const group = inOrder(nodes)
  if (group.length === 0) throw new ArgumentError('fuseAsGraphModule: the list of nodes is empty.')
  const foreign = group.find((node) => node.graph !== gm.graph || node.erased)
  if (foreign !== undefined)
    throw new ArgumentError(`fuseAsGraphModule: node '${foreign.name}' is not in the graph of the module${foreign.erased ? ' any more' : ''}.`)
  if (!validatePartition(group)) throw new GraphError(`Invalid partition, found dependency cycles: ${group.map((n) => n.name).join(', ')}`)
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
      graph.nodeCopy(node, (n) => copies.get(n) as Node),
    )
  const outputs = group.filter((node) => [...node.users].some((user) => !inside.has(user)))
  const results = outputs.map((node) => copies.get(node) as Node)
  graph.output(results.length === 1 ? (results[0] as Node) : tuple(...results))
  graph.lint()
  return { graphModule: new GraphModule(gm, graph, name), inputs, outputs }
}

/**
 * Replaces each group of nodes by a call of a submodule, `fused_0`, `fused_1`, …; the nodes may be given in any order. Changes `gm`, and returns it. Throws GraphError for
 * groups that overlap and groups that would need their own result; then nothing was changed. PyTorch's fuse_by_partitions.
 */
export function fuseByPartitions(gm: GraphModule, partitions: readonly Iterable<Node>[], prefix: string = 'fused_'): GraphModule {
  if (!(gm instanceof GraphModule)) throw new ArgumentError('fuseByPartitions: the first argument must be a GraphModule.')
  const groups = partitions.map((nodes) => [...nodes])
  const seen = new Set<Node>()
  for (const node of groups.flat()) {
    if (seen.has(node)) throw new GraphError(`Invalid partition, node '${node.name}' is in several of them.`)
    seen.add(node)
  }
  checkTogether(gm, groups)
  groups.forEach((group, i) => insertFused(gm, group, fuseAsGraphModule(gm, group, `${prefix}${i}`)))
  legalizeGraph(gm)
  gm.recompile()
  return gm
}

/** Each group alone may be fine, and all together a circle. Tried on a copy, so that the module stays as it was. */
function checkTogether(gm: GraphModule, groups: readonly (readonly Node[])[]): void {
  for (const group of groups) fuseAsGraphModule(gm, group, 'fused')
  if (groups.length < 2) return
  const groupOf = new Map<Node, number>(groups.flatMap((group, i) => group.map((node): [Node, number] => [node, i])))
  const key = (node: Node): Node | number => groupOf.get(node) ?? node
  const waiting = new Map<Node | number, Set<Node | number>>()
  const users = new Map<Node | number, (Node | number)[]>()
  for (const node of gm.graph.nodes) {
    const here = key(node)
    const needs = waiting.get(here) ?? new Set()
    waiting.set(here, needs)
    for (const input of node.allInputNodes) {
      const from = key(input)
      if (from === here || needs.has(from)) continue
      needs.add(from)
      users.set(from, [...(users.get(from) ?? []), here])
    }
  }
  const ready = [...waiting].filter(([, needs]) => needs.size === 0).map(([item]) => item)
  let done = 0
  for (let item = ready.pop(); item !== undefined; item = ready.pop()) {
    done++
    for (const user of users.get(item) ?? []) {
      const needs = waiting.get(user) as Set<Node | number>
      needs.delete(item)
      if (needs.size === 0) ready.push(user)
    }
  }
  if (done < waiting.size) throw new GraphError("Invalid partition, found dependency cycles: the groups need each other's results.")
}

function insertFused(gm: GraphModule, group: readonly Node[], { graphModule, inputs, outputs }: FusedModule): void {
  const { graph } = gm
  const path = graphModule.className
  gm.addSubmodule(path, graphModule)
  const last = inOrder(group).at(-1) as Node
  graph.insertingAfter(last, () => {
    const call = graph.callModule(path, inputs)
    if (outputs.length === 1) {
      const [output] = outputs as readonly [Node]
      output.replaceAllUsesWith(call, (user) => user !== call, { propagateMeta: true })
      return
    }
    const items = outputs.map((_, i) => graph.insertingBefore(call.next, () => graph.callFunction(operator.getitem as TargetFunction, [call, i])))
    outputs.forEach((output, i) => output.replaceAllUsesWith(items[i] as Node, (user) => user !== call, { propagateMeta: true }))
  })
  for (const node of inOrder(group).toReversed()) graph.eraseNode(node)
}

/**
 * Puts the nodes into an order in which everything is computed before it is used; nodes that are in order stay where they are, as far as possible. Throws GraphError for a graph
 * with a circle. PyTorch's legalize_graph.
 */
export function legalizeGraph(gm: GraphModule): GraphModule {
  const { graph } = gm
  const nodes = graph.numberNodes()
  const missing = nodes.map((node) => node.allInputNodes.length)
  const placed = new Set<Node>()
  for (const next of nodes) {
    if (placed.has(next) || (missing[next.position] as number) > 0) continue
    const stack = [next]
    for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
      placed.add(node)
      // Users further down are reached later; those that stood too early have waited for this.
      for (const user of node.users) if (--(missing[user.position] as number) === 0 && user.position < next.position) stack.push(user)
    }
  }
  if (placed.size < nodes.length) throw new GraphError('Input graph has cycles, unable to put its nodes in order.')
  for (const node of placed) graph.moveBefore(node, null)
  return gm
}
