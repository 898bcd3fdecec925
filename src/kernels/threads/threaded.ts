// Kernels on threads: what stands in for a kernel's function where the heap is shared. It learns what a unit of a kernel's work takes, and gives loops that take long enough to the pool.
import type { ComputedBy } from '../engine/computing.ts'
import { computingThreads } from '../engine/threads.ts'
import type { Kernel } from '../ir/loopIr.ts'
import { callOf, canLaunch, partsOf, runSteps, threadCosts, wasmParts } from './launch.ts'
import type { PartCode, Parts, Run } from './launch.ts'
import { splitKernel } from './split.ts'
import type { Split } from './split.ts'
import { CallWork } from './work.ts'

/** Less work than that is not looked at. */
const LEAST_WORK = 4096
/** A launch that takes more than that part of what one thread takes is no gain. */
const NO_GAIN = 0.9
/** Milliseconds without threads after two launches without gain; twice as long each time, up to the longest. */
const BACK_OFF = 50
const LONGEST_BACK_OFF = 2000

/** Makes a kernel's parts, now or later, and hands them over: null if there are none. */
export type MakeParts = (kernel: Kernel, split: Split, made: (code: PartCode | null) => void) => void

const makeWasmParts: MakeParts = (kernel, split, made) => made(wasmParts(kernel, split))

class ThreadedKernel {
  readonly #kernel: Kernel
  readonly #run: Run
  readonly #make: MakeParts
  readonly #work: CallWork
  /** Null where no loop can be divided. */
  #parts: Parts | null | 'not asked' | 'made' = 'not asked'
  /** Milliseconds for a unit of work on one thread; 0 before the first call. */
  #rate = 0
  #calls = 0
  #losses = 0
  #backOff = BACK_OFF
  #restsUntil = 0
  /** How many threads the last call was for. */
  lastThreads = 1

  constructor(kernel: Kernel, run: Run, make: MakeParts) {
    this.#kernel = kernel
    this.#run = run
    this.#make = make
    this.#work = new CallWork(kernel)
  }

  call(args: number[]): void {
    const threads = computingThreads()
    this.lastThreads = 1
    if (threads === 1 || this.#parts === null) return this.#run(...args)
    const work = this.#work.in(args)
    if (work < LEAST_WORK && threadCosts.learns) return this.#run(...args)
    const calls = this.#calls++
    // Often at first, while the host still improves the code, and then now and then.
    if (threadCosts.learns && ((calls & (calls - 1)) === 0 || calls % 64 === 0)) return this.#learn(args, work)
    const expected = this.#rate * work
    if (threadCosts.learns && (expected < threadCosts.awake || performance.now() < this.#restsUntil)) return this.#run(...args)
    this.#launch(args, threads, expected)
  }

  #learn(args: number[], work: number): void {
    const start = performance.now()
    this.#run(...args)
    const sample = (performance.now() - start) / work
    // The fastest counts, and is forgotten slowly: other processes only make it slower.
    this.#rate = this.#rate === 0 || sample < this.#rate ? sample : 0.9 * this.#rate + 0.1 * sample
  }

  /** The parts; null where there are none, or not yet. */
  #partsNow(): Parts | null {
    if (this.#parts === 'not asked') {
      this.#parts = 'made'
      const split = splitKernel(this.#kernel)
      if (split === null || !canLaunch(split)) this.#parts = null
      else this.#make(this.#kernel, split, (code) => (this.#parts = code === null ? null : partsOf(split, code)))
    }
    return typeof this.#parts === 'string' ? null : this.#parts
  }

  #launch(args: number[], threads: number, expected: number): void {
    const of = this.#work.sizesIn(args)
    const parts = this.#partsNow()
    const call = parts === null ? null : callOf({ kernel: this.#kernel, parts, args, of, threads, rate: threadCosts.learns ? this.#rate : Infinity })
    if (call === null) return this.#run(...args)
    const start = performance.now()
    const launches = runSteps(call, call.parts.split.steps)
    if (launches > 0) this.lastThreads = threads
    if (launches === 0 || !threadCosts.learns) return
    const now = performance.now()
    if (now - start <= NO_GAIN * expected) {
      this.#losses = 0
      this.#backOff = BACK_OFF
    } else if (++this.#losses >= 2) {
      this.#restsUntil = now + this.#backOff
      this.#backOff = Math.min(2 * this.#backOff, LONGEST_BACK_OFF)
      this.#losses = 0
    }
  }
}

/**
 * The function of a kernel on a shared heap, which gives work to threads where that pays, and how many took part in the last call. `run` is its function on one thread, of that engine, and
 * `make` makes its parts when a call is first worth it.
 */
export function threaded(
  kernel: Kernel,
  run: Run,
  engine: ComputedBy['engine'],
  make: MakeParts = makeWasmParts,
): { readonly run: Run; readonly computedBy: () => ComputedBy } {
  const kept = new ThreadedKernel(kernel, run, make)
  return { run: (...args) => kept.call(args), computedBy: () => ({ engine, threads: kept.lastThreads }) }
}
