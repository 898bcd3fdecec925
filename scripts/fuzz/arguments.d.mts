/** A call that went wrong. */
export interface Finding {
  readonly name: string
  readonly text: string
  readonly what: string
  readonly stack?: string
}

export function fuzzArguments(
  library: object,
  options: { readonly seed: number; readonly rounds: number; readonly isChosen?: (name: string) => boolean; readonly reset?: () => void },
): Promise<{ readonly functions: number; readonly calls: number; readonly findings: readonly Finding[] }>

/** Calls one function of the surface, which is `of`. */
export type SurfaceCall = ((args: readonly unknown[]) => unknown) & { readonly of: object }

export function surfaceOf(entries: object, samples: object): { readonly found: ReadonlyMap<string, SurfaceCall>; readonly stale: ReadonlySet<string> }
