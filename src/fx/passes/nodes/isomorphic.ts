// Whether two graphs are the same but for names. PyTorch's torch.fx.passes.utils.common.
import { checkGraph } from '../../../protocol/graphChecks.ts'
import { checkCount } from '../../../protocol/index.ts'
import type { Graph } from '../../graph/graph.ts'
import { SubgraphMatcher } from '../../rewrite/matcher.ts'

/** Whether two graphs are equal but for the names and the order of their nodes. PyTorch's compare_graphs; `compareGraphs` of `tensorfx/fx/json` tells where two graphs differ. */
export function areIsomorphic(a: Graph, b: Graph): boolean {
  checkCount('areIsomorphic', arguments, 2)
  checkGraph('areIsomorphic', a, 'a')
  checkGraph('areIsomorphic', b, 'b')
  return new SubgraphMatcher(a, { matchOutput: true, matchPlaceholder: true }).match(b).length > 0
}
