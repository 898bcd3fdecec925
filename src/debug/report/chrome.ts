// A trace in the format of chrome://tracing, which Perfetto reads too: calls, what was compiled in them, passes, and marks for breaks, recompiles and failures.
import type { CompileEvent } from '../../events/index.ts'
import type { TraceRecord } from '../trace/index.ts'

/** A slice ('X') or a mark ('i'). Times are in microseconds. */
interface Entry {
  readonly ph: 'X' | 'i'
  readonly cat: string
  readonly name: string
  readonly ts: number
  readonly dur?: number
  readonly s?: 't'
  readonly pid: number
  readonly tid: number
  readonly args: Readonly<Record<string, unknown>>
}

/** The trace as JSON of that format. */
export function chromeTraceOf(records: readonly TraceRecord[]): { readonly displayTimeUnit: 'ms'; readonly traceEvents: readonly Entry[] } {
  const [header] = records
  const [pid, start] = header?.kind === 'trace' ? [header.pid ?? 1, header.time] : [1, 0]
  const names = new Map<number, string>()
  const entry = (ph: Entry['ph'], cat: string, name: string, time: number, milliseconds: number, args: Entry['args']): Entry => ({
    ...{ ph, cat, name, ts: (time - start) * 1000, pid, tid: 1, args },
    ...(ph === 'X' ? { dur: milliseconds * 1000 } : { s: 't' as const }),
  })
  /** A slice that ended at a time. */
  const ended = (cat: string, name: string, { time, milliseconds }: { time: number; milliseconds: number }, args: Entry['args'] = {}): Entry =>
    entry('X', cat, name, time - milliseconds, milliseconds, args)
  const mark = (event: CompileEvent, name: string, args: Entry['args']): Entry => entry('i', event.kind, name, event.time, 0, args)
  const traceEvents = records.flatMap((record): Entry[] => {
    switch (record.kind) {
      case 'call':
        if (record.phase === 'start') {
          names.set(record.id, record.name)
          return []
        }
        return [ended('call', record.name, record, { outcome: record.outcome })]
      case 'again':
        return [
          entry('X', 'call', `${record.count} × ${names.get(record.of) ?? 'calls'}`, record.from, record.to - record.from, {
            milliseconds: record.milliseconds,
          }),
        ]
      case 'compiled':
        return [ended('compile', record.name, record, { backend: record.backend })]
      case 'pass':
        return [ended('pass', record.name, record, { changed: record.changed })]
      case 'break':
        return [mark(record, `graph break: ${record.reason}`, { at: record.stack.at(-1) })]
      case 'recompile':
        return [mark(record, `recompile: ${record.reason}`, { at: record.user })]
      case 'limit':
        return [mark(record, `${record.what}: ${record.reason}`, {})]
      case 'failure':
        return [mark(record, `${record.stage} failed: ${record.code}`, { message: record.message })]
      default:
        return []
    }
  })
  return { displayTimeUnit: 'ms', traceEvents }
}
