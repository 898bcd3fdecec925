// The memory of tensors that stay on the GPU, as the program has it: which words are whose. What the GPU does with them is asked for in order, so that words which are given back may be taken at once.
import { noRoom } from '../../gpu/buffers.ts'
import { DeviceLostError, DeviceReadError } from '../../gpu/errors.ts'
import { engineNow } from '../../gpu/engine.ts'
import type { Engine } from '../../gpu/engine.ts'
import type { MemoryLimits } from '../../gpu/device.ts'
import type { DeviceRequest, HeapMemory, WordRange } from '../../gpu/requests.ts'
import { UnsupportedError } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import type { Block, DType } from '../../kernels/index.ts'
import { nodeCollector } from '../../kernels/memory/collector.ts'
import { wordsPer } from '../../kernels/wgsl/shader.ts'
import type { DeviceData, LateData } from '../../tensor/index.ts'
import { FreeWords, lengthOf } from './freeWords.ts'
import type { Place } from './layout.ts'
import { bytesOf } from './words.ts'

/** Words in use beyond which dead tensors are looked for. */
const COLLECT = 2 ** 24

/** What has become of something that the GPU was asked for, and of all that it was computed from. */
export interface Fate {
  /** What went wrong; null while nothing has. */
  error: unknown
  /** What it depends on, as far as it is not known how that ended. */
  from: readonly Fate[]
  /** Whether it is known how it ended. */
  isOver: boolean
}

/** The fate of something that the GPU is asked for, which depends on others. */
export const newFate = (from: readonly Fate[] = []): Fate => ({
  error: null,
  from: [...new Set(from)].filter(({ isOver, error }) => !isOver || error !== null),
  isOver: false,
})

/** The fate of something that the GPU is not asked for. */
export const overFate = (): Fate => ({ error: null, from: [], isOver: true })

/** What the GPU has found of indices, and the program has not looked at yet. */
export interface Unchecked {
  readonly fate: Fate
  readonly found: readonly DeviceMemory[]
  /** Throws what an index that is out of range throws. */
  readonly look: (words: readonly Uint32Array<ArrayBuffer>[]) => void
}

/** After that many calls the program looks at what was found, if nothing else was read. */
const UNCHECKED = 64

/** A look at what was found. */
interface Looking {
  readonly reads: readonly WordRange[]
  readonly look: (words: readonly Uint32Array<ArrayBuffer>[]) => void
  /** They could not be read. */
  readonly fail: (error: unknown) => void
}

/** What a function throws; null if it does not. */
function thrownBy(fn: () => void): unknown {
  try {
    fn()
    return null
  } catch (error) {
    return error
  }
}

let heaps = 0

/** The memory of one GPU. */
export class Heap {
  readonly engine: Engine
  readonly #number = ++heaps
  readonly limits: MemoryLimits
  /** The slabs that tensors lie in together; there is one from the beginning. */
  readonly #shared: FreeWords[] = []
  /** The words of slabs that one tensor has alone, by their numbers. */
  readonly #alone = new Map<number, number>()
  #slabs = 0
  #inUse = 0
  #collectAbove = COLLECT
  #lost: DeviceLostError | null = null
  /** In the order of the calls. */
  #unchecked: Unchecked[] = []
  readonly #beingChecked = new Set<Fate>()
  /** What has ended, but depends on something that has not; in order. */
  #waiting: Fate[] = []

  constructor(engine: Engine, limits: MemoryLimits) {
    this.engine = engine
    this.limits = limits
    this.#addSlab()
  }

