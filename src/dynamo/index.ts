// compile: calls of a function are captured while they run, and computed by compiled graphs. Each room imports those above it in this list; to read along a call, begin with the last.
//
//   reports/   what compile says: why graphs break and paths are recorded again, failures, the errors
//   backends/  backends by name, and what wraps them
//   tree/      the trace tree: all that a function has done so far. A call that agrees with its steps runs what was compiled for them
//   run/       recorded steps without compiled code: on eager kernels, or as a row of launches
//   segment/   the part of a call between two graph breaks: which tensors have which values, views and writes
//   compile/   a segment's graph, and the code that a backend makes of it
//   end/       what is computed when a segment ends, and what is computed later because something asks for it
//   call/      one call, from its arguments to its results: Capture is the dispatcher's mode, Shortcut answers without it
//   api/       the functions that programs call
export { compile, reset } from './api/compile.ts'
export { allowInGraph, disable, graphBreak, isCompiling } from './api/controls.ts'
export { explain } from './api/explain.ts'
export type { CompileOptions, Compiled, CompiledModule, FunctionTrace } from './api/compile.ts'
export type { KernelSummary } from '../aot/index.ts'
export { resultsOf, runnable } from './backends/backend.ts'
export type { Backend, BackendCode, BackendOptions, CompileAsync, Entry } from './backends/backend.ts'
export { ReluCompileError, ReluRuntimeError, defaultBackends } from './backends/builtIn.ts'
export { interceptBackends } from './backends/interceptors.ts'
export type { BackendInterceptor } from './backends/interceptors.ts'
export {
  backendImports,
  findBackend,
  installBackends,
  isImportable,
  labelOf,
  listBackends,
  lookupBackend,
  registerBackend,
} from './backends/registry.ts'
export { anySize, markDynamic, markStatic, markUnbacked, maybeMarkDynamic } from './tree/marks.ts'
export type { SizeRange } from './tree/marks.ts'
export type { DynamicRange } from './tree/marks.ts'
export { BackendCompilerFailed, EscapedTensorError, FullGraphError, InvalidBackend, dumpText } from './reports/errors.ts'
export type { Dumped } from './reports/errors.ts'
export { ExplainOutput } from './reports/explainOutput.ts'
export type { BreakReason } from './reports/breaks.ts'
export { runWatch } from './backends/runWatch.ts'
export type { GraphRun } from './backends/runWatch.ts'
