// Who watches compiled graphs run: the flight recorder.
import type { CompiledCode } from '../../aot/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import type { Backend } from './backend.ts'

/** A compiled graph: a whole graph, or one half of a graph with a backward. */
export interface WatchedGraph {
  readonly gm: GraphModule
  /** What compiled it, and its name. */
  readonly backend: Backend
  readonly label: string
}

/** One that is about to run. */
export interface GraphRun extends WatchedGraph {
  readonly inputs: readonly unknown[]
  readonly code: CompiledCode
}

/** `current` runs each compiled graph and returns its outputs; null: runs are not watched. */
export const runWatch: { current: ((run: GraphRun) => readonly unknown[]) | null } = { current: null }
