// Python's tuples in graphs. JavaScript has only arrays, which print as lists, `[x, y]`; a graph that comes from PyTorch keeps the difference by this mark.

const TUPLE: unique symbol = Symbol.for('tensorfx.tuple') as never

/** A frozen array that prints as a tuple, `(x, y)`. Everything else takes it as the array that it is. */
export function tuple<T extends readonly unknown[]>(...values: T): T {
  return markTuple(values as unknown as unknown[]) as unknown as T
}

/** Marks and freezes an array that nobody else holds. */
export function markTuple(values: unknown[]): readonly unknown[] {
  Object.defineProperty(values, TUPLE, { value: true })
  return Object.freeze(values)
}

/** Whether a value is an array made by {@link tuple}. */
export function isTuple(value: unknown): boolean {
  return (value as { readonly [TUPLE]?: boolean } | null | undefined)?.[TUPLE] === true
}
