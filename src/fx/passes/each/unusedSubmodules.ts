// Removal of unused submodules.
import type { Pass } from '../../../pipeline/index.ts'
import { checkGraphModule } from '../../../protocol/graphChecks.ts'
import type { GraphModule } from '../../run/graphModule.ts'

/** Removes submodules that no node refers to. See GraphModule.deleteAllUnusedSubmodules. */
export const unusedSubmodules: Pass<GraphModule> = {
  name: 'unusedSubmodules',
  run: (gm) => {
    checkGraphModule('unusedSubmodules', gm)
    const before = [...gm.modules()].length
    gm.deleteAllUnusedSubmodules()
    return [...gm.modules()].length < before
  },
}
