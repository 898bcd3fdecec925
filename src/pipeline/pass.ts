// A pass is a named step of a pipeline. Passes can work on a GraphModule, or on the state of a whole compilation.

/** A named step that changes a value. */
export interface Pass<T> {
  /** The name of the pass in messages, timings and snapshots. */
  readonly name: string
  /** Changes `value` in place and returns whether it changed anything, or returns another value with `replaced`. */
  run(value: T): boolean | Replaced<T>
  /** The names of passes that must have run before this one. */
  readonly requires?: readonly string[]
  /** Throws if the pass did not establish what it promises. Called after the pass if verification is on. */
  verifies?(value: T): void
}

/** The result of a pass that made another value, on which the following passes work. */
export interface Replaced<T> {
  readonly value: T
  readonly changed: boolean
}

/** The result of a pass that made another value. `changed` tells whether it differs from the value that the pass got. */
export function replaced<T>(value: T, changed = true): Replaced<T> {
  return { value, changed }
}

/** Functions that are called when passes run, for timing, logging, snapshots and reports. */
export interface PassObserver<T> {
  before?(pass: Pass<T>, value: T): void
  after?(pass: Pass<T>, value: T, run: PassRun): void
  /** Called with the error that the pass threw, which is then rethrown to the caller of {@link runPasses}. */
  failed?(pass: Pass<T>, value: T, error: unknown): void
}

/** A pass that has run. */
export interface PassRun {
  readonly name: string
  readonly changed: boolean
  readonly milliseconds: number
}
