// compareBackends: the same graph, node by node, on several backends, against a reference; it names the node that a difference comes from, not those that
// inherit it.
import { makeFx } from '../../aot/index.ts'
import { noGrad } from '../../autograd/index.ts'
import { ArgumentError, present } from '../../errors/index.ts'
import { GraphModule } from '../../fx/index.ts'
import type { Node } from '../../fx/index.ts'
import { checkArgument, checkArray, checkOptions } from '../../protocol/index.ts'
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { sameShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { describe } from '../describeError.ts'
import { candidate } from './backends.ts'
import type { Candidate, ComparedBackend } from './backends.ts'
import { magnitude } from './error.ts'
import { measure } from './measure.ts'
import type { Measured } from './measure.ts'
import { smallestBlock } from './blocks.ts'
import { inFloat64, isolated, ReferenceRun, tensorsIn, writesIn } from './reference.ts'
import type { ReferenceKind, Step } from './reference.ts'
import { BackendComparison } from './result.ts'
import type { Culprit, NodeRow } from './result.ts'

/** Options of {@link compareBackends}. */
export interface CompareBackendsOptions {
  /**
   * The backends: `'eager'`, registered names (`'inductor'`, `'aot_eager'`), modules and what they export or register (`'./mine.mjs#mine'`), `'onnxruntime'` (the
   * package onnxruntime-web; `'onnxruntime:webgpu'` in a browser that has WebGPU), or functions.
   */
  readonly backends: readonly ComparedBackend[]
  /** The largest error, absolute for values up to 1 and relative above. Default 1e-4. A dtype with fewer digits has the tolerance of its rounding. */
  readonly tol?: number
  /** `'float64'` (default): each node in float64. `'eager'`: the eager kernels in the dtypes of the graph. */
  readonly reference?: ReferenceKind
  /** Also run the whole graph on backends that compile, where nodes are fused with their neighbours. Default true. */
  readonly whole?: boolean
}

/**
 * Runs a graph node by node on several backends and compares each result with a reference. Every node gets the inputs of the reference, so a node that differs is a
 * culprit, and not one that inherits a difference. Backends that compile also run the whole graph, with every intermediate value as an output (each is judged on the
 * values that the backend itself computed before it), and as it is; if only that differs, the smallest block of nodes that differs is looked for. A graph that writes to values which are read by another name is compared in
 * functional form (`result.gm`). Neither the module nor the inputs are changed.
 *
 *     const result = await compareBackends(gm, inputs, { backends: ['eager', 'inductor', 'onnxruntime'] })
 *     console.log(String(result))                    // a table of errors, and the culprits
 *     const small = await result.minify('inductor')  // the smallest graph that differs
 *
 * @throws ArgumentError for bad options, InvalidBackend for an unknown name, UnsupportedError if onnxruntime-web is not installed.
 */
export async function compareBackends(gm: GraphModule, inputs: readonly unknown[], options: CompareBackendsOptions): Promise<BackendComparison> {
  checkGraphModule('compareBackends', gm)
  checkArray('compareBackends', 'inputs', inputs)
  checkOptions('compareBackends', options, { backends: true, tol: true, reference: true, whole: true })
  const { backends, tol = 1e-4, reference = 'float64', whole = true } = options
  checkArray('compareBackends', 'options.backends', backends)
  checkArgument(typeof tol === 'number' && tol > 0, 'compareBackends', 'options.tol', 'a positive number', tol)
  checkArgument(reference === 'float64' || reference === 'eager', 'compareBackends', 'options.reference', "'float64' or 'eager'", reference)
  if (backends.length === 0) throw new ArgumentError("compareBackends: options.backends is empty; name at least one, e.g. ['inductor'].")
  const candidates = await Promise.all(backends.map(candidate))
  const { shared, overwritten } = writesIn(gm, inputs)
  const isFunctional = shared !== null
  const graph = isFunctional ? functional(gm, inputs) : gm.deepCopy()
  const given = [...graph.graph.processInputs(...inputs)]
  const run = new ReferenceRun(graph, reference)
  const outputs = tensorsIn(run.walk(inputs))
  const rows: NodeRow[] = run.steps.map((step) => ({
    node: step.node,
    dtype: step.eager[0].dtype,
    shape: step.eager[0].shape,
    alone: new Map(),
    inGraph: new Map(),
  }))
  const culprits = new Map<string, Culprit | null>()
  const notes: string[] = []
  for (const one of candidates) {
    const comparing = new Comparing(one, graph, inputs, tol, reference, run, rows, isFunctional ? new Set() : overwritten)
    // oxlint-disable-next-line no-await-in-loop -- backends share the heap; one after the other keeps memory low
    culprits.set(one.name, await comparing.culprit(whole, outputs, notes))
  }
  return new BackendComparison({ gm: graph, inputs: given, rows, culprits, notes, backends: candidates, tol, reference, functional: isFunctional })
}

/** The graph with new values in the place of writes. */
function functional(gm: GraphModule, inputs: readonly unknown[]): GraphModule {
  const copy = gm.deepCopy()
  return noGrad(() => makeFx(copy)(...inputs))
}

/** Compares one backend. */
class Comparing {
  readonly #one: Candidate
  readonly #gm: GraphModule
  readonly #inputs: readonly unknown[]
  readonly #tol: number
  readonly #kind: ReferenceKind
  readonly #run: ReferenceRun
  readonly #rows: readonly NodeRow[]
  /** The names of the nodes whose values are written over later. */
  readonly #overwritten: ReadonlySet<string>

  constructor(
    one: Candidate,
    gm: GraphModule,
    inputs: readonly unknown[],
    tol: number,
    kind: ReferenceKind,
    run: ReferenceRun,
    rows: readonly NodeRow[],
    overwritten: ReadonlySet<string>,
  ) {
    this.#one = one
    this.#gm = gm
    this.#inputs = inputs
    this.#tol = tol
    this.#kind = kind
    this.#run = run
    this.#rows = rows
    this.#overwritten = overwritten
  }

  async culprit(whole: boolean, outputs: readonly Tensor[], notes: string[]): Promise<Culprit | null> {
    const { name, compiles } = this.#one
    for (const [i, step] of this.#run.steps.entries()) {
      // oxlint-disable-next-line no-await-in-loop -- one session at a time
      this.#rows[i]?.alone.set(name, await this.#alone(step))
    }
    const alone = this.#rows.find((row) => row.alone.get(name)?.status === 'differs')
    if (alone !== undefined) return { nodes: [alone.node], error: alone.alone.get(name)?.error ?? Infinity, found: 'alone' }
    if (!whole || !compiles) return null
    const random = this.#run.steps.find((step) => step.skipped !== null)
    if (random !== undefined) {
      notes.push(`${name}: the whole graph is not compared, since '${random.node.name}' draws random numbers.`)
      return null
    }
    try {
      await this.#exposed()
      const inGraph = this.#rows.find((row) => row.inGraph.get(name)?.status === 'differs')
      if (inGraph !== undefined) return { nodes: [inGraph.node], error: inGraph.inGraph.get(name)?.error ?? Infinity, found: 'in the graph' }
      return await this.#fused(outputs)
    } catch (error) {
      notes.push(`${name}: the whole graph could not be run: ${describe(error)}`)
      return null
    }
  }

  /** A node alone, on the inputs of the reference. */
  async #alone(step: Step): Promise<Measured> {
    if (step.skipped !== null) return { status: 'skipped', error: NaN, reason: step.skipped }
    try {
      const got = await this.#one.with(step.part, step.inputs, async (run) => run(step.inputs))
      return measure(step.want, step.eager, got, step.scale, this.#tol)
    } catch (error) {
      return { status: 'failed', error: NaN, reason: describe(error) }
    }
  }

  /** The whole graph with all values as outputs. Each node is judged on what the backend computed before it. */
  async #exposed(): Promise<void> {
    const { steps } = this.#run
    const graph = this.#gm.graph.deepCopy()
    const copies = new Map([...graph.nodes].map((node) => [node.name, node]))
    // Nodes with several results stay as they are: a backend returns tensors.
    const single = steps.filter((step) => step.eager.length === 1 && !this.#overwritten.has(step.node.name))
    graph.outputNode().args = [single.map((step) => present(copies.get(step.node.name), 'the copy of a node'))]
    const exposed = new GraphModule(this.#gm, graph)
    const got = await this.#one.with(exposed, this.#inputs, async (run) => run(this.#inputs))
    if (got.length !== single.length)
      throw new ArgumentError(`compareBackends: with all values as outputs, the backend returned ${got.length} tensors instead of ${single.length}.`)
    const values = new Map(single.map((step, i): [Step, Tensor] => [step, present(got[i], 'the value of a node')]))
    const env = new Map<Node, unknown>(this.#run.env)
    for (const [step, value] of values) if (sameShape(value.shape, step.eager[0].shape)) env.set(step.node, value)
    for (const [step, value] of values) {
      const { part, inputs } = isolated(this.#gm, step.node, env)
      const want = noGrad(() => (this.#kind === 'float64' ? inFloat64(part, inputs) : tensorsIn(part.call(...inputs))))
      const row = this.#rows.find(({ node }) => node === step.node)
      row?.inGraph.set(this.#one.name, measure(want, step.eager, [value], magnitude(inputs), this.#tol))
    }
  }

  /** The graph as it is, and the smallest block of nodes that differs if its outputs do. */
  async #fused(outputs: readonly Tensor[]): Promise<Culprit | null> {
    const { compile } = this.#one
    const got = await this.#one.with(this.#gm, this.#inputs, async (run) => run(this.#inputs))
    const measured = measure(outputs, outputs, got, magnitude(tensorsIn(this.#inputs)), this.#tol)
    if (measured.status !== 'differs' || compile === null) return null
    const differs = (part: GraphModule, values: readonly unknown[]): boolean => {
      const want = noGrad(() => inFloat64(part, tensorsIn(values)))
      return measure(want, want, compile(part, values)(values), magnitude(tensorsIn(values)), this.#tol).status === 'differs'
    }
    const nodes = smallestBlock(this.#gm, this.#inputs, differs)
    return { nodes, error: measured.error, found: 'only where it is fused' }
  }
}
