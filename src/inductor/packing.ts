// Packed weights: an input of a compiled program whose data stays, such as a parameter in inference, is packed once for the product that reads it, and kept with the
// program. Each call compares a counter of the input's memory; whatever changes the data raises it. Where there is no room, the product packs in each call.
import { OutOfMemoryError, allocating, disposeBlock, newBlock, reclaimables } from '../kernels/index.ts'
import type { Block, CompiledKernel, PackedKernel } from '../kernels/index.ts'
import type { Storage, Tensor } from '../tensor/index.ts'
import { hasRoom, isRunning } from './runtime.ts'

/** The call at which data that has not changed since the first one is packed. */
const PACKED_AT = 3

/** What the memory of packed weights belongs to, in the text of OutOfMemoryError and in `torch.memory.snapshot()`. */
const PACKED = { qualname: 'packed weights of a compiled function' }

/** All weights that are packed. Those of programs that are gone have nothing to give back. */
const all = new Set<WeakRef<PackedWeight>>()

/** One weight of one kernel. It lives as long as the program, and its memory with it. */
export class PackedWeight {
  readonly #kernel: PackedKernel
  readonly #arenaBytes: number
  #compiled: ReturnType<PackedKernel['compile']> | null = null
  // What was seen at the last call: the memory, the count of its changes, and where the weight begins in it.
  #home: WeakRef<Storage> | null = null
  #writes = -1
  #offset = -1
  /** How often in a row. */
  #calls = 0
  #block: Block | null = null
  readonly #self: WeakRef<PackedWeight> = new WeakRef(this)

  /** The product of packed elements takes scratch memory too, which ends after `arenaBytes` bytes of the arena: in calls whose arena is smaller the weight is not packed. */
  constructor(kernel: PackedKernel, arenaBytes: number) {
    this.#kernel = kernel
    this.#arenaBytes = arenaBytes
  }

  /** The product that takes the packed elements; null if there are none now. */
  get run(): CompiledKernel['run'] | null {
    return this.#block === null || !hasRoom(this.#arenaBytes) ? null : (this.#compiled?.run ?? null)
  }

  /** The address of the packed elements, or, if they are not packed, `address`: that of the weight. */
  at(tensor: Tensor, address: number): number {
    if (!hasRoom(this.#arenaBytes)) return address
    const { home } = tensor.realize()
    if (home.writes !== this.#writes || tensor.offset !== this.#offset || this.#home?.deref() !== home) {
      if (this.#home?.deref() !== home) this.#home = new WeakRef(home)
      this.#writes = home.writes
      this.#offset = tensor.offset
      this.#calls = 0
      this.release()
    }
    if (this.#block === null && ++this.#calls === PACKED_AT) this.#pack(address)
    return this.#block?.ptr ?? address
  }

  /** Gives the memory back. */
  release(): void {
    if (this.#block === null) return
    disposeBlock(this.#block)
    this.#block = null
    this.#calls = 0
    all.delete(this.#self)
  }

  #pack(address: number): void {
    const block = this.#room()
    if (block === null) return
    this.#compiled ??= this.#kernel.compile()
    this.#compiled.pack.run(address, block.ptr)
    this.#block = block
    if (all.size === 0 && !reclaimables.includes(givingBack)) reclaimables.push(givingBack)
    for (const weight of all) if (weight.deref() === undefined) all.delete(weight)
    all.add(this.#self)
  }

  /** Memory on the heap; null if there is none. */
  #room(): Block | null {
    const { bytes } = this.#kernel
    const outer = allocating.operator
    allocating.operator = PACKED
    try {
      const block = newBlock(bytes, [bytes / 4], 'float32')
      if (block.ptr !== 0) return block
      disposeBlock(block)
      return null
    } catch (error) {
      if (error instanceof OutOfMemoryError) return null
      throw error
    } finally {
      allocating.operator = outer
    }
  }
}

/** What gives the memory of packed weights back when there is none left, unless a program that reads them is running. */
const givingBack = {
  reclaim(): void {
    if (isRunning()) return
    for (const weight of all) weight.deref()?.release()
  },
}

/** Where a kernel reads the weight. */
export const packed = (weight: PackedWeight, tensor: Tensor, address: number): number => weight.at(tensor, address)

/** The kernel for the packed weight where it is packed, else `usual`. */
export const wherePacked = (weight: PackedWeight, usual: CompiledKernel): CompiledKernel => ({
  ...usual,
  run: (...args) => (weight.run ?? usual.run)(...args),
})
