// The GPU as one thread has it: it is asked for, counted, and may be lost.
import { UnsupportedError } from '../errors/index.ts'
import { KernelClock } from './clock.ts'
import type { KernelTime } from './clock.ts'
import { DeviceLostError } from './errors.ts'

/** Options of `init`. */
export interface InitOptions {
  /** Which GPU, where there are several. Default: the browser's choice. */
  readonly powerPreference?: 'low-power' | 'high-performance'
  /**
   * What becomes of operators without shader code: `'error'` (default) refuses the graph with an UnsupportedError that names the node; `'wasm'` runs them as WebAssembly, for which the
   * program waits for the GPU in the middle of the graph.
   */
  readonly fallback?: 'error' | 'wasm'
  /** When the GPU is asked whether it took what it was given: after each graph (`'submit'`, default) or after each kernel. */
  readonly check?: 'submit' | 'kernel'
  /**
   * Whether the GPU is used from a thread of its own, so that compiled functions can wait for results. Default: true where there are Node's worker threads, and false in browsers, whose pages can only `await` results.
   */
  readonly thread?: boolean
  /** How long that thread may take for one answer, in milliseconds; then it is ended, and a DeviceLostError thrown. Default 300,000. */
  readonly timeout?: number
  /**
   * Whether a run that the loss of the GPU ended is repeated from the inputs, which stay in the program's memory: the GPU is asked for again, and the call has its results as if nothing had happened. It is repeated
   * once. Default: false, and the call throws DeviceLostError.
   */
  readonly keepCopies?: boolean
  /** Keep to fewer resources than the GPU has, to see what smaller GPUs do. */
  readonly limits?: DeviceLimits
}

/** Resources of a GPU. */
export interface DeviceLimits {
  /** Workgroups in each dimension of a dispatch; the specification allows 65,535. */
  readonly workgroups?: number
  /** Bytes of one binding, which are the most that a tensor has. */
  readonly bytes?: number
  /** Bytes of a slab (default 128 MiB), in which tensors lie together; larger tensors have memory of their own. */
  readonly slab?: number
  /** How many slabs a kernel may compute in at once; the specification allows 8. What else it needs is copied. */
  readonly buffers?: number
  /** Kernels that stay compiled (default 1,024). Beyond it the graphs that ran longest ago give up their memory and kernels, and take them again at their next call. */
  readonly kernels?: number
}

/** How much memory kernels may have. */
export interface MemoryLimits {
  /** Bytes of one binding, and so of one tensor (maxStorageBufferBindingSize). */
  readonly bytes: number
  /** Bytes of a slab, in which smaller tensors lie together. */
  readonly slab: number
  /** How many slabs a dispatch binds (maxStorageBuffersPerShaderStage). */
  readonly buffers: number
}

/** The bytes of a binding that the specification promises. */
const BYTES = 2 ** 27
/** The default of {@link DeviceLimits.kernels}. */
const KERNELS = 1024

/** What has been done on the GPU since it was asked for. */
export interface DeviceStats {
  /** Buffers that exist, those of them that kernels compute in, and the bytes of all. */
  readonly buffers: number
  readonly slabs: number
  readonly bytes: number
  /** Pipelines and bind groups made, dispatches and submissions, and reads that the program waited for. */
  readonly pipelines: number
  readonly bindGroups: number
  readonly dispatches: number
  readonly submits: number
  readonly readbacks: number
  /** Bytes copied to the GPU, and back. */
  readonly bytesUp: number
  readonly bytesDown: number
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

const counts: Mutable<DeviceStats> = {
  ...{ buffers: 0, slabs: 0, bytes: 0, pipelines: 0, bindGroups: 0, dispatches: 0, submits: 0, readbacks: 0, bytesUp: 0, bytesDown: 0 },
}

/** Counts. @internal */
export function count(what: Partial<DeviceStats>): void {
  for (const [name, by] of Object.entries(what)) counts[name as keyof DeviceStats] += by
}

/** What this thread has done on the GPU. */
export const countsNow = (): DeviceStats => ({ ...counts })

/** A GPU that this program has. */
export class Device {
  readonly gpu: GPUDevice
  readonly options: InitOptions
  /** What the driver says of itself. */
  readonly description: string
  readonly workgroups: number
  readonly limits: MemoryLimits
  readonly kernels: number
  /** Why it was lost; null while it is there. */
  lost: GPUDeviceLostInfo | null = null
  /** The kernels of the last submission. */
  lastKernels: readonly string[] = []
  readonly pipelines = new Map<string, Promise<GPUComputePipeline>>()
  readonly #layouts = new Map<number, GPUBindGroupLayout>()
  /** What is bound where a dispatch has fewer slabs than its shader: no buffer may be bound twice. */
  readonly #none: GPUBuffer[] = []
  /** Set while kernels are timed. */
  clock: KernelClock | null = null

