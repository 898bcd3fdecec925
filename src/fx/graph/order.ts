// Sort keys for the nodes of a graph, so that "is a before b?" is one comparison. A new node gets a key between those of its neighbours. When doubles run out
// of values between two neighbours, the nodes around them get new keys: those in the smallest window of 2^i nodes whose keys can be at least SPACING / 1.3^i
// apart. Requiring larger gaps in smaller windows keeps the amortized cost of an insertion logarithmic even if all insertions happen at the same place.

/** A list item with a sort key. */
interface Ordered {
  prev: Ordered | null
  next: Ordered | null
  sortKey: number
}

const SPACING = 1024
const DENSER = 1.3

/** Gives a node that was just linked its key. */
export function giveKey(node: Ordered): void {
  const { prev, next } = node
  if (next === null) node.sortKey = prev === null ? 0 : prev.sortKey + SPACING
  else if (prev === null) node.sortKey = next.sortKey - SPACING
  else {
    node.sortKey = (prev.sortKey + next.sortKey) / 2
    if (node.sortKey <= prev.sortKey || node.sortKey >= next.sortKey) makeRoom(node)
  }
}

function makeRoom(node: Ordered): void {
  let first = node
  let last = node
  let count = 1
  for (let size = 32, gap = SPACING / DENSER ** 5; ; size *= 2, gap /= DENSER) {
    // Grow to both sides in turn. At an end of the list there is no limit to the keys.
    while (count < size && (first.prev !== null || last.next !== null)) {
      if (first.prev !== null) {
        first = first.prev
        count++
      }
      if (last.next !== null) {
        last = last.next
        count++
      }
    }
    const low = first.prev?.sortKey
    const high = last.next?.sortKey
    if (low === undefined || high === undefined) return spread(first, last, low ?? (high ?? 0) - SPACING * (count + 1), SPACING)
    const step = (high - low) / (count + 1)
    if (step >= gap) return spread(first, last, low, step)
  }
}

function spread(first: Ordered, last: Ordered, low: number, step: number): void {
  let key = low
  for (let node: Ordered | null = first; node !== null; node = node === last ? null : node.next) node.sortKey = key += step
}
