// Did you mean …: the known name that an unknown one resembles.

/** How much of a name counts: not its capitals, and not the underscores inside. `zeros_like` and `zerosLike` are alike, `add` and `add_` are not. */
export const essence = (name: string): string => name.replace(/(?<=[^_])_+(?=[^_])/g, '').toLowerCase()

/** The number of letters to insert, delete, replace or swap with their neighbour, to make one name the other. */
function distance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let least = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1))
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (swapped) least = Math.min(least, (beforeLast[j - 2] ?? 0) + 1)
      row.push(least)
    }
    beforeLast = last
    last = row
  }
  return last[b.length] ?? 0
}

/** The name among `known` that `name` resembles: one that differs in capitals or underscores, or in one letter of four (at most two). null if there is none. */
export function nearest(name: string, known: Iterable<string>): string | null {
  const wanted = essence(name)
  let best: string | null = null
  let least = Math.min(2, Math.floor(wanted.length / 4)) + 1
  for (const candidate of known) {
    const other = essence(candidate)
    if (Math.abs(other.length - wanted.length) >= least) continue
    const far = distance(wanted, other)
    if (far >= least) continue
    best = candidate
    least = far
  }
  return best
}
