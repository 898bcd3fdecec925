// The memory of tensors that stay on the GPU: one buffer, which becomes longer when more tensors come. Where each tensor lies is decided by the thread that makes them.
import { DeviceError, DeviceLostError } from './errors.ts'
import type { Device } from './device.ts'
import { DeviceProgram, freeBuffer, newSlab } from './program.ts'
import type { HeapMemory } from './requests.ts'

/** Words that it has at first. */
const FIRST = 2 ** 20

/** The memory, as the thread that has the GPU has it. */
export class DeviceHeap {
  readonly number: number
  readonly device: Device
  #buffer: GPUBuffer | null = null
  #program: DeviceProgram | null = null

  constructor(number: number, device: Device) {
    this.number = number
    this.device = device
  }

  /** Whether it has that many words. */
  holds({ words }: HeapMemory): boolean {
    return this.#buffer !== null && this.#buffer.size >= 4 * words
  }

  /** The memory, with at least that many words: what it holds stays. Throws DeviceError if there is no room. */
  async buffer({ words }: HeapMemory): Promise<GPUBuffer> {
    const old = this.#buffer
    if (old !== null && old.size >= 4 * words) return old
    const most = this.device.bytes
    if (4 * words > most)
      throw new DeviceError(
        `WebGPU: tensors on the GPU need ${4 * words} bytes, but a binding there has at most ${most} (maxStorageBufferBindingSize). Free some with x.dispose().`,
      )
    const made = await newSlab(this.device, Math.min(most, Math.max(4 * FIRST, 4 * words, 2 * (old?.size ?? 0))))
    if (old !== null) {
      const { gpu } = this.device
      const encoder = gpu.createCommandEncoder()
      encoder.copyBufferToBuffer(old, 0, made, 0, old.size)
      gpu.queue.submit([encoder.finish()])
      freeBuffer(old)
    }
    this.#buffer = made
    return made
  }

  /** A program without kernels, which copies words there and back. */
  async copier(heap: HeapMemory): Promise<DeviceProgram> {
    const buffer = await this.buffer(heap)
    this.#program ??= await DeviceProgram.create(this.device, [], buffer)
    this.#program.moveTo(buffer)
    return this.#program
  }

  /** Frees it. */
  destroy(): void {
    this.#program?.destroy()
    if (this.#buffer !== null) freeBuffer(this.#buffer)
    this.#buffer = null
    this.#program = null
  }
}

/** What the memory of a lost GPU says. */
export const heapLost = (): DeviceLostError =>
  new DeviceLostError(
    'WebGPU: the GPU was lost, and with it the tensors that were on it. Make them again: tensors that are made now are on the GPU that is asked for next.',
    'destroyed',
  )
