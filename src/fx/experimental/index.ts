// PyTorch's torch.fx.experimental.
export { setTrace } from './debug.ts'
export { fuse } from './optimization.ts'
export { MetaTracer } from '../metaTracer.ts'
export { FoldedGraphModule, splitConstSubgraphs } from './constFold.ts'
export { AnnotateTypesWithSchema, NormalizeArgs, NormalizeOperators } from './normalize.ts'
