// GraphModules as ONNX models.
export { toOnnx } from './toOnnx.ts'
export type { OnnxModel, ToOnnxOptions } from './toOnnx.ts'
export type { OnnxFiles, Value as OnnxValue, Weights as OnnxWeights } from './model.ts'
