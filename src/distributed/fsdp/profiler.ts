// Where FSDP spends its time: sums of seconds by what was done. PyTorch's torch.distributed.fsdp._debug_utils.SimpleProfiler.
/// <reference lib="esnext.disposable" preserve="true" />
import { ArgumentError } from '../../errors/index.ts'
import { checkCallable, checkCount, checkString } from '../../protocol/index.ts'
import { getDebugLevel, getRank, isInitialized } from '../processGroup.ts'

/** What is usually profiled; any other string may be, too. */
export const ProfilerType = {
  ALL: 'all',
  ALLGATHER: 'all_gather',
  ALLGATHER_OBJ: 'all_gather_object',
  RESHARDING: 'resharding',
  H2D: 'H2D',
  D2H: 'D2H',
} as const

const results = new Map<string, number>()
const profiling = new Set<string>()

/** Ends a measurement: `using p = SimpleProfiler.start('all')`. */
export interface ProfilerScope extends Disposable {
  end(): void
}

function start(type: string): ProfilerScope {
  checkCount('start', arguments, 1)
  checkString('SimpleProfiler', 'type', type)
  if (profiling.has(type))
    throw new ArgumentError(`${type} is already being profiled. SimpleProfiler does not support profiling multiple instances at the same time. `)
  profiling.add(type)
  const begin = performance.now()
  let isOver = false
  const end = (): void => {
    if (isOver) return
    isOver = true
    const now = performance.now()
    results.set(type, (results.get(type) ?? 0) + (now - begin) / 1000)
    profiling.delete(type)
    performance.measure(`fsdp: ${type}`, { start: begin, end: now })
  }
  return { end, [Symbol.dispose]: end }
}

function profile<T>(type: string, fn: () => T): T {
  checkCount('SimpleProfiler.profile', arguments, 2)
  checkCallable('SimpleProfiler.profile', 'fn', fn)
  const scope = start(type)
  let isLater = false
  try {
    const result = fn()
    if (!(result instanceof Promise)) return result
    isLater = true
    // The same promise goes on to the caller, who handles its failure.
    result.then(scope.end, scope.end)
    return result
  } finally {
    if (!isLater) scope.end()
  }
}

function reset(): void {
  results.clear()
  profiling.clear()
}

/** Writes a line of a log; `setProfilerLog` replaces it. */
let log: (line: string) => void = (line) => console.info(line)

/** Sends the lines of `dumpAndReset` somewhere else than to the console. Returns what was there before. */
export function setProfilerLog(sink: (line: string) => void): (line: string) => void {
  checkCount('setProfilerLog', arguments, 1)
  checkCallable('setProfilerLog', 'sink', sink)
  const before = log
  log = sink
  return before
}

/**
 * Adds up how long each kind of work takes. Measurements of different kinds may be nested; one of the same kind inside itself is an error. Each is also a
 * `performance.measure`, which the timeline of developer tools shows. PyTorch's `SimpleProfiler`.
 *
 * @example
 * SimpleProfiler.profile('loading', () => model.loadStateDict(state))
 * SimpleProfiler.results.loading // seconds
 */
export const SimpleProfiler: {
  readonly Type: typeof ProfilerType
  /** Seconds by kind, in the order in which the kinds ended first. */
  readonly results: Readonly<Record<string, number>>
  /** The kinds that are being measured. */
  readonly profiling: readonly string[]
  /** Runs `fn`, and adds the time that it takes; that until its promise settles, if it returns one. Throws ArgumentError for a kind that is being measured. */
  profile<T>(type: string, fn: () => T): T
  /** Starts to measure. Throws ArgumentError for a kind that is being measured. */
  start(type: string): ProfilerScope
  /** Forgets all measurements. */
  reset(): void
  /**
   * On rank 0 at debug level INFO writes a line with the results; always forgets them. At DETAIL collectives are checked, which would spoil the numbers.
   */
  dumpAndReset(message: string): void
} = {
  Type: ProfilerType,
  get results(): Readonly<Record<string, number>> {
    return Object.fromEntries(results)
  },
  get profiling(): readonly string[] {
    return [...profiling]
  },
  profile,
  start,
  reset,
  dumpAndReset(message: string): void {
    if (isInitialized() && getRank() === 0 && getDebugLevel() === 'info') log(`${message} ${JSON.stringify(Object.fromEntries(results))}`)
    reset()
  },
}
