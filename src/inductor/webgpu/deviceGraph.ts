// A compiled graph on the GPU. Its tensors lie in the program's memory: inputs are copied to the GPU at each call, all kernels run as one submission, and results are copied back.
import { runKernel } from '../../dispatch/index.ts'
import type { Arg } from '../../dispatch/index.ts'
import { InternalError, present } from '../../errors/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { engineNow, readyEngine } from '../../gpu/engine.ts'
import { DeviceLostError } from '../../gpu/errors.ts'
import type { Engine } from '../../gpu/engine.ts'
import type { InitOptions, MemoryLimits } from '../../gpu/device.ts'
import type { DeviceAnswer, DeviceRequest, NumberWord, Upload, WordRange } from '../../gpu/requests.ts'
import { dtypeInfo, withPointers } from '../../kernels/index.ts'
import { wordsPer } from '../../kernels/wgsl/shader.ts'
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { checkArray } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { withDraws } from '../ir.ts'
import type { Buffer, BufferView, ExternArg, ExternNode, IrOutput } from '../ir.ts'
import { LateRun, snapshotOf } from './late.ts'
import { bind, bytesOfMemory, layoutOf, uniformStarts } from './layout.ts'
import type { Binding, CallNumber, Layout, Place } from './layout.ts'
import { planGraph } from './plan.ts'
import type { DevicePlan, IndexCheck, PlannedStep } from './plan.ts'
import { nextProgram } from './programs.ts'
import { bytesOf, numberWords, wordsOf } from './words.ts'

/** What a kernel of a compiled graph computes. */
export interface DeviceKernel {
  readonly name: string
  /** The graph nodes that it computes. */
  readonly origins: readonly string[]
  /** Its shader. */
  readonly wgsl: string
  readonly threads: number
}

type HostStep = Exclude<PlannedStep, { readonly kind: 'device' }>

/** Frees the memory of graphs that the program has dropped. */
const dropped = new FinalizationRegistry<{ readonly engine: Engine; readonly program: number }>(({ engine, program }) => free(engine, program))

function free(engine: Engine, program: number): void {
  // An engine that has ended has freed everything.
  if (!engine.isClosed) engine.ask({ kind: 'release', program }).catch(() => undefined)
}

/** A compiled graph. */
export class DeviceGraph {
  readonly #plan: DevicePlan
  readonly #program = nextProgram()
  #engine: Engine | null = null
  #layout: Layout | null = null
  #numbers: readonly CallNumber[] = []
  /** Asynchronous calls run one after the other: they share memory. */
  #last: Promise<unknown> = Promise.resolve()

  /** @internal */
  constructor(plan: DevicePlan) {
    this.#plan = plan
  }

  /** The kernels on the GPU, in order. */
  get kernels(): readonly DeviceKernel[] {
    return this.#plan.dispatches.map(({ name, nodes, code, threads }) => ({ name, origins: nodes, wgsl: code, threads }))
  }

  /** The graph nodes that WebAssembly computes; each ends a submission. */
  get onWasm(): readonly string[] {
    return this.#plan.steps.flatMap((step) => (step.kind === 'operator' ? [step.node.origin] : step.kind === 'kernel' ? [step.step.name] : []))
  }

  /** The bytes that it takes on the GPU. */
  get bytes(): number {
    return bytesOfMemory(this.#plan.memory)
  }

  /** Runs the graph with one value per placeholder; resolves to its outputs. Throws DeviceError, which names the kernel and its nodes, and DeviceLostError. */
  async run(...inputs: readonly unknown[]): Promise<unknown[]> {
    const all = this.#inputsOf(inputs)
    const run = this.#last.catch(() => undefined).then(async () => this.#run(all))
    this.#last = run
    return this.#outputs(all, await run)
  }

  /**
   * The same, at once. Where this thread can wait for the GPU, it does. Elsewhere the results are tensors whose data comes later: `await y.toArrayAsync()` waits for it, other reads throw
   * DeviceReadError until then, and graphs on the GPU take such tensors as inputs.
   */
  call(...inputs: readonly unknown[]): unknown[] {
    const all = this.#inputsOf(inputs)
    return engineNow().canWait ? this.#outputs(all, this.#runNow(all)) : this.#callLate(all)
  }

  /** The inputs of a run, with numbers that are drawn for it. */
  #inputsOf(given: readonly unknown[]): readonly unknown[] {
    const { inputs, draws } = this.#plan.graph
    return withDraws(draws, inputs.length - 4 * draws, given)
  }

