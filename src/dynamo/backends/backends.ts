// Backends by name: functions that turn a captured graph into something callable.
import { decomposeGraph } from '../../aot/index.ts'
import type { CompiledCode } from '../../aot/index.ts'
import { ArgumentError, TensorfxError } from '../../errors/index.ts'
import { remover } from '../../events/index.ts'
import type { Remover } from '../../events/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { add, relu, relu_ } from '../../ops/index.ts'
import {
  checkArgument,
  checkCallable,
  checkCount,
  checkOptions,
  checkString,
  isCallable,
  nameTarget,
  swappedHint,
  valueText,
} from '../../protocol/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { InvalidBackend } from '../reports/errors.ts'

/** A function that a backend returns: it takes one value per placeholder. inductor's also carries reports. */
export interface BackendCode extends Pick<CompiledCode, 'kernels' | 'writtenInPlace'> {
  (...inputs: never[]): unknown
}

/** What compiled code, or a graph, has returned, as a list of results. */
export const resultsOf = (returned: unknown): readonly unknown[] => (Array.isArray(returned) ? returned : [returned])

/**
 * Compiles a graph: takes it and example inputs (one per placeholder: tensors, or numbers), and returns what computes it. `(gm) => gm` and `(gm) => gm.forward` run
 * the graph as it is.
 */
export interface Backend {
  (gm: GraphModule, exampleInputs: readonly unknown[]): BackendCode
  /** Whether what it returns is for the shapes of the example inputs only. Otherwise `compile(fn, { dynamic: true })` calls it with graphs that have sizes among their inputs, as numbers. */
  readonly staticShapes?: boolean
}

/** What a backend says of itself when it is registered. */
export interface BackendOptions {
  /** URL of a module that registers the backend when imported (`import.meta.url`): isolated processes import it. */
  readonly module?: string
  /** 'debug' backends are left out of listBackends(). */
  readonly tags?: readonly string[]
  /** As {@link Backend.staticShapes}. */
  readonly staticShapes?: boolean
}

/** What a backend returned, as a function of any inputs. Throws ArgumentError if it is neither a function nor a GraphModule. */
export function runnable(compiled: BackendCode): (...inputs: readonly unknown[]) => unknown {
  if (!isCallable(compiled))
    throw new ArgumentError(
      `compiler_fn did not return callable: a backend must return a function of the graph's inputs or a GraphModule, got ${valueText(compiled)}.`,
    )
  // The types that a backend declares for its inputs are its own affair: it gets one value per placeholder.
  return compiled as (...inputs: readonly unknown[]) => unknown
}

/** A registered backend. */
export interface Entry {
  readonly backend: Backend
  readonly options: BackendOptions
}

const registry = new Map<string, Entry>()

/** The names of the backends that are always there. */
const builtIn = (): readonly string[] => ['inductor', ...Object.keys(defaultBackends)]

/**
 * Registers a backend under a name; PyTorch's register_backend. Registering the same function again does nothing.
 * @throws ArgumentError if the name is empty or taken, or `backend` is not a function.
 */
export function registerBackend(name: string, backend: Backend, options: BackendOptions = {}): void {
  checkCount('registerBackend', arguments, 3)
  checkOptions('registerBackend', options, { module: true, tags: true, staticShapes: 'boolean' })
  if (typeof name !== 'string' || name === '' || !isCallable(backend))
    throw new ArgumentError(
      `registerBackend: expected a name and a function (gm, exampleInputs) => compiled, got ${valueText(name)} and ${valueText(backend)}.${swappedHint(isCallable(name), 'name', 'backend', 'name, backend')}`,
    )
  const known = registry.get(name)
  if (known?.backend === backend) return
  if (known !== undefined || builtIn().includes(name))
    throw new ArgumentError(`registerBackend: duplicate name: there is already a backend '${name}'. Choose another name for this one.`)
  registry.set(name, { backend, options })
}

/** Registers backends of tensorfx itself. The composition root calls it. */
export function installBackends(entries: Readonly<Record<string, Entry>>): void {
  for (const [name, entry] of Object.entries(entries)) registry.set(name, entry)
}

/** The backend with that name. Throws InvalidBackend. */
export function lookupBackend(name: string): Backend {
  checkString('lookupBackend', 'name', name)
  const entry = registry.get(name)
  if (entry === undefined) throw new InvalidBackend(name, [...registry.keys()])
  return entry.backend
}

/** Names of the backends, without those for debugging. */
export const listBackends = (): string[] => [...registry].filter(([, e]) => !(e.options.tags ?? []).includes('debug')).map(([name]) => name)

/** Modules that an isolated process must import so that it has the backend. */
export function backendImports(name: string): readonly string[] {
  const module = registry.get(name)?.options.module
  return module === undefined ? [] : [module]
}

/** Whether another process can have the backend: it is one of tensorfx's, or a module registers it. */
export const isImportable = (name: string): boolean => builtIn().includes(name) || registry.get(name)?.options.module !== undefined

/** What a backend that was passed as a function is called: the name that it is registered under, or its own if no other backend has that. */
export function labelOf(backend: Backend): string {
  const registered = [...registry].find(([, entry]) => entry.backend === backend)?.[0]
  if (registered !== undefined) return registered
  const own = backend.name === '' ? 'custom' : backend.name
  return registry.has(own) ? `${own} (a function)` : own
}

