// profile: runs a program some times and tells where its time goes. PyTorch's torch.profiler.
import { ArgumentError } from '../../errors/index.ts'
import { checkCallable, checkCount, checkOptions, isPromise, valueText } from '../../protocol/index.ts'
import { chromeTrace } from './chromeTrace.ts'
import { KeyAverages, averages } from './keyAverages.ts'
import { Recorder } from './recorder.ts'
import type { ProfileEvent, ProfileKind } from './recorder.ts'

/** Options of {@link profile}. */
export interface ProfileOptions {
  /** How often the program runs before it is recorded: compiled functions compile then. Default 1. */
  readonly warmup?: number
  /** How often it is recorded. Default 1. */
  readonly runs?: number
  /** Whether each event becomes an entry of `performance.measure`, which the timeline of developer tools shows. Default false. */
  readonly measures?: boolean
}

/** Options of {@link Profile.keyAverages}. */
export interface KeyAveragesOptions {
  /** What rows stand for: operators and kernels of compiled functions (the default), or modules. */
  readonly groupBy?: 'operator' | 'module'
}

const kindsOf: Readonly<Record<'operator' | 'module', ReadonlySet<ProfileKind>>> = {
  operator: new Set<ProfileKind>(['operator', 'kernel']),
  module: new Set<ProfileKind>(['module']),
}

/** What ran, in the order in which it began (a kernel of a compiled function: in which it ended). */
export class Profile {
  readonly events: readonly ProfileEvent[]
  readonly runs: number
  /** The time of all runs, in milliseconds. */
  readonly totalTime: number

  constructor(events: readonly ProfileEvent[], runs: number, totalTime: number) {
    this.events = events
    this.runs = runs
    this.totalTime = totalTime
  }

  /** Sums over all runs. PyTorch's `key_averages`. Throws ArgumentError for an unknown `groupBy`. */
  keyAverages(options: KeyAveragesOptions = {}): KeyAverages {
    checkCount('Profile.keyAverages', arguments, 1)
    checkOptions('Profile.keyAverages', options, { groupBy: true })
    const { groupBy = 'operator' } = options
    if (!Object.hasOwn(kindsOf, groupBy))
      throw new ArgumentError(`Profile.keyAverages: option 'groupBy' must be 'operator' or 'module', got ${valueText(groupBy)}.`)
    const computing = averages(this.events, kindsOf.operator)
    const outside = this.totalTime - computing.reduce((sum, { selfTime }) => sum + selfTime, 0)
    return new KeyAverages(groupBy === 'operator' ? computing : averages(this.events, kindsOf.module), this.totalTime, outside)
  }

  /** The events as JSON for chrome://tracing and Perfetto, with an arrow from each operator to those of its gradient. PyTorch's `export_chrome_trace`, which writes a file. */
  exportChromeTrace(): string {
    checkCount('Profile.exportChromeTrace', arguments, 0)
    return JSON.stringify(chromeTrace(this.events))
  }

  toString(): string {
    return this.keyAverages().table()
  }
}

let isRunning = false

/**
 * Runs `fn` some times, and records the operators, modules and kernels of compiled functions that run: how often, how long, FLOPs, bytes and memory. A program that is not profiled
 * pays nothing for it. Compiled functions run compiled, though they call their kernels one by one. PyTorch's `torch.profiler.profile`.
 *
 * @throws ArgumentError if `fn` is no function or is async, or an option is wrong. What `fn` throws is thrown on.
 * @example
 * const result = profile(() => model(x).sum().backward(), { warmup: 2, runs: 10 })
 * console.log(result.keyAverages().table({ sortBy: 'selfTime', rowLimit: 10 }))
 * console.log(result.keyAverages({ groupBy: 'module' }).table())
 * writeFileSync('trace.json', result.exportChromeTrace())
 */
export function profile(fn: () => unknown, options: ProfileOptions = {}): Profile {
  checkCount('profile', arguments, 2)
  checkCallable('profile', 'fn', fn)
  checkOptions('profile', options, { warmup: 'number', runs: 'number', measures: 'boolean' })
  const { warmup = 1, runs = 1, measures = false } = options
  checkTimes('warmup', warmup, 0)
  checkTimes('runs', runs, 1)
  if (isRunning) throw new ArgumentError('profile: a profile is being taken already, and fn of that one takes another. Take one after the other.')
  isRunning = true
  try {
    const run = (): void => {
      const result = fn()
      if (!isPromise(result)) return
      // It is not awaited: what it throws later is not an error of its own.
      result.then(undefined, () => undefined)
      throw new ArgumentError('profile: fn returned a promise. Profile the synchronous part: what runs after an await is not recorded.')
    }
    for (let i = 0; i < warmup; i++) run()
    const recorder = new Recorder()
    let totalTime = 0
    recorder.during(() => {
      const start = performance.now()
      for (let i = 0; i < runs; i++) run()
      totalTime = performance.now() - start
    })
    const { events } = recorder
    if (measures) for (const { name, start, end, kind } of events) performance.measure(name, { start, end, detail: { kind } })
    return new Profile(events, runs, totalTime)
  } finally {
    isRunning = false
  }
}

function checkTimes(name: string, value: number, least: number): void {
  if (!Number.isSafeInteger(value) || value < least)
    throw new ArgumentError(`profile: option '${name}' must be a whole number from ${least} on, got ${valueText(value)}.`)
}
