// The events of a profile in the format of chrome://tracing, which Perfetto reads too.
import type { ProfileEvent } from './event.ts'

/** An entry: a slice ('X'), or the start ('s') or end ('f') of an arrow. Times are in microseconds. */
interface TraceEntry {
  readonly ph: 'X' | 's' | 'f'
  readonly cat: string
  readonly name: string
  readonly ts: number
  readonly pid: number
  readonly tid: number
  readonly dur?: number
  readonly id?: number
  readonly bp?: 'e'
  readonly args?: Readonly<Record<string, unknown>>
}

const ONE_THREAD = { pid: 1, tid: 1 }

/** The trace: times count from the first event. */
export function chromeTrace(events: readonly ProfileEvent[]): { readonly displayTimeUnit: 'ms'; readonly traceEvents: readonly TraceEntry[] } {
  const origin = events.reduce((least, { start }) => Math.min(least, start), Infinity)
  const at = (time: number): number => (time - origin) * 1000
  const slices = events.map(({ kind, name, start, end, ...event }): TraceEntry => {
    const { module, graph, nodes, engine, instructions, shapes, backward, sequence, flops, bytes, memory, peak } = event
    const own = kind === 'kernel' ? { graph, nodes } : kind === 'node' ? { graph } : {}
    const args = {
      ...own,
      module,
      engine,
      instructions,
      'Input Dims': shapes,
      backward,
      'Sequence number': sequence,
      FLOPs: flops,
      bytes,
      memory,
      peak,
    }
    return { ph: 'X', cat: kind, name, ts: at(start), dur: at(end) - at(start), ...ONE_THREAD, args }
  })
  return { displayTimeUnit: 'ms', traceEvents: [...slices, ...arrows(events, at)] }
}

/** From each operator of a forward to the first one that computes its gradient. */
function arrows(events: readonly ProfileEvent[], at: (time: number) => number): readonly TraceEntry[] {
  const forward = new Map<number, ProfileEvent>()
  const entries: TraceEntry[] = []
  for (const event of events) {
    const { sequence } = event
    if (sequence === null) continue
    if (event.backward === null) {
      forward.set(sequence, event)
      continue
    }
    const from = forward.get(sequence)
    if (from === undefined) continue
    forward.delete(sequence)
    const arrow = { cat: 'fwdbwd', name: 'fwdbwd', id: sequence, ...ONE_THREAD }
    entries.push({ ph: 's', ts: at(from.start), ...arrow }, { ph: 'f', bp: 'e', ts: at(event.start), ...arrow })
  }
  return entries
}
