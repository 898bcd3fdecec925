// Topological order.
import type { Pass } from '../../../pipeline/index.ts'
import { checkGraphModule } from '../../../protocol/graphChecks.ts'
import type { GraphModule } from '../../run/graphModule.ts'
import { stableTopologicalSort } from '../legalize.ts'

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
