import type { DrawnFault } from './plan.mjs'

/** How a script ended: 'exit 1', 'signal SIGKILL', 'hang'. */
export interface Ended {
  readonly how: string
  readonly output: string
}

/** How the program and the scripts of a fault are run. */
export interface Runner {
  program(): Promise<Ended>
  launcher(): string | null
  script(path: string, words: readonly string[]): Promise<Ended>
  repro(): { readonly path: string; readonly text: string } | null
  /** The operators of all graphs that a backend gets from the repro. */
  given(path: string): Promise<readonly string[]>
  elsewhere(path: string): string
}

export function operatorsIn(text: string): readonly string[]
export function judgeFault(drawn: DrawnFault, level: number, runner: Runner): Promise<string | null>
export function processRunner(
  drawn: DrawnFault,
  place: string,
  level: number,
  log?: (text: string) => void,
): Runner & { readonly folders: readonly string[]; close(): void }
