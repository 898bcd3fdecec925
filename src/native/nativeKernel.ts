// A kernel with two functions that compute the same bits: that of WebAssembly, and that of a library once there is one. Which is faster is measured.
import { KernelError } from '../kernels/index.ts'
import type { Kernel } from '../kernels/index.ts'
import { isMachineCodeOff } from '../kernels/engine/machineCode.ts'
import type { ComputedBy } from '../kernels/engine/computing.ts'
import { scratchBytes } from '../kernels/ir/scratchLayout.ts'
import { heapBytes } from '../kernels/memory/heap.ts'
import type { ForSecondEngine, Running } from '../kernels/run/compile.ts'
import { threadScratch } from '../kernels/threads/launch.ts'
import { CallWork } from '../kernels/threads/work.ts'

/** Less work than that is not worth a call of a library. */
const LEAST_WORK = 4096
/** Which function each of the calls runs that are timed. Calls come in a row of their own, such as small and large ones in turn, which the order must not follow. */
const TRIALS = [0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0] as const
/** After how many calls they are timed again: the first code that a host makes of WebAssembly is not its best. */
const AGAIN = [64, 1024, 16_384] as const

/** How the two functions are used. */
export interface Choice {
  /** Whether both run at every call and are compared. */
  readonly checks: boolean
  /** Makes the library at the first call, before anything is computed, which it then computes in any case; null where it comes later, and computes where it is faster. */
  readonly demand: (() => void) | null
}

export class NativeKernel {
  readonly kernel: Kernel
  readonly #wasm: Running
  readonly #choice: Choice
  readonly #work: CallWork
  #native: Running | null = null
  #trials = 0
  #calls = 0
  #isAsked = false
  #isMachineCode = false
  /** What the timed calls of WebAssembly and of the library took, and how much work they were. Calls of one kernel may differ much, so that all of them count. */
  readonly #times: [wasm: number, native: number] = [0, 0]
  readonly #works: [wasm: number, native: number] = [0, 0]

  /** `wide` becomes C; `wasm` is the function of `kernel`, which has the same operands. */
  constructor({ wide, wasm, kernel }: Pick<ForSecondEngine, 'wide' | 'wasm' | 'kernel'>, choice: Choice) {
    this.kernel = wide
    this.#wasm = wasm
    this.#choice = choice
    this.#work = new CallWork(kernel)
  }

  /** What has computed the last call. */
  get computedBy(): ComputedBy {
    return (this.#isMachineCode ? (this.#native ?? this.#wasm) : this.#wasm).computedBy()
  }

  /** The function of the library; calls use it from now on. */
  set native(running: Running) {
    this.#native = running
  }

  /** How many times faster the library is; null before that is known. */
  get gain(): number | null {
    return this.#trials < TRIALS.length ? null : this.#ratio
  }

  /** The time for a unit of work of WebAssembly by that of the library. */
  get #ratio(): number {
    return this.#times[0] / this.#works[0] / (this.#times[1] / this.#works[1])
  }

  call(args: number[]): void {
    const { checks, demand } = this.#choice
    this.#isMachineCode = false
    if (isMachineCodeOff()) return this.#wasm.run(...args)
    if (this.#native === null && demand !== null && !this.#isAsked) {
      this.#isAsked = true
      demand()
    }
    const native = this.#native
    if (native === null) return this.#wasm.run(...args)
    if (checks) return this.#compare(native, args)
    if (demand !== null) return this.#machine(native, args)
    const calls = ++this.#calls
    if (calls === AGAIN[0] || calls === AGAIN[1] || calls === AGAIN[2]) {
      this.#trials = 0
      for (const sums of [this.#times, this.#works]) sums[0] = sums[1] = 0
    }
    const which = TRIALS[this.#trials]
    // How much work a call is takes longer to find than some of them.
    if (which === undefined && this.#ratio <= 1) return this.#wasm.run(...args)
    const work = this.#work.in(args)
    if (work < LEAST_WORK) return this.#wasm.run(...args)
    if (which !== undefined) return this.#trial(which, native, args, work)
    this.#machine(native, args)
  }

  #machine(native: Running, args: number[]): void {
    this.#isMachineCode = true
    native.run(...args)
  }

  #trial(which: 0 | 1, native: Running, args: number[], work: number): void {
    this.#trials++
    const start = performance.now()
    if (which === 0) this.#wasm.run(...args)
    else this.#machine(native, args)
    this.#times[which] += performance.now() - start
    this.#works[which] += work
  }

  /** Runs both on the same memory. Throws KernelError where a byte differs, but for scratch memory. */
  #compare(native: Running, args: number[]): void {
    const before = heapBytes().slice()
    const scratch = args.at(-1) ?? 0
    const unread = [[scratch, scratch + scratchBytes(this.kernel, this.#work.sizesIn(args))]]
    const ran = (running: Running): Uint8Array => {
      running.run(...args)
      unread.push([threadScratch.address, threadScratch.address + threadScratch.bytes])
      // The scratch memory of threads may have made the heap grow.
      return heapBytes().slice(0, before.length)
    }
    const wanted = ran(this.#wasm)
    heapBytes().set(before)
    const got = ran(native)
    for (const memory of [wanted, got]) for (const [from, to] of unread) memory.fill(0, from, to)
    if (Buffer.compare(wanted, got) === 0) return
    const at = wanted.findIndex((byte, i) => byte !== got[i] && !isNaNAt(wanted, got, i))
    if (at < 0) return
    const buffers = this.kernel.params.flatMap((param, i) =>
      param.kind === 'buffer' && (args[i] ?? 0) <= at ? [{ name: param.name, offset: at - (args[i] ?? 0) }] : [],
    )
    const nearest = buffers.toSorted((a, b) => a.offset - b.offset)[0]
    throw new KernelError(
      `the library of the kernel ${this.kernel.name} computes other bits than WebAssembly: first in byte ${nearest?.offset ?? at} of ${nearest?.name ?? 'the heap'}. This is a fault of the C compiler, or of tensorfx: report it with the output of native.stats().`,
    )
  }
}

/** Whether both have a NaN there, whose sign and payload no engine promises: of float32, of float64, or of 16 bits. */
function isNaNAt(a: Uint8Array, b: Uint8Array, at: number): boolean {
  const both = (size: 2 | 4 | 8, is: (view: DataView) => boolean): boolean =>
    [a, b].every((bytes) => is(new DataView(bytes.buffer, bytes.byteOffset + at - (at % size), size)))
  return (
    both(4, (view) => Number.isNaN(view.getFloat32(0, true))) ||
    both(8, (view) => Number.isNaN(view.getFloat64(0, true))) ||
    both(2, (view) => (view.getUint16(0, true) & 0x7fff) > 0x7c00)
  )
}
