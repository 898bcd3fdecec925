// Compiled graphs on tensors that are on the GPU: inputs are read where they are, results stay there, and what a graph writes to an input lies in that input's memory afterwards. One call is one submission,
// and nothing is read back.
import { devices, isOnDevice, withDevice } from '../../dispatch/index.ts'
import { UnsupportedError } from '../../errors/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { currentEngine, dtypeInfo } from '../../kernels/index.ts'
import type { ComputedBy } from '../../kernels/index.ts'
import { clone } from '../../ops/index.ts'
import { Storage, Tensor, asTensor } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import type { Buffer, BufferView, IrOutput } from '../ir.ts'
import type { CompiledGraph } from '../pipeline.ts'
import { HeapProgram, placeOf } from './calls.ts'
import type { Placed } from './calls.ts'
import { giveOnDevice, tensorOf } from './eager.ts'
import { DeviceMemory, heapNow, newFate } from './memory.ts'
import { planGraph } from './plan.ts'
import type { DevicePlan } from './plan.ts'
import { wordsOf } from './words.ts'

const isTensorOnDevice = (value: unknown): boolean => value instanceof Tensor && isOnDevice(value)

/** Compiles a graph whose tensors are on the GPU; null if they are not. */
export function compileOnDevice(gm: GraphModule, exampleInputs: readonly unknown[], writeBacks: ReadonlyMap<number, number>): CompiledGraph | null {
  if (devices.here === 'cpu' && !exampleInputs.some(isTensorOnDevice)) return null
  const specs = exampleInputs.map((input): TensorSpec | number =>
    input instanceof Tensor ? { shape: input.shape, dtype: input.dtype, strides: input.strides } : Number(input),
  )
  const plan = planOf(gm, specs, writeBacks)
  return plan === null ? nodeByNode(gm) : new HeapCode(plan, writeBacks).compiled()
}

/** The plan of a graph; null if it has an operator without a shader. */
function planOf(gm: GraphModule, specs: readonly (TensorSpec | number)[], writeBacks: ReadonlyMap<number, number>): DevicePlan | null {
  const attempt = (graph: GraphModule): DevicePlan | UnsupportedError => {
    try {
      return planGraph(graph, specs, 'error', writeBacks)
    } catch (error) {
      if (error instanceof UnsupportedError) return error
      throw error
    }
  }
  const plan = attempt(gm)
  if (!(plan instanceof UnsupportedError)) return plan
  if (!/copied_window/.test(plan.message)) return null
  // Windows are cut from memory that the graph has made, but not from that of an input, whose place is another at each call.
  const again = attempt(withCopiedInputs(gm, specs))
  return again instanceof UnsupportedError ? null : again
}

/** The graph on copies of the tensors that it gets. */
function withCopiedInputs(gm: GraphModule, specs: readonly (TensorSpec | number)[]): GraphModule {
  const copy = gm.deepCopy({ shareTensors: true })
  const { graph } = copy
  const placeholders = graph.findNodes({ op: 'placeholder' })
  const last = placeholders.at(-1)
  if (last === undefined) return copy
  graph.insertingAfter(last, () => {
    placeholders.forEach((node, i) => {
      if (typeof specs[i] !== 'object') return
      const made = graph.callFunction(clone, [node])
      node.replaceAllUsesWith(made, (user) => user !== made)
    })
  })
  copy.recompile()
  return copy
}

/** Runs the operators of a graph one by one, where their tensors are: each that has no shader says so, or runs on copies with `fallback: 'wasm'`. */
function nodeByNode(gm: GraphModule): CompiledGraph {
  const run = (...inputs: readonly unknown[]): unknown[] => {
    const results: unknown = withDevice('webgpu', () => gm.forward(...inputs))
    return Array.isArray(results) ? results : [results]
  }
  return Object.assign(run, { kernels: [], source: '', arenaBytes: 0, writtenInPlace: new Set<number>(), stages: [] })
}

class HeapCode {
  readonly #plan: DevicePlan
  readonly #program: HeapProgram
  /** The buffers of the results, but for those that lie in the memory of inputs. */
  readonly #outs: readonly Buffer[]
  /** The results that lie in the memory of inputs, with their positions. */
  readonly #held: ReadonlyMap<Buffer, number>
  /** The inputs that are written to. */
  readonly #written: ReadonlySet<number>
  /** The outputs that nothing else holds, and the inputs that get their memory. */
  readonly #given: ReadonlyMap<number, number>

