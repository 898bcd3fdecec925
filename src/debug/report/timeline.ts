// The rows of a report: what happened, in time order.
import type { CompileEvent } from '../../events/index.ts'
import type { AgainRecord, TraceRecord } from '../trace/index.ts'
import type { Kind, Row, Totals } from './data.ts'
import { GraphReader, Lists } from './graphs.ts'
import type { Launches } from './graphs.ts'
import { timeText } from '../../protocol/timeText.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }
type CallStart = CompileEvent<'call'> & { readonly phase: 'start' }

const OUTCOMES: Readonly<Record<string, string>> = {
  recorded: 'recorded a new path',
  replayed: 'hit: a known path',
  shortcut: 'hit: not run at all',
  eager: 'ran eagerly, at least in part',
  failed: 'failed',
}

const isHit = (outcome: string): boolean => outcome === 'replayed' || outcome === 'shortcut'

/** What a trace says, before findings are drawn from it. */
export interface Timeline {
  readonly rows: readonly Row[]
  readonly reader: GraphReader
  readonly launches: Launches
  readonly counts: Pick<Totals, 'calls' | 'hits' | 'breaks' | 'recompiles' | 'failures' | 'callMilliseconds'>
}

/** Reads the records of a trace in order. */
export class TimelineReader {
  readonly #lists: Lists
  readonly #start: number
  readonly #reader: GraphReader
  readonly #rows: Mutable<Row>[] = []
  /** The calls that are under way, by number: their rows. The names of functions. The calls that others are like, by the id of their start, with what came of them. */
  readonly #calls = new Map<number, { readonly row: number; readonly id: number }>()
  readonly #names = new Map<number, string>()
  readonly #starts = new Map<number, CallStart>()
  readonly #outcomes = new Map<number, string>()
  readonly #launches = new Map<string, [number, number, number]>()
  readonly #counts: Mutable<Timeline['counts']> = { calls: 0, hits: 0, breaks: 0, recompiles: 0, failures: 0, callMilliseconds: 0 }

  constructor(lists: Lists, start: number) {
    this.#lists = lists
    this.#start = start
    this.#reader = new GraphReader(lists)
  }

  read(records: readonly TraceRecord[]): Timeline {
    for (const record of records) this.#take(record)
    return { rows: this.#rows, reader: this.#reader, launches: this.#launches, counts: this.#counts }
  }

  #take(record: TraceRecord): void {
    switch (record.kind) {
      case 'trace':
      case 'end':
        break
      case 'full':
        this.#row('limit', record.time, { title: 'The trace is as long as it may be: from here on calls and kernels are only counted.' })
        break
      case 'again':
        this.#again(record)
        break
      case 'launches':
        for (const [name, [runs, milliseconds, least]] of Object.entries(record.kernels)) {
          const [n, total, best] = this.#launches.get(name) ?? [0, 0, Infinity]
          this.#launches.set(name, [n + runs, total + milliseconds, Math.min(best, least)])
        }
        break
      default:
        this.#event(record)
    }
  }

