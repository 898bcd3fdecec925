// Tensors that structures of the program hold: arguments, attributes of modules. A new tensor among them after a call is state that the program means to keep.
import { Module } from '../../module/index.ts'
import { isPlainObject } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'

/** How deep structures are searched. */
const DEPTH = 8

/** Calls `visit` with every tensor that `roots` hold: in arrays, plain objects, Maps and Sets, and in the attributes of modules. */
export function forEachHeld(roots: readonly unknown[], visit: (tensor: Tensor) => void): void {
  const seen = new Set<unknown>()
  const search = (value: unknown, depth: number): void => {
    if (value instanceof Tensor) return visit(value)
    if (depth > DEPTH || !isSearched(value) || seen.has(value)) return
    seen.add(value)
    for (const item of itemsOf(value)) search(item, depth + 1)
  }
  for (const root of roots) search(root, 0)
}

type Searched = readonly unknown[] | ReadonlyMap<unknown, unknown> | ReadonlySet<unknown> | object

const isSearched = (value: unknown): value is Searched =>
  Array.isArray(value) || value instanceof Map || value instanceof Set || value instanceof Module || isPlainObject(value)

const itemsOf = (value: Searched): Iterable<unknown> =>
  Symbol.iterator in value && !(value instanceof Module) ? [...iterated(value)] : Object.values(value)

function* iterated(value: object): Iterable<unknown> {
  if (value instanceof Map) yield* value.values()
  else if (value instanceof Set || Array.isArray(value)) yield* value
}
