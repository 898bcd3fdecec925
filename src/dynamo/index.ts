// compile(): lazy capture, the trace tree, graph breaks, backends, explain.
export { allowInGraph, compile, disable, explain, graphBreak, isCompiling, reset } from './compile.ts'
export type { CompileOptions, Compiled, CompiledModule, FunctionTrace } from './compile.ts'
export type { KernelSummary } from '../aot/index.ts'
export {
  backendImports,
  isImportable,
  labelOf,
  defaultBackends,
  installBackends,
  interceptBackends,
  listBackends,
  lookupBackend,
  registerBackend,
  ReluCompileError,
  ReluRuntimeError,
  resultsOf,
  runnable,
} from './backends.ts'
export type { Backend, BackendCode, BackendInterceptor, BackendOptions } from './backends.ts'
export { markDynamic, markStatic, markUnbacked, maybeMarkDynamic } from './marks.ts'
export type { DynamicRange } from './marks.ts'
export { config, configDifferences, withConfig } from './config.ts'
export type { Config } from './config.ts'
export { BackendCompilerFailed, EscapedTensorError, FullGraphError, InvalidBackend, dumpText } from './errors.ts'
export type { Dumped } from './errors.ts'
export { ExplainOutput } from './explain.ts'
export type { BreakReason } from './explain.ts'
export { runWatch } from './runWatch.ts'
export type { GraphRun } from './runWatch.ts'