  #row(kind: Kind, time: number, { depth = 0, ...rest }: Partial<Omit<Row, 'kind' | 'time'>>): number {
    const row = { title: '', details: [], place: -1, stack: [], milliseconds: null, count: 1, graph: -1, ...rest }
    return this.#rows.push({ kind, depth, time: time - this.#start, ...row }) - 1
  }

  #event(event: CompileEvent): void {
    const { time } = event
    const name = this.#names.get(event.fn ?? -1) ?? 'a function'
    const depth = event.call === null ? 0 : 1
    this.#reader.take(event, name)
    switch (event.kind) {
      case 'call':
        if (event.phase === 'start') this.#begin(event)
        else this.#end(event)
        break
      case 'break': {
        this.#counts.breaks++
        const stack = event.stack.map((frame) => this.#lists.place(frame))
        const details = [['cause', event.code] as const, ['explained in', 'docs/guide/compile.md#graph-breaks'] as const]
        this.#row('break', time, { depth, title: `graph break: ${event.reason}`, details, place: stack.at(-1) ?? -1, stack })
        break
      }
      case 'recompile': {
        this.#counts.recompiles++
        const { expected, actual, reason } = event
        const details = [['expected', expected] as const, ['actual', actual] as const, ['reason', reason] as const]
        this.#row('recompile', time, {
          depth,
          title: `recompile of ${event.name}: expected ${expected} → actual ${actual}`,
          details,
          place: this.#lists.place(event.user),
        })
        break
      }
      case 'limit': {
        const title = `${event.what} of ${event.name}: ${event.reason}`
        this.#row('limit', time, { depth, title, details: [['limit', event.what]], place: this.#placeOfCall(event.call) })
        break
      }
      case 'failure':
        this.#failure(event, depth)
        break
      case 'repro':
        this.#row('repro', time, { depth, title: `repro: ${event.file}`, details: [['run it with', `node ${event.file} ${event.command}`]] })
        break
      case 'joint':
        if (!event.ok)
          this.#row('fallback', time, {
            depth,
            title: `no compiled backward of ${name}: ${event.why ?? 'unknown'}`,
            place: this.#placeOfCall(event.call),
          })
        break
      case 'minify.end':
        this.#row('minify', time, { depth, title: `the minifier has ended at ${event.nodes} nodes after ${event.queries} tries` })
        break
      case 'graph':
        if (event.role === 'captured') {
          const graph = this.#reader.graphOf(event)
          const details = [['ended by', event.reason] as const, ['operators', String(event.operators)] as const]
          this.#row('compile', time, { depth, title: `compiled ${event.name} of ${name}`, details, place: this.#reader.firstPlace(graph), graph })
        }
        break
      case 'compiled': {
        const graph = this.#reader.graphOf(event)
        const row = this.#rows.findLast((other) => other.graph === graph && other.kind === 'compile')
        if (row === undefined || graph < 0) break
        row.milliseconds = event.milliseconds
        row.details = [...row.details, ['backend', event.backend]]
        break
      }
      default:
    }
  }

  #placeOfCall(call: number | null): number {
    return this.#rows[this.#calls.get(call ?? -1)?.row ?? -1]?.place ?? -1
  }

  #failure(event: CompileEvent<'failure'>, depth: 0 | 1): void {
    this.#counts.failures++
    const { stage, code, message, backend } = event
    const graph = this.#reader.graphOf(event)
    // The graph that failed is the one that was captured last.
    const latest = graph >= 0 ? graph : (this.#rows.findLast((row) => row.kind === 'compile')?.graph ?? -1)
    const inGraph = this.#reader.firstPlace(latest)
    const kind = stage === 'accuracy' ? 'drift' : 'failure'
    const what = stage === 'accuracy' ? 'gives different numbers than eager' : stage === 'compile' ? 'failed to compile' : 'failed to run'
    // The debugger writes its script before it tells of the failure.
    const repro = this.#rows.at(-1)?.kind === 'repro' ? this.#rows.at(-1)?.details : undefined
    const page = code.startsWith('TFX_') ? [['explained in', `docs/errors.md#${code.toLowerCase()}`] as const] : []
    const details = [['error', `${code}: ${message}`] as const, ['backend', backend ?? 'unknown'] as const, ...page, ...(repro ?? [])]
    const place = inGraph >= 0 ? inGraph : this.#placeOfCall(event.call)
    this.#row(kind, event.time, {
      depth,
      title: `${backend ?? 'the backend'} ${what}: ${message.split('\n')[0] ?? ''}`,
      details,
      place,
      graph: latest,
    })
  }

  // ---- calls ----

  #begin(event: CallStart): void {
    if (event.fn !== null) this.#names.set(event.fn, event.name)
    this.#starts.set(event.id, event)
    const details = [['arguments', event.args.join(', ') || 'none'] as const]
    const row = this.#row('call', event.time, { title: event.name, details, place: this.#lists.place(event.user) })
    if (event.call !== null) this.#calls.set(event.call, { row, id: event.id })
  }

  #end(event: CompileEvent<'call'>): void {
    if (event.phase !== 'end' || event.call === null) return
    const call = this.#calls.get(event.call)
    const row = this.#rows[call?.row ?? -1]
    this.#calls.delete(event.call)
    if (call === undefined || row === undefined) return
    this.#outcomes.set(call.id, event.outcome)
    this.#counts.calls++
    this.#counts.callMilliseconds += event.milliseconds
    row.milliseconds = event.milliseconds
    row.details = [
      ...row.details,
      ['outcome', OUTCOMES[event.outcome] ?? event.outcome],
      ...(event.error === null ? [] : [['threw', event.error] as const]),
    ]
    row.title = `${event.name}: ${OUTCOMES[event.outcome] ?? event.outcome}`
    if (!isHit(event.outcome)) return
    this.#counts.hits++
    if (call.row === this.#rows.length - 1) row.kind = 'hits'
  }

  #again({ of, isLike, count, from, milliseconds, least, most }: AgainRecord): void {
    const start = this.#starts.get(of)
    const outcome = this.#outcomes.get(of) ?? ''
    this.#counts.calls += count
    this.#counts.callMilliseconds += milliseconds
    if (isLike && isHit(outcome)) this.#counts.hits += count
    const name = start?.name ?? 'a function'
    const isHits = isLike && isHit(outcome)
    const details = [['each', `${timeText(least)} to ${timeText(most)}`] as const]
    const place = this.#lists.place(start?.user)
    const last = this.#rows.at(-1)
    const title = (n: number): string => `${name}: ${n} ${isHits ? '' : isLike ? 'like ' : 'further '}${isHits ? 'hit' : 'call'}${n === 1 ? '' : 's'}`
    if (last?.kind === 'hits' && last.place === place && last.title === title(last.count)) {
      last.count += count
      last.milliseconds = (last.milliseconds ?? 0) + milliseconds
      last.title = title(last.count)
      return
    }
    this.#row('hits', from, { title: title(count), details, place, milliseconds, count })
  }
}
