// tensorfx/compile. The backends and the debugger are installed by the first call that needs them, so that bundlers can leave them out of programs
// that import `tensorfx` and do not compile.
import * as dynamo from '../dynamo/index.ts'
import { installCompile } from '../install/compile.ts'

export { config, withConfig } from '../config.ts'
export {
  BackendCompilerFailed,
  EscapedTensorError,
  ExplainOutput,
  FullGraphError,
  InvalidBackend,
  ReluCompileError,
  ReluRuntimeError,
  allowInGraph,
  disable,
  graphBreak,
  isCompiling,
  markDynamic,
  markStatic,
  markUnbacked,
  maybeMarkDynamic,
  registerBackend,
  reset,
} from '../dynamo/index.ts'
export type { Config } from '../config.ts'
export type {
  Backend,
  BackendCode,
  BackendOptions,
  CompileAsync,
  BreakReason,
  CompileOptions,
  Compiled,
  CompiledModule,
  DynamicRange,
  FunctionTrace,
  KernelSummary,
} from '../dynamo/index.ts'

function installed<F extends (...args: never[]) => unknown>(fn: F): F {
  const call = (...args: Parameters<F>): unknown => {
    installCompile()
    return fn(...args)
  }
  return call as F
}

/** Compiles a function or a module. PyTorch’s `torch.compile`. */
export const compile: typeof dynamo.compile = /* @__PURE__ */ installed(dynamo.compile)
/** Runs a function once and says which graphs it would be compiled to, and why they end. PyTorch’s `torch._dynamo.explain`. */
export const explain: typeof dynamo.explain = /* @__PURE__ */ installed(dynamo.explain)
/** The backend of a name. */
export const lookupBackend: typeof dynamo.lookupBackend = /* @__PURE__ */ installed(dynamo.lookupBackend)
/** The names of the backends. */
export const listBackends: typeof dynamo.listBackends = /* @__PURE__ */ installed(dynamo.listBackends)
