// profile: runs a program some times and tells where its time goes. PyTorch's torch.profiler.
import type { GraphCosts } from '../../fx/viewer/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { checkCallable, checkCount, checkOptions, valueText } from '../../protocol/index.ts'
import { chromeTrace } from './chromeTrace.ts'
import { isProfileGroup, profileGroups } from './columns.ts'
import type { ProfileGroup } from './columns.ts'
import type { ProfileEvent } from './event.ts'
import { flamePage } from './flamePage.ts'
import { KeyAverages, averages } from './keyAverages.ts'
import { graphCosts } from './nodeCosts.ts'
import { Recorder } from './recorder.ts'
import { checkTimes, runOf } from './runs.ts'

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
  /**
   * What rows stand for: operators and kernels of compiled functions (the default); the same by the shapes of their inputs, PyTorch's `group_by_input_shape`; kernels of compiled
   * functions alone; modules; or nodes of GraphModules.
   */
  readonly groupBy?: ProfileGroup
}

/** The events of a program that ran, and what they add up to. */
export class Profile {
  /** What ran, in the order in which it began (a kernel of a compiled function: in which it ended). */
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
    if (!isProfileGroup(groupBy))
      throw new ArgumentError(`Profile.keyAverages: option 'groupBy' must be one of ${profileGroups.join(', ')}, got ${valueText(groupBy)}.`)
    const own = this.events.reduce((sum, { kind, self }) => (kind === 'operator' || kind === 'kernel' ? sum + self : sum), 0)
    return new KeyAverages(averages(this.events, groupBy), this.totalTime, this.totalTime - own)
  }

  /**
   * What each node of a graph cost, by name: of GraphModules, and of the graphs of compiled functions by the kernels that computed them. The page of a graph shows them:
   * `graphPage(gm, { costs: result.graphCosts()[0] })`.
   */
  graphCosts(): readonly GraphCosts[] {
    checkCount('Profile.graphCosts', arguments, 0)
    return graphCosts(this.events)
  }

  /** The events as JSON for chrome://tracing and Perfetto, with an arrow from each operator to those of its gradient. PyTorch's `export_chrome_trace`, which writes a file. */
  exportChromeTrace(): string {
    checkCount('Profile.exportChromeTrace', arguments, 0)
    return JSON.stringify(chromeTrace(this.events))
  }

  /**
   * A flame graph as a single HTML page, which needs no network: modules, nodes, operators and kernels within each other, as wide as they took long; calls in the same place are one
   * frame. A click shows a frame at full width.
   */
  flamePage(options: { readonly title?: string } = {}): string {
    checkCount('Profile.flamePage', arguments, 1)
    checkOptions('Profile.flamePage', options, { title: true })
    return flamePage(this.events, options.title ?? 'Profile', this.runs, this.totalTime)
  }

  toString(): string {
    return this.keyAverages().table()
  }
}

/**
 * Runs `fn` some times, and records the modules, nodes, operators and kernels of compiled functions that run: how often, how long, FLOPs, bytes and memory. A program that is not profiled
 * pays nothing for it. Compiled functions run compiled, though they call their kernels one by one; GraphModules run node by node. PyTorch's `torch.profiler.profile`.
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
  checkTimes('profile', 'warmup', warmup, 0)
  checkTimes('profile', 'runs', runs, 1)
  return runOf('profile', fn, (run) => {
    for (let i = 1; i < warmup; i++) run()
    const running = startProfile(runs)
    try {
      // The last run to warm up is recorded too: it warms up the recorder.
      if (warmup > 0) {
        run()
        running.restart()
      }
      for (let i = 0; i < runs; i++) run()
    } finally {
      running.stop()
    }
    const result = running.profile()
    if (measures) for (const { name, start, end, kind } of result.events) performance.measure(name, { start, end, detail: { kind } })
    return result
  })
}

/** A profile that is being taken. */
export interface RunningProfile {
  /** Forgets the run that was recorded so far, and begins anew. */
  restart(): void
  /** Ends it; nothing is recorded afterwards. */
  stop(): void
  /** What was recorded until it was stopped. */
  profile(): Profile
}

/** Records what runs from now on, also what is asynchronous: for the command, which profiles whole programs. */
export function startProfile(runs: number): RunningProfile {
  const recorder = new Recorder()
  const stopRecording = recorder.start()
  let start = performance.now()
  let end: number | null = null
  return {
    restart() {
      recorder.restart(runs)
      start = performance.now()
    },
    stop() {
      if (end !== null) return
      end = performance.now()
      stopRecording()
    },
    profile: () => new Profile(recorder.events(), runs, (end ?? performance.now()) - start),
  }
}
