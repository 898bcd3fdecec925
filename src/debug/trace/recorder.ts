// Turns events into the records of a trace. What happens again and again is counted: a training of many thousand steps is a file of some hundred lines.
import { onEvent } from '../../events/index.ts'
import type { CompileEvent, EventKind, Remover } from '../../events/index.ts'
import { isObject } from '../../protocol/index.ts'
import { sourceLine } from '../../provenance/index.ts'
import type { Frame } from '../../provenance/index.ts'
import type { AgainRecord, LaunchesRecord, TextFile } from './format.ts'

/** Where records go. */
export interface TraceSink {
  /** Keeps a record, which is plain data. Returns how many characters it takes. */
  record(record: object): number
  /** Keeps a longer text: returns the text itself, or where it is. */
  text(name: string, text: string): string | TextFile
}

/** What is recorded. */
export interface RecorderOptions {
  /** Whether frames have their source lines. */
  readonly sources: boolean
  /** Whether kernels are timed. */
  readonly launches: boolean
  /** Past this many bytes calls and kernels are only counted. */
  readonly maxBytes: number
}

/** What a trace listens to. Operators and functions that were entered are in the graphs. */
const KINDS: readonly EventKind[] = [
  ...(['call', 'guard', 'recompile', 'limit', 'break', 'joint', 'graph', 'partition', 'pass', 'lower', 'fuse'] as const),
  ...(['memory', 'kernel', 'program', 'compiled', 'engine', 'failure', 'repro', 'minify.step', 'minify.end'] as const),
]

/** What can happen at every call; all else happens when something is compiled. */
const REPEATED: ReadonlySet<EventKind> = new Set<EventKind>(['guard', 'recompile', 'limit', 'break', 'failure'])
/** Of each function this many different events of a kind, and ways of calling it, are told apart. */
const MOST_WAYS = 100
/** Counts are written after this many milliseconds, and after this part of the time that the trace has taken. */
const FLUSH_AFTER = 1_000
const FLUSH_SHARE = 1 / 50
/** Texts of at least this many characters are files. */
const LONG = 400

type CallStart = CompileEvent<'call'> & { readonly phase: 'start' }

/** A call that is under way. */
interface Open {
  readonly start: CallStart
  /** What happened in it that is in the file already. */
  readonly known: string[]
  isWritten: boolean
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

const isStart = (event: CompileEvent): event is CallStart => event.kind === 'call' && event.phase === 'start'

/** What differs each time. */
const FLEETING = new Set(['id', 'run', 'time', 'call', 'outer', 'graph', 'milliseconds'])

/** An event without what differs each time. */
const keyOf = (event: CompileEvent): string => JSON.stringify(event, (name, value: unknown) => (FLEETING.has(name) ? undefined : value))

export class Recorder {
  readonly #sink: TraceSink
  readonly #options: RecorderOptions
  readonly #listening: Remover
  readonly #started = performance.now()
  /** The functions that are recorded; null for all. */
  #only: Set<number> | null = null
  #open: readonly Open[] = []
  /** Ways of calling a function: the id of the call that was written. Keys of events that were written. */
  readonly #ways = new Map<string, Map<string, number>>()
  readonly #events = new Map<string, Set<string>>()
  readonly #again = new Map<string, Mutable<AgainRecord>>()
  readonly #launches = new Map<string, [number, number, number]>()
  #flushed = performance.now()
  #bytes = 0
  #isFull = false

  constructor(sink: TraceSink, options: RecorderOptions) {
    this.#sink = sink
    this.#options = options
    this.#listening = onEvent((event) => this.#take(event), { kinds: [...KINDS, ...(options.launches ? (['launch'] as const) : [])] })
  }

  /** Records this function, and no others but those that are followed too. */
  follow(fn: number): void {
    this.#only ??= new Set()
    this.#only.add(fn)
  }

