// What can be compared: registered backends, functions, and onnxruntime, all as one thing that prepares a graph and runs it.
import { noGrad } from '../../autograd/index.ts'
import { forgetDraw } from '../../aot/trace/draws.ts'
import { aotFunction } from '../../aot/index.ts'
import type { CompileGraph } from '../../aot/index.ts'
import { withConfig } from '../../config.ts'
import { lookupBackend, runnable, resultsOf } from '../../dynamo/index.ts'
import type { Backend, CompileAsync } from '../../dynamo/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { isCallable, isFunction, valueText } from '../../protocol/index.ts'
import { getRngState, setRngState, Tensor } from '../../tensor/index.ts'
import { importBackend, isModuleBackend } from '../script/backendModule.ts'
import { isolatedInputs } from '../runs/isolated.ts'
import { requireOnnxRuntime, onnxSession } from './onnxRuntime.ts'
import type { OnnxRuntimeOptions } from './onnxRuntime.ts'
import { tensorsIn } from './float64.ts'
import { heldBy } from './moduleTensors.ts'
import type { Held } from './moduleTensors.ts'
import { keepingDraws } from './reference.ts'

/** A backend to compare: `'eager'`, the name of a registered backend, `'./file.mjs#name'`, `'onnxruntime'`, `'onnxruntime:webgpu'`, or a function that compiles a graph. */
export type ComparedBackend = string | Backend

/** One run of a backend, as it left everything behind. */
export interface Ran {
  /** The tensors that it returned, in the order of `treeLeaves`. */
  readonly outputs: readonly Tensor[]
  /** The copies of the tensors among the inputs that it was given; none if it runs elsewhere. */
  readonly given: readonly Tensor[]
}

/** A graph that a backend has compiled. */
export interface Prepared {
  /** Runs it on copies of the inputs. */
  readonly run: (inputs: readonly unknown[]) => Ran | Promise<Ran>
  /** The backend's own copies of the tensors that the module holds; empty if it runs elsewhere. */
  readonly held: Held
}

/** A backend that can run graphs. */
export interface Candidate {
  readonly name: string
  /** What a script calls it: the name it is registered under; null for a function. */
  readonly registered: string | null
  /** Whether it compiles whole graphs, so that a node may behave otherwise among its neighbours. */
  readonly compiles: boolean
  /** Whether it runs in this process, and so draws from the program's random generator. */
  readonly isHere: boolean
  /** Prepares a graph, hands it to `use`, and frees what it took. */
  with<T>(gm: GraphModule, inputs: readonly unknown[], use: (prepared: Prepared) => Promise<T>): Promise<T>
}

/** Compiles a graph in this process. */
type Compile = (gm: GraphModule, inputs: readonly unknown[]) => Prepared

function immediate(name: string, registered: string | null, compiles: boolean, compile: Compile): Candidate {
  return { name, registered, compiles, isHere: true, with: async (gm, inputs, use) => use(keepingDraws(() => compile(gm, inputs))) }
}

/** A backend whose results are awaited; `captured` graphs are given as they are. */
function awaiting(name: string, registered: string | null, compile: CompileAsync, captured: boolean): Candidate {
  const prepare = captured ? asGivenAsync : loweredAsync
  return { name, registered, compiles: true, isHere: true, with: async (gm, inputs, use) => use(await prepare(compile, gm, inputs)) }
}

async function asGivenAsync(compile: CompileAsync, gm: GraphModule, inputs: readonly unknown[]): Promise<Prepared> {
  const own = gm.deepCopy()
  const run = await compile(own, isolatedInputs(inputs))
  return {
    run: async (values) => {
      const given = isolatedInputs(values)
      return { outputs: tensorsIn(await run(...given)), given: tensorsIn(given) }
    },
    held: heldBy(own),
  }
}

/** Ends a run where the results of a graph have to be awaited. */
class Awaited extends Error {
  readonly graph: GraphModule
  readonly values: readonly unknown[]

  constructor(graph: GraphModule, values: readonly unknown[]) {
    super('the results of a graph have to be awaited')
    this.graph = graph
    this.values = values
  }
}

/** As {@link lowered}. What is around the graph (weights, seeds, what is written back) runs twice: up to the graph, which says what it is given, and with its results. */
async function loweredAsync(compile: CompileAsync, gm: GraphModule): Promise<Prepared> {
  const compiled = new WeakMap<GraphModule, ReturnType<CompileAsync>>()
  let results: readonly unknown[] | null = null
  const code: CompileGraph = (graph) => {
    delete graph.meta['writeBacks']
    return (...values) => {
      if (results === null) throw new Awaited(graph, values)
      return results
    }
  }
  const { run, held } = around(gm, code)
  return {
    held,
    run: async (inputs) => {
      const state = getRngState()
      try {
        return run(inputs)
      } catch (awaited) {
        if (!(awaited instanceof Awaited)) throw awaited
        const { graph, values } = awaited
        const made = compiled.get(graph) ?? compile(graph, values)
        compiled.set(graph, made)
        results = await (await made)(...values)
        setRngState(state)
        return run(inputs)
      } finally {
        results = null
      }
    },
  }
}

