// A plan as a program that computes in the memory of tensors on the GPU: each call says where its inputs and results lie.
import { present } from '../../errors/index.ts'
import type { CallRequest, DeviceRequest } from '../../gpu/requests.ts'
import { wordsPer } from '../../kernels/wgsl/emitGrid.ts'
import { Tensor } from '../../tensor/index.ts'
import type { Buffer } from '../ir.ts'
import { throwIfFound } from './deviceGraph.ts'
import { DeviceMemory } from './memory.ts'
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
export function placeOf({ storage, offset }: Tensor): Placed {
  const memory = storage?.onDevice
  if (!(memory instanceof DeviceMemory)) throw new TypeError('the tensor is not on the GPU')
  memory.check()
  return { memory, start: memory.start + offset * wordsPer(memory.dtype) }
}

/** A program on the memory of tensors. */
export class HeapProgram {
  readonly plan: DevicePlan
  readonly #program = nextProgram()
  #heap: Heap | null = null
  #creation: Fate = { error: null, from: [] }

  constructor(plan: DevicePlan) {
    this.plan = plan
  }

  /**
   * Runs the plan; the inputs are one for each placeholder: a place, or a number. Returns the memory of the results. Throws what an index that is out of range throws, where the program can wait for
   * it; elsewhere reads of the results, and of `written`, an input that it writes to, throw it, as they throw everything else that goes wrong.
   */
  run(
    heap: Heap,
    inputs: readonly (Placed | number)[],
    outs: readonly Buffer[],
    written: DeviceMemory | null = null,
  ): ReadonlyMap<Buffer, DeviceMemory> {
    const { graph } = this.plan
    if (this.#heap !== heap) this.#create(heap)
    const from = inputs.flatMap((input) => (typeof input === 'number' ? [] : [input.memory.fate]))
    const fate: Fate = { error: null, from: [...new Set([this.#creation, ...from])] }
    const made = new Map(outs.map((buffer) => [buffer, new DeviceMemory(heap, buffer.dtype, buffer.numel, fate)]))
    const starts = new Map([...made].map(([buffer, memory]) => [buffer, memory.start]))
    graph.inputs.forEach((buffer, i) => {
      const input = inputs[i]
      if (buffer !== null && typeof input === 'object') starts.set(buffer, input.start)
    })
    if (written !== null) written.fate = fate
    const { words } = this.plan
    const own = words === 0 ? null : new DeviceMemory(heap, 'int32', words, fate)
    this.#ask(heap, this.#request(heap, inputs, starts, own?.start ?? 0), fate)
    // What is asked for later writes there later.
    own?.free()
    return made
  }

  #create(heap: Heap): void {
    const { dispatches } = this.plan
    this.#heap = heap
    this.#creation = { error: null, from: [] }
    heap.post({ kind: 'create', program: this.#program, dispatches, words: 0, onHeap: { ...heap.memory, words: 0 } }, this.#creation)
  }

  #request(heap: Heap, inputs: readonly (Placed | number)[], starts: ReadonlyMap<Buffer, number>, own: number): CallRequest {
    const { dispatches, memories, numbers, checks, places } = this.plan
    const uniforms = dispatches.map(({ words }) => words.slice())
    for (const { dispatch, at, buffer, start } of memories) {
      const first = buffer === null ? own : (starts.get(buffer) ?? own + present(places.get(buffer), `the place of ${buffer.name}`))
      present(uniforms[dispatch], 'uniforms')[at] = first + start
    }
    for (const { placeholder, dispatch, at, dtype } of numbers)
      numberWords(Number(inputs[placeholder]), dtype).forEach((bits, half) => {
        present(uniforms[dispatch], 'uniforms')[at + half] = bits
      })
    const reads = checks.map(({ found }) => ({ start: own + present(places.get(found), 'what is found'), length: 2 * found.numel }))
    return { kind: 'call', heap: heap.memory, program: this.#program, uniforms, from: 0, to: dispatches.length, reads }
  }

  #ask(heap: Heap, request: CallRequest, fate: Fate): void {
    if (request.to === 0) return
    if (this.plan.checks.length === 0) heap.post(request, fate)
    else if (heap.engine.canWait) this.#askNow(heap, request, fate)
    else
      heap.engine.ask(request).then(
        ({ words }) => heap.end(fate, this.#found(words)),
        (error: unknown) => heap.end(fate, error),
      )
  }

  #askNow(heap: Heap, request: DeviceRequest, fate: Fate): void {
    try {
      const { words } = heap.engine.askNow(request)
      heap.end(fate, null)
      this.plan.checks.forEach((check, i) => throwIfFound(check, present(words[i], 'what was found of indices')))
    } catch (error) {
      heap.end(fate, error)
      throw fate.error
    }
  }

  #found(words: readonly Uint32Array<ArrayBuffer>[]): unknown {
    try {
      this.plan.checks.forEach((check, i) => throwIfFound(check, present(words[i], 'what was found of indices')))
      return null
    } catch (error) {
      return error
    }
  }
}
