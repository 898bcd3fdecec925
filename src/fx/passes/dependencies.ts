// Topological order of things that need each other: passes, groups of nodes, parts of a graph.

/** Things, and which others each of them needs. */
export class Dependencies<T> {
  /** The things that need each one. */
  readonly #users = new Map<T, Set<T>>()
  readonly #needs = new Map<T, Set<T>>()

  constructor(items: Iterable<T> = []) {
    for (const item of items) this.add(item)
  }

  add(item: T): void {
    if (this.#needs.has(item)) return
    this.#needs.set(item, new Set())
    this.#users.set(item, new Set())
  }

  /** Declares that `item` needs `needed`. That a thing needs itself is ignored. */
  require(item: T, needed: T): void {
    this.add(item)
    this.add(needed)
    if (item === needed) return
    this.#needs.get(item)?.add(needed)
    this.#users.get(needed)?.add(item)
  }

  /**
   * The things in an order in which each comes after those that it needs. Of several that could come next, `next` tells whether to take the one that became ready
   * first or last. `cyclic` has those that cannot be ordered, because they are in a cycle or need something in a cycle.
   */
  order(next: 'first' | 'last'): { readonly order: readonly T[]; readonly cyclic: readonly T[] } {
    const waiting = new Map([...this.#needs].map(([item, needs]) => [item, needs.size]))
    const ready = [...waiting].filter(([, count]) => count === 0).map(([item]) => item)
    const order = new Set<T>()
    while (ready.length > 0) {
      const [item] = ready.splice(next === 'first' ? 0 : -1, 1)
      if (item === undefined) break
      order.add(item)
      for (const user of this.#users.get(item) ?? []) {
        const left = (waiting.get(user) ?? 0) - 1
        waiting.set(user, left)
        if (left === 0) ready.push(user)
      }
    }
    return { order: [...order], cyclic: [...this.#needs.keys()].filter((item) => !order.has(item)) }
  }
}