/** What onnxruntime runs graphs on, by the name of the backend. */
const ONNX_RUNTIMES: ReadonlyMap<string, OnnxRuntimeOptions> = new Map([
  ['onnxruntime', { executionProviders: ['wasm'] }],
  ['onnxruntime:webgpu', { executionProviders: ['webgpu'] }],
])

/** Whether that is the name of an onnxruntime. */
export const isOnnxRuntime = (name: string): boolean => ONNX_RUNTIMES.has(name)

function onnxRuntime(name: string, options: OnnxRuntimeOptions): Candidate {
  return {
    name,
    registered: name,
    compiles: true,
    isHere: false,
    async with(gm, inputs, use) {
      const session = await onnxSession(gm, inputs, options)
      try {
        return await use({ run: async (values) => ({ outputs: await session.run(...values), given: [] }), held: new Map() })
      } finally {
        await session.release()
      }
    },
  }
}

/** Runs a compiled graph as it is run when nothing is watched: without gradients, and without dumps of failures. */
const quietly = <T>(fn: () => T): T => withConfig({ reproAfter: null }, () => noGrad(fn))

/** Runs a compiled graph on copies of the inputs, and keeps these. */
const onCopies =
  (compiled: (...inputs: readonly unknown[]) => unknown): ((inputs: readonly unknown[]) => Ran) =>
  (values) => {
    const given = isolatedInputs(values)
    return { outputs: quietly(() => tensorsIn(compiled(...given))), given: tensorsIn(given) }
  }

/** A function that is a backend gets the graph as it is. */
function asGiven(backend: Backend): Compile {
  return (gm, inputs) => {
    // A copy of its own, weights included: whatever a backend does to them, the program's stay as they are.
    const own = gm.deepCopy()
    const held = heldBy(own)
    return { run: onCopies(quietly(() => runnable(backend(own, isolatedInputs(inputs))))), held }
  }
}

/** A registered backend gets what compile would give it: a graph of operators, whose weights, seeds and offsets are inputs. It is compiled by the first run. */
const lowered =
  (backend: Backend): Compile =>
  (gm) =>
    around(gm, asCompiler(backend))

/** A module, and compiled code in the place of its graph of operators. */
function around(gm: GraphModule, fwCompiler: CompileGraph): { readonly run: (inputs: readonly unknown[]) => Ran; readonly held: Held } {
  const own = gm.deepCopy()
  const compiled = aotFunction((...args: readonly unknown[]) => tensorsIn(own.call(...args)), { fwCompiler })
  const run = (...args: readonly unknown[]): unknown => {
    // A node alone holds numbers that the program has drawn.
    forgetDraw()
    return compiled(...args)
  }
  return { run: onCopies(run), held: heldBy(own) }
}

/** A backend as a compiler of graphs whose results come as an array, and which leave it to the caller to write them back to inputs. */
function asCompiler(backend: Backend): CompileGraph {
  return (graph, inputs) => {
    delete graph.meta['writeBacks']
    const run = runnable(backend(graph, inputs))
    return (...values) => resultsOf(run(...values))
  }
}

/**
 * The backend that a name or function stands for. Imports the module of `./file.mjs#name`. Throws InvalidBackend for an unknown name, ArgumentError for anything else
 * and for a module that has no such backend, UnsupportedError if onnxruntime-web is not installed. With `captured`, registered backends get graphs as they are: compile has
 * captured them.
 */
export async function candidate(backend: ComparedBackend, captured = false): Promise<Candidate> {
  if (backend === 'eager')
    return immediate('eager', 'eager', false, (gm) => {
      const own = gm.deepCopy()
      const held = heldBy(own)
      return { run: onCopies((...values) => own.call(...values)), held }
    })
  if (typeof backend === 'string') {
    const onnx = ONNX_RUNTIMES.get(backend)
    if (onnx !== undefined) {
      await requireOnnxRuntime()
      return onnxRuntime(backend, onnx)
    }
    const registered = isModuleBackend(backend) ? (await importBackend(backend)).name : backend
    // Registered backends take graphs of operators, as compile captures them.
    const found = lookupBackend(registered)
    if (found.compileAsync !== undefined) return awaiting(backend, registered, found.compileAsync, captured)
    return immediate(backend, registered, true, (captured ? asGiven : lowered)(found))
  }
  if (isCallable(backend) && isFunction(backend)) {
    const name = backend.name === '' ? 'backend' : backend.name
    if (backend.compileAsync !== undefined) return awaiting(name, null, backend.compileAsync, true)
    return immediate(name, null, true, asGiven(backend))
  }
  throw new ArgumentError(`compareBackends: a backend must be a name or a function (gm, inputs) => compiled, got ${valueText(backend)}.`)
}

/** All backends of a comparison. Those of one name are numbered, so that none hides another. */
export async function candidatesOf(backends: readonly ComparedBackend[], captured = false): Promise<readonly Candidate[]> {
  const all = await Promise.all(backends.map(async (backend) => candidate(backend, captured)))
  const seen = new Map<string, number>()
  return all.map((one) => {
    const count = (seen.get(one.name) ?? 0) + 1
    seen.set(one.name, count)
    return count === 1 ? one : { ...one, name: `${one.name} (${count})` }
  })
}
