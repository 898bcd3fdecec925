// Python values that JavaScript lacks but graphs hold: slices (`start:stop:step`) and tuples. Lists of arguments are frozen.
import { GraphError } from './errors.ts'

/** A range of indices with a step; null leaves an end open. Frozen. Python's `slice(start, stop, step)`. */
export class Slice<T = number | null> {
  readonly start: T | null
  readonly stop: T | null
  readonly step: T | null

  constructor(start: T | null, stop: T | null, step: T | null = null) {
    this.start = start
    this.stop = stop
    this.step = step
    Object.freeze(this)
  }

  /** As Python prints it: `slice(None, 3, None)`. */
  toString(): string {
    const text = (part: T | null): string => (part === null ? 'None' : String(part))
    return `slice(${text(this.start)}, ${text(this.stop)}, ${text(this.step)})`
  }
}

const frozenError = (method: string): GraphError =>
  new GraphError(`${method}: arguments of a node cannot be changed in place; assign new ones: node.args = [...node.args, x].`)

/** Array.prototype with methods that say what to do instead of changing the array. */
const FROZEN: object = Object.create(
  Array.prototype,
  Object.fromEntries(
    'push pop shift unshift splice sort reverse fill copyWithin'.split(' ').map((method) => [
      method,
      {
        value: (): never => {
          throw frozenError(method)
        },
      },
    ]),
  ),
)

/** Freezes a list of arguments, and marks it as a tuple if asked to. Its methods that change arrays throw GraphError. The caller must own the array. */
export function freezeArguments<T>(values: readonly T[], asTuple = false): readonly T[] {
  if (asTuple) mark(values)
  Object.setPrototypeOf(values, FROZEN)
  return Object.freeze(values)
}

/** Marks tuples. Without the mark an array prints as a list, `[x, y]`. */
const TUPLE: unique symbol = Symbol.for('tensorfx.tuple')

const mark = <T extends object>(values: T): T => Object.defineProperty(values, TUPLE, { value: true })

/** A frozen array that prints as a tuple, `(x, y)`; everywhere else it is an ordinary array. */
export function tuple<T extends readonly unknown[]>(...values: T): T {
  markTuple(values)
  return values
}

/** Marks an array as a tuple and freezes it. The caller must own the array. */
export function markTuple<T>(values: readonly T[]): readonly T[] {
  return Object.freeze(mark(values))
}

/** Whether a value was made by {@link tuple}. */
export function isTuple(value: unknown): boolean {
  return typeof value === 'object' && value !== null && TUPLE in value
}

/** Whether an object has no properties. */
export function isEmpty(value: object): boolean {
  for (const _ in value) return false
  return true
}
