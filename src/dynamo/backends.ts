// Backends by name: functions that turn a captured graph into something callable.
import { decomposeGraph } from '../aot/index.ts'
import { ArgumentError, TensorfxError } from '../errors/index.ts'
import type { GraphModule } from '../fx/index.ts'
import { add, relu, relu_ } from '../ops/index.ts'
import { nameTarget } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { InvalidBackend } from './errors.ts'

/** Compiles a graph: called with it and example inputs (one per placeholder: tensors, or numbers), returns what runs it. */
export interface Backend {
  (gm: GraphModule, exampleInputs: readonly unknown[]): (...inputs: never[]) => unknown
}

export interface BackendOptions {
  /** URL of a module that registers the backend when imported (`import.meta.url`): isolated processes import it. */
  readonly module?: string
  /** 'debug' backends are left out of listBackends(). */
  readonly tags?: readonly string[]
}

interface Entry {
  readonly backend: Backend
  readonly options: BackendOptions
}

const registry = new Map<string, Entry>()

/** Registers a backend under a name; PyTorch's register_backend. */
export function registerBackend(name: string, backend: Backend, options: BackendOptions = {}): void {
  if (name === '' || typeof backend !== 'function')
    throw new ArgumentError('registerBackend: expected a name and a function (gm, exampleInputs) => compiled.')
  registry.set(name, { backend, options })
}

/** The backend with that name. Throws InvalidBackend. */
export function lookupBackend(name: string): Backend {
  const entry = registry.get(name)
  if (entry === undefined) throw new InvalidBackend(name, [...registry.keys()])
  return entry.backend
}

/** Names of the backends, without those for debugging. */
export const listBackends = (): string[] => [...registry].filter(([, e]) => !(e.options.tags ?? []).includes('debug')).map(([name]) => name)

/** Modules that an isolated process must import to have the backend. */
export function backendImports(name: string): readonly string[] {
  const module = registry.get(name)?.options.module
  return module === undefined ? [] : [module]
}

type Wrapper = (backend: Backend, name: string) => Backend

let backendWrapper: Wrapper = (backend) => backend
let aotWrapper: Wrapper = (backend) => backend

/** Puts `wrapper` around every backend that compile calls; the debugger does. */
export function setBackendWrapper(wrapper: Wrapper): void {
  backendWrapper = wrapper
}

/** Puts `wrapper` around the compiler of forward and backward graphs; the debugger does. */
export function setAotCompilerWrapper(wrapper: Wrapper): void {
  aotWrapper = wrapper
}

export const wrapBackend: Wrapper = (backend, name) => backendWrapper(backend, name)
export const wrapAotCompiler: Wrapper = (backend, name) => aotWrapper(backend, name)

/** What the relu test backends throw. */
export class ReluCompileError extends TensorfxError {
  constructor() {
    super('TFX_RELU_COMPILE', 'relu found in graph')
  }
}

const isRelu = (node: { op: string; target: unknown }): boolean =>
  (node.op === 'call_function' && (node.target === relu || node.target === relu_)) || (node.op === 'call_method' && node.target === 'relu')

const run =
  (gm: GraphModule): ((...inputs: never[]) => unknown) =>
  (...inputs) =>
    gm.forward(...inputs)

/** Throws whatever it is given; stands for a kernel that faults. */
const reluRuntimeError = nameTarget(
  function reluRuntimeError(_x: Tensor): Tensor {
    throw new TensorfxError('TFX_RELU_RUNTIME', 'ReluRuntimeError')
  },
  { name: 'torch.ops.testing.relu_runtime_error' },
)

/** relu with an error of 1. */
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

registerBackend('eager', (gm) => run(gm))
// Forward and backward graphs in primitive operators, on eager kernels: a failure that stays with it is not in the code generator.
registerBackend('aot_eager', (gm) => run(decomposeGraph(gm)))
registerBackend(
  'relu_compile_error_TESTING_ONLY',
  (gm) => {
    for (const node of gm.graph.nodes) if (isRelu(node)) throw new ReluCompileError()
    return run(gm)
  },
  { tags: ['debug'] },
)
registerBackend('relu_runtime_error_TESTING_ONLY', withRelu(reluRuntimeError), { tags: ['debug'] })
registerBackend('relu_accuracy_error_TESTING_ONLY', withRelu(reluAccuracyError), { tags: ['debug'] })
