// Dead code elimination.
import type { Pass } from '../../../pipeline/index.ts'
import { checkGraphModule } from '../../../protocol/graphChecks.ts'
import type { GraphModule } from '../../run/graphModule.ts'

/** Removes nodes that are unused and have no side effects. See Graph.eliminateDeadCode. */
export const deadCode: Pass<GraphModule> = {
  name: 'deadCode',
  run: (gm) => {
    checkGraphModule('deadCode', gm)
    return gm.graph.eliminateDeadCode()
  },
}
