// How much a rank has sent, and when: counts per kind of collective, and a timeline that chrome://tracing and a later report can read.
import { checkCallable, checkCount } from '../protocol/index.ts'
import { bytesSent, describe, descriptionText } from './collective.ts'
import type { Collective } from './collective.ts'

/** Calls of one kind of collective, and the bytes that this rank handed to others in them. */
export interface CollectiveCount {
  readonly calls: number
  readonly bytes: number
}

/** One collective in a timeline, or one step of FSDP: an event of the trace-event format. Times are in microseconds. */
export interface CollectiveEvent {
  readonly name: string
  readonly cat: 'collective' | 'fsdp'
  readonly ph: 'X'
  readonly ts: number
  dur: number
  /** The world rank. */
  readonly pid: number
  readonly tid: number
  readonly args: { readonly description: string; readonly group: string; readonly sequence: number; readonly bytes: number }
}

const counts = new Map<Collective['kind'], { calls: number; bytes: number }>()
let timeline: CollectiveEvent[] | null = null
/** The world rank of the collective that was recorded last: a process has one. */
let lastRank = 0

/** Counts a collective. Returns what to call when it is over. */
export function countCollective(
  collective: Collective,
  group: string,
  sequence: number,
  size: number,
  rank: number,
  worldRank: number,
): (() => void) | null {
  const bytes = bytesSent(collective, size, rank)
  const count = counts.get(collective.kind)
  if (count === undefined) counts.set(collective.kind, { calls: 1, bytes })
  else {
    count.calls++
    count.bytes += bytes
  }
  if (timeline === null) return null
  lastRank = worldRank
  const start = performance.now()
  const event: CollectiveEvent = {
    name: collective.kind,
    cat: 'collective',
    ph: 'X',
    ts: start * 1000,
    dur: 0,
    pid: worldRank,
    tid: 0,
    args: { description: descriptionText(describe(collective)), group, sequence, bytes },
  }
  timeline.push(event)
  return () => {
    event.dur = (performance.now() - start) * 1000
  }
}

/** Puts something that takes no time into the timeline, if one is recorded. `description` says of what. */
export function recordInstant(name: string, description: string): void {
  if (timeline === null) return
  timeline.push({
    name,
    cat: 'fsdp',
    ph: 'X',
    ts: performance.now() * 1000,
    dur: 0,
    pid: lastRank,
    tid: 0,
    args: { description, group: '', sequence: 0, bytes: 0 },
  })
}

/** What this rank has sent since the start, or the last reset, by kind of collective. */
export const collectiveStats = (): Readonly<Record<string, CollectiveCount>> =>
  Object.fromEntries([...counts].map(([kind, count]) => [kind, { ...count }]))

/** Sets {@link collectiveStats} back to zero. */
export function resetCollectiveStats(): void {
  checkCount('resetCollectiveStats', arguments, 0)
  counts.clear()
}

/**
 * Records the collectives that `fn` runs on this rank, as events of the trace-event format: write them as JSON, one file a rank, and load them in a trace viewer.
 *
 * @example const events = recordCollectives(() => trainStep())
 */
export function recordCollectives(fn: () => void): readonly CollectiveEvent[] {
  checkCallable('recordCollectives', 'fn', fn)
  const outer = timeline
  const own: CollectiveEvent[] = []
  timeline = own
  try {
    fn()
  } finally {
    timeline = outer
  }
  return own
}
