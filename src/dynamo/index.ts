// compile(): lazy capture, the trace tree, graph breaks, backends, explain.
export { compile, disable, explain, reset } from './compile.ts'
export type { CompileOptions, Compiled, CompiledModule } from './compile.ts'
export type { KernelSummary } from './compileSegment.ts'
export {
  backendImports,
  listBackends,
  lookupBackend,
  registerBackend,
  ReluCompileError,
  setAotCompilerWrapper,
  setBackendWrapper,
} from './backends.ts'
export type { Backend, BackendOptions } from './backends.ts'
export { config, configDifferences, withConfig } from './config.ts'
export type { Config } from './config.ts'
export { BackendCompilerFailed, EscapedTensorError, FullGraphError, InvalidBackend } from './errors.ts'
export { ExplainOutput } from './explain.ts'
export type { BreakReason } from './explain.ts'