  #runNow(inputs: readonly unknown[], isAgain = false): ReadonlyMap<Buffer, Tensor> {
    const engine = engineNow()
    const requests = this.#requests(engine, inputs)
    try {
      let next = requests.next()
      while (next.done !== true) next = requests.next(engine.askNow(next.value))
      return next.value
    } catch (error) {
      // The rest of the call will not come for what lies in its memory.
      this.release()
      if (isAgain || !isRepeated(error, engine.options)) throw error
      return this.#runNow(inputs, true)
    }
  }

  /** Starts a run on what the inputs hold now, and returns the results that it will have. */
  #callLate(inputs: readonly unknown[]): unknown[] {
    const { graph, extents } = this.#plan
    const extentOf = (i: number): number => {
      const buffer = graph.inputs[i] ?? null
      return buffer === null ? 0 : (extents.get(buffer) ?? buffer.numel)
    }
    const taken = Promise.all(inputs.map((input, i) => (input instanceof Tensor ? snapshotOf(input, extentOf(i)) : input)))
    taken.catch(() => undefined)
    const run = this.#last
      .catch(() => undefined)
      .then(async () => taken)
      .then(async (values) => this.#run(values))
    this.#last = run
    const late = new LateRun(run)
    const tensors = new Map<Buffer, Tensor>()
    graph.inputs.forEach((buffer, i) => {
      const value = inputs[i]
      if (buffer !== null && value instanceof Tensor) tensors.set(buffer, flat(value, buffer))
    })
    for (const output of graph.outputs)
      if (output.kind === 'view' && !tensors.has(output.view.buffer)) tensors.set(output.view.buffer, late.tensorOf(output.view.buffer))
    return this.#outputs(inputs, tensors)
  }

  #outputs(inputs: readonly unknown[], tensors: ReadonlyMap<Buffer, Tensor>): unknown[] {
    return this.#plan.graph.outputs.map((output) => valueOf(output, inputs, tensors))
  }

  async #run(inputs: readonly unknown[], isAgain = false): Promise<ReadonlyMap<Buffer, Tensor>> {
    const engine = await readyEngine()
    const requests = this.#requests(engine, inputs)
    try {
      let next = requests.next()
      // oxlint-disable-next-line no-await-in-loop -- one request after the other
      while (next.done !== true) next = requests.next(await engine.ask(next.value))
      return next.value
    } catch (error) {
      this.release()
      if (isAgain || !isRepeated(error, engine.options)) throw error
      return this.#run(inputs, true)
    }
  }

  /** Compiles the shaders, which otherwise the first call does. */
  async prepare(): Promise<void> {
    const engine = await readyEngine()
    const creation = this.#creation(engine)
    const { value } = creation.next()
    if (value === undefined) return
    creation.next(await engine.ask(value))
  }

  /** Frees its memory on the GPU; the next call takes it again. */
  release(): void {
    if (this.#engine === null) return
    dropped.unregister(this)
    free(this.#engine, this.#program)
    this.#engine = null
  }

  *#creation(engine: Engine): Generator<DeviceRequest, void, DeviceAnswer> {
    if (this.#engine === engine) return
    this.release()
    const { form, slabs, layout, ...bound } = this.#bound(present(engine.last?.limits, 'the limits of the GPU'))
    this.#layout = layout
    this.#numbers = form.numbers
    const { bindings, copies } = bound
    const uploads = this.#plan.memory.tables.map(({ buffer, words }) => ({ ...this.#place(buffer), words }))
    yield { kind: 'create', program: this.#program, dispatches: form.dispatches, slabs, bindings, copies, uploads, onHeap: null }
    this.#engine = engine
    dropped.register(this, { engine, program: this.#program }, this)
  }

  /** Where its memory lies, and its dispatches for that. */
  #bound(limits: MemoryLimits): Binding & { readonly slabs: readonly number[]; readonly layout: Layout } {
    const plan = this.#plan
    const { others, tables } = plan.memory
    const withTables = [...others, ...tables.map(({ buffer, words }) => ({ buffer, words: words.length }))]
    const layout = layoutOf({ ...plan.memory, others: withTables }, limits.bytes)
    // What is copied for a dispatch that cannot bind all slabs has a slab of its own.
    let copied = 0
    const binding = bind({
      ...{ one: plan, several: plan.several, limits },
      placeOf: (buffer) => present(layout.places.get(buffer), `the place of ${buffer.name} on the GPU`),
      wordsOf: (buffer) => wordsPer(buffer.dtype) * (plan.extents.get(buffer) ?? buffer.numel),
      take: (words) => {
        copied = Math.max(copied, words)
        return { slab: layout.slabs.length, start: 0 }
      },
    })
    const { form, uniforms } = binding
    const starts = uniformStarts(form)
    const dispatches = form.dispatches.map((dispatch, i) => {
      const start = starts[i] ?? 0
      return { ...dispatch, words: uniforms.slice(start, start + dispatch.words.length) }
    })
    return { ...binding, form: { ...form, dispatches }, layout, slabs: copied === 0 ? layout.slabs : [...layout.slabs, copied] }
  }

  /** What a call asks of the GPU, step by step; returns the buffers that are here afterwards. */
  *#requests(engine: Engine, inputs: readonly unknown[]): Generator<DeviceRequest, ReadonlyMap<Buffer, Tensor>, DeviceAnswer> {
    const { graph, steps } = this.#plan
    yield* this.#creation(engine)
    const tensors = new Map<Buffer, Tensor>()
    let uploads: Upload[] = []
    graph.inputs.forEach((buffer, i) => {
      const value = inputs[i]
      if (buffer === null || !(value instanceof Tensor)) return
      uploads.push({ ...this.#place(buffer), words: wordsOf(value, this.#plan.extents.get(buffer) ?? buffer.numel) })
      tensors.set(buffer, flat(value, buffer))
    })
    let numbers = this.#numbersOf(inputs)
    for (const [i, step] of steps.entries()) {
      if (step.kind === 'device') {
        const wanted = this.#wantedAfter(i).filter((buffer) => !tensors.has(buffer))
        const checks = this.#plan.checks.filter((check) => check.step === i)
        const reads = [...wanted, ...checks.map(({ found }) => found)].map((buffer): WordRange => ({
          ...this.#place(buffer),
          length: wordsPer(buffer.dtype) * buffer.numel,
        }))
        const { words } = yield { kind: 'run', program: this.#program, uploads, numbers, from: step.from, to: step.to, reads }
        checks.forEach((check, k) => throwIfFound(check, present(words[wanted.length + k], 'what was found of indices')))
        wanted.forEach((buffer, k) => tensors.set(buffer, tensorOf(present(words[k], 'what was read'), buffer)))
        uploads = []
        numbers = []
      } else {
        const made = step.kind === 'operator' ? callOperator(step, tensors, inputs) : callKernel(step, tensors, inputs)
        for (const [buffer, tensor] of made) {
          tensors.set(buffer, tensor)
          if (buffer.numel > 0) uploads.push({ ...this.#place(buffer), words: wordsOf(tensor, buffer.numel) })
        }
      }
    }
    return tensors
  }

  #numbersOf(inputs: readonly unknown[]): readonly NumberWord[] {
    return this.#numbers.flatMap(({ placeholder, dispatch, at, dtype }) =>
      numberWords(Number(inputs[placeholder]), dtype).map((bits, half): NumberWord => ({ dispatch, at: at + half, bits })),
    )
  }

  /** The buffers that the program reads right after a step: for WebAssembly up to the next step on the GPU, and for results after the last. */
  #wantedAfter(at: number): readonly Buffer[] {
    const { steps, graph } = this.#plan
    const rest = steps.slice(at + 1)
    const next = rest.findIndex(({ kind }) => kind === 'device')
    const wanted = (next < 0 ? rest : rest.slice(0, next)).flatMap((step) => (step.kind === 'device' ? [] : readsOf(step)))
    const kept = next < 0 ? [] : rest.slice(next).flatMap((step) => (step.kind === 'device' ? [] : readsOf(step)))
    // A temporary that is read later may be overwritten before.
    const results = graph.outputs.flatMap((output) => (output.kind === 'view' ? [output.view.buffer] : []))
    return [...new Set([...wanted, ...(next < 0 ? results : kept.filter((buffer) => this.#isWritten(buffer, at)))])]
  }

  #isWritten(buffer: Buffer, at: number): boolean {
    return this.#plan.writers.get(buffer) === at
  }

  #place(buffer: Buffer): Place {
    return present(this.#layout?.places.get(buffer), `the place of ${buffer.name} on the GPU`)
  }
}

/** Whether a run that failed is repeated: not one that took too long, and would again. */
const isRepeated = (error: unknown, { keepCopies = false }: InitOptions): boolean =>
  keepCopies && error instanceof DeviceLostError && error.reason !== 'timeout'

/** The memory of an input, from its first element on. */
const flat = (tensor: Tensor, buffer: Buffer): Tensor => new Tensor([buffer.numel], tensor.dtype, tensor.realize(), [1], tensor.offset)

/** Throws what the eager kernel throws if an index is out of range. */
export function throwIfFound({ node, checked, found }: IndexCheck, words: Uint32Array<ArrayBuffer>): void {
  const pairs = new BigInt64Array(bytesOf(words, found.dtype).slice().buffer)
  const at = pairs.findIndex((position, i) => i % 2 === 0 && position !== 0n)
  if (at < 0) return
  const { shape, dtype } = checked.indices
  const indices = Tensor.empty(shape, dtype)
  indices.realize().writeBytes(new Uint8Array(indices.realize().nbytes))
  indices
    .flatten()
    .narrow(0, Number(pairs[at]) - 1, 1)
    .fill_(Number(pairs[at + 1]))
  node.def.indices?.check(...argsOf(node, [], (view) => (view === checked.indices ? indices : Tensor.fake(view))))
  throw new InternalError(`WebGPU: an index of ${node.def.qualname} at node ${node.origin} is out of range, but its check does not say so.`)
}

function tensorOf(words: Uint32Array<ArrayBuffer>, buffer: Buffer): Tensor {
  const tensor = Tensor.empty([buffer.numel], buffer.dtype)
  if (buffer.numel > 0) tensor.realize().writeBytes(bytesOf(words, buffer.dtype))
  return tensor
}

/** A view of a buffer whose elements are here. */
function viewOf({ buffer, shape, strides, offset, dtype }: BufferView, tensors: ReadonlyMap<Buffer, Tensor>): Tensor {
  const source = buffer.numel === 0 ? Tensor.empty([0], buffer.dtype) : present(tensors.get(buffer), `the elements of ${buffer.name}`)
  const start = (source.offset * dtypeInfo[source.dtype].size) / dtypeInfo[dtype].size
  return new Tensor(shape, dtype, source.realize(), strides, start + offset)
}

/** The buffers that a step needs here. */
function readsOf(step: HostStep): readonly Buffer[] {
  if (step.kind === 'operator') return step.node.reads.map(({ buffer }) => buffer)
  return step.step.operands.flatMap((operand) => (operand.kind === 'buffer' && !operand.written ? [operand.buffer] : []))
}

/** What an operator is called with. */
function argsOf({ args }: ExternNode, inputs: readonly unknown[], tensorFor: (view: BufferView) => Tensor): readonly Arg[] {
  const arg = (given: ExternArg): unknown => {
    if (given.kind === 'view') return tensorFor(given.view)
    if (given.kind === 'scalarInput') return inputs[given.input.placeholder]
    return given.kind === 'list' ? given.items.map(arg) : given.value
  }
  return args.map((given) => arg(given) as Arg)
}

function callOperator(
  { node }: Extract<HostStep, { kind: 'operator' }>,
  tensors: ReadonlyMap<Buffer, Tensor>,
  inputs: readonly unknown[],
): Map<Buffer, Tensor> {
  const result = runKernel(
    node.def,
    argsOf(node, inputs, (view) => viewOf(view, tensors)),
  )
  const results = result instanceof Tensor ? [result] : result
  return new Map(node.outs.map((buffer, i) => [buffer, present(results[i], `result ${i} of ${node.op}`)]))
}

/** A fused kernel, with memory of its own for what it writes. */
function callKernel(
  { step }: Extract<HostStep, { kind: 'kernel' }>,
  tensors: ReadonlyMap<Buffer, Tensor>,
  inputs: readonly unknown[],
): Map<Buffer, Tensor> {
  const made = new Map<Buffer, Tensor>()
  for (const operand of step.operands)
    if (operand.kind === 'buffer' && operand.written) made.set(operand.buffer, Tensor.empty([operand.buffer.numel], operand.buffer.dtype))
  const scratch = Tensor.empty([Math.max(1, step.scratchBytes)], 'uint8')
  const tensorFor = (buffer: Buffer): Tensor => made.get(buffer) ?? present(tensors.get(buffer), `the elements of ${buffer.name}`)
  const used = step.operands.flatMap((operand) => (operand.kind === 'buffer' ? [operand] : []))
  const blocks = [...used.map(({ buffer }) => tensorFor(buffer)), scratch].map((tensor) => tensor.realize().block)
  const written = [...used.map((operand) => operand.written), true]
  withPointers(blocks, written, (pointers) => {
    let at = 0
    const args = step.operands.map((operand) => {
      if (operand.kind === 'scalar') return Number(inputs[operand.input.placeholder])
      const tensor = tensorFor(operand.buffer)
      return (pointers[at++] ?? 0) + tensor.offset * dtypeInfo[tensor.dtype].size + operand.offset * dtypeInfo[operand.buffer.dtype].size
    })
    step.compiled.run(...args, ...(step.scratchBytes > 0 ? [pointers.at(-1) ?? 0] : []))
  })
  return made
}

function valueOf(output: IrOutput, inputs: readonly unknown[], tensors: ReadonlyMap<Buffer, Tensor>): unknown {
  if (output.kind === 'scalarInput') return inputs[output.input.placeholder]
  return output.kind === 'value' ? output.value : viewOf(output.view, tensors)
}

function planFor(name: string, gm: GraphModule, exampleInputs: readonly unknown[], { fallback = 'error' }: InitOptions): DeviceGraph {
  checkGraphModule(name, gm)
  checkArray(name, 'exampleInputs', exampleInputs)
  const specs = exampleInputs.map((input) =>
    input instanceof Tensor ? { shape: input.shape, dtype: input.dtype, strides: input.strides } : Number(input),
  )
  return new DeviceGraph(planGraph(gm, specs, fallback))
}

/**
 * Compiles a functional graph of operators for the GPU: the stages of inductor, each fused group as a shader. Calls of the result are asynchronous, so that it works in a page, too. The GPU is
 * asked for if `init` was not called. `exampleInputs` give the specs of the placeholders; they are not read.
 *
 *     const gm = makeFx((x) => x.mul(2))(x)
 *     const graph = await compileGraph(gm, [x])
 *     const [y] = await graph.run(x)
 *
 * @throws UnsupportedError, which names the node, for what has no shader code unless `init({ fallback: 'wasm' })` was called; DeviceError for a shader that the driver refuses.
 */
export async function compileGraph(gm: GraphModule, exampleInputs: readonly unknown[]): Promise<DeviceGraph> {
  const { options } = await readyEngine()
  const graph = planFor('compileGraph', gm, exampleInputs, options)
  await graph.prepare()
  return graph
}

/** What the backend 'webgpu' returns. */
export interface WebgpuCode {
  (...inputs: readonly unknown[]): unknown[]
  /** The compiled graph: its shaders, and what WebAssembly computes. */
  readonly graph: DeviceGraph
}

/**
 * Compiles a graph for the GPU, on tensors of the program's memory: inputs are copied to the GPU at each call, and results back. Where the GPU has a thread of its own, as in Node, the program waits for them; elsewhere they are
 * tensors whose data comes later (see {@link DeviceGraph.call}).
 *
 * @throws UnsupportedError and DeviceError as {@link compileGraph}; where the program does not wait, reads of the results reject with a DeviceError.
 */
export function webgpuBackend(gm: GraphModule, exampleInputs: readonly unknown[]): WebgpuCode {
  const { options } = engineNow()
  const graph = planFor('webgpu', gm, exampleInputs, options)
  return Object.assign((...inputs: readonly unknown[]) => graph.call(...inputs), { graph })
}

webgpuBackend.compileAsync = async (gm: GraphModule, exampleInputs: readonly unknown[]) => {
  const graph = await compileGraph(gm, exampleInputs)
  return async (...inputs: readonly unknown[]): Promise<readonly unknown[]> => graph.run(...inputs)
}
