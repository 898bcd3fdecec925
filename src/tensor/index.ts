export { Tensor } from './tensor.ts'
export type { GradFn, Pending, TensorSpec } from './tensor.ts'
export { Storage } from './storage.ts'
export { broadcastShapes, contiguousStrides, formatShape, isContiguous, numelOf, sameShape, wrapDim } from './shape.ts'
