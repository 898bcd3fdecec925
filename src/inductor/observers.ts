// Observing compilations: timing, snapshots and reports attach to the stages of the pipeline, and the stages do not know about them.
import type { Pass, PassObserver, PassRun } from '../pipeline/index.ts'
import type { Compilation } from './compilation.ts'

/** Is called before and after each stage of each compilation, and when a stage throws. */
export type CompileObserver = PassObserver<Compilation>

const observers = new Set<CompileObserver>()

/** Registers an observer of all compilations from now on. Returns a function that removes it. */
export function onCompile(observer: CompileObserver): () => void {
  observers.add(observer)
  return () => void observers.delete(observer)
}

/** The registered observers. */
export const compileObservers = (): readonly CompileObserver[] => [...observers]

/** A stage that has run, with the text of the compilation before and after it. */
export interface StageRecord extends PassRun {
  /** The name of the compiled program. */
  readonly program: string
  readonly before: string
  readonly after: string
}

/**
 * Records the stages of compilations, with times and texts.
 *
 *     const recorder = new StageRecorder()
 *     const stop = onCompile(recorder)
 *     compile(f)(x)
 *     stop()
 *     for (const { name, milliseconds, after } of recorder.records) console.log(name, milliseconds, after)
 */
export class StageRecorder implements CompileObserver {
  readonly records: StageRecord[] = []
  #before = ''

  before(_stage: Pass<Compilation>, compilation: Compilation): void {
    this.#before = compilation.text
  }

  after(_stage: Pass<Compilation>, compilation: Compilation, run: PassRun): void {
    this.records.push({ ...run, program: compilation.name, before: this.#before, after: compilation.text })
  }
}
