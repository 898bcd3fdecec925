// Packed weights: an input of a compiled program whose data stays, such as a parameter in inference, is packed once for the product or the convolution that reads it, and kept with the
// program. Each call compares a counter of the input's memory; whatever changes the data raises it. Where there is no room, the kernel packs in each call.
import { PackedCopies, PackedCopy, compilePackedSource, withComputing } from '../kernels/index.ts'
import type { CompiledKernel, CompiledPacked, PackedKernel } from '../kernels/index.ts'
import type { Storage, Tensor } from '../tensor/index.ts'
import { hasRoom, isRunning } from './runtime.ts'

/** All of them. They are given back when memory is short, unless a program that may read them is running. */
const copies = new PackedCopies('packed weights of a compiled function', Infinity, () => !isRunning())

/** One weight of one kernel. It lives as long as the program, and its memory with it. */
export class PackedWeight {
  readonly #kernel: PackedKernel
  readonly #arenaBytes: number
  #compiled: CompiledPacked | null = null
  // What was seen at the last call: the memory, and where the weight begins in it.
  #home: WeakRef<Storage> | null = null
  #offset = -1
  readonly #copy = new PackedCopy(copies)

  /** The product of packed elements takes scratch memory too, which ends after `arenaBytes` bytes of the arena: in calls whose arena is smaller the weight is not packed. */
  constructor(kernel: PackedKernel, arenaBytes: number) {
    this.#kernel = kernel
    this.#arenaBytes = arenaBytes
  }

  /** The product that takes the packed elements; null if there are none now. */
  get kernel(): CompiledKernel | null {
    return this.#copy.address === 0 || !hasRoom(this.#arenaBytes) ? null : (this.#compiled?.kernel ?? null)
  }

  /** The address of the packed elements, or, if they are not packed, `address`: that of the weight. */
  at(tensor: Tensor, address: number): number {
    if (!hasRoom(this.#arenaBytes)) return address
    const { home } = tensor.realize()
    if (tensor.offset !== this.#offset || this.#home?.deref() !== home) {
      if (this.#home?.deref() !== home) this.#home = new WeakRef(home)
      this.#offset = tensor.offset
      this.#copy.forget()
    }
    if (this.#copy.isDue(home.writes)) this.#pack(address)
    return this.#copy.address === 0 ? address : this.#copy.address
  }

  #pack(address: number): void {
    const to = this.#copy.make(this.#kernel.bytes)
    if (to === 0) return
    const { computing, source } = this.#kernel
    this.#compiled ??= withComputing(computing, () => compilePackedSource(source()))
    this.#compiled.pack(address, to)
  }
}

/** Where a kernel reads the weight. */
export const packed = (weight: PackedWeight, tensor: Tensor, address: number): number => weight.at(tensor, address)

/** The kernel for the packed weight where it is packed, else `usual`. */
export function wherePacked(weight: PackedWeight, usual: CompiledKernel): CompiledKernel {
  let last = usual
  const run = (...args: number[]): void => {
    last = weight.kernel ?? usual
    last.run(...args)
  }
  return { ...usual, run, computedBy: () => last.computedBy() }
}
