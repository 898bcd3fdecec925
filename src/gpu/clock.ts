// How long kernels take on the GPU, by timestamps that it writes itself. While they are measured each dispatch has a pass of its own.

/** A kernel that is timed. */
interface Kernel {
  readonly name: string
  /** The graph nodes that it computes. */
  readonly nodes: readonly string[]
  /** The lines of the program that these nodes come from; none if they are not known. */
  readonly lines: readonly string[]
  readonly threads: number
}

/** How long a kernel took in all its calls. */
export interface KernelTime extends Kernel {
  readonly calls: number
  /** Of all calls. Browsers round timestamps to 0.1 ms. */
  readonly milliseconds: number
}

const USAGE = { mapRead: 1, copySource: 4, copyTarget: 8, queryResolve: 512 } as const
/** Passes whose timestamps fit into one query set. */
const PASSES = 2048

/** The timestamps of one submission. */
export class SubmissionTimes {
  readonly #passes: number
  readonly #sets: readonly GPUQuerySet[]
  readonly #resolved: GPUBuffer
  readonly #staging: GPUBuffer

  constructor(gpu: GPUDevice, passes: number) {
    this.#passes = passes
    const sizes = Array.from({ length: Math.ceil(passes / PASSES) }, (_, i) => Math.min(PASSES, passes - i * PASSES))
    this.#sets = sizes.map((size) => gpu.createQuerySet({ type: 'timestamp', count: 2 * size }))
    const size = 16 * passes
    this.#resolved = gpu.createBuffer({ size, usage: USAGE.queryResolve | USAGE.copySource })
    this.#staging = gpu.createBuffer({ size, usage: USAGE.mapRead | USAGE.copyTarget })
  }

  /** What the pass of a number is begun with. */
  passOf(number: number): GPUComputePassDescriptor {
    const querySet = this.#sets[Math.floor(number / PASSES)]
    const at = 2 * (number % PASSES)
    return querySet === undefined ? {} : { timestampWrites: { querySet, beginningOfPassWriteIndex: at, endOfPassWriteIndex: at + 1 } }
  }

  /** Ends a submission: its timestamps become readable. */
  resolve(encoder: GPUCommandEncoder): void {
    this.#sets.forEach((set, i) => encoder.resolveQuerySet(set, 0, set.count, this.#resolved, 16 * PASSES * i))
    encoder.copyBufferToBuffer(this.#resolved, 0, this.#staging, 0, 16 * this.#passes)
  }

  /** The milliseconds of each pass, after the submission. */
  async read(): Promise<readonly number[]> {
    await this.#staging.mapAsync(1)
    const stamps = new BigUint64Array(this.#staging.getMappedRange().slice(0))
    return Array.from({ length: this.#passes }, (_, i) => Math.max(0, Number((stamps[2 * i + 1] ?? 0n) - (stamps[2 * i] ?? 0n)) / 1e6))
  }

  destroy(): void {
    for (const part of [...this.#sets, this.#resolved, this.#staging]) part.destroy()
  }
}

/** Collects the times of kernels. */
export class KernelClock {
  readonly #times = new Map<string, KernelTime>()

  add({ name, nodes, lines, threads, code }: Kernel & { readonly code: string }, milliseconds: number): void {
    const key = `${nodes.join()} ${threads} ${code}`
    const before = this.#times.get(key)
    const calls = (before?.calls ?? 0) + 1
    this.#times.set(key, { name, nodes, lines, threads, calls, milliseconds: (before?.milliseconds ?? 0) + milliseconds })
  }

  /** The times by kernel, the longest first. */
  times(): readonly KernelTime[] {
    return [...this.#times.values()].toSorted((a, b) => b.milliseconds - a.milliseconds)
  }
}