  /** How requests name it. */
  get memory(): HeapMemory {
    const shared = this.#shared.map(({ slab, top }) => ({ slab, words: top, grows: true }))
    const alone = [...this.#alone].map(([slab, words]) => ({ slab, words, grows: false }))
    return { number: this.#number, slabs: [...shared, ...alone] }
  }

  #addSlab(): FreeWords {
    const made = new FreeWords(this.#slabs++, Math.floor(this.limits.slab / 4))
    this.#shared.push(made)
    return made
  }

  /** Why it was lost; null while it is there. */
  get lost(): DeviceLostError | null {
    if (this.#lost === null && this.engine.isClosed)
      this.#lost = new DeviceLostError('WebGPU: the thread of the GPU has ended, and with it the tensors that were on the GPU.', 'destroyed')
    return this.#lost
  }

  /** Asks for something that `fate` is the fate of, and goes on. */
  post(request: DeviceRequest, fate: Fate): void {
    this.engine.post(request, (error) => this.end(fate, error))
  }

  /** What was asked for has ended. */
  end(fate: Fate, error: unknown): void {
    if (error instanceof DeviceLostError) this.#lost ??= error
    fate.error ??= fate.from.find((one) => one.error !== null)?.error ?? error
    if (!this.#closes(fate)) this.#waiting.push(fate)
  }

  /** Whether it is known by now how something that was asked for has ended. */
  #closes(fate: Fate): boolean {
    fate.error ??= fate.from.find((one) => one.error !== null)?.error ?? null
    fate.from = fate.from.filter(({ isOver }) => !isOver)
    fate.isOver = fate.error !== null || (fate.from.length === 0 && !this.#beingChecked.has(fate))
    if (fate.isOver) fate.from = []
    return fate.isOver
  }

  /** The GPU was asked to look at indices: what it finds is read with the next tensor that is read. */
  check(unchecked: Unchecked): void {
    this.#beingChecked.add(unchecked.fate)
    this.#unchecked.push(unchecked)
    if (this.#unchecked.length < UNCHECKED) return
    const failed = (error: unknown): void => this.end(newFate(), error)
    const looking = this.looking()
    const request: DeviceRequest = { kind: 'read', heap: this.memory, reads: looking.reads }
    if (!this.engine.canWait)
      this.engine.ask(request).then(
        ({ words }) => looking.look(words),
        (error: unknown) => looking.fail(error),
      )
    else
      try {
        looking.look(this.engine.askNow(request).words)
      } catch (error) {
        looking.fail(error)
        failed(error)
      }
  }

  /** What was found of indices and not looked at yet: which words are to be read, and what to do with them. */
  looking(): Looking {
    const taken = this.#unchecked
    this.#unchecked = []
    const reads = taken.flatMap(({ found }) => found.map((memory) => memory.range))
    const settle = (errorOf: (one: Unchecked) => unknown): void => {
      // The list is emptied, so that only the first of what is said of it counts.
      for (const one of taken.splice(0)) {
        one.fate.error ??= errorOf(one)
        this.#beingChecked.delete(one.fate)
        for (const memory of one.found) memory.free()
      }
      this.#waiting = this.#waiting.filter((fate) => !this.#closes(fate))
    }
    let at = 0
    return {
      reads,
      look: (words) => settle(({ found, look }) => thrownBy(() => look(words.slice(at, (at += found.length))))),
      fail: (error) => settle(() => error),
    }
  }

  /** Takes words. Throws OutOfMemoryError for more than a binding has. */
  take(words: number): Place {
    const length = lengthOf(words)
    const { bytes } = this.limits
    if (4 * length > bytes)
      throw noRoom(
        4 * words,
        `a tensor of ${4 * words} bytes on the GPU is larger than a binding there, which has at most ${bytes} (maxStorageBufferBindingSize)`,
        bytes,
        4 * this.#inUse,
      )
    if (this.#inUse + length > this.#collectAbove) {
      collect()
      this.#collectAbove = Math.max(COLLECT, 2 * this.#inUse)
    }
    this.#inUse += length
    if (4 * length > this.limits.slab) {
      const slab = this.#slabs++
      this.#alone.set(slab, length)
      return { slab, start: 0 }
    }
    const found = this.#find(length)
    if (found !== null) return found
    collect()
    const again = this.#find(length)
    if (again !== null) return again
    const made = this.#addSlab()
    return { slab: made.slab, start: made.take(length) }
  }

  #find(length: number): Place | null {
    for (const free of this.#shared) {
      const start = free.take(length)
      if (start >= 0) return { slab: free.slab, start }
    }
    return null
  }

  /** Gives words back. A slab that nothing lies in is given back with them, but for the first. */
  give({ slab, start }: Place, words: number): void {
    const length = lengthOf(words)
    this.#inUse -= length
    if (this.#alone.delete(slab)) return
    const at = this.#shared.findIndex((one) => one.slab === slab)
    const free = this.#shared[at]
    free?.give(start, length)
    if (at > 0 && free?.isFree === true) this.#shared.splice(at, 1)
  }
}

let current: Heap | null = null

/** The memory of the GPU that the program has. Throws UnsupportedError where it must be asked for first. */
export function heapNow(): Heap {
  const engine = engineNow()
  if (current !== null && current.engine === engine && current.lost === null) return current
  const { last } = engine
  if (last === null || last.limits === null)
    throw new UnsupportedError(
      "WebGPU: the GPU has not been asked for, and this thread cannot wait for it: `await init()` of tensorfx/webgpu comes before the first tensor with device 'webgpu'.",
    )
  current = new Heap(engine, last.limits)
  return current
}

interface Held {
  readonly heap: Heap
  readonly place: Place
  readonly words: number
}

const held = new Map<number, Held>()
let taken = 0
const collector = nodeCollector()
const finalize = (number: number): void => release(number)
const registry = collector === null ? new FinalizationRegistry<number>(finalize) : new collector.Registry(finalize)

function release(number: number): void {
  const range = held.get(number)
  held.delete(number)
  range?.heap.give(range.place, range.words)
}

function collect(): void {
  collector?.collect()
  if ('cleanupSome' in registry) registry.cleanupSome?.()
}

/** What a program does that cannot wait for a value. */
export const WAIT =
  'A value of this tensor is on the GPU, which this thread cannot wait for: `await y.itemAsync()`, `await y.toArrayAsync()` or `await y.toTypedArrayAsync()`. In Node, init() without `thread: false` gives the GPU a thread of its own, for which the program waits.'

/** The elements of a storage on the GPU. */
export class DeviceMemory implements LateData, DeviceData {
  readonly device = 'webgpu'
  readonly heap: Heap
  readonly dtype: DType
  readonly numel: number
  /** Its slab, and its first word there. */
  readonly slab: number
  readonly start: number
  /** That of its newest elements. */
  fate: Fate
  readonly #number = ++taken
  #isFreed = false

  /** Takes memory for elements that `fate` is the fate of. Throws OutOfMemoryError if it is more than the GPU has for a tensor. */
  constructor(heap: Heap, dtype: DType, numel: number, fate: Fate) {
    this.heap = heap
    this.dtype = dtype
    this.numel = numel
    this.fate = fate
    const words = numel * wordsPer(dtype)
    const place = heap.take(words)
    ;({ slab: this.slab, start: this.start } = place)
    held.set(this.#number, { heap, place, words })
    registry.register(this, this.#number, this)
  }

  get onDevice(): DeviceData {
    return this
  }

  /** Its words. */
  get range(): WordRange {
    return { slab: this.slab, start: this.start, length: this.numel * wordsPer(this.dtype) }
  }

  /** Whether the program can read it. */
  get isHere(): boolean {
    return this.heap.engine.canWait
  }

  take(): Block {
    throw new UnsupportedError(
      "This tensor is on the graphics card (device 'webgpu'), and what was called looks at the program's memory: it has no form for the card. Move the tensor: x.to('cpu').",
    )
  }

  async arrive(): Promise<void> {
    await this.readLater()
  }

  read(start = 0, end = this.numel * dtypeInfo[this.dtype].size): Uint8Array<ArrayBuffer> {
    const { engine, memory } = this.heap
    this.check()
    if (!engine.canWait) throw new DeviceReadError(WAIT)
    const { reads, bytes } = this.#reading(start, end)
    if (reads.length === 0) return bytes(undefined)
    const looking = this.heap.looking()
    try {
      const { words } = engine.askNow({ kind: 'read', heap: memory, reads: [...reads, ...looking.reads] })
      looking.look(words.slice(1))
      this.check()
      return bytes(words[0])
    } catch (error) {
      this.#failed(looking, error)
      throw error
    }
  }

  async readLater(): Promise<Uint8Array<ArrayBuffer>> {
    this.check()
    const { engine, memory } = this.heap
    const { reads, bytes } = this.#reading(0, this.numel * dtypeInfo[this.dtype].size)
    if (reads.length === 0) return bytes(undefined)
    const { fate } = this
    const looking = this.heap.looking()
    try {
      const { words } = await engine.ask({ kind: 'read', heap: memory, reads: [...reads, ...looking.reads] })
      looking.look(words.slice(1))
      if (fate.error !== null) throw fate.error
      return bytes(words[0])
    } catch (error) {
      this.#failed(looking, error)
      throw error
    }
  }

  /** A read has failed. */
  #failed(looking: Looking, error: unknown): void {
    looking.fail(error)
    this.heap.end(newFate(), error)
  }

  #reading(
    start: number,
    end: number,
  ): { readonly reads: readonly WordRange[]; readonly bytes: (words: Uint32Array<ArrayBuffer> | undefined) => Uint8Array<ArrayBuffer> } {
    const { size } = dtypeInfo[this.dtype]
    const per = wordsPer(this.dtype)
    const [first, last] = [Math.floor(start / size), Math.ceil(end / size)]
    const reads = last <= first ? [] : [{ slab: this.slab, start: this.start + first * per, length: (last - first) * per }]
    return { reads, bytes: (words) => bytesOf(words ?? new Uint32Array(0), this.dtype).slice(start - first * size, end - first * size) }
  }

  /** Throws what went wrong with it: the GPU was lost, a kernel was refused, or it was disposed. */
  check(): void {
    if (this.#isFreed) throw new UnsupportedError('This tensor on the graphics card was disposed: its memory is not there any more.')
    if (this.fate.error !== null) throw this.fate.error
    const { lost } = this.heap
    if (lost !== null) throw lost
  }

  free(): void {
    if (this.#isFreed) return
    this.#isFreed = true
    registry.unregister(this)
    release(this.#number)
  }
}
