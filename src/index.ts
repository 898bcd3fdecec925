// tensorfx: tensors with autograd, graph capture and rewriting, compilation and its debugger. Rooms with a world of their own are also subpaths:
// tensorfx/nn, tensorfx/optim, tensorfx/fx, tensorfx/compile, tensorfx/debug, …
export { torch } from './torch.ts'
export type { Torch } from './torch.ts'
export * from './ops/index.ts'
export { FakeTensorMode, RecordMode, dispatch, dispatchBelowAutograd, fakeLike, withMode, withoutModes } from './dispatch/index.ts'
export type { Arg, DispatchMode, OpDef, RecordedCall, Result } from './dispatch/index.ts'
export { Generator, Tensor, defaultGenerator, getRngState, manualSeed, setRngState } from './tensor/index.ts'
export type { GeneratorState, NestedArray, TensorSpec, TypedArray } from './tensor/index.ts'
export {
  AutogradError,
  Function,
  attachGradNode,
  backward,
  enableGrad,
  grad,
  inferenceMode,
  isGradEnabled,
  noGrad,
  setGradEnabled,
} from './autograd/index.ts'
export type { AttachOptions, BackwardFn, BackwardOptions, FunctionContext, GradHook, GradNode, RemovableHandle } from './autograd/index.ts'
export { dtypeInfo, isDType } from './kernels/index.ts'
export type { DType } from './kernels/index.ts'
export { ArgumentError, DTypeError, InternalError, ShapeError, TensorfxError, UnsupportedError } from './errors/index.ts'
export { cond, map, scan, whileLoop } from './controlFlow/index.ts'
export type { ScanOptions } from './controlFlow/index.ts'
export * as fx from './fx/index.ts'
export * as nn from './nn/index.ts'
export * as optim from './optim/index.ts'
export { compile, config } from './dynamo/index.ts'
export { operator } from './fx/index.ts'
export { VERSION } from './version.ts'
import { registerBackend } from './dynamo/index.ts'
import { compileFx } from './inductor/index.ts'
import { installDebug } from './debug/index.ts'

// The default backend, and the debugger around all of them: dynamo knows neither.
registerBackend('inductor', compileFx as Parameters<typeof registerBackend>[1])
installDebug()
