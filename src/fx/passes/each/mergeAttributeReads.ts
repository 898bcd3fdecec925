// Merging of attribute reads. A tracer records one get_attr node for every use of a tensor that it did not read from a module.
import type { Pass } from '../../../pipeline/index.ts'
import { checkGraphModule } from '../../../protocol/graphChecks.ts'
import type { GetAttrNode } from '../../graph/node.ts'
import type { GraphModule } from '../../run/graphModule.ts'

/** Reads every attribute only once, where it is first used, so that other passes recognise equal values. A graph cannot assign attributes, so all reads are equal. */
export const mergeAttributeReads: Pass<GraphModule> = {
  name: 'mergeAttributeReads',
  run: (gm) => {
    checkGraphModule('mergeAttributeReads', gm)
    const { graph } = gm
    const first = new Map<string, GetAttrNode>()
    let changed = false
    for (const node of graph.findNodes({ op: 'get_attr' })) {
      const earlier = first.get(node.target)
      if (earlier === undefined) {
        first.set(node.target, node)
        continue
      }
      node.replaceAllUsesWith(earlier)
      graph.eraseNode(node)
      changed = true
    }
    return changed
  },
}
