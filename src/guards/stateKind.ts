// StateKind: one kind of state on which the results of a recorded call depend, and how values of a list of kinds are read, compared and reported.

/**
 * When compile, which runs the program at every call, compares a kind of state:
 * - `call`: at the call, to choose among what was recorded;
 * - `met`: when a tensor is met, an argument at the call, any other one at the first operator that gets it;
 * - `operator`: at every operator;
 * - `segment`: at every operator too, and a change ends the graph, since a graph belongs to one value;
 * - `tape`: when a backward may start from the results;
 * - `program`: never, since what the program does with it shows in the operators that it calls;
 * - `input`: never, since the graph takes it as an input.
 */
export type Moment = 'call' | 'met' | 'operator' | 'segment' | 'tape' | 'program' | 'input'

/** A kind of state of an `S`: of the process (null), a tensor, a module, ….  */
export interface StateKind<S, V = unknown> {
  /** What it is called, in reports and in the guide. */
  readonly name: string
  readonly compile: Moment
  read(of: S): V
  /** Whether `of` still has a value; default: whether it is the same one. */
  agrees?(of: S, value: V): boolean
  /** A text that is the same for equal values, and no others. */
  key(of: S): string
  /** A value in a report. */
  show(value: V): string
  /** What has changed, after the name of what has it: 'had dtype float32, now has float64'. */
  change(was: V, is: V): string
}

/** A kind whose values graphs belong to (see {@link Moment}, `segment`): how to run code under one of them, and the short name of the graph break where it changes. */
export interface SegmentKind<V = unknown> extends StateKind<null, V> {
  readonly code: string
  within<T>(value: V, fn: () => T): T
}

export const onOff = (on: boolean): string => (on ? 'on' : 'off')

export const wasIs = <V>(name: string, show: (value: V) => string) => ({
  show: (value: V): string => `${name} ${show(value)}`,
  change: (was: V, is: V): string => `${name} was ${show(was)}, is now ${show(is)}`,
})

export const hadHas = <V>(name: string, show: (value: V) => string) => ({
  show: (value: V): string => `${name} ${show(value)}`,
  change: (was: V, is: V): string => `had ${name} ${show(was)}, now has ${show(is)}`,
})

export const listText = (values: readonly number[]): string => `[${values.join(', ')}]`

const identities = new WeakMap<object, number>()
let objects = 0

/** A number by which an object is known. */
export function identityOf(value: object): number {
  const known = identities.get(value) ?? objects++
  identities.set(value, known)
  return known
}

/** The present values of `of`. */
export const readState = <S>(kinds: readonly StateKind<S>[], of: S): readonly unknown[] => kinds.map((kind) => kind.read(of))

/** Whether `of` has these values. Called at every operator: a loop without allocations. */
export function agreesWith<S>(kinds: readonly StateKind<S>[], of: S, values: readonly unknown[]): boolean {
  for (let i = 0; i < kinds.length; i++) {
    const kind = kinds[i]
    if (kind !== undefined && !(kind.agrees === undefined ? kind.read(of) === values[i] : kind.agrees(of, values[i]))) return false
  }
  return true
}

/** A key of the present values of `of`. */
export function keyOf<S>(kinds: readonly StateKind<S>[], of: S): string {
  let key = ''
  for (let i = 0; i < kinds.length; i++) key += `${kinds[i]?.key(of) ?? ''};`
  return key
}

/** How what is differs from what was. */
export interface Change {
  readonly kind: string
  readonly expected: string
  readonly actual: string
  /** Both, after the name of what has the state. */
  readonly text: string
}

/** The first of these kinds in which `of` differs from `values`; null if there is none. */
export function changeOf<S>(kinds: readonly StateKind<S>[], of: S, values: readonly unknown[]): Change | null {
  const at = kinds.findIndex((kind, i) => !agreesWith([kind], of, [values[i]]))
  const kind = kinds[at]
  if (kind === undefined) return null
  const [was, is] = [values[at], kind.read(of)]
  return { kind: kind.name, expected: kind.show(was), actual: kind.show(is), text: kind.change(was, is) }
}
