// The rows of a report: what happened, in time order.
import type { CompileEvent } from '../../events/index.ts'
import type { TraceRecord } from '../trace/index.ts'
import { CallReader } from './calls.ts'
import { NONE } from './data.ts'
import type { Kind, Row, Totals } from './data.ts'
import { GraphReader } from './graphs.ts'
import type { Launches, Lists } from './graphs.ts'
import { Rows, detail } from './rows.ts'
import type { NewRow } from './rows.ts'

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
  readonly #graphs: GraphReader
  readonly #rows: Rows
  readonly #calls: CallReader
  readonly #launches = new Map<string, [runs: number, milliseconds: number, least: number]>()

  /** `start`: when the trace began. */
  constructor(lists: Lists, start: number) {
    this.#lists = lists
    this.#graphs = new GraphReader(lists)
    this.#rows = new Rows(start)
    this.#calls = new CallReader(this.#rows, lists)
  }

  read(records: readonly TraceRecord[]): Timeline {
    for (const record of records) this.#take(record)
    const rows = this.#rows.list
    const countOf = (...kinds: readonly Kind[]): number => rows.filter(({ kind }) => kinds.includes(kind)).length
    const counts = { ...this.#calls.counts, breaks: countOf('break'), recompiles: countOf('recompile'), failures: countOf('failure', 'drift') }
    return { rows, reader: this.#graphs, launches: this.#launches, counts }
  }

  #take(record: TraceRecord): void {
    switch (record.kind) {
      case 'trace':
      case 'end':
        return
      case 'full':
        this.#rows.add(record.time, { kind: 'limit', title: 'The trace is as long as it may be: from here on calls and kernels are only counted.' })
        return
      case 'again':
        return this.#calls.again(record)
      case 'launches':
        for (const [name, [runs, milliseconds, least]] of Object.entries(record.kernels)) {
          const [n, total, best] = this.#launches.get(name) ?? [0, 0, Infinity]
          this.#launches.set(name, [n + runs, total + milliseconds, Math.min(best, least)])
        }
        return
      default:
        return this.#event(record)
    }
  }

  #event(event: CompileEvent): void {
    this.#graphs.take(event, this.#calls.nameOf(event.fn))
    if (event.kind === 'call') return this.#calls.take(event)
    if (event.kind === 'compiled') return this.#finish(event)
    const row = this.#rowOf(event)
    if (row !== null) this.#rows.add(event.time, { depth: event.call === null ? 0 : 1, ...row })
  }

  /** What an event says in the timeline; null if that is nothing. */
  #rowOf(event: CompileEvent): NewRow | null {
    switch (event.kind) {
      case 'break':
        return this.#break(event)
      case 'recompile':
        return this.#recompile(event)
      case 'limit':
        return {
          kind: 'limit',
          title: `${event.what} of ${event.name}: ${event.reason}`,
          details: [detail('limit', event.what)],
          place: this.#calls.placeOf(event.call),
        }
      case 'failure':
        return this.#failure(event)
      case 'repro':
        return { kind: 'repro', title: `repro: ${event.file}`, details: [detail('run it with', `node ${event.file} ${event.command}`)] }
      case 'joint':
        return event.ok
          ? null
          : {
              kind: 'fallback',
              title: `no compiled backward of ${this.#calls.nameOf(event.fn)}: ${event.why ?? 'unknown'}`,
              place: this.#calls.placeOf(event.call),
            }
      case 'minify.end':
        return { kind: 'minify', title: `the minifier has ended at ${event.nodes} nodes after ${event.queries} tries` }
      case 'graph':
        return event.role === 'captured' ? this.#captured(event) : null
      default:
        return null
    }
  }

  #break({ stack: frames, code, reason }: CompileEvent<'break'>): NewRow {
    const stack = frames.map((frame) => this.#lists.place(frame))
    const details = [detail('cause', code), detail('explained in', 'docs/guide/compile.md#graph-breaks')]
    return { kind: 'break', title: `graph break: ${reason}`, details, place: stack.at(-1) ?? NONE, stack }
  }

  #recompile({ name, expected, actual, reason, user }: CompileEvent<'recompile'>): NewRow {
    return {
      kind: 'recompile',
      title: `recompile of ${name}: expected ${expected} → actual ${actual}`,
      details: [detail('expected', expected), detail('actual', actual), detail('reason', reason)],
      place: this.#lists.place(user),
    }
  }

  #failure(event: CompileEvent<'failure'>): NewRow {
    const { stage, code, message, backend } = event
    const known = this.#graphs.graphOf(event)
    // The graph that failed is the one that was captured last.
    const graph = known === NONE ? (this.#rows.list.findLast((row) => row.kind === 'compile')?.graph ?? NONE) : known
    const inGraph = this.#graphs.firstPlace(graph)
    const what = stage === 'accuracy' ? 'gives different numbers than eager' : stage === 'compile' ? 'failed to compile' : 'failed to run'
    // The debugger writes its script before it tells of the failure.
    const before = this.#rows.list.at(-1)
    return {
      kind: stage === 'accuracy' ? 'drift' : 'failure',
      title: `${backend ?? 'the backend'} ${what}: ${message.split('\n')[0] ?? ''}`,
      details: [
        detail('error', `${code}: ${message}`),
        detail('backend', backend ?? 'unknown'),
        ...(code.startsWith('TFX_') ? [detail('explained in', `docs/errors.md#${code.toLowerCase()}`)] : []),
        ...(before?.kind === 'repro' ? before.details : []),
      ],
      place: inGraph === NONE ? this.#calls.placeOf(event.call) : inGraph,
      graph,
    }
  }

  #captured(event: CompileEvent<'graph'>): NewRow {
    const graph = this.#graphs.graphOf(event)
    const details = [detail('ended by', event.reason), detail('operators', String(event.operators))]
    const title = `compiled ${event.name} of ${this.#calls.nameOf(event.fn)}`
    return { kind: 'compile', title, details, place: this.#graphs.firstPlace(graph), graph }
  }

  /** A captured graph is compiled: its row says how long that took. */
  #finish(event: CompileEvent<'compiled'>): void {
    const graph = this.#graphs.graphOf(event)
    const row = this.#rows.list.findLast((other) => other.graph === graph && other.kind === 'compile')
    if (row === undefined || graph === NONE) return
    row.milliseconds = event.milliseconds
    row.details = [...row.details, detail('backend', event.backend)]
  }
}
