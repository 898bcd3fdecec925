// legalizeGraph and stableTopologicalSort: put the nodes of a graph in an order in which every value is computed before it is used. PyTorch's
// torch.fx.passes.tools_common.
import { checkCount } from '../../protocol/index.ts'
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { GraphError } from '../graph/errors.ts'
import type { Node } from '../graph/node.ts'
import { operator } from '../graph/operator.ts'
import type { GraphModule } from '../run/graphModule.ts'
import { _assert } from '../values/assertions.ts'
import { NodeHeap } from './nodeHeap.ts'

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

/** Where nodes wait until all that they need has been placed. */
interface Ready {
  add(node: Node): void
  take(): Node | undefined
}

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

function sortNodes(gm: GraphModule, ready: Ready): GraphModule {
  const { graph } = gm
  const nodes = graph.numberNodes()
  const missing = new Uint32Array(nodes.map((node) => node.allInputNodes.length))
  const placed = new Set<Node>()
  for (const node of nodes) if (node.allInputNodes.length === 0) ready.add(node)
  for (let node = ready.take(); node !== undefined; node = ready.take()) {
    placed.add(node)
    for (const user of node.users) {
      const left = (missing[user.position] ?? 0) - 1
      missing[user.position] = left
      if (left === 0) ready.add(user)
    }
  }
  if (placed.size < nodes.length) {
    const rest = nodes.filter((node) => !placed.has(node)).map((node) => node.name)
    throw new GraphError(`Input graph has cycles, unable to add [${rest.join(', ')}]`)
  }
  for (const node of placed) graph.moveBefore(node, null)
  gm.recompile()
  return gm
}

/** A queue whose front takes the size functions, the last one first. Nodes without inputs always go to the back. */
class BreadthFirst implements Ready {
  readonly #front: Node[] = []
  readonly #queue: Node[] = []
  #head = 0

  add(node: Node): void {
    const first = node.op === 'call_function' && node.allInputNodes.length > 0 && SIZE_FUNCTIONS.has(node.target)
    if (first) this.#front.push(node)
    else this.#queue.push(node)
  }

  take(): Node | undefined {
    return this.#front.pop() ?? this.#queue[this.#head++]
  }
}
