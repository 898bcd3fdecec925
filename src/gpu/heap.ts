// The memory that kernels compute in: slabs, by their numbers. A program has its own, or computes in the memory of tensors that stay on the GPU, whose slabs become longer when more tensors come. Where each tensor
// lies is decided by the thread that makes them.
import { present } from '../errors/index.ts'
import { count } from './device.ts'
import type { Device } from './device.ts'
import { DeviceLostError } from './errors.ts'
import { freeBuffer, newBuffer, USAGE } from './buffers.ts'
import type { HeapMemory, HeapSlab, Upload } from './requests.ts'

/** Words that a slab of tensors has at first. */
const FIRST = 2 ** 20

/** Slabs of one GPU. */
export class Slabs {
  readonly device: Device
  readonly #buffers = new Map<number, GPUBuffer>()
  /** Another number whenever a slab is in another buffer. */
  version = 0

  constructor(device: Device) {
    this.device = device
  }

  /** Slabs of these words, by their numbers from 0 on. Throws OutOfMemoryError if there is no room. */
  static async of(device: Device, words: readonly number[]): Promise<Slabs> {
    const made = new Slabs(device)
    try {
      for (const [slab, size] of words.entries()) await made.set(slab, Math.max(16, 4 * size))
    } catch (error) {
      made.destroy()
      throw error
    }
    return made
  }

  /** A slab. */
  buffer(slab: number): GPUBuffer {
    return present(this.#buffers.get(slab), `slab ${slab} on the GPU`)
  }

  /** The bytes of a slab; 0 if it is not there. */
  sizeOf(slab: number): number {
    return this.#buffers.get(slab)?.size ?? 0
  }

  get numbers(): readonly number[] {
    return [...this.#buffers.keys()]
  }

  /** Gives a slab other memory, of `bytes` bytes: what it holds is there, too. Throws OutOfMemoryError if there is no room. */
  async set(slab: number, bytes: number): Promise<void> {
    const made = await newBuffer(this.device, bytes, USAGE.storage | USAGE.copySource | USAGE.copyTarget)
    count({ slabs: 1 })
    const old = this.#buffers.get(slab)
    if (old !== undefined) {
      const { gpu } = this.device
      const encoder = gpu.createCommandEncoder()
      encoder.copyBufferToBuffer(old, 0, made, 0, old.size)
      gpu.queue.submit([encoder.finish()])
      this.free(slab)
    }
    this.#buffers.set(slab, made)
    this.version++
  }

  /** Copies words there. */
  upload({ slab, start, words }: Upload): void {
    this.device.gpu.queue.writeBuffer(this.buffer(slab), 4 * start, words)
    count({ bytesUp: words.byteLength })
  }

  free(slab: number): void {
    const buffer = this.#buffers.get(slab)
    if (buffer === undefined) return
    this.#buffers.delete(slab)
    this.version++
    count({ slabs: -1 })
    freeBuffer(buffer)
  }

  destroy(): void {
    for (const slab of this.numbers) this.free(slab)
  }
}

/** The memory of tensors, as the thread that has the GPU has it. */
export class DeviceHeap {
  readonly number: number
  readonly slabs: Slabs

  constructor(number: number, device: Device) {
    this.number = number
    this.slabs = new Slabs(device)
  }

  #lacks({ slab, words }: HeapSlab): boolean {
    return words > 0 && this.slabs.sizeOf(slab) < 4 * words
  }

  /** Whether it is as it must be. */
  holds({ slabs }: HeapMemory): boolean {
    return !slabs.some((one) => this.#lacks(one)) && slabs.length >= this.slabs.numbers.length
  }

  /** Makes it so: what it holds stays. Throws OutOfMemoryError if there is no room. */
  async hold({ slabs }: HeapMemory): Promise<Slabs> {
    const there = new Set(slabs.map(({ slab }) => slab))
    for (const slab of this.slabs.numbers) if (!there.has(slab)) this.slabs.free(slab)
    for (const one of slabs) {
      if (!this.#lacks(one)) continue
      const { slab, words, grows } = one
      const most = this.slabs.device.limits.slab
      const bytes = grows ? Math.min(most, Math.max(4 * FIRST, 4 * words, 2 * this.slabs.sizeOf(slab))) : 4 * words
      await this.slabs.set(slab, bytes)
    }
    return this.slabs
  }
}

/** What the memory of a lost GPU says. */
export const heapLost = (): DeviceLostError =>
  new DeviceLostError(
    'WebGPU: the GPU was lost, and with it the tensors that were on it. Make them again: tensors that are made now are on the GPU that is asked for next.',
    'destroyed',
  )
