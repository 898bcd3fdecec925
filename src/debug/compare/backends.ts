// What can be compared: registered backends, functions, and onnxruntime, all as one thing that prepares a graph and runs it.
import { noGrad } from '../../autograd/index.ts'
import { makeFx } from '../../aot/index.ts'
import { lookupBackend, runnable, withConfig } from '../../dynamo/index.ts'
import type { Backend } from '../../dynamo/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import type { GraphModule, Node } from '../../fx/index.ts'
import { isCallable, isFunction, valueText } from '../../protocol/index.ts'
import { treeMap } from '../../pytree/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { importBackend, isModuleBackend } from '../backendModule.ts'
import { cloneInput } from '../twoModels.ts'
import { requireOnnxRuntime, onnxSession } from './onnxRuntime.ts'
import type { OnnxRuntimeOptions } from './onnxRuntime.ts'
import { tensorsIn } from './reference.ts'

/** A backend to compare: `'eager'`, the name of a registered backend, `'./file.mjs#name'`, `'onnxruntime'`, `'onnxruntime:webgpu'`, or a function that compiles a graph. */
export type ComparedBackend = string | Backend

/** A prepared graph: returns the tensors of its result, in the order of `treeLeaves`. */
export type Prepared = (inputs: readonly unknown[]) => readonly Tensor[] | Promise<readonly Tensor[]>

/** A backend that can run graphs. */
export interface Candidate {
  readonly name: string
  /** What a script calls it: the name it is registered under; null for a function. */
  readonly registered: string | null
  /** Whether it compiles whole graphs, so that a node may behave otherwise among its neighbours. */
  readonly compiles: boolean
  /** Compiles in this process and returns at once; null if it cannot. */
  readonly compile: ((gm: GraphModule, inputs: readonly unknown[]) => (inputs: readonly unknown[]) => readonly Tensor[]) | null
  /** Prepares a graph, hands it to `use`, and frees what it took. */
  with<T>(gm: GraphModule, inputs: readonly unknown[], use: (run: Prepared) => Promise<T>): Promise<T>
}

const copies = (inputs: readonly unknown[]): unknown[] => inputs.map((input) => treeMap(input, cloneInput))

function immediate(name: string, registered: string | null, compiles: boolean, compile: NonNullable<Candidate['compile']>): Candidate {
  return { name, registered, compiles, compile, with: (gm, inputs, use) => use(compile(gm, inputs)) }
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
    compile: null,
    async with(gm, inputs, use) {
      const session = await onnxSession(gm, inputs, options)
      try {
        return await use((values) => session.run(...values))
      } finally {
        await session.release()
      }
    },
  }
}

/** Runs a compiled graph as it is run when nothing is watched: without gradients, and without dumps of failures. */
const quietly = <T>(fn: () => T): T => withConfig({ reproAfter: null }, () => noGrad(fn))

/** A function that is a backend gets the graph as it is. */
function asGiven(backend: Backend): NonNullable<Candidate['compile']> {
  return (gm, inputs) => {
    const compiled = quietly(() => runnable(backend(gm.deepCopy({ shareTensors: true }), copies(inputs))))
    return (values) => quietly(() => tensorsIn(compiled(...copies(values))))
  }
}

/** A registered backend gets what compile would give it: a graph of operators, whose weights are inputs. */
function lowered(backend: Backend): NonNullable<Candidate['compile']> {
  return (gm, inputs) => {
    const own = gm.deepCopy({ shareTensors: true })
    const graph = quietly(() => makeFx((...args) => tensorsIn(own.call(...args)))(...inputs))
    const weights = weightsAsInputs(graph)
    const compiled = quietly(() => runnable(backend(graph, [...copies(tensorsIn(inputs)), ...weights])))
    return (values) => quietly(() => tensorsIn(compiled(...copies(tensorsIn(values)), ...weights)))
  }
}

/** Makes the tensors that a graph reads from its module inputs, after its own; returns them. */
function weightsAsInputs(gm: GraphModule): readonly Tensor[] {
  const { graph } = gm
  const weights: Tensor[] = []
  let last: Node | null = graph.findNodes({ op: 'placeholder' }).at(-1) ?? null
  for (const node of graph.findNodes({ op: 'get_attr' })) {
    const value = gm.attribute(node.target)
    if (!(value instanceof Tensor)) continue
    const make = (): Node => graph.placeholder(`weight_${weights.length}`)
    const input: Node = last === null ? graph.insertingBefore(null, make) : graph.insertingAfter(last, make)
    last = input
    input.meta['val'] = { shape: value.shape, dtype: value.dtype, strides: value.strides }
    weights.push(value)
    node.replaceAllUsesWith(input)
    graph.eraseNode(node)
  }
  gm.recompile()
  return weights
}

/**
 * The backend that a name or function stands for. Imports the module of `./file.mjs#name`. Throws InvalidBackend for an unknown name, ArgumentError for anything else
 * and for a module that has no such backend, UnsupportedError if onnxruntime-web is not installed.
 */
export async function candidate(backend: ComparedBackend): Promise<Candidate> {
  if (backend === 'eager')
    return immediate('eager', 'eager', false, (gm) => {
      const own = gm.deepCopy({ shareTensors: true })
      return (inputs) => noGrad(() => tensorsIn(own.call(...copies(inputs))))
    })
  if (typeof backend === 'string') {
    const onnx = ONNX_RUNTIMES.get(backend)
    if (onnx !== undefined) {
      await requireOnnxRuntime()
      return onnxRuntime(backend, onnx)
    }
    const registered = isModuleBackend(backend) ? (await importBackend(backend)).name : backend
    // Registered backends take graphs of operators, as compile captures them.
    return immediate(backend, registered, true, lowered(lookupBackend(registered)))
  }
  if (isCallable(backend) && isFunction(backend)) return immediate(backend.name === '' ? 'backend' : backend.name, null, true, asGiven(backend))
  throw new ArgumentError(`compareBackends: a backend must be a name or a function (gm, inputs) => compiled, got ${valueText(backend)}.`)
}
