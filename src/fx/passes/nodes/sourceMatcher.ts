// getSourcePartitions: the nodes that come from the same call of a layer or function. PyTorch's torch.fx.passes.utils.source_matcher_utils.
import { checkGraph } from '../../../protocol/graphChecks.ts'
import { checkArgument, checkArray, checkCallable, checkCount, isFunction, isObject } from '../../../protocol/index.ts'
import type { Graph } from '../../graph/graph.ts'
import type { Node } from '../../graph/node.ts'

/** The nodes of one call of a layer or function. PyTorch's SourcePartition. */
export interface SourcePartition {
  /** In graph order. */
  readonly nodes: readonly Node[]
  /** The class, function or name that was asked for. */
  readonly source: unknown
  /** Nodes outside whose values it needs, without attributes. */
  readonly inputNodes: readonly Node[]
  /** Nodes that are used outside. */
  readonly outputNodes: readonly Node[]
  /** Its attributes. */
  readonly params: readonly Node[]
}

/** Where a node comes from: the call, by a name that is unique, and what was called. */
type Origin = readonly [name: unknown, source: unknown]

/**
 * The calls of some sources in a graph: classes of layers, functions, or names of functions. Where a node comes from is told by `meta.source_fn_stack` (which `makeFx`
 * records), else by `meta.torch_fn`, else, for calls of functions, by the innermost module of `meta.nn_module_stack` whose class is one of the sources or derives from it.
 * Sources that do not occur are not in the result; those that do are in the order in which they occur. With `filter`, only calls all of whose nodes it accepts are
 * returned. PyTorch's get_source_partitions.
 *
 *     const linears = getSourcePartitions(makeFx(model)(x).graph, [nn.Linear]).get(nn.Linear)
 */
export function getSourcePartitions(
  graph: Graph,
  wantedSources: readonly unknown[],
  filter: (node: Node) => boolean = () => true,
): Map<unknown, SourcePartition[]> {
  checkCount('getSourcePartitions', arguments, 3)
  checkGraph('getSourcePartitions', graph)
  checkArray('getSourcePartitions', 'wantedSources', wantedSources)
  checkCallable('getSourcePartitions', 'filter', filter)
  const calls = new Map<unknown, Map<unknown, Node[]>>()
  for (const node of graph.nodes) {
    const origin = originOf(node, wantedSources)
    if (origin === null) continue
    const [name, source] = origin
    const named = calls.get(source) ?? new Map<unknown, Node[]>()
    calls.set(source, named)
    const nodes = named.get(name)
    if (nodes === undefined) named.set(name, [node])
    else nodes.push(node)
  }
  const found = new Map<unknown, SourcePartition[]>()
  for (const [source, named] of calls) {
    const accepted = [...named.values()].filter((nodes) => nodes.every(filter))
    if (accepted.length > 0)
      found.set(
        source,
        accepted.map((nodes) => partitionOf(nodes, source)),
      )
  }
  return found
}

/** Whether a node of `second` uses a node of `first`. PyTorch's check_subgraphs_connected. */
export function checkSubgraphsConnected(first: SourcePartition, second: SourcePartition): boolean {
  checkCount('checkSubgraphsConnected', arguments, 2)
  for (const [name, part] of Object.entries({ first, second }))
    checkArgument(isObject(part) && Array.isArray(part.nodes), 'checkSubgraphsConnected', name, 'a SourcePartition', part)
  const nodes = new Set(second.nodes)
  return first.nodes.some((node) => [...node.users].some((user) => nodes.has(user)))
}

function partitionOf(nodes: readonly Node[], source: unknown): SourcePartition {
  const inside = new Set(nodes)
  const inputs = nodes.flatMap((node) => node.allInputNodes).filter((input) => !inside.has(input) && input.op !== 'get_attr')
  return {
    nodes,
    source,
    inputNodes: [...new Set(inputs)],
    outputNodes: nodes.filter((node) => node.op !== 'get_attr' && [...node.users].some((user) => !inside.has(user))),
    params: nodes.filter((node) => node.op === 'get_attr'),
  }
}

function originOf(node: Node, wanted: readonly unknown[]): Origin | null {
  const { source_fn_stack: sources, torch_fn: torchFn, nn_module_stack: modules } = node.meta
  if (Array.isArray(sources)) {
    const last: unknown = sources.at(-1)
    return Array.isArray(last) && wanted.includes(last[1]) ? [last[0], last[1]] : null
  }
  if (Array.isArray(torchFn)) {
    const [name, kind]: readonly unknown[] = torchFn
    const source = String(kind).split('.')[1]
    return wanted.includes(source) ? [name, source] : null
  }
  return node.op === 'call_function' && modules instanceof Map ? moduleOf([...modules.values()], wanted) : null
}

/** The innermost of the modules around a node whose class is wanted. */
function moduleOf(modules: readonly unknown[], wanted: readonly unknown[]): Origin | null {
  for (const module of modules.toReversed()) {
    if (!Array.isArray(module)) continue
    const [path, type]: readonly unknown[] = module
    const source = wanted.find((w) => isOfClass(type, w))
    if (source !== undefined) return [path, source]
  }
  return null
}

/** Whether a class, or the name of one, is a wanted class, derives from it, or has its name. */
function isOfClass(type: unknown, wanted: unknown): boolean {
  if (type === wanted) return true
  if (!isFunction(wanted)) return false
  if (isFunction(type)) return type.prototype instanceof wanted
  return typeof type === 'string' && type.split('.').at(-1) === wanted.name
}
