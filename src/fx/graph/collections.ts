// The two collections of nodes that users see: all nodes of a graph in order, and the users of a node.
import { inspectAs } from '../../protocol/index.ts'

/** A node of a doubly linked list. */
interface Linked<N> {
  readonly prev: N | null
  readonly next: N | null
  readonly erased: boolean
}

/** A doubly linked list. */
interface LinkedList<N> {
  readonly first: N | null
  readonly last: N | null
  readonly size: number
}

/** The nodes of a graph, in order: a live view. */
export class NodeList<N extends Linked<N>> implements Iterable<N> {
  readonly #list: LinkedList<N>

  constructor(list: LinkedList<N>) {
    this.#list = list
  }

  /** The number of nodes. */
  get length(): number {
    return this.#list.size
  }

  /** First to last. Nodes may be erased and inserted during the iteration. */
  *[Symbol.iterator](): Generator<N> {
    for (let node = this.#list.first; node !== null; node = node.next) if (!node.erased) yield node
  }

  /** Last to first. Nodes may be erased and inserted during the iteration. */
  *reversed(): Generator<N> {
    for (let node = this.#list.last; node !== null; node = node.prev) if (!node.erased) yield node
  }
}

inspectAs(NodeList.prototype, (nodes) => `[${[...nodes].join(', ')}]`)

/** The users of a node, in the order in which they started to use it. Most nodes have one user, and a Set for it would be half of the node's memory. */
export class UserSet<N> {
  #only: N | null = null
  #many: Set<N> | null = null

  get size(): number {
    return this.#many?.size ?? Number(this.#only !== null)
  }

  has(node: N): boolean {
    return this.#many?.has(node) ?? this.#only === node
  }

  /** Only the graph calls it. @internal */
  add(node: N): this {
    if (this.#many !== null) this.#many.add(node)
    else if (this.#only === null || this.#only === node) this.#only = node
    else {
      this.#many = new Set([this.#only, node])
      this.#only = null
    }
    return this
  }

  /** Only the graph calls it. @internal */
  delete(node: N): boolean {
    if (this.#many !== null) return this.#many.delete(node)
    if (this.#only !== node) return false
    this.#only = null
    return true
  }

  forEach(fn: (node: N) => void): void {
    for (const node of this) fn(node)
  }

  values(): IterableIterator<N> {
    return (this.#many ?? (this.#only === null ? [] : [this.#only])).values()
  }

  keys(): IterableIterator<N> {
    return this.values()
  }

  [Symbol.iterator](): IterableIterator<N> {
    return this.values()
  }
}

inspectAs(UserSet.prototype, (users) => `{${[...users].join(', ')}}`)

/** Whether all members of the first are in the second. */
export function areAllIn<T>(some: Iterable<T>, all: ReadonlySet<T>): boolean {
  for (const one of some) if (!all.has(one)) return false
  return true
}
