// PyTorch's torch.fx.experimental.
export { setTrace } from './debug.ts'
export { foldBatchNorms, fuse } from './optimization.ts'
export { MetaTracer } from '../trace/metaTracer.ts'
export { FoldedGraphModule, foldConstants, splitConstSubgraphs } from './constFold.ts'
export { AnnotateTypesWithSchema, NormalizeArgs, NormalizeOperators } from './normalize.ts'
