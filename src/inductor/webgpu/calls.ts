// A plan as a program that computes in the memory of tensors on the GPU: each call says where its inputs and results lie.
import { present } from '../../errors/index.ts'
import type { Engine } from '../../gpu/engine.ts'
import { wordsPer } from '../../kernels/wgsl/shader.ts'
import { Tensor } from '../../tensor/index.ts'
import type { Buffer } from '../ir.ts'
import { throwIfFound } from './deviceGraph.ts'
import { DeviceMemory, newFate } from './memory.ts'
import type { Fate, Heap } from './memory.ts'
import { bind, layoutOf, uniformStarts } from './layout.ts'
import type { Binding, DispatchForm, Layout, Place } from './layout.ts'
import type { DevicePlan } from './plan.ts'
import { nextProgram } from './programs.ts'
import { numberWords } from './words.ts'

/** Where a buffer of a plan lies: in that memory, from this word of its slab on. */
export interface Placed extends Place {
  readonly memory: DeviceMemory
}

/** The place of a tensor's first element. Throws what is wrong with its memory. */
export function placeOf(tensor: Tensor): Placed {
  const memory = tensor.realize().onDevice
  if (!(memory instanceof DeviceMemory)) throw new TypeError('the tensor is not on the GPU')
  memory.check()
  return { memory, slab: memory.slab, start: memory.start + tensor.offset * wordsPer(memory.dtype) }
}

/** Programs that the program has dropped are dropped by the thread of the GPU, too. */
const dropped = new FinalizationRegistry<{ readonly engine: Engine; readonly program: number }>(({ engine, program }) => {
  if (!engine.isClosed) engine.post({ kind: 'release', program }, () => undefined)
})

/** What the thread of the GPU has of a program: its dispatches for memory in one slab, or in several. */
interface Made {
  readonly program: number
  readonly creation: Fate
}

/** A program on the memory of tensors. */
export class HeapProgram {
  readonly plan: DevicePlan
  #heap: Heap | null = null
  #layout: Layout | null = null
  #several: DispatchForm | null = null
  #tables: ReadonlyMap<Buffer, DeviceMemory> = new Map()
  readonly #made = new Map<DispatchForm, Made>()

  constructor(plan: DevicePlan) {
    this.plan = plan
  }

  /**
   * Runs the plan; the inputs are one for each placeholder: a place, or a number. Returns the memory of the results. What goes wrong, an index that is out of range too, is thrown by reads of the results
   * and of `written`, the inputs that it writes to. Throws OutOfMemoryError.
   */
  run(
    heap: Heap,
    inputs: readonly (Placed | number)[],
    outs: readonly Buffer[],
    written: readonly DeviceMemory[] = [],
  ): ReadonlyMap<Buffer, DeviceMemory> {
    const { graph, checks, dispatches } = this.plan
    if (this.#heap !== heap) this.#begin(heap)
    const fate = newFate(inputs.flatMap((input) => (typeof input === 'number' ? [] : [input.memory.fate])))
    const take = (buffer: Buffer): DeviceMemory => new DeviceMemory(heap, buffer.dtype, buffer.numel, fate)
    const made = new Map(outs.map((buffer) => [buffer, take(buffer)]))
    const found = checks.map((check) => take(check.found))
    if (dispatches.length === 0) {
      for (const memory of written) memory.fate = fate
      heap.end(fate, null)
      return made
    }
    const places = new Map<Buffer, Place>([...made, ...this.#tables])
    checks.forEach((check, i) => places.set(check.found, present(found[i], 'what is found')))
    graph.inputs.forEach((buffer, i) => {
      const input = inputs[i]
      if (buffer !== null && typeof input === 'object') places.set(buffer, input)
    })
    const own: DeviceMemory[] = []
    const takeWords = (words: number): DeviceMemory => {
      const memory = new DeviceMemory(heap, 'int32', words, fate)
      own.push(memory)
      return memory
    }
    const { form, uniforms, bindings, copies } = this.#bind(heap, places, takeWords)
    this.#setNumbers(form, uniforms, inputs)
    const { program, creation } = this.#programOf(heap, form)
    fate.from = newFate([creation, ...fate.from]).from
    for (const memory of written) memory.fate = fate
    heap.post({ kind: 'call', heap: heap.memory, program, uniforms, bindings, copies }, fate)
    // What is asked for later writes there later.
    for (const memory of own) memory.free()
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
    if (this.#heap !== null && !this.#heap.engine.isClosed)
      for (const { program } of this.#made.values()) this.#heap.engine.post({ kind: 'release', program }, () => undefined)
    dropped.unregister(this)
    for (const memory of this.#tables.values()) memory.free()
    this.#tables = new Map()
    this.#made.clear()
    this.#heap = null
  }

  #begin(heap: Heap): void {
    dropped.unregister(this)
    this.#made.clear()
    this.#heap = heap
    this.#layout = layoutOf(this.plan.memory, heap.limits.bytes)
    this.#several = null
    this.#tables = new Map(
      this.plan.memory.tables.map(({ buffer, words }): [Buffer, DeviceMemory] => {
        const fate = newFate()
        const memory = new DeviceMemory(heap, buffer.dtype, buffer.numel, fate)
        heap.post({ kind: 'write', heap: heap.memory, slab: memory.slab, start: memory.start, words: words.slice() }, fate)
        return [buffer, memory]
      }),
    )
  }

  #bind(heap: Heap, places: Map<Buffer, Place>, take: (words: number) => Place): Binding {
    const { memory, extents } = this.plan
    const layout = (this.#layout ??= layoutOf(memory, heap.limits.bytes))
    const slabs = layout.slabs.map(take)
    const placeOf = (buffer: Buffer): Place => {
      const known = places.get(buffer)
      if (known !== undefined) return known
      const { slab, start } = present(layout.places.get(buffer), `the place of ${buffer.name}`)
      const base = present(slabs[slab], 'the memory of a program')
      const place = { slab: base.slab, start: base.start + start }
      places.set(buffer, place)
      return place
    }
    return bind({
      ...{ one: this.plan, limits: heap.limits, placeOf, take },
      several: (count) => (this.#several ??= this.plan.several(count)),
      wordsOf: (buffer) => wordsPer(buffer.dtype) * (extents.get(buffer) ?? buffer.numel),
    })
  }

  #programOf(heap: Heap, form: DispatchForm): Made {
    const known = this.#made.get(form)
    if (known !== undefined) return known
    const made = { program: nextProgram(), creation: newFate() }
    this.#made.set(form, made)
    dropped.register(this, { engine: heap.engine, program: made.program }, this)
    const { dispatches } = form
    heap.post(
      { kind: 'create', program: made.program, dispatches, slabs: [], bindings: '', copies: [], uploads: [], onHeap: heap.memory },
      made.creation,
    )
    return made
  }

  #setNumbers(form: DispatchForm, uniforms: Uint32Array, inputs: readonly (Placed | number)[]): void {
    if (form.numbers.length === 0) return
    const starts = uniformStarts(form)
    for (const { placeholder, dispatch, at, dtype } of form.numbers)
      numberWords(Number(inputs[placeholder]), dtype).forEach((bits, half) => {
        uniforms[(starts[dispatch] ?? 0) + at + half] = bits
      })
  }
}
