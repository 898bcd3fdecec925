// Combinations of options in which every pair of values occurs: a covering array, drawn greedily from a seed.
import { randomFrom } from '../../../scripts/fuzz/random.mjs'

const CANDIDATES = 30

/** `factors`: of each option its values by name. Returns combinations as `{ names, values }`, by option. */
export function pairwise(factors, seed) {
  const random = randomFrom(seed)
  const options = Object.keys(factors)
  const pairsOf = (names) => options.flatMap((a, i) => options.slice(i + 1).map((b) => `${a}=${names[a]} ${b}=${names[b]}`))
  const open = new Set()
  for (const [i, a] of options.entries())
    for (const b of options.slice(i + 1))
      for (const x of Object.keys(factors[a])) for (const y of Object.keys(factors[b])) open.add(`${a}=${x} ${b}=${y}`)
  const rows = []
  while (open.size > 0) {
    // Each candidate starts from a pair that is open, so that every row covers one at least.
    const [first] = open
    const fixed = Object.fromEntries(first.split(' ').map((part) => part.split('=')))
    let best = null
    for (let k = 0; k < CANDIDATES; k++) {
      const names = Object.fromEntries(options.map((o) => [o, fixed[o] ?? random.pick(Object.keys(factors[o]))]))
      const covered = pairsOf(names).filter((pair) => open.has(pair))
      if (best === null || covered.length > best.covered.length) best = { names, covered }
    }
    for (const pair of best.covered) open.delete(pair)
    rows.push({ names: best.names, values: Object.fromEntries(options.map((o) => [o, factors[o][best.names[o]]])) })
  }
  return rows
}
