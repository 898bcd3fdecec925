/** Random choices that a seed repeats. */
export interface Random {
  next(): number
  /** An integer from 0 to n - 1. */
  int(n: number): number
  pick<T>(list: readonly T[]): T
  chance(probability: number): boolean
}

export function randomFrom(seed: number): Random
export function hashOf(text: string): number
