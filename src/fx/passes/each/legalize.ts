// legalizeGraph and stableTopologicalSort: put the nodes of a graph in an order in which every value is computed before it is used. PyTorch's
// torch.fx.passes.tools_common.
import type { Pass } from '../../../pipeline/index.ts'
import { checkCount } from '../../../protocol/index.ts'
import { checkGraphModule } from '../../../protocol/graphChecks.ts'
import { GraphError } from '../../graph/errors.ts'
import type { Node } from '../../graph/node.ts'
import { operator } from '../../graph/operator.ts'
import type { GraphModule } from '../../run/graphModule.ts'
import { _assert } from '../../values/assertions.ts'
import { FirstReady, LastReady, NodeHeap, sortByNeed } from '../nodes/order.ts'
import type { Ready } from '../nodes/order.ts'

/** Functions that compute sizes or check them. They come first, so that a check on a size runs before what depends on it. */
const SIZE_FUNCTIONS: ReadonlySet<unknown> = new Set([
  operator.add,
  operator.sub,
  operator.mul,
  operator.floordiv,
  operator.truediv,
  operator.mod,
  operator.le,
  operator.lt,
  operator.ge,
  operator.gt,
  operator.eq,
  operator.ne,
  _assert,
])

/**
 * Sorts the nodes breadth first: first those that need nothing, in their order, then their users as they become ready. Calls of arithmetic and comparison operators
 * and of assertions go before all others that are ready. Names do not change. PyTorch's legalize_graph; {@link stableTopologicalSort} changes less.
 * @throws GraphError for a graph with a cycle; the graph does not change then.
 */
export function legalizeGraph(gm: GraphModule): GraphModule {
  checkCount('legalizeGraph', arguments, 1)
  checkGraphModule('legalizeGraph', gm)
  return sortNodes(gm, new BreadthFirst())
}

/**
 * Sorts the nodes so that every value is computed before it is used. Of the nodes that are ready, the one that came first comes first, so a graph that is in order stays
 * as it is. PyTorch's stable_topological_sort.
 * @throws GraphError for a graph with a cycle; the graph does not change then.
 */
export function stableTopologicalSort(gm: GraphModule): GraphModule {
  checkCount('stableTopologicalSort', arguments, 1)
  checkGraphModule('stableTopologicalSort', gm)
  return sortNodes(gm, new NodeHeap())
}

function sortNodes(gm: GraphModule, ready: Ready<Node>): GraphModule {
  const { graph } = gm
  const { order, cyclic } = sortByNeed(graph.numberNodes(), (node) => node.users, ready)
  if (cyclic.length > 0) throw new GraphError(`Input graph has cycles, unable to add [${cyclic.map((node) => node.name).join(', ')}]`)
  for (const node of order) graph.moveBefore(node, null)
  gm.recompile()
  return gm
}

/** The size functions come before all others, the last one that became ready first. Nodes without inputs are never among them. */
class BreadthFirst implements Ready<Node> {
  readonly #sizes = new LastReady<Node>()
  readonly #others = new FirstReady<Node>()

  add(node: Node): void {
    const isSize = node.op === 'call_function' && node.allInputNodes.length > 0 && SIZE_FUNCTIONS.has(node.target)
    const place = isSize ? this.#sizes : this.#others
    place.add(node)
  }

  take(): Node | undefined {
    return this.#sizes.take() ?? this.#others.take()
  }
}

/** Sorts the nodes so that every value is computed before it is used. See {@link stableTopologicalSort}. */
export const legalize: Pass<GraphModule> = {
  name: 'legalize',
  run: (gm) => {
    checkGraphModule('legalize', gm)
    const before = [...gm.graph.nodes]
    stableTopologicalSort(gm)
    return [...gm.graph.nodes].some((node, i) => node !== before[i])
  },
}
