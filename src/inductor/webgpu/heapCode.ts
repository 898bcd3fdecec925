// Compiled graphs on tensors that are on the GPU: inputs are read where they are, results stay there, and what a graph writes to an input lies in that input's memory afterwards. One call is one submission,
// and nothing is read back.
import { currentEngine, dtypeInfo } from '../../kernels/index.ts'
import type { ComputedBy } from '../../kernels/index.ts'
import { Storage, Tensor, asTensor } from '../../tensor/index.ts'
import { withDraws } from '../ir.ts'
import type { Buffer, BufferView, IrOutput } from '../ir.ts'
import type { CompiledGraph } from '../pipeline.ts'
import { HeapProgram, placeOf } from './calls.ts'
import type { Placed } from './calls.ts'
import { giveOnDevice, tensorOf } from './eager.ts'
import { bytesOfMemory } from './layout.ts'
import { DeviceMemory, heapNow, newFate } from './memory.ts'
import type { DevicePlan } from './plan.ts'
import { wordsOf } from './words.ts'

/** A planned graph, on tensors that are on the GPU. */
export class HeapCode {
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
    const { groups, memory, dispatches, outputsInPlace } = this.#plan
    const engine = currentEngine()
    const kernels = groups.map((group) => ({ ...group, engine, computedBy: (): ComputedBy => ({ engine: 'webgpu', threads: 1 }) }))
    const writtenInPlace = new Set([...outputsInPlace, ...this.#given.keys()])
    return Object.assign((...inputs: unknown[]) => this.run(inputs), {
      ...{ kernels, source: dispatches.map(({ code }) => code).join('\n'), arenaBytes: bytesOfMemory(memory), writtenInPlace, stages: [] },
    })
  }

  /** The results of a call. */
  run(tensors: readonly unknown[]): unknown[] {
    const { graph } = this.#plan
    const inputs = withDraws(graph.draws, graph.inputs.length - 4 * graph.draws, tensors)
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

  /** What the results of a call will be, as fake tensors. */
  preview(inputs: readonly unknown[]): unknown[] {
    return this.#plan.graph.outputs.map((output): unknown => {
      if (output.kind === 'scalarInput') return inputs[output.input.placeholder]
      return output.kind === 'value' ? output.value : Tensor.fake({ ...output.view, device: 'webgpu' })
    })
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
    heap.post({ kind: 'write', heap: heap.memory, slab: memory.slab, start: memory.start, words: wordsOf(input, extent) }, fate)
    return { memory, slab: memory.slab, start: memory.start }
  }
}

const bufferOf = (output: IrOutput | undefined): Buffer | null => (output?.kind === 'view' ? output.view.buffer : null)

/** How many elements of an input a graph reads. */
function extentOf({ graph, extents }: DevicePlan, i: number): number {
  const buffer = graph.inputs[i] ?? null
  return buffer === null ? 0 : (extents.get(buffer) ?? buffer.numel)
}
