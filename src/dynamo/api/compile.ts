// compile: makes a function whose calls are captured while they run, and computed by compiled graphs.
import type { KernelSummary } from '../../aot/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { harmless } from '../../events/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { withComputing } from '../../kernels/index.ts'
import { Module } from '../../module/index.ts'
import { checkArgument, checkCount, checkOptions, isCallable, isFunction, isModule, isObject, valueText } from '../../protocol/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { Backend } from '../backends/backend.ts'
import { labelOf, lookupBackend, takesAnySizes } from '../backends/registry.ts'
import { CompiledFunction } from '../call/compiledFunction.ts'
import type { Callable } from '../call/compiledFunction.ts'
import { WeakRefs } from '../end/weakRefs.ts'
import { computingUnder, checkComputeOptions } from './computeOptions.ts'
import type { ComputeOptions } from './computeOptions.ts'

/** Options of {@link compile}. */
export interface CompileOptions {
  /** A registered backend's name or a function (gm, exampleInputs) => compiled. Default 'inductor'. */
  readonly backend?: string | Backend
  /** A graph break is an error. Default false. */
  readonly fullgraph?: boolean
  /**
   * Whether one graph is for calls whose tensors have other sizes. With `true`, every size of at least 2 is an input of the graph from the first call on. Default: sizes are constants, and
   * each other shape records another path, unless `markDynamic` says otherwise. A graph for any sizes runs on eager kernels or on a backend that takes sizes; for sizes that come often,
   * others compile one of their own.
   */
  readonly dynamic?: boolean
  /**
   * The caller's promise that the function is pure: its results and its writes to tensors depend only on its arguments and on the outside tensors that it
   * used when it was recorded. On a hit only the arguments are checked, and the function is not run. Calls with graph breaks, random numbers, changing
   * numbers, views among the results or gradients set inside still run. Default false.
   */
  readonly skipReplay?: boolean
  /** How it computes. PyTorch's options of inductor have other names. */
  readonly options?: ComputeOptions
  /** Called with each captured graph before the backend gets it. Like any listener of events, it cannot make the program fail: what it throws is logged. */
  readonly onGraph?: (gm: GraphModule, exampleInputs: readonly unknown[]) => void
  /** A trace, from `trace` of tensorfx/debug/trace, which then records this function, and only those that were compiled with it. */
  readonly trace?: FunctionTrace
}

/** Records what compiled functions do. */
export interface FunctionTrace {
  /** Records the function of this number, as events name it. */
  readonly follow: (fn: number) => void
}

/** A compiled function. */
export interface Compiled<F extends (...args: never[]) => unknown> {
  (...args: Parameters<F>): ReturnType<F>
  /** Kernels of the graphs compiled so far, if the backend reports them (inductor does). */
  kernels(): readonly KernelSummary[]
  /** Graphs compiled so far. */
  graphs(): readonly GraphModule[]
  /** Why paths after the first were recorded: what was expected and what came instead. */
  recompileReasons(): readonly string[]
}

/** A compiled module: call it directly, or with `call` like a module. PyTorch's OptimizedModule. */
export interface CompiledModule<M extends Module> extends Compiled<CallOf<M>> {
  call(...args: Parameters<M['forward']>): ReturnType<M['forward']>
  /** The module; its parameters, state dict and mode are the compiled module's. */
  readonly module: M
}

type CallOf<M extends Module> = (...args: Parameters<M['forward']>) => ReturnType<M['forward']>

/** What to write instead of the options of PyTorch's compile that are not options here. */
const PYTORCH_OPTIONS: Readonly<Record<string, string>> = {
  mode: 'leave it out, as there is one mode; for a pure function whose calls are short, { skipReplay: true } checks only the arguments',
  disable: 'leave it out, and write disable(fn) for a function that runs eagerly',
}

/** Compiled functions and modules; `reset` drops their trees. */
const compiledFunctions = new WeakRefs<CompiledFunction>()

/**
 * Compiles a function or module; PyTorch's torch.compile. Your code runs at every call: its operators are recorded, or checked against what
 * was recorded, and run as fused kernels when the function returns or needs a value. Throws ArgumentError for an unknown option, InvalidBackend for an
 * unknown backend; a call throws BackendCompilerFailed if the backend fails.
 *
 *     const fast = compile((x) => torch.relu(x.mul(2)).sum())
 */
export function compile<M extends Module>(module: M, options?: CompileOptions): CompiledModule<M>
/** Parameters without types are tensors. */
export function compile<A extends readonly Tensor[], R>(fn: (...args: A) => R, options?: CompileOptions): Compiled<(...args: A) => R>
export function compile<F extends Callable>(fn: F, options?: CompileOptions): Compiled<F>
export function compile(target: Callable | Module, options: CompileOptions = {}): Compiled<Callable> {
  // A module of another copy of the library can be called, but not captured.
  if (!isCallable(target) || (isModule(target) && !(target instanceof Module)))
    throw new ArgumentError(`compile: argument 'fn' must be a function or a Module, got ${valueText(target)}. Pass the model itself, not its result.`)
  checkOptions(
    'compile',
    options,
    { backend: true, fullgraph: 'boolean', dynamic: 'boolean', skipReplay: 'boolean', onGraph: true, trace: true, options: true },
    PYTORCH_OPTIONS,
  )
  const { trace } = options
  if (trace !== undefined)
    checkArgument(
      isObject(trace) && isFunction(trace.follow),
      'compile',
      'options.trace',
      'a trace, as trace() of tensorfx/debug/trace makes them',
      trace,
    )
  const computing = options.options
  if (computing !== undefined) checkComputeOptions(computing)
  const compiled = newCompiled(target, options)
  trace?.follow(compiled.reports.fn)
  compiledFunctions.add(compiled)
  // Written out twice: a function of its own would be one frame more in the traces of users' programs, which are cut off.
  const call = function (this: unknown, ...args: readonly unknown[]): unknown {
    return computing === undefined ? compiled.call(this, args) : withComputing(computingUnder(computing), () => compiled.call(this, args))
  }
  const { name } = target instanceof Module ? target.constructor : target
  Object.defineProperty(call, 'name', { value: name })
  const reports = {
    kernels: () => compiled.reports.records.flatMap((r) => r.kernels),
    graphs: () => compiled.reports.graphs(),
    recompileReasons: () => compiled.reports.reasons,
  }
  if (!(target instanceof Module)) return Object.assign(call, reports)
  return Object.assign(call, reports, {
    call: (...args: readonly unknown[]): unknown =>
      computing === undefined ? compiled.call(undefined, args) : withComputing(computingUnder(computing), () => compiled.call(undefined, args)),
    module: target,
  })
}

/** A target with the options of {@link compile} as the functions below it take them. */
export function newCompiled(target: Callable | Module, options: CompileOptions): CompiledFunction {
  const choice = options.backend ?? 'inductor'
  const named = typeof choice === 'string'
  const backend = named ? lookupBackend(choice) : choice
  const label = named ? choice : labelOf(choice)
  return new CompiledFunction(target, {
    backend,
    label,
    takesSizes: takesAnySizes(backend),
    dynamic: options.dynamic,
    fullgraph: options.fullgraph ?? false,
    skipReplay: options.skipReplay ?? false,
    onGraph: options.onGraph === undefined ? null : harmless(options.onGraph),
  })
}

/** Drops everything that was compiled. PyTorch's torch._dynamo.reset. */
export function reset(): void {
  checkCount('reset', arguments, 0)
  for (const compiled of compiledFunctions) compiled.reset()
}
