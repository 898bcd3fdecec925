export interface Dice {
  below(n: number): number
  pick<T>(items: readonly T[]): T
  chance(probability: number): boolean
}
export function diceOf(seed: number, index: number): Dice
