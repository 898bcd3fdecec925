// Kernels on threads: what stands in for a kernel's function where the heap is shared. It learns what a unit of a kernel's work takes, and gives loops that take long enough to the pool.
import type { ComputedBy } from '../engine/computing.ts'
import { computingThreads } from '../engine/threads.ts'
import type { Kernel } from '../ir/loopIr.ts'
import { callOf, canLaunch, partsOf, runSteps, threadCosts, wasmParts } from './launch.ts'
import type { PartCode, Parts, Run } from './launch.ts'
import { splitKernel } from './split.ts'
import type { Split } from './split.ts'
import { CallWork, workOf } from './work.ts'

/** Less work than that is not looked at. */
const LEAST_WORK = 4096
/** A launch that takes more than that part of what one thread takes is no gain. */
const NO_GAIN = 0.9
/** How many times what one thread takes launches may lose in all, less what others gain, before no kernel is divided for a while: threads lose their cores in the middle of chunks. */
const MOST_LOSS = 1.5
/** Milliseconds of the first rest; each is twice as long as the one before, up to the longest. */
const FIRST_REST = 50
const LONGEST_REST = 2000
/** After that many launches with a gain, one after the other, the next rest is as short as the first. */
const STEADY = 8

/** Parts are code of their own, which the host improves while it runs: this thread runs them alone until they are about as fast as the whole, and at most for a number of calls, or of milliseconds once there were a few. */
const PRACTISED = 1.2
const PRACTICE = 64
const LEAST_PRACTICE = 4
const PRACTICE_TIME = 100

/** How many times of one thread are remembered. */
const SAMPLES = 5

/** A time without threads. */
class Rest {
  #until = 0
  #next = FIRST_REST
  #gains = 0

  get isOver(): boolean {
    return this.#until === 0 || performance.now() >= this.#until
  }

  begin(now: number): void {
    this.#until = now + this.#next
    this.#next = Math.min(2 * this.#next, LONGEST_REST)
    this.#gains = 0
  }

  gained(): void {
    if (++this.#gains >= STEADY) this.#next = FIRST_REST
  }
}

/** What launches of all kernels have lost, as a multiple of what one thread takes, and when none is divided. */
const machine = { rest: new Rest(), loss: 0 }

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
  #losses = 0
  readonly #rest = new Rest()
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
    if (threadCosts.learns && ((calls & (calls - 1)) === 0 || calls % 64 === 0)) return this.#learn(args, work)
    const expected = this.#rate * work
    if (threadCosts.learns && (expected < threadCosts.awake || !this.#rest.isOver || !machine.rest.isOver)) return this.#run(...args)
    this.#launch(args, threads, expected)
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

  #launch(args: number[], threads: number, expected: number): void {
    const of = this.#work.sizesIn(args)
    const parts = this.#partsNow()
    const practises = threadCosts.learns && this.#practised < PRACTICE
    const rate = practises ? 0 : threadCosts.learns ? this.#rate : Infinity
    const call = parts === null ? null : callOf({ kernel: this.#kernel, parts, args, of, threads, rate })
    if (call === null) return this.#run(...args)
    const start = performance.now()
    const launches = runSteps(call, call.parts.split.steps)
    if (practises) this.#notePractice(start, PRACTISED * expected)
    if (launches > 0) this.lastThreads = threads
    if (practises || !threadCosts.learns) return
    const now = performance.now()
    this.#judge(launches === 0 ? 1 : (now - start) / expected, now, launches > 0)
  }

  /** The parts ran from `start` on. They need no more practice once that takes at most `enough` milliseconds. */
  #notePractice(start: number, enough: number): void {
    const now = performance.now()
    if (this.#practised++ === 0) this.#practisedSince = start
    const isLong = this.#practised >= LEAST_PRACTICE && now - this.#practisedSince > PRACTICE_TIME
    if (isLong || now - start < enough) this.#practised = PRACTICE
  }

  /** Two calls without gain, and this kernel rests; where launches lose much, all of them do. `ratio`: what a call took by what one thread takes. */
  #judge(ratio: number, now: number, isLaunch: boolean): void {
    const excess = ratio - NO_GAIN
    if (isLaunch) machine.loss = Math.max(0, machine.loss + excess)
    if (excess <= 0) {
      this.#losses = 0
      this.#rest.gained()
      machine.rest.gained()
    } else if (++this.#losses >= 2) {
      this.#losses = 0
      this.#rest.begin(now)
    }
    if (machine.loss <= MOST_LOSS) return
    machine.loss = 0
    machine.rest.begin(now)
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
