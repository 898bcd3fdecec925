// Patterns that name their nodes: the last value that they return is an object from name to node. PyTorch's matcher_with_name_node_map_utils.
import { ArgumentError } from '../../errors/index.ts'
import { GraphError } from '../errors.ts'
import { Graph } from '../graph.ts'
import { GraphModule } from '../graphModule.ts'
import { Node } from '../node.ts'
import type { Argument } from '../node.ts'
import { isTuple, markTuple } from '../tuple.ts'
import type { InternalMatch } from './match.ts'
import { SubgraphMatcher } from './matcher.ts'
import type { MatcherOptions } from './matcher.ts'

/** An occurrence of a pattern with named nodes. */
export interface NamedMatch extends InternalMatch {
  /** Name in the pattern -> node of the graph, or the literal that a placeholder of the pattern stands for. */
  readonly nameNodeMap: ReadonlyMap<string, Argument>
}

/**
 * Finds a pattern whose last returned value is an object from name to node: `return [y, { conv, relu }]`. The object is no part of what is matched; each match says which nodes
 * its names stand for. Throws GraphError when the pattern returns something else. PyTorch's SubgraphMatcherWithNameNodeMap.
 */
export class SubgraphMatcherWithNameNodeMap {
  readonly #matcher: SubgraphMatcher
  readonly #names: ReadonlyMap<string, Node>

  constructor(pattern: GraphModule, options: MatcherOptions = {}) {
    if (!(pattern instanceof GraphModule))
      throw new ArgumentError('SubgraphMatcherWithNameNodeMap: the pattern must be a GraphModule; trace it with symbolicTrace first.')
    const { graph, names } = splitNames(pattern.graph)
    this.#matcher = new SubgraphMatcher(graph, options)
    this.#names = names
  }

  /** The occurrences of the pattern, in order. */
  match(graph: Graph): NamedMatch[] {
    return this.#matcher.match(graph).map((match) => ({
      ...match,
      nameNodeMap: new Map([...this.#names].map(([name, node]) => [name, match.nodesMap.get(node) as Argument])),
    }))
  }
}

/** The pattern without its names, on a copy. */
function splitNames(pattern: Graph): { graph: Graph; names: ReadonlyMap<string, Node> } {
  const returned = pattern.outputNode().args[0]
  if (!Array.isArray(returned)) throw new GraphError('Expecting the pattern graph to return a tuple')
  if (returned.length < 2) throw new GraphError('Expecting the pattern graph to have at least two outputs')
  const last = returned.at(-1) as Argument
  if (
    typeof last !== 'object' ||
    last === null ||
    Array.isArray(last) ||
    last instanceof Node ||
    !Object.values(last).every((v) => v instanceof Node)
  )
    throw new GraphError('Expecting the pattern graph to have a dict output as the last element')
  const graph = new Graph()
  const copies = new Map<Node, Argument>()
  const values = graph.graphCopy(pattern, copies) as readonly Argument[]
  const kept = values.slice(0, -1)
  graph.output(kept.length === 1 ? (kept[0] as Argument) : isTuple(returned) ? markTuple(kept) : kept)
  graph.owningModule = pattern.owningModule
  return { graph, names: new Map(Object.entries(last).map(([name, node]) => [name, copies.get(node as Node) as Node])) }
}
