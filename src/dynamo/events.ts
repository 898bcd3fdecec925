// What happens while a compiled function runs, by name. Reports, warnings and logs hang on these events and nowhere else.
import type { GraphRecord } from './compileSegment.ts'
import type { BreakReason } from './explain.ts'

export type CompileEvent =
  /** A call with arguments of a kind not seen before; `why` says what they are. */
  | { readonly kind: 'new arguments'; readonly why: string }
  /** A call leaves the recorded paths, and a new one is recorded; `why` says where. */
  | { readonly kind: 'new path'; readonly why: string }
  /** config.recompileLimit is reached: the call, or the rest of it, runs eagerly. */
  | { readonly kind: 'limit'; readonly why: string }
  /** A graph break that was not known. */
  | { readonly kind: 'break'; readonly reason: BreakReason }
  /** A segment was compiled. */
  | { readonly kind: 'compiled'; readonly record: GraphRecord }
  /** The function is async: what follows its first await runs eagerly. */
  | { readonly kind: 'async' }

export type Report = (event: CompileEvent) => void
