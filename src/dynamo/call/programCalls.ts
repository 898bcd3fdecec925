// Calls that the program answers itself. A graph with sizes for which there are no kernels runs the operators of the program one by one, for the same bits: to follow the call and to run them afterwards mostly takes longer
// than the program does. What is kept for a list of sizes that comes often, a plan of launches, may be faster: that is tried, with one list. Where there are kernels, they may still take longer than the program, as with a
// tape beside small tensors: each list that comes again is tried both ways.
import { config } from '../../config.ts'
import { Tensor } from '../../tensor/index.ts'
import { clock } from '../tree/budget.ts'
import type { Capture } from './capture.ts'
import { OFTEN } from '../tree/sizes.ts'

/** So often the program answers calls with one list of sizes. To make a plan takes as long as some six calls, which it has to win back. */
const PROGRAM_CALLS = 8

/** So often a list of sizes is captured, to see how long its calls take then: the first ones have no plan, and run code that is new to the engine. */
const TRIED_CALLS = 24

/** Where there are kernels, the first calls of a list are captured without being timed: they have no plan yet, or make it. */
const UNTIMED_CALLS = 5
/** How often each way is timed then, in turns: what V8 compiles meanwhile helps both. */
const TRIED = 4

/** For this many lists of sizes calls are counted; that which was met first goes first. */
const MOST_LISTS = 1024

/** What is known of a list of sizes: its calls, those that the program answered, those that were captured to time them, and the fastest of either kind in milliseconds. */
class SizeList {
  calls = 0
  answered = 0
  tried = 0
  program = Infinity
  captured = Infinity

  noteCaptured(ms: number): void {
    this.captured = Math.min(this.captured, ms)
    this.tried++
  }

  /** The same where the first calls do not count. */
  notePlanned(ms: number): void {
    if (this.tried < UNTIMED_CALLS) this.tried++
    else this.noteCaptured(ms)
  }
}

/** A call that may be timed. */
interface AnsweredCall {
  /** Whether the program answers it. */
  readonly isProgram: boolean
  /** The call is over. */
  end(): void
}

/** Which calls of a trace tree the program answers itself. */
export interface AnsweredCalls {
  /** Notes a call with these arguments; null if it is captured and nothing is to be learnt of it. */
  meet(leaves: readonly unknown[]): AnsweredCall | null
  /** Notes what a captured call ran. */
  note(work: Capture['work']): void
  /** How many calls with the sizes of the one that was met last the program has answered: with those that were captured they say whether the sizes come often. */
  readonly answeredBefore: number
}

/** Those of a tree with sizes. */
export class ProgramCalls implements AnsweredCalls {
  /** What the latest captured call ran. */
  #work: Capture['work'] = null
  #isProgramFaster: boolean | null = null
  #onTrial: SizeList | null = null
  readonly #lists = new Map<string, SizeList>()
  readonly #often = new Set<SizeList>()
  /** How many calls it would have answered. */
  #answered = 0
  #answeredBefore = 0
  /** Whether the sizes of the call that was met last come often: a graph of their own says nothing of others. */
  #isOften = false

  get answeredBefore(): number {
    return this.#answeredBefore
  }

