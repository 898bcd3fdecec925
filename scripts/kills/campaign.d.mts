export interface KillOptions {
  readonly kills: number
  readonly seed: number
  readonly backends: readonly string[]
  /** How the model is divided: 'flat', 'orig', 'rows' or 'ddp'. */
  readonly way: string
  readonly steps?: number
  readonly sizes?: readonly number[]
  readonly say?: (line: string) => void
}

export function killAndResume(
  options: KillOptions,
): Promise<{ readonly findings: readonly string[]; readonly killed: number; readonly kinds: Readonly<Record<string, number>> }>
