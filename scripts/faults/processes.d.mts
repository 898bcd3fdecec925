/** How a process ended. */
export interface Ended {
  /** `exit 7`, `signal SIGKILL`, or `hang` if it was stopped after its time. */
  readonly how: string
  readonly output: string
  /** How long it took. */
  readonly ms: number
}

/** The address of a file of the built package. */
export function distUrl(path: string): string
/** Runs a script in a fresh process; after `ms` it is stopped. Default 180,000: far more than a script needs, so that a busy machine makes no hang of an exit. */
export function runScript(
  cwd: string,
  script: string,
  words?: readonly string[],
  options?: { readonly env?: Readonly<Record<string, string>>; readonly ms?: number; readonly node?: readonly string[] },
): Promise<Ended>
