// Kernels on threads: what stands in for a kernel's function where the heap is shared. It learns what a unit of a kernel's work takes, and gives loops that take long enough to the pool.
import type { ComputedBy } from '../engine/computing.ts'
import { computingThreads } from '../engine/threads.ts'
import type { Kernel } from '../ir/loopIr.ts'
import { Account } from './account.ts'
import { callOf, canLaunch, learnPace, leastForLaunch, partsOf, runSteps, threadCosts, wasmParts } from './launch.ts'
import type { PartCode, Parts, Run } from './launch.ts'
import { splitKernel } from './split.ts'
import type { Split } from './split.ts'
import { CallWork, workOf } from './work.ts'

/** Less work than that is not looked at. */
const LEAST_WORK = 4096
/** A launch should take less than that part of what one thread takes. What it takes beyond is its loss, what it takes less is its gain. */
const NO_GAIN = 0.9
/** How much a kernel's launches may lose in all, less what others of it gain, before it rests: times what one thread takes. A single launch that was interrupted does not count for more than `MOST_EXCESS`. */
const MOST_LOSS = 1.5
const MOST_EXCESS = 1
/** The same for the launches of all kernels, in milliseconds: a thread that loses its core in the middle of a chunk costs milliseconds, of whatever kernel. */
const MOST_LOST_TIME = 5
/** Parts are code of their own, which the host improves while it runs: this thread runs them alone until they are about as fast as the whole, and at most for a number of calls, or of milliseconds once there were a few. */
const PRACTISED = 1.2
const PRACTICE = 64
const LEAST_PRACTICE = 4
const PRACTICE_TIME = 100

/** Of that many calls one thread runs the whole in one, and the parts in another, to learn what they take. */
const OFTEN = 64
/** How many times of one thread are remembered. */
const SAMPLES = 5

/** Of the launches of all kernels, in milliseconds. */
const machine = new Account(MOST_LOST_TIME)

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
  /** Milliseconds for a unit of work on one thread: the latest samples, and the middle one; 0 before the first call. */
  readonly #samples: number[] = []
  #rate = 0
  #calls = 0
  /** The greatest last argument of a call with little work; see {@link isSmall}. */
  #small = -1
  /** How often the parts have run on this thread alone, and since when. */
  #practised = 0
  #practisedSince = 0
  /** Of this kernel's launches, in times of what one thread takes. */
  readonly #account = new Account(MOST_LOSS)
  /** How many threads the last call was for. */
  lastThreads = 1

  constructor(kernel: Kernel, run: Run, make: MakeParts) {
    this.#kernel = kernel
    this.#run = run
    this.#make = make
    this.#work = new CallWork(kernel)
  }

  /** Whether calls of that size are little work, for a kernel with one size. False as long as that is not known. */
  isSmall(size: number): boolean {
    if (size > this.#small) return false
    this.lastThreads = 1
    return true
  }

  call(args: number[]): void {
    const threads = computingThreads()
    this.lastThreads = 1
    if (threads === 1 || this.#parts === null) return this.#run(...args)
    const work = this.#work.in(args)
    if (work < LEAST_WORK && threadCosts.learns) {
      // More elements are more work.
      this.#small = Math.max(this.#small, args.at(-1) ?? 0)
      return this.#run(...args)
    }
    const calls = this.#calls++
    // Often at first, while the host still improves the code, and then now and then.
    if (threadCosts.learns && ((calls & (calls - 1)) === 0 || calls % OFTEN === 0)) return this.#learn(args, work)
    if (threadCosts.learns && (this.#rate * work < leastForLaunch() || this.#account.rests || machine.rests)) return this.#run(...args)
    this.#launch(args, threads, work)
  }

  #learn(args: number[], work: number): void {
    const start = performance.now()
    this.#run(...args)
    this.#samples.push((performance.now() - start) / work)
    if (this.#samples.length > SAMPLES) this.#samples.shift()
    // What is usual counts: the fastest call found its data in the cache, which most calls of a program do not, on one thread or several.
    this.#rate = this.#samples.toSorted((a, b) => a - b)[this.#samples.length >> 1] ?? 0
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

  #launch(args: number[], threads: number, work: number): void {
    const of = this.#work.sizesIn(args)
    const parts = this.#partsNow()
    const practises = threadCosts.learns && (this.#practised < PRACTICE || this.#calls % OFTEN === OFTEN / 2)
    const rate = threadCosts.learns ? this.#rate : Infinity
    const call = parts === null ? null : callOf({ kernel: this.#kernel, parts, args, of, threads, rate, times: practises ? new Map() : null })
    if (call === null) return this.#run(...args)
    const start = performance.now()
    const launches = runSteps(call, call.parts.split.steps)
    if (launches > 0) this.lastThreads = threads
    if (!threadCosts.learns) return
    const now = performance.now()
    const expected = rate * work
    if (practises) {
      learnPace(call, (now - start) / work)
      return this.#notePractice(start, now, PRACTISED * expected)
    }
    if (launches > 0) machine.note(now - start - NO_GAIN * expected, now)
    this.#account.note(launches > 0 ? Math.min((now - start) / expected - NO_GAIN, MOST_EXCESS) : 1 - NO_GAIN, now)
  }

  /** The parts ran from `start` to `now`. They need no more practice once that takes at most `enough` milliseconds. */
  #notePractice(start: number, now: number, enough: number): void {
    if (this.#practised++ === 0) this.#practisedSince = start
    const isLong = this.#practised >= LEAST_PRACTICE && now - this.#practisedSince > PRACTICE_TIME
    if (isLong || now - start < enough) this.#practised = PRACTICE
  }
}

/** Whether every call of a kernel is too little work, which is known where its sizes are, or said. */
const isSmall = ({ params, body, isPart = false }: Kernel): boolean =>
  isPart || (!params.some(({ kind }) => kind === 'size') && workOf(body)(() => 0) < LEAST_WORK)

/** What is called in the place of a kernel's function. Pointwise kernels end with their only size; those of few elements are called as they are, without a list of arguments. */
function called({ params, scratch = [] }: Kernel, run: Run, kept: ThreadedKernel): Run {
  const sizes = params.filter(({ kind }) => kind === 'size')
  if (scratch.length === 0 && sizes.length === 1 && params.at(-1) === sizes[0]) {
    if (params.length === 3) return (a = 0, b = 0, n = 0) => (kept.isSmall(n) ? run(a, b, n) : kept.call([a, b, n]))
    if (params.length === 4) return (a = 0, b = 0, c = 0, n = 0) => (kept.isSmall(n) ? run(a, b, c, n) : kept.call([a, b, c, n]))
  }
  return (...args) => kept.call(args)
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
  if (threadCosts.learns && isSmall(kernel)) return { run, computedBy: () => ({ engine, threads: 1 }) }
  const kept = new ThreadedKernel(kernel, run, make)
  return { run: called(kernel, run, kept), computedBy: () => ({ engine, threads: kept.lastThreads }) }
}
