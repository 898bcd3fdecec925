// The users of a node, in the order in which they began to use it. Most nodes have one: a Set of its own would be half of a node's memory.
import { inspectAs } from '../protocol/index.ts'
import type { Node } from './node.ts'

/** A set of nodes as `node.users` shows it; the graph keeps it up to date. */
export class UserSet {
  #only: Node | null = null
  #many: Set<Node> | null = null

  get size(): number {
    return this.#many !== null ? this.#many.size : this.#only === null ? 0 : 1
  }

  has(node: Node): boolean {
    return this.#many !== null ? this.#many.has(node) : this.#only !== null && this.#only === node
  }

  add(node: Node): this {
    if (this.#many !== null) this.#many.add(node)
    else if (this.#only === null || this.#only === node) this.#only = node
    else {
      this.#many = new Set([this.#only, node])
      this.#only = null
    }
    return this
  }

  delete(node: Node): boolean {
    if (this.#many !== null) return this.#many.delete(node)
    if (this.#only !== node) return false
    this.#only = null
    return true
  }

  forEach(fn: (node: Node) => void): void {
    for (const node of this) fn(node)
  }

  values(): IterableIterator<Node> {
    return this.#many !== null ? this.#many.values() : (this.#only === null ? [] : [this.#only]).values()
  }

  keys(): IterableIterator<Node> {
    return this.values()
  }

  [Symbol.iterator](): IterableIterator<Node> {
    return this.values()
  }
}

inspectAs(UserSet.prototype, (users) => `{${[...users].join(', ')}}`)
