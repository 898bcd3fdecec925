// The stream of events: who listens, and where the program is. It is off until someone listens; `eventState.on` is the one variable that running code tests.
/// <reference lib="esnext.disposable" preserve="true" />
import { ArgumentError } from '../errors/index.ts'
import { checkArray, checkCallable, checkCount, checkOptions, nearest, valueText } from '../protocol/index.ts'
import { count } from './counters.ts'
import type { Fact } from './counters.ts'
import { detailKinds, eventKinds, isEventKind } from './kinds.ts'
import { log } from './sink.ts'
import type { CompileEvent, EventBody, EventKind, Scope } from './types.ts'

/** Is called with each event. What it throws is logged the first time, and changes nothing in the program. */
export type EventListener<K extends EventKind = EventKind> = (event: CompileEvent<K>) => void

/** Ends what a call began; `using` does so at the end of a block. */
export interface Remover extends Disposable {
  (): void
}

/** What a listener wants. */
export interface ListenOptions<K extends EventKind = EventKind> {
  /** The kinds of events; default all, without `record` and `launch`, which occur for every operator and kernel. */
  readonly kinds?: readonly K[]
}

interface Listener {
  readonly kinds: ReadonlySet<EventKind>
  readonly tell: (event: CompileEvent) => void
}

/** Whether anyone listens. */
export const eventState: { on: boolean } = { on: false }

let listeners: readonly Listener[] = []
let wanted: ReadonlySet<EventKind> = new Set()

/** Runs what listeners do outside of the modes of the program; the composition root sets it. */
let aside: (fn: () => void) => void = (fn) => fn()

/** Sets how code of listeners is kept out of what is being captured. */
export function setAside(around: (fn: () => void) => void): void {
  aside = around
}

/** Whether someone listens to events of that kind: what they hold is computed only then. */
export const wants = (kind: EventKind): boolean => eventState.on && wanted.has(kind)

function setListeners(next: readonly Listener[]): void {
  listeners = next
  wanted = new Set(next.flatMap((listener) => [...listener.kinds]))
  eventState.on = next.length > 0
}

/** A function that calls `undo` once, however often it is called. */
export function remover(undo: () => void): Remover {
  let isDone = false
  const remove = (): void => {
    if (isDone) return
    isDone = true
    undo()
  }
  return Object.assign(remove, { [Symbol.dispose]: remove })
}

/**
 * Calls `listener` with what compile does from now on: calls, guards, graph breaks, graphs, passes, kernels, … Events are plain data: they can be written as JSON, and keep
 * no tensor alive. Several listeners may listen; each gets the events in order. A listener's errors are logged once and change nothing. Without a listener events cost nothing.
 * Returns a function that ends it, which `using` calls at the end of a block. Throws ArgumentError for an unknown kind.
 *
 *     using listening = onEvent((event) => console.log(event.reason), { kinds: ['break', 'recompile'] })
 */
export function onEvent<K extends EventKind = EventKind>(listener: EventListener<K>, options: ListenOptions<K> = {}): Remover {
  checkCount('onEvent', arguments, 2)
  checkCallable('onEvent', 'listener', listener)
  checkOptions('onEvent', options, { kinds: true })
  const kinds = checkedKinds(options.kinds)
  const isWanted = (event: CompileEvent): event is CompileEvent<K> => kinds.has(event.kind)
  const entry: Listener = { kinds, tell: harmless((event: CompileEvent) => (isWanted(event) ? listener(event) : undefined)) }
  setListeners([...listeners, entry])
  return remover(() => setListeners(listeners.filter((other) => other !== entry)))
}

function checkedKinds(kinds: readonly EventKind[] | undefined): ReadonlySet<EventKind> {
  if (kinds === undefined) return new Set(eventKinds.filter((kind) => !detailKinds.has(kind)))
  checkArray('onEvent', 'options.kinds', kinds)
  for (const kind of kinds) {
    if (isEventKind(kind)) continue
    const near = typeof kind === 'string' ? nearest(kind, eventKinds) : null
    const hint = near === null ? '' : ` Did you mean '${near}'?`
    throw new ArgumentError(`onEvent: there are no events of kind ${valueText(kind)}.${hint} Known are ${eventKinds.join(', ')}.`)
  }
  return new Set(kinds)
}

// ---- where the program is ----

const NOWHERE: Scope = { fn: null, call: null, graph: null }
let scope = NOWHERE

/** Where the program is now. Kept only while someone listens. */
export const currentScope = (): Scope => scope

/** Moves to another place, until {@link leaveScope} gets what this returns. */
export function enterScope(next: Partial<Scope>): Scope {
  const before = scope
  scope = { ...scope, ...next }
  return before
}

export function leaveScope(before: Scope): void {
  scope = before
}

/** Runs `fn` at another place. */
export function inScope<T>(next: Partial<Scope>, fn: () => T): T {
  const before = enterScope(next)
  try {
    return fn()
  } finally {
    leaveScope(before)
  }
}

const last = { fn: 0, call: 0, graph: 0, event: 0 }

/** A new number for a compiled function, a call or a graph. */
export const newId = (of: 'fn' | 'call' | 'graph'): number => ++last[of]

// ---- events ----

/** The name of this run of the program. */
export const runName: string = Math.round(performance.timeOrigin).toString(36)

/** Counts a fact, and tells those who listen to its kind; `describe` makes the event. */
export function announce(fact: Fact & { readonly kind: EventKind }, describe: () => EventBody): void {
  count(fact)
  if (wants(fact.kind)) emit(describe())
}

/** Tells those who listen. Ask {@link wants} first where the event's fields cost something. */
export function emit(body: EventBody): void {
  if (!wants(body.kind)) return
  const event: CompileEvent = Object.freeze({ id: ++last.event, run: runName, time: performance.now(), ...scope, ...body })
  for (const { kinds, tell } of listeners) if (kinds.has(body.kind)) tell(event)
}

/**
 * A listener that cannot harm the program: it runs outside of the program's modes, what it throws (or the promise that it returns is rejected with) is logged the first time, and it is not called again by what it does
 * itself.
 */
export function harmless<A extends readonly unknown[]>(listener: (...args: A) => unknown): (...args: A) => void {
  let isBusy = false
  let hasFailed = false
  const failed = (error: unknown): void => {
    if (hasFailed) return
    hasFailed = true
    const text = error instanceof Error ? `${error.name}: ${error.message}` : valueText(error)
    const message = `A listener of events has thrown; the program goes on, and further errors of this listener are not shown. ${text}`
    try {
      log.error(message)
    } catch {
      // The log's own sink fails.
      console.error(message)
    }
  }
  return (...args) => {
    if (isBusy) return
    isBusy = true
    try {
      aside(() => {
        const result = listener(...args)
        if (result instanceof Promise) result.catch(failed)
      })
    } catch (error) {
      failed(error)
    } finally {
      isBusy = false
    }
  }
}
