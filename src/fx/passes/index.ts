// Passes over graphs; PyTorch's torch.fx.passes. The folder each/ has one file per pass, and its index is generated. docs/fx-modules.md has PyTorch's module of each name.
export { PassError, setVerification } from '../../pipeline/index.ts'
export type { Pass, PassObserver, PassRun, PassesResult, Replaced, RewriteDefinition, RunPassesOptions } from '../../pipeline/index.ts'
export { SubgraphMatcherWithNameNodeMap } from '../rewrite/nameNodeMap.ts'
export type { NamedMatch } from '../rewrite/nameNodeMap.ts'

export { getattrRecursive, setattrRecursive } from './nodes/attributes.ts'
export { getAccOpsName, getNodeTarget, replaceTargetNodesWith } from './nodes/calls.ts'
export { areIsomorphic } from './nodes/isomorphic.ts'
export { extractTensorMetadata, getTensorMeta, isNodeOutputTensor } from './nodes/meta.ts'
export type { TensorMetadata } from './nodes/meta.ts'
export { topoSort } from './nodes/order.ts'
export { checkSubgraphsConnected, getSourcePartitions } from './nodes/sourceMatcher.ts'
export type { SourcePartition } from './nodes/sourceMatcher.ts'

export { FxGraphDrawer } from './dot/graphDrawer.ts'
export type { GraphDrawerOptions } from './dot/graphDrawer.ts'

export { GraphTransformObserver, observeTransforms } from './run/observer.ts'
export type { GraphTransformObserverOptions, PassRecord } from './run/observer.ts'
export { PassBase, PassResult, asPass, interpreterPass, passResultWrapper, runPasses } from './run/pass.ts'
export type { AnyPass, PassFunction, TransformerClass } from './run/pass.ts'
export { PassListManager, inplaceWrapper, logHook, loopPass, theseBeforeThosePassConstraint } from './run/passListManager.ts'
export type { ListedPass, ListedPassConstraint } from './run/passListManager.ts'
export { PassManager, thisBeforeThatPassConstraint } from './run/passManager.ts'
export type { ManagedPass, PassCheck, PassConstraint, PassManagerOptions } from './run/passManager.ts'

export * from './each/index.ts'

export { FxNetAccNodesFinder } from './split/accNodes.ts'
export { moveNonTensorNodesOnBoundary } from './split/boundary.ts'
export { DeviceSupport, partitionByDevice } from './split/deviceRegions.ts'
export type { DeviceSupportOptions } from './split/deviceRegions.ts'
export { eraseNodes, fuseAsGraphModule, fuseByPartitions, insertSubgm, validatePartition } from './split/fuse.ts'
export type { FusedModule } from './split/fuse.ts'
export { FxNetAccFusionsFinder } from './split/fusions.ts'
export { NodeEventTracker } from './split/nodeEventTracker.ts'
export { OpSupports, OperatorSupport, anyChain, chain, createOpSupport } from './split/operatorSupport.ts'
export type { OperatorSupportBase, SupportedDtypes } from './split/operatorSupport.ts'
export { CapabilityBasedPartitioner } from './split/partitioner.ts'
export type { Partition, PartitionerOptions } from './split/partitioner.ts'
export { HolderModule, liftSubgraphAsModule } from './split/parts.ts'
export type { LiftedSubgraph } from './split/parts.ts'
export { fuseSupported, splitInto, splitTags } from './split/passes.ts'
export { splitByTags } from './split/splitByTags.ts'
export type { SplitByTagsOptions, TagSplit } from './split/splitByTags.ts'
export { inlineModule, splitModule } from './split/splitModule.ts'
export type { SplitOptions } from './split/splitModule.ts'
export { SplitterBase, generateInputsForSubmodules } from './split/splitter.ts'
export type { SplitResult, SplitterOptions, SplitterSettings } from './split/splitter.ts'
export type { Subgraph } from './split/subgraphs.ts'

export { MinimizerBase } from './minimize/minimizer.ts'
export type { CompareFn, MinimizeOptions, MinimizerOptions, RunPart } from './minimize/minimizer.ts'
export {
  FxNetMinimizerBadModuleError,
  FxNetMinimizerResultMismatchError,
  FxNetMinimizerRunFuncError,
  MinimizerSettingBase,
} from './minimize/settings.ts'
export type { MinimizerSettingOptions, TraverseMethod } from './minimize/settings.ts'
