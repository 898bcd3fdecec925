// tensorfx, the front door: what most programs need. The rest has subpaths: tensorfx/nn, tensorfx/optim, tensorfx/fx, tensorfx/compile, tensorfx/debug,
// tensorfx/ops (the operator table), tensorfx/dispatch (modes), … Operators are members of `torch`, as in PyTorch.
export { torch } from './torch.ts'
export type { Torch } from './torch.ts'
export { Tensor } from './tensor/index.ts'
export type { GeneratorState, NestedArray, TensorJson, TensorTransfer, TypedArray } from './tensor/index.ts'
export type { CreationOptions, TensorData } from './ops/index.ts'
export type { DType } from './kernels/index.ts'
export * as fx from './entries/fx.ts'
export * as nn from './entries/nn.ts'
export * as optim from './entries/optim.ts'
export { compile, config } from './entries/compile.ts'
export { operator } from './entries/fx.ts'
export { enableGrad, inferenceMode, isGradEnabled, noGrad, setGradEnabled } from './autograd/index.ts'
export type { BackwardOptions, FunctionContext, GradHook, GradNode, RemovableHandle } from './autograd/index.ts'
export type { ScanOptions } from './controlFlow/index.ts'
export { AutogradError } from './autograd/index.ts'
export {
  ArgumentError,
  DTypeError,
  InternalError,
  NotCloseError,
  ShapeError,
  TensorfxError,
  UnknownNameError,
  UnsupportedError,
} from './errors/index.ts'
export { VERSION } from './version.ts'