  /** Writes what was counted. */
  flush(): void {
    this.#flushed = performance.now()
    for (const again of this.#again.values()) this.#sink.record(again)
    this.#again.clear()
    if (this.#launches.size === 0) return
    const launches: LaunchesRecord = { kind: 'launches', time: this.#flushed, kernels: Object.fromEntries(this.#launches) }
    this.#launches.clear()
    this.#sink.record(launches)
  }

  /** Stops listening, and writes the end. */
  end(): void {
    this.#listening()
    for (const open of this.#open) this.#begin(open)
    this.flush()
    this.#sink.record({ kind: 'end', time: performance.now() })
  }

  #take(event: CompileEvent): void {
    if (this.#only !== null && (event.fn === null || !this.#only.has(event.fn))) return
    if (event.kind === 'launch') this.#launched(event)
    else if (isStart(event)) this.#open = [...this.#open, { start: event, known: [], isWritten: false }]
    else if (event.kind === 'call') this.#ended(event)
    else if (this.#isKnown(event)) this.#open.at(-1)?.known.push(keyOf(event))
    else this.#write(event)
    const now = performance.now()
    const isPending = this.#again.size + this.#launches.size > 0
    if (isPending && now - this.#flushed > Math.max(FLUSH_AFTER, (now - this.#started) * FLUSH_SHARE)) this.flush()
  }

  #launched({ kernel, milliseconds }: CompileEvent<'launch'>): void {
    const [runs, total, least] = this.#launches.get(kernel) ?? [0, 0, Infinity]
    this.#launches.set(kernel, [runs + 1, total + milliseconds, Math.min(least, milliseconds)])
  }

  /** Whether an event that can happen at every call is in the file; it is from now on. */
  #isKnown(event: CompileEvent): boolean {
    if (!REPEATED.has(event.kind)) return false
    const of = `${event.fn} ${event.kind}`
    const known = this.#events.get(of) ?? new Set()
    this.#events.set(of, known)
    const key = keyOf(event)
    if (known.has(key) || known.size >= MOST_WAYS) return true
    known.add(key)
    return false
  }

  #ended(event: CompileEvent<'call'>): void {
    const open = this.#open.at(-1)
    // The trace began in the middle of the call.
    if (open === undefined || open.start.call !== event.call) return
    this.#open = this.#open.slice(0, -1)
    const { start, known, isWritten } = open
    const of = String(start.fn)
    const ways = this.#ways.get(of) ?? new Map<string, number>()
    this.#ways.set(of, ways)
    const way = JSON.stringify([keyOf(start), keyOf(event), known])
    if (isWritten) {
      ways.set(way, start.id)
      return this.#write(event)
    }
    const like = ways.get(way)
    const first = like ?? (ways.size >= MOST_WAYS ? ways.values().next().value : undefined)
    if (first !== undefined) return this.#count(first, like !== undefined, start.time, event)
    ways.set(way, start.id)
    this.#begin(open)
    this.#write(event)
  }

  #count(of: number, isLike: boolean, from: number, end: CompileEvent<'call'>): void {
    const milliseconds = end.phase === 'end' ? end.milliseconds : 0
    const key = `${of} ${isLike}`
    const again = this.#again.get(key)
    if (again === undefined) {
      this.#again.set(key, { kind: 'again', of, isLike, count: 1, from, to: end.time, milliseconds, least: milliseconds, most: milliseconds })
      return
    }
    again.count++
    again.to = end.time
    again.milliseconds += milliseconds
    again.least = Math.min(again.least, milliseconds)
    again.most = Math.max(again.most, milliseconds)
  }

  #begin(open: Open): void {
    if (open.isWritten) return
    open.isWritten = true
    this.#put(open.start)
  }

  /** Writes an event behind the starts of the calls in which it happened, and behind what was counted before. */
  #write(event: CompileEvent): void {
    for (const open of this.#open) this.#begin(open)
    this.#put(event)
  }

  #put(event: CompileEvent): void {
    if (this.#isFull) return
    if (this.#again.size > 0) this.flush()
    this.#bytes += this.#sink.record(this.#written(event))
    if (this.#bytes < this.#options.maxBytes) return
    this.#isFull = true
    this.#sink.record({ kind: 'full', time: event.time })
  }

  // ---- texts and source lines ----

  #written(event: CompileEvent): object {
    const stem = [event.graph === null ? null : `graph${event.graph}`, event.kind, 'name' in event ? event.name : null].filter(
      (part) => part !== null,
    )
    const change = (value: unknown, key: string): unknown => {
      if (typeof value === 'string') return value.length < LONG ? value : this.#sink.text([...stem, key].join('-'), value)
      if (Array.isArray(value)) return value.map((item) => change(item, key))
      if (!isObject(value)) return value
      if (isFrame(value)) return this.#frame(value)
      return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, change(item, name)]))
    }
    return Object.fromEntries(Object.entries(event).map(([name, item]) => [name, change(item, name)]))
  }

  #frame(given: Frame): Frame {
    const { code: _code, ...frame } = given
    const code = this.#options.sources ? sourceLine(given) : null
    return code === null ? frame : { ...frame, code: code.trim() }
  }
}

const isFrame = (value: object): value is Frame => 'file' in value && 'line' in value && 'column' in value && 'fn' in value
