// Random choices for mutants: each mutant of a seed has a seed of its own, so that it can be made again without those before it.
import { randomFrom } from '../random.mjs'

/** The choices of a mutant. */
export function diceOf(seed, index) {
  const { int, pick, chance } = randomFrom(Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(index + 1, 0xc2b2ae35))
  return { below: int, pick, chance }
}