  constructor(gpu: GPUDevice, options: InitOptions, description: string) {
    this.gpu = gpu
    this.options = options
    this.description = description
    const { limits } = gpu
    this.workgroups = Math.min(options.limits?.workgroups ?? Infinity, limits.maxComputeWorkgroupsPerDimension)
    const bytes = Math.min(options.limits?.bytes ?? Infinity, limits.maxStorageBufferBindingSize, limits.maxBufferSize)
    this.limits = {
      bytes,
      slab: Math.min(options.limits?.slab ?? BYTES, bytes),
      buffers: Math.min(options.limits?.buffers ?? Infinity, limits.maxStorageBuffersPerShaderStage),
    }
    this.kernels = options.limits?.kernels ?? KERNELS
    void gpu.lost.then((info) => {
      this.lost = info
    })
  }

  /** The layout of shaders with `slabs` slabs; their uniforms come after these. */
  layout(slabs: number): GPUBindGroupLayout {
    const known = this.#layouts.get(slabs)
    if (known !== undefined) return known
    const visibility = 4
    const entries = Array.from({ length: slabs + 1 }, (_, binding): GPUBindGroupLayoutEntry => ({
      ...{ binding, visibility, buffer: { type: binding === slabs ? 'uniform' : 'storage' } },
    }))
    const made = this.gpu.createBindGroupLayout({ entries })
    this.#layouts.set(slabs, made)
    return made
  }

  /** A buffer that no kernel computes in. */
  unused(number: number): GPUBuffer {
    return (this.#none[number] ??= this.gpu.createBuffer({ size: 16, usage: 128 }))
  }

  /** Times kernels from now on. Throws UnsupportedError if the GPU writes no timestamps. */
  startClock(): void {
    if (!this.gpu.features.has('timestamp-query'))
      throw new UnsupportedError(
        'profile: this GPU writes no timestamps (timestamp-query), so that kernels cannot be timed. Measure the calls instead, with performance.now().',
      )
    this.clock = new KernelClock()
  }

  /** Ends it; returns the times by kernel. */
  stopClock(): readonly KernelTime[] {
    const times = this.clock?.times() ?? []
    this.clock = null
    return times
  }

  /** Throws DeviceLostError if it was lost. */
  check(cause?: unknown): void {
    if (this.lost === null) return
    const { reason, message } = this.lost
    const kernels = this.lastKernels.length === 0 ? '' : ` The last kernels were ${this.lastKernels.join(', ')}.`
    throw new DeviceLostError(
      `the GPU was lost (${reason === 'destroyed' ? 'destroyed' : 'unknown reason'}${message === '' ? '' : `: ${message}`}).${kernels} Repeat the call: it asks for the GPU again.`,
      reason,
      { cause },
    )
  }
}

/** Held for as long as the program runs: what Node's package makes ends with its object. */
let node: GPU | null = null

/** A package of Node. Its name is an argument, since bundlers of pages would follow it otherwise. */
const packageOf = async (name: string): Promise<typeof import('webgpu')> => import(/* @vite-ignore */ name)

async function system(): Promise<GPU> {
  if (typeof navigator !== 'undefined' && 'gpu' in navigator) return navigator.gpu
  if (node !== null) return node
  try {
    const { create } = await packageOf('webgpu')
    // Times are otherwise rounded to multiples of 65 microseconds, against pages that measure what other pages do.
    node = create(['disable-dawn-features=timestamp_quantization'])
    return node
  } catch (cause) {
    throw new UnsupportedError(
      'WebGPU: this program has no navigator.gpu, and the package webgpu could not be loaded. In Node install it: npm install webgpu; on Linux it needs a Vulkan loader and driver (libvulkan1). In a browser serve the page over https or from localhost.',
      { cause },
    )
  }
}

/** Asks for the GPU. Throws UnsupportedError with the reason and what to do if there is none. */
export async function requestDevice(options: InitOptions): Promise<Device> {
  const gpu = await system()
  const { powerPreference } = options
  const adapter = await gpu.requestAdapter(powerPreference === undefined ? {} : { powerPreference })
  if (adapter === null)
    throw new UnsupportedError(
      'WebGPU: there is no GPU that the browser or driver offers. In Chromium look at chrome://gpu; in Node on Linux a software GPU is enough: set VK_ICD_FILENAMES to the file of its driver (vk_swiftshader_icd.json of Chromium, or lvp_icd.json of Mesa).',
    )
  const { limits, info, features } = adapter
  // What is not asked for has the limit of the specification, which the GPU then keeps to itself.
  const bytes = options.limits?.bytes ?? Infinity
  const requiredLimits = {
    ...(bytes > BYTES && { maxStorageBufferBindingSize: Math.min(bytes, limits.maxStorageBufferBindingSize) }),
    ...(bytes > BYTES && { maxBufferSize: limits.maxBufferSize }),
  }
  const device = await adapter.requestDevice({ requiredLimits, requiredFeatures: features.has('timestamp-query') ? ['timestamp-query'] : [] })
  return new Device(device, options, info.description === '' ? info.vendor : info.description)
}
