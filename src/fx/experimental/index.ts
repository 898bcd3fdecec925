// PyTorch's torch.fx.experimental.
export { BisectValidationException, TranslationValidator, ValidationException, bisect, validateShapeEnv } from './validator.ts'
export type { Verdict } from './validator.ts'
export { setTrace } from './debug.ts'
export { batchNormRewrite, foldBatchNorms, fuse } from './optimization.ts'
export type { FuseOptions } from './optimization.ts'
export { MetaTracer } from '../trace/metaTracer.ts'
export type { MetaTracerOptions } from '../trace/metaTracer.ts'
export { FoldedGraphModule, foldConstants, getUniqueAttrNameInModule, splitConstSubgraphs } from './constFold.ts'
export { AnnotateTypesWithSchema, NormalizeArgs, NormalizeOperators } from './normalize.ts'
export type { AnnotateOptions } from './normalize.ts'
export { checkForMutableOperation, normalizeModule } from './normalizeModule.ts'
export { immutableDict, immutableList } from './immutableCollections.ts'
export { mergeMatmul, splitResultTensors } from './mergeMatmul.ts'
export { cloneAndConvertToMeta, moduleToNestedDict, normalizeSourceName, trackDynamismAcrossExamples } from './dynamism.ts'
export type { Dynamism } from './dynamism.ts'
export { dropoutRewrite, extractSubgraph, matchesModulePattern, optimizeForInference, removeDropout, replaceNodeModule } from './inference.ts'
export type { InferenceOptions, ModuleClass } from './inference.ts'
export { genLayoutAutotuner } from './layoutAutotuner.ts'
export type { AutotunerOptions } from './layoutAutotuner.ts'
export { applyLayout, useLongRegions } from './layoutRegions.ts'
export type { Layout, LayoutRegion } from './layoutRegions.ts'
export { UnionFind } from './unionFind.ts'
export { annotate } from '../values/annotate.ts'
export { createTypeHint, typeMatches } from '../text/typeExpression.ts'
export { Partitioner } from './partitioner/acceleratorPartitioner.ts'
export type { DAGNode, PartitionResult } from './partitioner/acceleratorPartitioner.ts'
export {
  Partition,
  getCommLatencyBetween,
  getExtraSizeOf,
  getLatencyOfOnePartition,
  getPartitionToLatencyMapping,
} from './partitioner/partitionerUtils.ts'
export type { Device, NodeLatency, PartitionLatency, PartitionMode, PartitionerConfig } from './partitioner/partitionerUtils.ts'
export {
  checkDependency,
  combineTwoPartitions,
  getBfsLevelPartition,
  getDevicePartitionStats,
  getDeviceToPartitionsMapping,
  getLatencyOfPartitionedGraph,
  getLogicalIdToDevice,
  getNodeToPartitionMapping,
  reorganizePartitions,
  resetPartitionDevice,
  setParentsAndChildren,
} from './partitioner/partitionList.ts'
export type { DevicePartitionStats } from './partitioner/partitionList.ts'
export { Dyn, TensorType, TypeList, isConsistent, isMorePrecise, isTensorType, parseTensorType, typesEqual } from './gradualTypes/tensorType.ts'
export type { Dimension, DynType } from './gradualTypes/tensorType.ts'
export { SizeExpression } from './gradualTypes/sizeExpression.ts'
export { setInputTypes, tensorTypes } from './gradualTypes/tensorTypes.ts'
export type { GivenType } from './gradualTypes/tensorTypes.ts'
export { Equality } from './gradualTypes/refinementTypes.ts'
export { GraphTypeChecker, registerInferenceRule } from './gradualTypes/graphGradualTypechecker.ts'
export type { InferenceRule } from './gradualTypes/graphGradualTypechecker.ts'
export {
  adaptiveavgpool2dCheck,
  broadcastTypes,
  calculateOutDimension,
  expandToTensorDim,
  flattenCheck,
  getGreatestUpperBound,
  linearCheck,
  maxpool2dCheck,
} from './gradualTypes/shapeRules.ts'
export { Refine, registerAlgebraicExpressionsInferenceRule, registerRefinementRule } from './gradualTypes/refine.ts'
export type { AlgebraicRule, RefinementRule } from './gradualTypes/refine.ts'
export type { RuleTarget } from './gradualTypes/layerRules.ts'
export {
  checkForTypeEquality,
  convertEq,
  inferSymbolicTypes,
  inferSymbolicTypesSinglePass,
  substituteAllTypes,
  substituteSolutionOneType,
  unifyEq,
} from './gradualTypes/unifyRefinements.ts'
