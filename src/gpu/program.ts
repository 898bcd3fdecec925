// A list of dispatches as a program on the GPU: its memory is one buffer, the slab. A submission runs some of them in order and copies words back.
//
// WebGPU reports errors after the fact, and skips a submission of which one dispatch is not valid, so that memory keeps old values. Every submission runs in error scopes; what they report is
// looked for one dispatch at a time, and thrown before anything is read.
import { WORKGROUP } from '../kernels/wgsl/emitGrid.ts'
import { SubmissionTimes } from './clock.ts'
import { count } from './device.ts'
import type { Device } from './device.ts'
import { DeviceError } from './errors.ts'
import type { Dispatch, WordRange } from './requests.ts'

const USAGE = { mapRead: 1, copySource: 4, copyTarget: 8, uniform: 64, storage: 128 } as const
/** Where uniforms may begin in their buffer. */
const UNIFORM_ALIGN = 64

interface Pipeline {
  readonly pipeline: GPUComputePipeline
  readonly group: GPUBindGroup
  readonly workgroups: readonly [number, number, number]
}

function named({ name, nodes, lines }: Dispatch): string {
  const where = lines.length === 0 ? '' : `, at ${lines.join(', ')}`
  return `kernel ${name}${nodes.length === 0 ? '' : ` (of ${nodes.join(', ')}${where})`}`
}

/** The pipeline of a shader. Throws DeviceError with the place in the shader if it does not compile. */
async function pipelineOf(device: Device, dispatch: Dispatch): Promise<GPUComputePipeline> {
  const known = device.pipelines.get(dispatch.code)
  // The map is in the order of last use.
  if (known !== undefined) device.pipelines.delete(dispatch.code)
  const [first] = device.pipelines.keys()
  if (device.pipelines.size >= device.kernels && first !== undefined) device.pipelines.delete(first)
  const made = known ?? createPipeline(device, dispatch)
  device.pipelines.set(dispatch.code, made)
  if (known !== undefined) return known
  made.catch(() => device.pipelines.delete(dispatch.code))
  return made
}

async function createPipeline(device: Device, dispatch: Dispatch): Promise<GPUComputePipeline> {
  const { gpu } = device
  const { code } = dispatch
  count({ pipelines: 1 })
  gpu.pushErrorScope('validation')
  const module = gpu.createShaderModule({ code })
  const reported = gpu.popErrorScope()
  const layout = gpu.createPipelineLayout({ bindGroupLayouts: [device.layout] })
  try {
    return await gpu.createComputePipelineAsync({ layout, compute: { module, entryPoint: 'main' } })
  } catch (cause) {
    device.check(cause)
    const { messages } = await module.getCompilationInfo()
    const [error] = messages.filter(({ type }) => type === 'error')
    const place = error === undefined ? '' : ` at line ${error.lineNum}: ${error.message}\n  ${code.split('\n')[error.lineNum - 1]?.trim() ?? ''}`
    throw new DeviceError(`WebGPU: the shader of ${named(dispatch)} does not compile${place}`, dispatch.nodes, { cause })
  } finally {
    await reported.catch(() => null)
  }
}

/** Workgroups in x, y and z that have all threads. Throws DeviceError beyond what a dispatch can have. */
function workgroupsFor(device: Device, dispatch: Dispatch): readonly [number, number, number] {
  const most = device.workgroups
  const all = Math.ceil(dispatch.threads / WORKGROUP)
  const x = Math.min(all, most)
  const y = Math.min(Math.ceil(all / x), most)
  const z = Math.ceil(all / (x * y))
  if (z > most)
    throw new DeviceError(
      `WebGPU: ${named(dispatch)} needs ${all} workgroups, but a dispatch here has at most ${most} in each dimension.`,
      dispatch.nodes,
    )
  return [x, y, z]
}

/** A program on one GPU. */
export class DeviceProgram {
  readonly device: Device
  readonly dispatches: readonly Dispatch[]
  #slab: GPUBuffer
  readonly #ownsSlab: boolean
  readonly #uniforms: GPUBuffer | null
  readonly #starts: readonly number[]
  #pipelines: readonly Pipeline[]
  #staging: GPUBuffer | null = null
  /** Whether a call has run some of the dispatches, and will run the rest on what these left in memory. */
  isWithinCall = false

