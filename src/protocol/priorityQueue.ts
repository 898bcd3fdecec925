// A priority queue: what waits for its turn, and who comes first.

/** A binary heap. Adding and taking are O(log n). */
export class PriorityQueue<T> {
  readonly #items: T[] = []
  readonly #comesBefore: (a: T, b: T) => boolean

  constructor(comesBefore: (a: T, b: T) => boolean) {
    this.#comesBefore = comesBefore
  }

  get size(): number {
    return this.#items.length
  }

  add(item: T): void {
    const items = this.#items
    let at = items.push(item) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = items[parent]
      if (above === undefined || !this.#comesBefore(item, above)) break
      items[at] = above
      at = parent
    }
    items[at] = item
  }

  /** Removes and returns the first item; undefined if there is none. */
  take(): T | undefined {
    const items = this.#items
    const first = items[0]
    const last = items.pop()
    if (last === undefined || items.length === 0) return first
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      let below = items[child]
      const sibling = items[child + 1]
      if (below !== undefined && sibling !== undefined && this.#comesBefore(sibling, below)) {
        child++
        below = sibling
      }
      if (below === undefined || !this.#comesBefore(below, last)) break
      items[at] = below
      at = child
    }
    items[at] = last
    return first
  }
}
