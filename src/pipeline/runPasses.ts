// The function that runs all passes. Timing, snapshots, verification and reports are attached here, never inside a pass.
import { TensorfxError, messageOf } from '../errors/index.ts'
import { emit, wants } from '../events/index.ts'
import type { PassEvent } from '../events/index.ts'
import { checkCount, environmentVariable, valueText } from '../protocol/index.ts'
import type { Pass, PassObserver, PassRun } from './pass.ts'

/** Options of {@link runPasses}. */
export interface RunPassesOptions<T> {
  readonly observers?: readonly PassObserver<T>[]
  /** Whether to call `verifies` of each pass after it ran; a function is called, too, with the value. Default: as set by {@link setVerification}. */
  readonly verify?: boolean | ((value: T) => void)
  /** The names of passes that have already run, for `requires`. */
  readonly done?: Iterable<string>
}

/** The result of {@link runPasses}. */
export interface PassesResult<T> {
  /** The value after the last pass. */
  readonly value: T
  readonly changed: boolean
  readonly runs: readonly PassRun[]
}

/**
 * A pass lacks a pass that it requires, or left a value that does not verify. For the latter, `cause` is the error of the verification.
 *
 * Fix: run the missing pass first, or correct the pass that the message names; `cause` says what was wrong with its result.
 */
export class PassError extends TensorfxError {
  readonly passName: string

  constructor(passName: string, message: string, options?: { cause?: unknown }) {
    super('TFX_PASS', message, options)
    this.passName = passName
  }
}

let verification: boolean | null = null

/** Sets whether passes are verified by default: tests and debug mode turn it on, otherwise TENSORFX_VERIFY=1 in the environment does. Returns the previous setting. */
export function setVerification(on: boolean): boolean {
  checkCount('setVerification', arguments, 1)
  const before = isVerifying()
  verification = on
  return before
}

/** Whether passes are verified by default. */
export function isVerifying(): boolean {
  verification ??= environmentVariable('TENSORFX_VERIFY') === '1'
  return verification
}

/**
 * Runs passes on a value, one after the other. Throws PassError before a pass if one of its `requires` has not run, and after a pass if the value does not verify.
 * Errors of passes themselves are rethrown unchanged. `facts` tells those who listen to events what a value holds.
 */
export function runPasses<T>(
  passes: readonly Pass<T>[],
  value: T,
  options: RunPassesOptions<T> = {},
  facts: PassFacts<T> | null = null,
): PassesResult<T> {
  const { observers = [], verify = isVerifying() } = options
  const done = new Set(options.done ?? [])
  const runs: PassRun[] = []
  let current = value
  for (const pass of passes) {
    const missing = (pass.requires ?? []).filter((name) => !done.has(name))
    if (missing.length > 0)
      throw new PassError(
        pass.name,
        `pass '${pass.name}' needs ${missing.map((name) => `'${name}'`).join(', ')} to run before it; add it to the list, before this one.`,
      )
    for (const observer of observers) observer.before?.(pass, current)
    const nodes = wants('pass') && facts !== null ? [...facts.nodes(current)] : null
    const start = performance.now()
    let changed: boolean
    try {
      const result = pass.run(current)
      if (typeof result === 'boolean') changed = result
      else ({ value: current, changed } = result)
    } catch (error) {
      for (const observer of observers) observer.failed?.(pass, current, error)
      if (wants('pass')) emit(passEvent(pass.name, { changed: false, milliseconds: performance.now() - start }, nodes, null, null, [error]))
      throw error
    }
    const run: PassRun = { name: pass.name, changed, milliseconds: performance.now() - start }
    if (verify !== false) verifyAfter(pass, current, verify === true ? null : verify)
    runs.push(run)
    done.add(pass.name)
    if (wants('pass')) {
      const text = changed ? (facts?.text(current) ?? null) : null
      emit(passEvent(pass.name, run, nodes, facts === null ? null : [...facts.nodes(current)], text, null))
    }
    for (const observer of observers) observer.after?.(pass, current, run)
  }
  return { value: current, changed: runs.some((run) => run.changed), runs }
}

/** What passes work on has such nodes. */
interface Named {
  readonly name: string
}

/** What events say of a value that passes work on. */
export interface PassFacts<T> {
  readonly nodes: (value: T) => Iterable<Named>
  readonly text: (value: T) => string
}

function passEvent(
  name: string,
  { changed, milliseconds }: Pick<PassRun, 'changed' | 'milliseconds'>,
  before: readonly Named[] | null,
  after: readonly Named[] | null,
  text: string | null,
  failure: readonly [unknown] | null,
): PassEvent {
  const [error] = failure ?? []
  const without = (nodes: readonly Named[] | null, others: readonly Named[] | null): string[] => {
    const known = new Set(others ?? nodes)
    return (nodes ?? []).filter((node) => !known.has(node)).map((node) => node.name)
  }
  return {
    kind: 'pass',
    name,
    changed,
    milliseconds,
    before: before?.length ?? null,
    after: after?.length ?? null,
    created: without(after, before),
    erased: without(before, after),
    text,
    error: failure === null ? null : error instanceof Error ? `${error.name}: ${error.message}` : valueText(error),
  }
}

function verifyAfter<T>(pass: Pass<T>, value: T, check: ((value: T) => void) | null): void {
  try {
    check?.(value)
    pass.verifies?.(value)
  } catch (error) {
    throw new PassError(pass.name, `pass '${pass.name}' left a value that is not well formed: ${messageOf(error)}`, { cause: error })
  }
}
