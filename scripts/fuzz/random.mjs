// Random choices that a seed repeats: the same seed gives the same programs on every machine.

/** A generator of numbers in [0, 1) (mulberry32), and choices made with it. */
export function randomFrom(seed) {
  let state = Math.imul(seed, 0x9e3779b1) >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  for (let i = 0; i < 4; i++) next()
  const int = (n) => Math.floor(next() * n)
  return { next, int, pick: (list) => list[int(list.length)], chance: (p) => next() < p }
}

/** A hash of a text, so that each function has choices of its own, which other functions do not change. */
export function hashOf(text) {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}
