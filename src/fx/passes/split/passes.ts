// Splitting into submodules, as passes.
import { checkCount } from '../../../protocol/index.ts'
import { replaced } from '../../../pipeline/index.ts'
import type { Pass } from '../../../pipeline/index.ts'
import type { Node } from '../../graph/node.ts'
import type { GraphModule } from '../../run/graphModule.ts'
import type { OperatorSupportBase } from './operatorSupport.ts'
import { CapabilityBasedPartitioner } from './partitioner.ts'
import type { PartitionerOptions } from './partitioner.ts'
import { splitByTags } from './splitByTags.ts'
import { splitModule } from './splitModule.ts'
import type { SplitOptions } from './splitModule.ts'

/** A pass that splits the module by a function from node to part. See {@link splitModule}. */
export function splitInto(partitionOf: (node: Node) => number | string, options?: SplitOptions): Pass<GraphModule> {
  checkCount('splitInto', arguments, 2)
  return { name: 'splitInto', run: (gm) => replaced(splitModule(gm, partitionOf, options)) }
}

/** A pass that splits the module by the tags of its nodes. See {@link splitByTags}. */
export function splitTags(tags: readonly string[]): Pass<GraphModule> {
  checkCount('splitTags', arguments, 1)
  return { name: 'splitTags', run: (gm) => replaced(splitByTags(gm, tags).graphModule) }
}

/** A pass that replaces groups of supported nodes with calls of submodules. See {@link CapabilityBasedPartitioner}. */
export function fuseSupported(support: OperatorSupportBase, options?: PartitionerOptions): Pass<GraphModule> {
  checkCount('fuseSupported', arguments, 2)
  const run = (gm: GraphModule): boolean => {
    const partitioner = new CapabilityBasedPartitioner(gm, support, options)
    const partitions = partitioner.proposePartitions()
    partitioner.fusePartitions(partitions)
    return partitions.length > 0
  }
  return { name: 'fuseSupported', run }
}
