// The calls of compiled functions in a trace: a row for each, or for many that went as known paths do, and how many there were.
import type { CallOutcome, CompileEvent } from '../../events/index.ts'
import { timeText } from '../../protocol/timeText.ts'
import type { AgainRecord } from '../trace/index.ts'
import { NONE } from './data.ts'
import type { Totals } from './data.ts'
import type { Lists } from './graphs.ts'
import { detail } from './rows.ts'
import type { Mutable, Rows } from './rows.ts'

type CallEvent = CompileEvent<'call'>
type CallStart = CallEvent & { readonly phase: 'start' }
type CallEnd = CallEvent & { readonly phase: 'end' }

const OUTCOMES: Readonly<Record<CallOutcome, string>> = {
  recorded: 'recorded a new path',
  replayed: 'hit: a known path',
  shortcut: 'hit: not run at all',
  eager: 'ran eagerly, at least in part',
  failed: 'failed',
}

const isHit = (outcome: CallOutcome | undefined): boolean => outcome === 'replayed' || outcome === 'shortcut'

export class CallReader {
  readonly counts: Mutable<Pick<Totals, 'calls' | 'hits' | 'callMilliseconds'>> = { calls: 0, hits: 0, callMilliseconds: 0 }
  readonly #rows: Rows
  readonly #lists: Lists
  /** The calls that are under way, by number: their rows, and the id of their start. */
  readonly #open = new Map<number, { readonly row: number; readonly id: number }>()
  /** The names of functions, by number. */
  readonly #names = new Map<number, string>()
  /** The calls that later ones are like, by the id of their start, and what came of them. */
  readonly #starts = new Map<number, CallStart>()
  readonly #outcomes = new Map<number, CallOutcome>()

  constructor(rows: Rows, lists: Lists) {
    this.#rows = rows
    this.#lists = lists
  }

  nameOf(fn: number | null): string {
    return this.#names.get(fn ?? NONE) ?? 'a function'
  }

  /** The line of the program that made a call. */
  placeOf(call: number | null): number {
    return this.#rows.list[this.#open.get(call ?? NONE)?.row ?? NONE]?.place ?? NONE
  }

  take(event: CallEvent): void {
    if (event.phase === 'start') this.#begin(event)
    else this.#end(event)
  }

  #begin(event: CallStart): void {
    if (event.fn !== null) this.#names.set(event.fn, event.name)
    this.#starts.set(event.id, event)
    const details = [detail('arguments', event.args.join(', ') || 'none')]
    const row = this.#rows.add(event.time, { kind: 'call', title: event.name, details, place: this.#lists.place(event.user) })
    if (event.call !== null) this.#open.set(event.call, { row, id: event.id })
  }

  #end({ call: number, name, outcome, milliseconds, error }: CallEnd): void {
    const call = this.#open.get(number ?? NONE)
    const row = this.#rows.list[call?.row ?? NONE]
    if (number === null || call === undefined || row === undefined) return
    this.#open.delete(number)
    this.#outcomes.set(call.id, outcome)
    this.counts.calls++
    this.counts.callMilliseconds += milliseconds
    row.milliseconds = milliseconds
    row.title = `${name}: ${OUTCOMES[outcome]}`
    row.details = [...row.details, detail('outcome', OUTCOMES[outcome]), ...(error === null ? [] : [detail('threw', error)])]
    if (!isHit(outcome)) return
    this.counts.hits++
    // Nothing else happened meanwhile, so that further hits can join it.
    if (call.row === this.#rows.list.length - 1) row.kind = 'hits'
  }

  /** Calls that were only counted. They join the row before them if it says the same. */
  again({ of, isLike, count, from, milliseconds, least, most }: AgainRecord): void {
    const start = this.#starts.get(of)
    const areHits = isLike && isHit(this.#outcomes.get(of))
    this.counts.calls += count
    this.counts.callMilliseconds += milliseconds
    if (areHits) this.counts.hits += count
    const what = areHits ? 'hit' : isLike ? 'like call' : 'further call'
    const title = (n: number): string => `${start?.name ?? 'a function'}: ${n} ${what}${n === 1 ? '' : 's'}`
    const place = this.#lists.place(start?.user)
    const last = this.#rows.list.at(-1)
    if (last?.kind === 'hits' && last.place === place && last.title === title(last.count)) {
      last.count += count
      last.milliseconds = (last.milliseconds ?? 0) + milliseconds
      last.title = title(last.count)
      return
    }
    const details = [detail('each', `${timeText(least)} to ${timeText(most)}`)]
    this.#rows.add(from, { kind: 'hits', title: title(count), details, place, milliseconds, count })
  }
}
