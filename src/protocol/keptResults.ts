// Results that take long to make, kept for later processes: what makes them asks here, and a store answers where there is one.

/** What is kept: WebAssembly modules of kernels, the names of libraries of machine code, compiled graphs. */
export type KeptKind = 'module' | 'library' | 'graph'

/** Where results are kept. */
export interface ResultStore {
  /** The result that was kept under a text; undefined if there is none. */
  readonly find: (kind: KeptKind, text: string) => unknown
  /** Keeps plain data. */
  readonly keep: (kind: KeptKind, text: string, result: unknown) => void
  /** Keeps what `make` returns when the program has time, or ends; null is not kept. */
  readonly keepLater: (kind: KeptKind, text: string, make: () => unknown) => void
}

let store: ResultStore | null = null

/** Lets results be kept in a store from now on; null: nowhere. Returns the store before. */
export function setResultStore(next: ResultStore | null): ResultStore | null {
  const before = store
  store = next
  return before
}

/** The store; null if there is none. */
export const resultStore = (): ResultStore | null => store

/**
 * The result that was kept under a text, or else what `make` returns. The text must say all that the result follows from, but for the code that makes it, which the store knows. What is
 * found must be what `is` says.
 */
export function kept<T>(kind: KeptKind, text: () => string, is: (found: unknown) => found is T, make: () => T): T {
  if (store === null) return make()
  const key = text()
  const found = store.find(kind, key)
  if (is(found)) return found
  const made = make()
  store.keep(kind, key, made)
  return made
}
