// NodeHeap: the nodes that are ready to be placed, the earliest of the original order first.
import type { Node } from '../graph/node.ts'

/** A binary heap of nodes by `node.position`, which `graph.numberNodes()` sets. Adding and taking are O(log n). */
export class NodeHeap {
  readonly #items: Node[] = []

  get size(): number {
    return this.#items.length
  }

  add(node: Node): void {
    const items = this.#items
    let at = items.push(node) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = items[parent]
      if (above === undefined || above.position <= node.position) break
      items[at] = above
      at = parent
    }
    items[at] = node
  }

  /** Removes and returns the node with the lowest position; undefined if there is none. */
  take(): Node | undefined {
    const items = this.#items
    const first = items[0]
    const last = items.pop()
    if (last === undefined || items.length === 0) return first
    let at = 0
    for (;;) {
      const child = this.#lowerChild(at)
      const below = items[child]
      if (below === undefined || below.position >= last.position) break
      items[at] = below
      at = child
    }
    items[at] = last
    return first
  }

  #lowerChild(at: number): number {
    const left = 2 * at + 1
    const [a, b] = [this.#items[left], this.#items[left + 1]]
    return a !== undefined && b !== undefined && b.position < a.position ? left + 1 : left
  }
}
