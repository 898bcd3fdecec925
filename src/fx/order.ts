// The order of a graph's nodes as numbers, so that "is a before b?" is one comparison. A new node gets a number between its neighbours'. Where
// doubles run out of numbers between two, the nodes around get new ones: a window of 2^i nodes, the smallest in which they would stand at least
// SPACING / 1.3^i apart. Asking more of small windows keeps the work per insertion logarithmic, also when all insertions go to the same place.
import type { Node } from './node.ts'

const SPACING = 1024
const DENSER = 1.3

/** Gives a node that was just linked its number. */
export function giveKey(node: Node): void {
  const { prev, next } = node
  if (next === null) node.sortKey = prev === null ? 0 : prev.sortKey + SPACING
  else if (prev === null) node.sortKey = next.sortKey - SPACING
  else {
    node.sortKey = (prev.sortKey + next.sortKey) / 2
    if (node.sortKey <= prev.sortKey || node.sortKey >= next.sortKey) makeRoom(node)
  }
}

function makeRoom(node: Node): void {
  let first = node
  let last = node
  let count = 1
  for (let size = 32, gap = SPACING / DENSER ** 5; ; size *= 2, gap /= DENSER) {
    // Alternately to both sides; at an end of the list there is all the room one wants.
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

function spread(first: Node, last: Node, low: number, step: number): void {
  let key = low
  for (let node: Node | null = first; node !== null; node = node === last ? null : node.next) node.sortKey = key += step
}