/** Whether graphs with sizes among their inputs can be given to a backend. */
export const takesAnySizes = (backend: Backend): boolean =>
  backend.staticShapes !== true && ![...registry.values()].some((entry) => entry.backend === backend && entry.options.staticShapes === true)

/** Puts something around a backend: takes it and the name by which messages call it, and returns what is called in its place. */
export type BackendInterceptor = (backend: Backend, name: string) => Backend

/** Around whole captured graphs, and around each forward and backward graph. */
const interceptors: Record<'dynamo' | 'aot', readonly BackendInterceptor[]> = { dynamo: [], aot: [] }

/**
 * Puts `interceptor` around every backend that compile calls from now on: as a whole, with captured graphs (`'dynamo'`), or where it gets the forward and the backward graph of each
 * (`'aot'`). There can be several; each wraps what those that were registered before it made of the backend. Returns a function that removes it, which `using` calls at the end of a block. What is compiled already stays as it is.
 * Throws ArgumentError for another place, or if `interceptor` is not a function.
 *
 *     using counting = interceptBackends('dynamo', (backend) => (gm, inputs) => {
 *       console.log(gm.graph.nodes.length)
 *       return backend(gm, inputs)
 *     })
 */
export function interceptBackends(where: 'dynamo' | 'aot', interceptor: BackendInterceptor): Remover {
  checkCount('interceptBackends', arguments, 2)
  checkArgument(where === 'dynamo' || where === 'aot', 'interceptBackends', 'where', "'dynamo' or 'aot'", where)
  checkCallable('interceptBackends', 'interceptor', interceptor)
  // A function of its own for each registration: the same interceptor may be registered twice.
  const own: BackendInterceptor = (backend, name) => interceptor(backend, name)
  interceptors[where] = [...interceptors[where], own]
  return remover(() => (interceptors[where] = interceptors[where].filter((other) => other !== own)))
}

/** The backend with all interceptors around it. */
export const intercepted = (where: 'dynamo' | 'aot', backend: Backend, name: string): Backend =>
  interceptors[where].reduce((inner, interceptor) => interceptor(inner, name), backend)

/**
 * A relu was found in the graph: what `relu_compile_error_TESTING_ONLY` throws. PyTorch's ReluCompileError.
 *
 * Fix: none is needed: the backend fails on purpose, to try the debugger. Compile with another backend.
 */
export class ReluCompileError extends TensorfxError {
  constructor() {
    super('TFX_RELU_COMPILE', 'relu found in graph')
  }
}

/**
 * A kernel that failed at run time, as `relu_runtime_error_TESTING_ONLY` makes it.
 *
 * Fix: none is needed: the backend fails on purpose, to try the debugger. Compile with another backend.
 */
export class ReluRuntimeError extends TensorfxError {
  constructor() {
    super('TFX_RELU_RUNTIME', 'ReluRuntimeError')
  }
}

const isRelu = (node: { op: string; target: unknown }): boolean =>
  (node.op === 'call_function' && (node.target === relu || node.target === relu_)) || (node.op === 'call_method' && node.target === 'relu')

const run =
  (gm: GraphModule): ((...inputs: never[]) => unknown) =>
  (...inputs) =>
    gm.forward(...inputs)

/** The backend `eager`: runs graphs as they are, for any sizes. */
export const eagerBackend: Backend = run

/** Always throws; stands for a kernel that fails at run time. */
const reluRuntimeError = nameTarget(
  function reluRuntimeError(_x: Tensor): Tensor {
    throw new ReluRuntimeError()
  },
  { name: 'torch.ops.testing.relu_runtime_error' },
)

/** relu with a result that is wrong by 1. */
const reluAccuracyError = nameTarget(
  function reluAccuracyError(x: Tensor): Tensor {
    return add(relu(x), 1)
  },
  { name: 'torch.ops.testing.relu_accuracy_error' },
)

function withRelu(replacement: (x: Tensor) => Tensor): Backend {
  return (gm) => {
    const copy = gm.deepCopy({ shareTensors: true })
    for (const node of copy.graph.nodes) {
      if (!isRelu(node)) continue
      node.op = 'call_function'
      node.target = replacement
    }
    copy.recompile()
    return run(copy)
  }
}

/** The backends that need no code generator, and the test backends that fail on purpose. */
export const defaultBackends: Readonly<Record<string, Entry>> = {
  eager: { backend: eagerBackend, options: {} },
  // Forward and backward graphs in primitive operators, on eager kernels: a failure that occurs here too is not in the code generator.
  aot_eager: { backend: (gm) => run(decomposeGraph(gm)), options: { staticShapes: true } },
  relu_compile_error_TESTING_ONLY: {
    backend: (gm) => {
      for (const node of gm.graph.nodes) if (isRelu(node)) throw new ReluCompileError()
      return run(gm)
    },
    options: { tags: ['debug'] },
  },
  relu_runtime_error_TESTING_ONLY: { backend: withRelu(reluRuntimeError), options: { tags: ['debug'] } },
  relu_accuracy_error_TESTING_ONLY: { backend: withRelu(reluAccuracyError), options: { tags: ['debug'] } },
}
