// Topological order.
import type { Pass } from '../../../pipeline/index.ts'
import type { GraphModule } from '../../run/graphModule.ts'
import { legalizeGraph } from '../fuserUtils.ts'

/** Sorts the nodes so that every value is computed before it is used. See {@link legalizeGraph}. */
export const legalize: Pass<GraphModule> = {
  name: 'legalize',
  run: (gm) => {
    const before = [...gm.graph.nodes]
    legalizeGraph(gm)
    return [...gm.graph.nodes].some((node, i) => node !== before[i])
  },
}