  private constructor(device: Device, dispatches: readonly Dispatch[], parts: DeviceParts) {
    this.device = device
    this.dispatches = dispatches
    this.#slab = parts.slab
    this.#ownsSlab = parts.ownsSlab
    this.#uniforms = parts.uniforms
    this.#starts = parts.starts
    this.#pipelines = parts.pipelines
  }

  /** Takes memory for `memory` words, or computes in a buffer that is there, and compiles the shaders. Throws DeviceError. */
  static async create(device: Device, dispatches: readonly Dispatch[], memory: number | GPUBuffer): Promise<DeviceProgram> {
    const bytes = typeof memory === 'number' ? Math.max(16, memory * 4) : 0
    if (bytes > device.bytes)
      throw new DeviceError(
        `WebGPU: the graph needs ${bytes} bytes on the GPU, but a binding there has at most ${device.bytes} (maxStorageBufferBindingSize). Compile smaller graphs or batches.`,
      )
    const pipelines = await Promise.all(dispatches.map(async (dispatch) => pipelineOf(device, dispatch)))
    const workgroups = dispatches.map((dispatch) => workgroupsFor(device, dispatch))
    const align = device.gpu.limits.minUniformBufferOffsetAlignment
    const starts: number[] = []
    let end = 0
    for (const dispatch of dispatches) {
      starts.push(end)
      end += Math.ceil((dispatch.words.length * 4) / align) * align
    }
    const slab = typeof memory === 'number' ? await newSlab(device, bytes) : memory
    const uniforms = end === 0 ? null : await newBuffer(device, end + UNIFORM_ALIGN, USAGE.uniform | USAGE.copyTarget)
    const unbound = pipelines.map((pipeline, i) => ({ pipeline, workgroups: present(workgroups[i]) }))
    const parts = { slab, ownsSlab: typeof memory === 'number', uniforms, starts, pipelines: [] }
    const program = new DeviceProgram(device, dispatches, parts)
    program.#bind(unbound)
    dispatches.forEach((dispatch, i) => program.#writeUniforms(i, dispatch.words))
    return program
  }

  #bind(pipelines: readonly Omit<Pipeline, 'group'>[]): void {
    const { gpu, layout } = this.device
    this.#pipelines = pipelines.map(({ pipeline, workgroups }, i): Pipeline => {
      const size = Math.ceil(present(this.dispatches[i]).words.length / 4) * 16
      const entries = [
        { binding: 0, resource: { buffer: this.#slab } },
        { binding: 1, resource: { buffer: this.#uniforms ?? this.#slab, offset: this.#starts[i] ?? 0, size } },
      ]
      count({ bindGroups: 1 })
      return { pipeline, workgroups, group: gpu.createBindGroup({ layout, entries }) }
    })
  }

  /** Computes in another buffer from now on. */
  moveTo(slab: GPUBuffer): void {
    if (slab === this.#slab) return
    this.#slab = slab
    this.#bind(this.#pipelines)
  }

  /** Sets what the uniforms of all dispatches hold, given one after the other: one write. */
  setUniforms(words: Uint32Array<ArrayBuffer>): void {
    if (this.#uniforms !== null) this.device.gpu.queue.writeBuffer(this.#uniforms, 0, this.uniformBytes(words))
  }

  /** The bytes of its uniforms. */
  get uniformSize(): number {
    return this.#uniforms?.size ?? 0
  }

  /** These uniforms as they lie in their buffer. */
  uniformBytes(words: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
    const laidOut = new Uint32Array(this.uniformSize / 4)
    let at = 0
    this.dispatches.forEach((dispatch, i) => {
      const end = at + dispatch.words.length
      laidOut.set(words.subarray(at, end), (this.#starts[i] ?? 0) / 4)
      at = end
    })
    return laidOut
  }

  /** Adds all dispatches to a submission, which first copies their uniforms from `source`, from the byte `at` on. */
  encode(encoder: GPUCommandEncoder, source: GPUBuffer | null, at: number): void {
    if (this.#uniforms !== null && source !== null) encoder.copyBufferToBuffer(source, at, this.#uniforms, 0, this.#uniforms.size)
    this.#encode(encoder, 0, this.dispatches.length)
  }

  #writeUniforms(dispatch: number, words: Uint32Array<ArrayBuffer>, at = 0): void {
    if (this.#uniforms !== null) this.device.gpu.queue.writeBuffer(this.#uniforms, (this.#starts[dispatch] ?? 0) + 4 * at, words)
  }

  /** Sets one word of a dispatch's uniforms. */
  setNumber(dispatch: number, at: number, bits: number): void {
    this.#writeUniforms(dispatch, Uint32Array.of(bits), at)
  }

  /** Copies words to the GPU. */
  upload(start: number, words: Uint32Array<ArrayBuffer>): void {
    this.device.gpu.queue.writeBuffer(this.#slab, 4 * start, words)
    count({ bytesUp: words.byteLength })
  }

  /** Runs the dispatches from `from` up to `to` as one submission, and returns the words of `reads`. Throws DeviceError, which names the kernel, and DeviceLostError. */
  async run(from: number, to: number, reads: readonly WordRange[]): Promise<readonly Uint32Array<ArrayBuffer>[]> {
    const { device } = this
    this.isWithinCall = to < this.dispatches.length
    device.lastKernels = this.dispatches.slice(from, to).map(({ name }) => name)
    try {
      // Kernels that are timed are checked with their submission.
      if (device.options.check === 'kernel' && device.clock === null) {
        for (let i = from; i < to; i++) await this.#checkAlone(i)
        return await this.#submit(to, to, reads)
      }
      return await this.#submit(from, to, reads)
    } catch (error) {
      device.check(error)
      throw error
    }
  }

  /** Frees its memory. */
  destroy(): void {
    for (const buffer of [this.#ownsSlab ? this.#slab : null, this.#uniforms, this.#staging]) if (buffer !== null) freeBuffer(buffer)
    this.#staging = null
  }

  #encode(encoder: GPUCommandEncoder, from: number, to: number, timing: SubmissionTimes | null = null): void {
    if (timing !== null) {
      for (let i = from; i < to; i++) this.#encodePass(encoder, i, i + 1, timing.passOf(i - from))
      timing.resolve(encoder)
    } else if (from < to) this.#encodePass(encoder, from, to)
  }

  #encodePass(encoder: GPUCommandEncoder, from: number, to: number, descriptor: GPUComputePassDescriptor = {}): void {
    const pass = encoder.beginComputePass(descriptor)
    for (let i = from; i < to; i++) {
      const { pipeline, group, workgroups } = present(this.#pipelines[i])
      if (workgroups[0] === 0) continue
      pass.setPipeline(pipeline)
      pass.setBindGroup(0, group)
      pass.dispatchWorkgroups(...workgroups)
      count({ dispatches: 1 })
    }
    pass.end()
  }

  async #submit(from: number, to: number, reads: readonly WordRange[]): Promise<readonly Uint32Array<ArrayBuffer>[]> {
    const { gpu } = this.device
    const total = reads.reduce((sum, { length }) => sum + length, 0)
    const staging = total === 0 ? null : await this.#stagingOf(4 * total)
    const { clock } = this.device
    const timing = clock === null || from === to ? null : new SubmissionTimes(gpu, to - from)
    const failures = inScopes(gpu, () => {
      const encoder = gpu.createCommandEncoder()
      this.#encode(encoder, from, to, timing)
      let at = 0
      for (const { start, length } of reads) {
        if (staging !== null && length > 0) encoder.copyBufferToBuffer(this.#slab, 4 * start, staging, at, 4 * length)
        at += 4 * length
      }
      gpu.queue.submit([encoder.finish()])
      count({ submits: 1 })
    })
    const failure = await failures
    this.device.check()
    if (failure !== null) {
      timing?.destroy()
      throw await this.#failed(from, to, failure)
    }
    if (timing !== null) {
      const times = await timing.read()
      timing.destroy()
      times.forEach((milliseconds, i) => clock?.add(present(this.dispatches[from + i]), milliseconds))
    }
    if (staging === null) return reads.map(() => new Uint32Array(0))
    await staging.mapAsync(1, 0, 4 * total)
    count({ readbacks: 1, bytesDown: 4 * total })
    const all = new Uint32Array(staging.getMappedRange(0, 4 * total).slice(0))
    staging.unmap()
    let at = 0
    return reads.map(({ length }) => all.slice(at, (at += length)))
  }

  async #stagingOf(bytes: number): Promise<GPUBuffer> {
    if (this.#staging !== null && this.#staging.size >= bytes) return this.#staging
    if (this.#staging !== null) freeBuffer(this.#staging)
    this.#staging = await newBuffer(this.device, bytes, USAGE.mapRead | USAGE.copyTarget)
    return this.#staging
  }

  /** Runs one dispatch alone; throws if the GPU refuses it. */
  async #checkAlone(i: number): Promise<void> {
    const { gpu } = this.device
    const failure = await inScopes(gpu, () => {
      const encoder = gpu.createCommandEncoder()
      this.#encode(encoder, i, i + 1)
      gpu.queue.submit([encoder.finish()])
      count({ submits: 1 })
    })
    this.device.check()
    const dispatch = present(this.dispatches[i])
    if (failure !== null) throw new DeviceError(`WebGPU: ${named(dispatch)} was refused: ${failure}`, dispatch.nodes)
  }

  /** The error of a submission that was refused, and so has not run: of the dispatch that is refused alone, too. */
  async #failed(from: number, to: number, failure: string): Promise<DeviceError> {
    for (let i = from; i < to; i++) {
      try {
        await this.#checkAlone(i)
      } catch (error) {
        if (error instanceof DeviceError) return error
        throw error
      }
    }
    return new DeviceError(
      `WebGPU: the kernels ${this.dispatches
        .slice(from, to)
        .map(({ name }) => name)
        .join(', ')} were refused: ${failure}`,
    )
  }
}

interface DeviceParts {
  readonly slab: GPUBuffer
  readonly ownsSlab: boolean
  readonly uniforms: GPUBuffer | null
  readonly starts: readonly number[]
  readonly pipelines: readonly Pipeline[]
}

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new DeviceError('WebGPU: a program has no such dispatch.')
  return value
}

/** Runs `body`; resolves to what the GPU reports of it, null if that is nothing. */
export async function inScopes(gpu: GPUDevice, body: () => void): Promise<string | null> {
  for (const kind of ['validation', 'out-of-memory', 'internal'] as const) gpu.pushErrorScope(kind)
  body()
  const errors = await Promise.all([gpu.popErrorScope(), gpu.popErrorScope(), gpu.popErrorScope()])
  return errors.find((error) => error !== null)?.message ?? null
}

/** Takes memory. Throws DeviceError if there is none. */
async function newBuffer(device: Device, size: number, usage: number): Promise<GPUBuffer> {
  const { gpu } = device
  let buffer: GPUBuffer | null = null
  const failure = await inScopes(gpu, () => {
    buffer = gpu.createBuffer({ size: Math.ceil(size / 16) * 16, usage })
  })
  device.check()
  if (failure !== null || buffer === null) throw new DeviceError(`WebGPU: the GPU has no room for ${size} bytes: ${failure ?? ''}`)
  const made: GPUBuffer = buffer
  count({ buffers: 1, bytes: made.size })
  return made
}

/** Takes memory that kernels compute in. Throws DeviceError if there is none. */
export const newSlab = async (device: Device, bytes: number): Promise<GPUBuffer> =>
  newBuffer(device, bytes, USAGE.storage | USAGE.copySource | USAGE.copyTarget)

/** Takes memory that submissions copy uniforms from. Throws DeviceError if there is none. */
export const newUniformSource = async (device: Device, bytes: number): Promise<GPUBuffer> =>
  newBuffer(device, bytes, USAGE.copySource | USAGE.copyTarget)

/** Gives memory back. */
export function freeBuffer(buffer: GPUBuffer): void {
  count({ buffers: -1, bytes: -buffer.size })
  buffer.destroy()
}
