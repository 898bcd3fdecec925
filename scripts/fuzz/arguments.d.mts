/** A call that went wrong. */
export interface Finding {
  readonly name: string
  readonly text: string
  readonly what: string
  readonly stack?: string
}

export function fuzzArguments(
  library: object,
  options: { readonly seed: number; readonly rounds: number; readonly only?: string | null; readonly reset?: () => void },
): Promise<{ readonly functions: number; readonly calls: number; readonly findings: readonly Finding[] }>
