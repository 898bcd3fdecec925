// tensorfx/core: what a page needs that runs a saved model, and no more. Operators beyond those of convolutions and transformers come in groups, tensorfx/ops/linalg and so on; a
// program that imports tensorfx has them all.
import { installCore } from '../install/core.ts'

export { loadModel } from '../interop/loadModel.ts'
export type { LoadModelOptions } from '../interop/loadModel.ts'
export type { SavedGraph } from '../interop/savedGraph.ts'
export type { Trust } from '../fx/text/decodeGraph.ts'
export { readSafetensors } from '../interop/safetensors.ts'
export type { Safetensors } from '../interop/safetensors.ts'
export { tensor } from '../ops/create/tensor.ts'
export type { TensorData } from '../ops/create/tensor.ts'
export type { CreationOptions } from '../ops/create/creation.ts'
export { Tensor } from '../tensor/index.ts'
export type { NestedArray, TypedArray } from '../tensor/index.ts'
export type { DType } from '../kernels/index.ts'
export { ArgumentError, DTypeError, ShapeError, TensorfxError, UnknownNameError, UnsupportedError } from '../errors/index.ts'
export { VERSION } from '../version.ts'

installCore()
