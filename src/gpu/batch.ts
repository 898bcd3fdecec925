// Calls of several programs as one submission: an eager program calls one operator after the other, and each submission is a round trip to the process that has the GPU.
import { count } from './device.ts'
import type { Device } from './device.ts'
import { freeBuffer, inScopes } from './buffers.ts'
import { newUniformSource } from './program.ts'
import type { Bound, DeviceProgram } from './program.ts'

/** The most calls of one submission. */
const MOST = 64
/** Bytes of uniforms from which on calls are submitted. */
const UNIFORMS = 2 ** 18

/** A call that waits for the others of its submission. */
interface Waiting {
  readonly program: DeviceProgram
  readonly bound: Bound
  readonly uniforms: Uint32Array<ArrayBuffer>
  readonly done: () => void
  readonly failed: (error: unknown) => void
}

/** Collects calls, and submits them together. */
export class Batch {
  readonly #device: Device
  #waiting: Waiting[] = []
  /** The uniforms of all calls, which the submission itself copies to their programs: one program may be called twice. */
  #source: GPUBuffer | null = null

  constructor(device: Device) {
    this.#device = device
  }

  get isFull(): boolean {
    return this.#waiting.length >= MOST || this.#waiting.reduce((sum, { program }) => sum + program.uniformSize, 0) >= UNIFORMS
  }

  /** Adds a call; resolves when it has run. Rejects with DeviceError, which names the kernel, and DeviceLostError. */
  async add(program: DeviceProgram, bound: Bound, uniforms: Uint32Array<ArrayBuffer>): Promise<void> {
    return new Promise((done, failed) => {
      this.#waiting.push({ program, bound, uniforms, done, failed })
    })
  }

  /** Submits the calls. */
  async submit(): Promise<void> {
    const calls = this.#waiting
    this.#waiting = []
    // Of calls that were refused together none has run: alone they say which of them it was.
    if (calls.length > 1 && (await this.#together(calls))) return
    for (const call of calls) await alone(call)
  }

  /** Whether the GPU has accepted the calls as one submission. */
  async #together(calls: readonly Waiting[]): Promise<boolean> {
    const { gpu } = this.#device
    this.#device.lastKernels = calls.flatMap(({ program }) => program.dispatches.map(({ name }) => name))
    try {
      const uniforms = calls.map(({ program, uniforms: words }) => program.uniformBytes(words))
      const source = await this.#sourceOf(uniforms.reduce((sum, { byteLength }) => sum + byteLength, 0))
      const failure = await inScopes(gpu, () => {
        const encoder = gpu.createCommandEncoder()
        let at = 0
        calls.forEach(({ program, bound }, i) => {
          const words = uniforms[i] ?? new Uint32Array(0)
          if (source !== null && words.length > 0) gpu.queue.writeBuffer(source, at, words)
          program.encode(encoder, bound, source, at)
          at += words.byteLength
        })
        gpu.queue.submit([encoder.finish()])
        count({ submits: 1 })
      })
      this.#device.check()
      if (failure !== null) return false
      for (const { done } of calls) done()
    } catch (error) {
      for (const { failed } of calls) failed(error)
    }
    return true
  }

  async #sourceOf(bytes: number): Promise<GPUBuffer | null> {
    if (bytes === 0 || (this.#source !== null && this.#source.size >= bytes)) return this.#source
    if (this.#source !== null) freeBuffer(this.#source)
    this.#source = null
    this.#source = await newUniformSource(this.#device, Math.max(2 * UNIFORMS, bytes))
    return this.#source
  }

  /** Frees its memory; calls that wait are refused. */
  destroy(error: unknown): void {
    if (this.#source !== null) freeBuffer(this.#source)
    this.#source = null
    for (const { failed } of this.#waiting.splice(0)) failed(error)
  }
}

async function alone({ program, bound, uniforms, done, failed }: Waiting): Promise<void> {
  try {
    program.setUniforms(uniforms)
    await program.run(0, program.dispatches.length, [], bound)
    done()
  } catch (error) {
    failed(error)
  }
}
