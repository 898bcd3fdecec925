// A list of dispatches as a program on the GPU: each computes in slabs of memory, mostly in one. A submission runs some of them in order and copies words back.
//
// WebGPU reports errors after the fact, and skips a submission of which one dispatch is not valid, so that memory keeps old values. Every submission runs in error scopes; what they report is
// looked for one dispatch at a time, and thrown before anything is read.
import { InternalError } from '../errors/index.ts'
import { WORKGROUP } from '../kernels/wgsl/emitGrid.ts'
import { SubmissionTimes } from './clock.ts'
import { count } from './device.ts'
import type { Device } from './device.ts'
import { DeviceError } from './errors.ts'
import { freeBuffer, inScopes, newBuffer, noRoom, USAGE } from './buffers.ts'
import { Slabs } from './heap.ts'
import type { Bindings, Dispatch, SlabCopy, Upload, WordRange } from './requests.ts'

/** Where uniforms may begin in their buffer. */
const UNIFORM_ALIGN = 64

/** How many bindings a program remembers. */
const BINDINGS = 64

interface Pipeline {
  readonly pipeline: GPUComputePipeline
  readonly workgroups: readonly [number, number, number]
}

/** The slabs that the dispatches of a program compute in. */
export interface Bound {
  readonly memory: Slabs
  /** Those of each dispatch, with its uniforms. */
  readonly groups: readonly GPUBindGroup[]
  /** What is copied to the memory of each dispatch before it, and back afterwards. */
  readonly copies: ReadonlyMap<number, readonly SlabCopy[]>
}

function byDispatch(copies: readonly SlabCopy[]): Bound['copies'] {
  const by = new Map<number, SlabCopy[]>()
  for (const copy of copies) by.set(copy.dispatch, [...(by.get(copy.dispatch) ?? []), copy])
  return by
}

const NO_COPIES: Bound['copies'] = new Map()

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
  const layout = gpu.createPipelineLayout({ bindGroupLayouts: [device.layout(dispatch.slabs)] })
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

