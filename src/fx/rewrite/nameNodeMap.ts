// Patterns that name their nodes: the last value that such a pattern returns is an object from name to node. PyTorch's matcher_with_name_node_map_utils.
import { checkCount } from '../../protocol/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { GraphError } from '../graph/errors.ts'
import { Graph } from '../graph/graph.ts'
import { GraphModule } from '../run/graphModule.ts'
import { Node, isRecord } from '../graph/node.ts'
import type { Argument } from '../graph/node.ts'
import { isTuple, markTuple } from '../graph/pythonValues.ts'
import { SubgraphMatcher } from './matcher.ts'
import type { InternalMatch, MatcherOptions } from './matcher.ts'

/** An occurrence of a pattern with named nodes. */
export interface NamedMatch extends InternalMatch {
  /** From name in the pattern to node of the graph, or to the literal that a placeholder of the pattern stands for. */
  readonly nameNodeMap: ReadonlyMap<string, Argument>
}

/**
 * Finds the occurrences of a pattern that returns, as its last value, an object from name to node: `return [y, { conv, relu }]`. The object itself is not matched;
 * each match tells which nodes the names stand for. Throws GraphError if the pattern returns anything else. PyTorch's SubgraphMatcherWithNameNodeMap.
 */
export class SubgraphMatcherWithNameNodeMap {
  readonly #matcher: SubgraphMatcher
  readonly #names: ReadonlyMap<string, Node>

  constructor(pattern: GraphModule, options: MatcherOptions = {}) {
    checkCount('SubgraphMatcherWithNameNodeMap', arguments, 2)
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
      nameNodeMap: new Map([...this.#names].map(([name, node]) => [name, match.nodesMap.get(node)])),
    }))
  }
}

/** A copy of the pattern that does not return the names, and the named nodes of the copy. */
function splitNames(pattern: Graph): { graph: Graph; names: ReadonlyMap<string, Node> } {
  const returned = pattern.outputNode().args[0]
  if (!Array.isArray(returned)) throw new GraphError('Expecting the pattern graph to return a tuple')
  if (returned.length < 2) throw new GraphError('Expecting the pattern graph to have at least two outputs')
  const graph = new Graph()
  const copied = graph.graphCopy(pattern, new Map())
  const values: readonly Argument[] = Array.isArray(copied) ? copied : []
  const names = values.at(-1)
  if (!isRecord(names)) throw new GraphError(NO_NAMES)
  const kept = values.slice(0, -1)
  graph.output(kept.length === 1 ? kept[0] : isTuple(returned) ? markTuple(kept) : kept)
  graph.owningModule = pattern.owningModule
  return { graph, names: new Map(Object.entries(names).map(([name, node]) => [name, nodeIn(node)])) }
}

const NO_NAMES = 'Expecting the pattern graph to have a dict output as the last element'

function nodeIn(value: Argument): Node {
  if (!(value instanceof Node)) throw new GraphError(NO_NAMES)
  return value
}
