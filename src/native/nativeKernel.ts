// A kernel with two functions that compute the same bits: that of WebAssembly, and that of a library once there is one. Which is faster is measured.
import type { Kernel, Param } from '../kernels/index.ts'
import { workOf } from '../kernels/threads/work.ts'
import type { Work } from '../kernels/threads/work.ts'

type Run = (...args: number[]) => void

/** Less work than that is not worth a call of a library. */
const LEAST_WORK = 4096
/** How many calls are timed, of both functions in turn. */
const TRIALS = 12

export class NativeKernel {
  readonly kernel: Kernel
  readonly #wasm: Run
  readonly #work: Work
  readonly #positions: ReadonlyMap<Param, number>
  readonly #sizesAt: readonly number[]
  readonly #sizes: number[]
  #lastWork = -1
  #native: Run | null = null
  #trials = 0
  /** The least milliseconds for a unit of work: of WebAssembly, and of the library. */
  readonly #rates: [wasm: number, native: number] = [Infinity, Infinity]

  /** `kernel` becomes C; `wasm` is the function of `ofWasm`, which has the same operands. */
  constructor(kernel: Kernel, wasm: Run, ofWasm: Kernel) {
    this.kernel = kernel
    this.#wasm = wasm
    this.#work = workOf(ofWasm.body)
    this.#positions = new Map(kernel.params.map((param, i) => [param, i]))
    this.#sizesAt = kernel.params.flatMap(({ kind }, i) => (kind === 'size' ? [i] : []))
    this.#sizes = this.#sizesAt.map(() => NaN)
  }

  /** The function of the library; calls use it from now on. */
  set native(run: Run) {
    this.#native = run
    this.#trials = 0
  }

  /** How many times faster the library is; null before that is known. */
  get gain(): number | null {
    const [wasm, native] = this.#rates
    return this.#trials < TRIALS ? null : wasm / native
  }

  call(args: number[]): void {
    const native = this.#native
    if (native === null) return this.#wasm(...args)
    const work = this.#workIn(args)
    if (work < LEAST_WORK) return this.#wasm(...args)
    if (this.#trials < TRIALS) return this.#trial(native, args, work)
    const [wasmRate, nativeRate] = this.#rates
    if (nativeRate < wasmRate) native(...args)
    else this.#wasm(...args)
  }

  #trial(native: Run, args: number[], work: number): void {
    const which = (this.#trials++ & 1) as 0 | 1
    const start = performance.now()
    if (which === 0) this.#wasm(...args)
    else native(...args)
    this.#rates[which] = Math.min(this.#rates[which], (performance.now() - start) / work)
  }

  #workIn(args: readonly number[]): number {
    let isKnown = this.#lastWork >= 0
    this.#sizesAt.forEach((at, i) => {
      const size = args[at] ?? 0
      if (this.#sizes[i] === size) return
      this.#sizes[i] = size
      isKnown = false
    })
    if (!isKnown) this.#lastWork = this.#work((param) => args[this.#positions.get(param) ?? -1] ?? 0)
    return this.#lastWork
  }
}
