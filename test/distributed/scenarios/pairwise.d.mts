/** A combination: of each option the name of the value, and the value. */
export interface Combination {
  readonly names: Readonly<Record<string, string>>
  readonly values: Readonly<Record<string, unknown>>
}

export function pairwise(factors: Readonly<Record<string, Readonly<Record<string, unknown>>>>, seed: number): readonly Combination[]
