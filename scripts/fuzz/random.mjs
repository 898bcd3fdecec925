// Random numbers from a seed, so that every finding can be made again.

/** A generator of numbers in [0, 1): mulberry32. */
export function randomFrom(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

/** A seed of its own for each mutant. */
export const seedOf = (seed, index) => Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(index + 1, 0xc2b2ae35)

/** Choices with a generator. */
export class Dice {
  constructor(seed) {
    this.next = randomFrom(seed)
  }

  /** An integer from 0 to below `n`. */
  below(n) {
    return Math.floor(this.next() * n)
  }

  chance(p) {
    return this.next() < p
  }

  pick(items) {
    return items[this.below(items.length)]
  }
}
