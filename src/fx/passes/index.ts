// Passes over graphs; PyTorch's torch.fx.passes.
export { ShapeProp, extractTensorMetadata } from './shapeProp.ts'
export type { TensorMetadata } from './shapeProp.ts'
export { FxGraphDrawer } from './graphDrawer.ts'
export type { GraphDrawerOptions } from './graphDrawer.ts'