/** Workgroups in x, y and z that have all threads; each team goes on with further iterations if there are more of these. Throws DeviceError beyond what a dispatch can have. */
function workgroupsFor(device: Device, dispatch: Dispatch): readonly [number, number, number] {
  const most = device.workgroups
  const all = dispatch.team === 1 ? Math.ceil(dispatch.threads / WORKGROUP) : Math.min(dispatch.threads, most ** 3)
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
  /** Its own memory; null if it computes in that of tensors. */
  readonly #own: Slabs | null
  readonly #uniforms: GPUBuffer | null
  readonly #starts: readonly number[]
  readonly #pipelines: readonly Pipeline[]
  readonly #bound = new Map<Bindings, { readonly version: number; readonly memory: Slabs; readonly groups: readonly GPUBindGroup[] }>()
  #ownBound: Bound | null = null
  #staging: GPUBuffer | null = null
  /** Whether a call has run some of the dispatches, and will run the rest on what these left in memory. */
  isWithinCall = false

  private constructor(device: Device, dispatches: readonly Dispatch[], parts: DeviceParts) {
    this.device = device
    this.dispatches = dispatches
    this.#own = parts.own
    this.#uniforms = parts.uniforms
    this.#starts = parts.starts
    this.#pipelines = parts.pipelines
  }

  /** Takes memory, slabs of these words or none, and compiles the shaders. Throws DeviceError and OutOfMemoryError. */
  static async create(
    device: Device,
    dispatches: readonly Dispatch[],
    slabs: readonly number[],
    bindings: Bindings = '',
    copies: readonly SlabCopy[] = [],
  ): Promise<DeviceProgram> {
    for (const words of slabs) checkSize(device, 4 * words)
    const made = await Promise.all(dispatches.map(async (dispatch) => pipelineOf(device, dispatch)))
    const pipelines = dispatches.map((dispatch, i): Pipeline => ({ pipeline: present(made[i]), workgroups: workgroupsFor(device, dispatch) }))
    const align = device.gpu.limits.minUniformBufferOffsetAlignment
    const starts: number[] = []
    let end = 0
    for (const dispatch of dispatches) {
      starts.push(end)
      end += Math.ceil((dispatch.words.length * 4) / align) * align
    }
    const own = slabs.length === 0 ? null : await Slabs.of(device, slabs)
    const uniforms = end === 0 ? null : await newBuffer(device, end + UNIFORM_ALIGN, USAGE.uniform | USAGE.copyTarget)
    const program = new DeviceProgram(device, dispatches, { own, uniforms, starts, pipelines })
    dispatches.forEach((dispatch, i) => program.#writeUniforms(i, dispatch.words))
    if (own !== null) program.#ownBound = program.bound(own, bindings, copies)
    return program
  }

  /** Binds slabs of memory. */
  bound(memory: Slabs, bindings: Bindings, copies: readonly SlabCopy[]): Bound {
    const known = this.#bound.get(bindings)
    const isKnown = known?.version === memory.version && known.memory === memory
    const groups = isKnown ? known.groups : this.#bind(memory, bindings)
    if (!isKnown) {
      const [oldest] = this.#bound.keys()
      if (this.#bound.size >= BINDINGS && oldest !== undefined) this.#bound.delete(oldest)
      this.#bound.set(bindings, { version: memory.version, memory, groups })
    }
    return { memory, groups, copies: copies.length === 0 ? NO_COPIES : byDispatch(copies) }
  }

  #bind(memory: Slabs, bindings: Bindings): readonly GPUBindGroup[] {
    const { gpu } = this.device
    const slabsOf = bindings === '' ? null : bindings.split(';').map((slabs) => slabs.split(',').map(Number))
    return this.dispatches.map((dispatch, i) => {
      const size = Math.ceil(dispatch.words.length / 4) * 16
      const slabs = slabsOf === null ? [0] : present(slabsOf[i])
      const buffers = Array.from({ length: dispatch.slabs }, (_, k): GPUBuffer => {
        const slab = slabs[k]
        return slab === undefined ? this.device.unused(k) : memory.buffer(slab)
      })
      const entries: GPUBindGroupEntry[] = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }))
      const uniforms = this.#uniforms ?? this.device.unused(dispatch.slabs)
      entries.push({ binding: dispatch.slabs, resource: { buffer: uniforms, offset: this.#starts[i] ?? 0, size } })
      count({ bindGroups: 1 })
      return gpu.createBindGroup({ layout: this.device.layout(dispatch.slabs), entries })
    })
  }

  get #itsOwn(): Bound {
    return this.#ownBound ?? this.#noMemory()
  }

  #noMemory(): never {
    throw new InternalError('a program that computes in the memory of tensors has run without it')
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
  encode(encoder: GPUCommandEncoder, bound: Bound, source: GPUBuffer | null, at: number): void {
    if (this.#uniforms !== null && source !== null) encoder.copyBufferToBuffer(source, at, this.#uniforms, 0, this.#uniforms.size)
    this.#encode(encoder, bound, 0, this.dispatches.length)
  }

  #writeUniforms(dispatch: number, words: Uint32Array<ArrayBuffer>, at = 0): void {
    if (this.#uniforms !== null) this.device.gpu.queue.writeBuffer(this.#uniforms, (this.#starts[dispatch] ?? 0) + 4 * at, words)
  }

  /** Sets one word of a dispatch's uniforms. */
  setNumber(dispatch: number, at: number, bits: number): void {
    this.#writeUniforms(dispatch, Uint32Array.of(bits), at)
  }

  /** Copies words to its memory. */
  upload(upload: Upload): void {
    this.#itsOwn.memory.upload(upload)
  }

  /** Runs the dispatches from `from` up to `to` as one submission, and returns the words of `reads`. Throws DeviceError, which names the kernel, and DeviceLostError. */
  async run(from: number, to: number, reads: readonly WordRange[], bound: Bound = this.#itsOwn): Promise<readonly Uint32Array<ArrayBuffer>[]> {
    const { device } = this
    this.isWithinCall = to < this.dispatches.length
    device.lastKernels = this.dispatches.slice(from, to).map(({ name }) => name)
    try {
      // Kernels that are timed are checked with their submission.
      if (device.options.check === 'kernel' && device.clock === null) {
        for (let i = from; i < to; i++) await this.#checkAlone(i, bound)
        return await this.#submit(bound, to, to, reads)
      }
      return await this.#submit(bound, from, to, reads)
    } catch (error) {
      device.check(error)
      throw error
    }
  }

  /** Frees its memory. */
  destroy(): void {
    this.#own?.destroy()
    for (const buffer of [this.#uniforms, this.#staging]) if (buffer !== null) freeBuffer(buffer)
    this.#staging = null
  }

  #encode(encoder: GPUCommandEncoder, bound: Bound, from: number, to: number, timing: SubmissionTimes | null = null): void {
    const { copies, memory } = bound
    const isAlone = (i: number): boolean => timing !== null || copies.has(i)
    for (let i = from; i < to;) {
      let end = i + 1
      while (end < to && !isAlone(i) && !isAlone(end)) end++
      const around = copies.get(i) ?? []
      for (const { from: range, slab, start } of around)
        encoder.copyBufferToBuffer(memory.buffer(range.slab), 4 * range.start, memory.buffer(slab), 4 * start, 4 * range.length)
      this.#encodePass(encoder, bound, i, end, timing?.passOf(i - from))
      for (const { from: range, slab, start } of around)
        encoder.copyBufferToBuffer(memory.buffer(slab), 4 * start, memory.buffer(range.slab), 4 * range.start, 4 * range.length)
      i = end
    }
    timing?.resolve(encoder)
  }

  #encodePass(encoder: GPUCommandEncoder, { groups }: Bound, from: number, to: number, descriptor: GPUComputePassDescriptor = {}): void {
    const pass = encoder.beginComputePass(descriptor)
    for (let i = from; i < to; i++) {
      const { pipeline, workgroups } = present(this.#pipelines[i])
      if (workgroups[0] === 0) continue
      pass.setPipeline(pipeline)
      pass.setBindGroup(0, present(groups[i]))
      pass.dispatchWorkgroups(...workgroups)
      count({ dispatches: 1 })
    }
    pass.end()
  }

  async #submit(bound: Bound, from: number, to: number, reads: readonly WordRange[]): Promise<readonly Uint32Array<ArrayBuffer>[]> {
    const { gpu } = this.device
    const total = reads.reduce((sum, { length }) => sum + length, 0)
    const staging = total === 0 ? null : await this.#stagingOf(4 * total)
    const { clock } = this.device
    const timing = clock === null || from === to ? null : new SubmissionTimes(gpu, to - from)
    const failures = inScopes(gpu, () => {
      const encoder = gpu.createCommandEncoder()
      this.#encode(encoder, bound, from, to, timing)
      let at = 0
      for (const { slab, start, length } of reads) {
        if (staging !== null && length > 0) encoder.copyBufferToBuffer(bound.memory.buffer(slab), 4 * start, staging, at, 4 * length)
        at += 4 * length
      }
      gpu.queue.submit([encoder.finish()])
      count({ submits: 1 })
    })
    const failure = await failures
    this.device.check()
    if (failure !== null) {
      timing?.destroy()
      throw await this.#failed(bound, from, to, failure)
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
  async #checkAlone(i: number, bound: Bound): Promise<void> {
    const { gpu } = this.device
    const failure = await inScopes(gpu, () => {
      const encoder = gpu.createCommandEncoder()
      this.#encode(encoder, bound, i, i + 1)
      gpu.queue.submit([encoder.finish()])
      count({ submits: 1 })
    })
    this.device.check()
    const dispatch = present(this.dispatches[i])
    if (failure !== null) throw new DeviceError(`WebGPU: ${named(dispatch)} was refused: ${failure}`, dispatch.nodes)
  }

  /** The error of a submission that was refused, and so has not run: of the dispatch that is refused alone, too. */
  async #failed(bound: Bound, from: number, to: number, failure: string): Promise<DeviceError> {
    for (let i = from; i < to; i++) {
      try {
        await this.#checkAlone(i, bound)
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
  readonly own: Slabs | null
  readonly uniforms: GPUBuffer | null
  readonly starts: readonly number[]
  readonly pipelines: readonly Pipeline[]
}

function checkSize(device: Device, bytes: number): void {
  const most = device.limits.bytes
  if (bytes > most)
    throw noRoom(bytes, `a graph needs ${bytes} bytes on the GPU, but a binding there has at most ${most} (maxStorageBufferBindingSize)`, most, 0)
}

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new DeviceError('WebGPU: a program has no such dispatch.')
  return value
}

/** Takes memory that submissions copy uniforms from. Throws OutOfMemoryError if there is none. */
export const newUniformSource = async (device: Device, bytes: number): Promise<GPUBuffer> =>
  newBuffer(device, bytes, USAGE.copySource | USAGE.copyTarget)