  constructor(plan: DevicePlan, writeBacks: ReadonlyMap<number, number>) {
    const { graph, inPlace } = plan
    this.#plan = plan
    this.#program = new HeapProgram(plan)
    this.#held = inPlace
    const results = graph.outputs.flatMap((output) => (output.kind === 'view' ? [output.view.buffer] : []))
    this.#outs = [...new Set(results)].filter((buffer) => buffer.input < 0 && !inPlace.has(buffer))
    this.#written = new Set(inPlace.values())
    const isAlone = (buffer: Buffer): boolean => results.filter((one) => one === buffer).length === 1
    this.#given = new Map(
      [...writeBacks].filter(([position, input]) => {
        const buffer = bufferOf(graph.outputs[position])
        const target = graph.inputs[input]
        if (buffer === null || target === null || target === undefined) return false
        return this.#outs.includes(buffer) && isAlone(buffer) && !results.includes(target) && !this.#written.has(input)
      }),
    )
  }

  compiled(): CompiledGraph {
    const { groups, words, dispatches, outputsInPlace } = this.#plan
    const engine = currentEngine()
    const kernels = groups.map((group) => ({ ...group, engine, computedBy: (): ComputedBy => ({ engine: 'webgpu', threads: 1 }) }))
    const writtenInPlace = new Set([...outputsInPlace, ...this.#given.keys()])
    return Object.assign((...inputs: unknown[]) => this.#run(inputs), {
      ...{ kernels, source: dispatches.map(({ code }) => code).join('\n'), arenaBytes: 4 * words, writtenInPlace, stages: [] },
    })
  }

  #run(inputs: readonly unknown[]): unknown[] {
    const { graph } = this.#plan
    const heap = heapNow()
    const places = inputs.map((input, i): Placed | number => this.#placeOf(input, i))
    const written = [...this.#written].flatMap((i) => {
      const place = places[i]
      return typeof place === 'object' ? [place.memory] : []
    })
    const made = this.#program.run(heap, places, this.#outs, written)
    const storages = new Map(
      [...made].map(([buffer, memory]): [Buffer, Storage] => [buffer, Storage.late(memory.numel * dtypeInfo[memory.dtype].size, memory)]),
    )
    const given = inputs.map((input) => (input instanceof Tensor || typeof input === 'number' ? input : Number(input)))
    const results = graph.outputs.map((output): unknown => {
      if (output.kind === 'scalarInput') return inputs[output.input.placeholder]
      return output.kind === 'value' ? output.value : tensorOf(this.#inMemory(output.view), storages, given)
    })
    for (const [position, input] of this.#given) giveOnDevice(asTensor(results[position], 'a result'), asTensor(inputs[input], 'an input'))
    return results
  }

  /** A view of memory that there is: a result that lies in an input is a view of that. */
  #inMemory(view: BufferView): BufferView {
    const held = this.#held.get(view.buffer)
    const buffer = held === undefined ? null : (this.#plan.graph.inputs[held] ?? null)
    return buffer === null ? view : { ...view, buffer }
  }

  /** Where an input is; a number's tensor, which is in the program's memory, is copied. */
  #placeOf(input: unknown, i: number): Placed | number {
    if (!(input instanceof Tensor)) return Number(input)
    if (input.device !== 'cpu') return placeOf(input)
    const heap = heapNow()
    const fate = newFate()
    const extent = extentOf(this.#plan, i)
    const memory = new DeviceMemory(heap, input.dtype, extent, fate)
    heap.post({ kind: 'write', heap: heap.memory, start: memory.start, words: wordsOf(input, extent) }, fate)
    return { memory, start: memory.start }
  }
}

const bufferOf = (output: IrOutput | undefined): Buffer | null => (output?.kind === 'view' ? output.view.buffer : null)

/** How many elements of an input a graph reads. */
function extentOf({ graph, extents }: DevicePlan, i: number): number {
  const buffer = graph.inputs[i] ?? null
  return buffer === null ? 0 : (extents.get(buffer) ?? buffer.numel)
}
