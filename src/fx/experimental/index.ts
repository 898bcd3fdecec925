// PyTorch's torch.fx.experimental.
export { setTrace } from './debug.ts'
export { foldBatchNorms, fuse } from './optimization.ts'
export { MetaTracer } from '../trace/metaTracer.ts'
export { FoldedGraphModule, foldConstants, splitConstSubgraphs } from './constFold.ts'
export { AnnotateTypesWithSchema, NormalizeArgs, NormalizeOperators } from './normalize.ts'
export { mergeMatmul, splitResultTensors } from './mergeMatmul.ts'
export { cloneAndConvertToMeta, moduleToNestedDict, normalizeSourceName, trackDynamismAcrossExamples } from './dynamism.ts'
export type { Dynamism } from './dynamism.ts'
