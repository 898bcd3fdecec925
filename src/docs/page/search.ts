// Search of names: exact names first, then beginnings, then parts, then names with typing errors. Of titles, which have several words, each word of the query has to fit one.

/** An entry of the index: its name, its kind, where it is, what it is, and 1 for what users of the package see. */
export type Entry = readonly [name: string, kind: string, address: string, summary: string, isPublic: 0 | 1]

/** How many changes of a letter lead from one word to another; more than `most` count as `most + 1`. A swap of two letters is one change. */
export function distance(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) > most) return most + 1
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    let least = i
    for (let j = 1; j <= b.length; j++) {
      let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, (beforeLast[j - 2] ?? 0) + 1)
      row.push(cost)
      least = Math.min(least, cost)
    }
    if (least > most) return most + 1
    beforeLast = last
    last = row
  }
  return last[b.length] ?? most + 1
}

/** How well a word or a name without spaces fits one, both in small letters; 0 if it does not. */
function scoreOfWord(name: string, query: string): number {
  const short = name.slice(name.lastIndexOf('.') + 1)
  if (short === query || name === query) return 100
  if (short.startsWith(query)) return 80 - Math.min(20, short.length - query.length)
  const at = name.indexOf(query)
  if (at >= 0) return 50 - Math.min(20, name.length - query.length)
  const most = query.length > 7 ? 2 : query.length > 3 ? 1 : 0
  const away = most === 0 ? 1 : Math.min(...[short, short.slice(0, query.length), name].map((one) => distance(query, one, most)))
  // Letters in another order are a likelier error than another letter.
  return away > most ? 0 : 25 - 6 * away + ([short, name].some((one) => letters(one) === letters(query)) ? 2 : 0)
}

const letters = (word: string): string => [...word].sort().join('')

/** How well a name fits the words of a query, all in small letters; 0 if one of them fits nothing. */
function score(name: string, query: readonly string[]): number {
  const [first = ''] = query
  if (!name.includes(' ')) return query.length === 1 ? scoreOfWord(name, first) : scoreOfWord(name, query.join(''))
  const words = name.split(/\s+/)
  const points = query.map((word) => Math.max(...words.map((one) => scoreOfWord(one, word))))
  // Of titles that fit, the shortest come first.
  return points.includes(0) ? 0 : Math.max(1, points.reduce((a, b) => a + b, 0) / points.length - 4 * Math.abs(words.length - query.length))
}

/** The entries that fit a query, the best first. */
export function found(entries: readonly Entry[], text: string, limit: number): readonly Entry[] {
  const query = text
    .trim()
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  if (query.length === 0) return []
  const scored: { readonly entry: Entry; readonly points: number }[] = []
  for (const entry of entries) {
    const points = score(entry[0].toLowerCase(), query)
    // Of equal names, those that users see come first, and members after what is not one.
    if (points > 0) scored.push({ entry, points: points + (entry[4] === 1 ? 8 : 0) - (entry[0].includes('.') ? 3 : 0) })
  }
  scored.sort((a, b) => b.points - a.points || a.entry[0].length - b.entry[0].length || (a.entry[0] < b.entry[0] ? -1 : 1))
  return scored.slice(0, limit).map(({ entry }) => entry)
}
