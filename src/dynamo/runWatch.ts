// Who watches compiled graphs run: the flight recorder.
import type { CompiledCode } from '../aot/index.ts'
import type { GraphModule } from '../fx/index.ts'
import type { Backend } from './backends.ts'

/** A compiled graph that is about to run: a whole graph, or one half of a graph with a backward. */
export interface GraphRun {
  readonly gm: GraphModule
  readonly inputs: readonly unknown[]
  readonly code: CompiledCode
  /** What compiled it, and its name. */
  readonly backend: Backend
  readonly label: string
}

/** `current` runs each compiled graph and returns its outputs; null: runs are not watched. */
export const runWatch: { current: ((run: GraphRun) => readonly unknown[]) | null } = { current: null }

/** The code of a graph, which a watcher may run. */
export function watched(gm: GraphModule, code: CompiledCode, backend: Backend, label: string): CompiledCode {
  const call = (...inputs: readonly unknown[]): readonly unknown[] =>
    runWatch.current === null ? code(...inputs) : runWatch.current({ gm, inputs, code, backend, label })
  const { kernels, writtenInPlace } = code
  return Object.assign(call, kernels === undefined ? {} : { kernels }, writtenInPlace === undefined ? {} : { writtenInPlace })
}
