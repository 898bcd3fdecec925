// A plan as a program that computes in the memory of tensors on the GPU: each call says where its inputs and results lie.
import { present } from '../../errors/index.ts'
import type { Engine } from '../../gpu/engine.ts'
import { wordsPer } from '../../kernels/wgsl/emitGrid.ts'
import { Tensor } from '../../tensor/index.ts'
import type { Buffer } from '../ir.ts'
import { throwIfFound } from './deviceGraph.ts'
import { DeviceMemory, newFate, overFate } from './memory.ts'
import type { Fate, Heap } from './memory.ts'
import type { DevicePlan } from './plan.ts'
import { nextProgram } from './programs.ts'
import { numberWords } from './words.ts'

/** Where a buffer of a plan lies: in that memory, from this word on. */
export interface Placed {
  readonly memory: DeviceMemory
  readonly start: number
}

/** The place of a tensor's first element. Throws what is wrong with its memory. */
export function placeOf(tensor: Tensor): Placed {
  const memory = tensor.realize().onDevice
  if (!(memory instanceof DeviceMemory)) throw new TypeError('the tensor is not on the GPU')
  memory.check()
  return { memory, start: memory.start + tensor.offset * wordsPer(memory.dtype) }
}

/** Programs that the program has dropped are dropped by the thread of the GPU, too. */
const dropped = new FinalizationRegistry<{ readonly engine: Engine; readonly program: number }>(({ engine, program }) => {
  if (!engine.isClosed) engine.post({ kind: 'release', program }, () => undefined)
})

/** A program on the memory of tensors. */
export class HeapProgram {
  readonly plan: DevicePlan
  readonly #program = nextProgram()
  /** What the uniforms of all dispatches hold, and where those of each begin. */
  readonly #words: Uint32Array<ArrayBuffer>
  readonly #starts: readonly number[]
  #heap: Heap | null = null
  #creation: Fate = overFate()

  constructor(plan: DevicePlan) {
    this.plan = plan
    const starts: number[] = []
    let end = 0
    for (const { words } of plan.dispatches) {
      starts.push(end)
      end += words.length
    }
    this.#starts = starts
    this.#words = new Uint32Array(end)
    plan.dispatches.forEach(({ words }, i) => this.#words.set(words, starts[i]))
  }

  /**
   * Runs the plan; the inputs are one for each placeholder: a place, or a number. Returns the memory of the results. What goes wrong, an index that is out of range too, is thrown by reads of the results
   * and of `written`, the inputs that it writes to.
   */
  run(
    heap: Heap,
    inputs: readonly (Placed | number)[],
    outs: readonly Buffer[],
    written: readonly DeviceMemory[] = [],
  ): ReadonlyMap<Buffer, DeviceMemory> {
    const { graph, words, checks, dispatches } = this.plan
    if (this.#heap !== heap) this.#create(heap)
    const fate = newFate([this.#creation, ...inputs.flatMap((input) => (typeof input === 'number' ? [] : [input.memory.fate]))])
    const take = (buffer: Buffer): DeviceMemory => new DeviceMemory(heap, buffer.dtype, buffer.numel, fate)
    const made = new Map(outs.map((buffer) => [buffer, take(buffer)]))
    const found = checks.map((check) => take(check.found))
    const starts = new Map([...made].map(([buffer, memory]) => [buffer, memory.start]))
    checks.forEach((check, i) => starts.set(check.found, present(found[i], 'what is found').start))
    graph.inputs.forEach((buffer, i) => {
      const input = inputs[i]
      if (buffer !== null && typeof input === 'object') starts.set(buffer, input.start)
    })
    for (const memory of written) memory.fate = fate
    if (dispatches.length === 0) {
      heap.end(fate, null)
      return made
    }
    const own = words === 0 ? null : new DeviceMemory(heap, 'int32', words, fate)
    const uniforms = this.#uniforms(inputs, starts, own?.start ?? 0)
    heap.post({ kind: 'call', heap: heap.memory, program: this.#program, uniforms }, fate)
    // What is asked for later writes there later.
    own?.free()
    if (found.length > 0)
      heap.check({
        fate,
        found,
        look: (read) => checks.forEach((check, i) => throwIfFound(check, present(read[i], 'what was found of indices'))),
      })
    return made
  }

  /** Has the GPU forget it. */
  release(): void {
    if (this.#heap !== null && !this.#heap.engine.isClosed) this.#heap.engine.post({ kind: 'release', program: this.#program }, () => undefined)
    dropped.unregister(this)
    this.#heap = null
  }

  #create(heap: Heap): void {
    const { dispatches } = this.plan
    dropped.unregister(this)
    dropped.register(this, { engine: heap.engine, program: this.#program }, this)
    this.#heap = heap
    this.#creation = newFate()
    heap.post({ kind: 'create', program: this.#program, dispatches, words: 0, onHeap: { ...heap.memory, words: 0 } }, this.#creation)
  }

  #uniforms(inputs: readonly (Placed | number)[], starts: ReadonlyMap<Buffer, number>, own: number): Uint32Array<ArrayBuffer> {
    const { memories, numbers, places } = this.plan
    const uniforms = this.#words.slice()
    for (const { dispatch, at, buffer, start } of memories) {
      const first = buffer === null ? own : (starts.get(buffer) ?? own + present(places.get(buffer), `the place of ${buffer.name}`))
      uniforms[(this.#starts[dispatch] ?? 0) + at] = first + start
    }
    for (const { placeholder, dispatch, at, dtype } of numbers)
      numberWords(Number(inputs[placeholder]), dtype).forEach((bits, half) => {
        uniforms[(this.#starts[dispatch] ?? 0) + at + half] = bits
      })
    return uniforms
  }
}
