// Python values that JavaScript lacks but graphs hold: slices (`start:stop:step`) and tuples. Lists of arguments are frozen. Nested arguments are rebuilt, whatever stands for
// nodes in them.
import { checkDepth, isPlainObject, setOwn } from '../../protocol/index.ts'
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
  new GraphError(
    `${method}: the arguments of a node cannot be changed in place, because the users of its inputs depend on them; assign a new array (node.args = [...node.args, x]), or call updateArg or insertArg.`,
  )

/** Array.prototype with methods that say what to do instead of changing the array. */
const FROZEN: object = Object.create(
  Array.prototype,
  Object.fromEntries(
    ['push', 'pop', 'shift', 'unshift', 'splice', 'sort', 'reverse', 'fill', 'copyWithin'].map((method) => [
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

/** The structure with every leaf replaced by what `fn` returns. `isLeaf` tells of an object that it is one, sooner than by trying what else it could be. */
export function mapLeaves<T, R>(value: T, fn: (leaf: T) => R, isLeaf: (value: object) => boolean, depth?: number): R | object
export function mapLeaves(value: unknown, fn: (leaf: unknown) => unknown, isLeaf: (value: object) => boolean, depth = 0): unknown {
  checkDepth(depth)
  if (typeof value !== 'object' || value === null || isLeaf(value)) return fn(value)
  const inner = (part: unknown): unknown => mapLeaves(part, fn, isLeaf, depth + 1)
  if (Array.isArray(value)) {
    const out: unknown[] = []
    for (let i = 0; i < value.length; i++) out.push(inner(value[i]))
    return isTuple(value) ? markTuple(out) : out
  }
  if (value instanceof Slice) return new Slice<unknown>(inner(value.start), inner(value.stop), inner(value.step))
  if (!isPlainObject(value)) return fn(value)
  const out: Record<string, unknown> = {}
  for (const key of Object.keys(value)) setOwn(out, key, inner(value[key]))
  return out
}
