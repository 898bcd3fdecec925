// A seeded random generator: the same seed gives the same programs on every machine.

/** Random choices that depend on `seed` alone (mulberry32). */
export function randomOf(seed) {
  let state = (seed * 0x9e3779b1) >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  for (let i = 0; i < 4; i++) next()
  const int = (n) => Math.floor(next() * n)
  const pick = (list) => list[int(list.length)]
  return { next, int, pick, chance: (p) => next() < p }
}
