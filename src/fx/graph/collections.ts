// Collections of nodes: the two that users see, all nodes of a graph in order and the users of a node; the inputs of a node while they are found; the nodes of a graph by what they call.
import { inspectAs, remembered } from '../../protocol/index.ts'

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

const NONE: readonly never[] = Object.freeze([])

/** Collects the distinct nodes of a structure, in order of first appearance, and replaces one node by another on the way if asked to. */
export class Distinct<N> {
  readonly #from: N | null
  readonly #to: N | null
  #nodes: N[] | null = null
  #set: Set<N> | null = null

  constructor(from: N | null, to: N | null) {
    this.#from = from
    this.#to = to
  }

  get list(): readonly N[] {
    return this.#nodes ?? NONE
  }

  /** Adds a node, and returns the one to use in its place. */
  use(found: N): N {
    const node = this.#to !== null && found === this.#from ? this.#to : found
    this.#add(node)
    return node
  }

  #add(node: N): void {
    const nodes = this.#nodes
    if (nodes === null) {
      this.#nodes = [node]
      return
    }
    // Most nodes have one or two inputs: short lists are allocated at their exact length, and a set pays off only for long ones.
    if (this.#set === null) {
      if (nodes.includes(node)) return
      if (nodes.length < 4) {
        this.#nodes = [...nodes, node]
        return
      }
      this.#set = new Set(nodes)
    } else if (this.#set.has(node)) return
    this.#set.add(node)
    nodes.push(node)
  }
}

/** What a {@link NodeTable} knows nodes by. */
interface Called {
  readonly op: string
  readonly target: unknown
}

/** The nodes of a graph by op, and by the function they call: what findNodes asks. Built when it is first asked, and kept up to date from then on. */
export class NodeTable<N extends Called> {
  readonly #all: Iterable<N>
  #sets: Map<unknown, Set<N>> | null = null

  constructor(all: Iterable<N>) {
    this.#all = all
  }

  /** The nodes with an op, or those that call a function. */
  get(key: unknown): Iterable<N> {
    if (this.#sets === null) {
      this.#sets = new Map()
      for (const node of this.#all) this.add(node)
    }
    return this.#sets.get(key) ?? []
  }

  /** Whether a node is among them; true as long as nothing was asked. */
  has(node: N): boolean {
    return this.#sets === null || this.#sets.get(node.op)?.has(node) === true
  }

  add(node: N): void {
    if (this.#sets === null) return
    for (const key of node.op === 'call_function' ? [node.op, node.target] : [node.op]) remembered(this.#sets, key, () => new Set()).add(node)
  }

  delete(node: N): void {
    this.#sets?.get(node.op)?.delete(node)
    if (node.op === 'call_function') this.#sets?.get(node.target)?.delete(node)
  }
}