  meet(leaves: readonly unknown[]): AnsweredCall | null {
    this.#answeredBefore = 0
    this.#isOften = false
    if (this.#work === null || config.verifySizes || config.reproAfter !== null) return null
    const list = this.#listOf(leaves)
    list.calls++
    this.#answeredBefore = list.answered
    if (this.#work === 'kernels' ? this.#isFasterThanKernels(list) : this.#isForProgram(list)) {
      list.answered++
      return new TimedCall(true, (ms) => (list.program = Math.min(list.program, ms)))
    }
    if (this.#work === 'program') return list === this.#onTrial ? new TimedCall(false, (ms) => this.#tried(list, ms)) : null
    return new TimedCall(false, (ms) => list.notePlanned(ms))
  }

  note(work: Capture['work']): void {
    if (!this.#isOften) this.#work = work
  }

  #isFasterThanKernels(list: SizeList): boolean {
    const timed = list.tried - UNTIMED_CALLS
    if (timed < TRIED || list.answered < TRIED) return list.answered < timed
    const isFaster = list.program < list.captured && !this.#comesOften(list)
    // The slower way is tried again now and then: what made it slow may be over.
    return (list.calls & (list.calls - 1)) === 0 ? !isFaster : isFaster
  }

  #isForProgram(list: SizeList): boolean {
    if (list.calls <= PROGRAM_CALLS) {
      // A capture now and then sees whether there still is a path without kernels.
      const answered = ++this.#answered
      return (answered & (answered - 1)) !== 0
    }
    if (this.#isProgramFaster === null) {
      this.#onTrial ??= list
      return list !== this.#onTrial
    }
    return this.#isProgramFaster && !this.#comesOften(list)
  }

  /** Whether a list is captured even if the program is faster: those that are captured as often get graphs of their own. */
  #comesOften(list: SizeList): boolean {
    if (list.calls > OFTEN && this.#often.size < config.recompileLimit) this.#often.add(list)
    this.#isOften = this.#often.has(list)
    return this.#isOften
  }

  #tried(list: SizeList, ms: number): void {
    list.noteCaptured(ms)
    if (list.tried < TRIED_CALLS) return
    this.#isProgramFaster = list.program < list.captured
    this.#onTrial = null
  }

  #listOf(leaves: readonly unknown[]): SizeList {
    let sizes = ''
    for (const leaf of leaves) if (leaf instanceof Tensor) sizes += `${leaf.sizes.join()};`
    const known = this.#lists.get(sizes)
    if (known !== undefined) return known
    const list = new SizeList()
    this.#lists.set(sizes, list)
    const [oldest] = this.#lists.size > MOST_LISTS ? this.#lists : []
    if (oldest === undefined) return list
    this.#lists.delete(oldest[0])
    this.#often.delete(oldest[1])
    if (this.#onTrial === oldest[1]) this.#onTrial = null
    return list
  }
}

/** So often calls of a graph of one operator are captured before either way is timed, and so often each is timed then, in turns. */
const FIRST_CALLS = 4
const TRIALS = 12

/**
 * The same for a path without sizes whose graph is one operator, for which the program has a kernel that computes the same bits: mostly to follow the call takes longer than the kernel. Both
 * ways are timed, and the faster one answers from then on.
 */
export class OperatorCalls implements AnsweredCalls {
  readonly answeredBefore = 0
  readonly #decided: (ms: { readonly program: number; readonly captured: number }) => void
  #isProgram = false
  #isProgramFaster: boolean | null = null
  #calls = 0
  #program = Infinity
  #captured = Infinity

  /** `decided` gets the milliseconds of either way, when the program is found to be faster. */
  constructor(decided: (ms: { readonly program: number; readonly captured: number }) => void) {
    this.#decided = decided
  }

  meet(): AnsweredCall | null {
    if (!this.#isProgram || this.#isProgramFaster === false || config.reproAfter !== null) return null
    const calls = ++this.#calls
    // A capture now and then sees whether the path still is one operator.
    if (this.#isProgramFaster === true) return (calls & (calls - 1)) === 0 ? null : UNTIMED
    if (calls <= FIRST_CALLS) return null
    return calls % 2 === 0
      ? new TimedCall(true, (ms) => (this.#program = Math.min(this.#program, ms)))
      : new TimedCall(false, (ms) => this.#tried(ms))
  }

  note(work: Capture['work']): void {
    this.#isProgram = work === 'program'
  }

  #tried(ms: number): void {
    this.#captured = Math.min(this.#captured, ms)
    if (this.#calls < FIRST_CALLS + 2 * TRIALS) return
    const times = { program: this.#program, captured: this.#captured }
    this.#isProgramFaster = times.program < times.captured
    if (this.#isProgramFaster) this.#decided(times)
  }
}

/** A call whose time is noted. */
class TimedCall implements AnsweredCall {
  readonly isProgram: boolean
  readonly #note: (ms: number) => void
  readonly #start = clock.now()

  constructor(isProgram: boolean, note: (ms: number) => void) {
    this.isProgram = isProgram
    this.#note = note
  }

  end(): void {
    this.#note(clock.now() - this.#start)
  }
}

/** A call that the program answers, as it does all others. */
const UNTIMED = { isProgram: true, end: (): void => {} }
