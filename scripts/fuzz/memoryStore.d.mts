import type { ResultStore } from '../../src/protocol/index.ts'

export function memoryStore(): {
  readonly store: ResultStore
  /** Of graphs. */
  readonly counts: { readonly found: number; readonly kept: number }
  /** By kind and text. */
  readonly results: Map<string, Uint8Array>
}
