// Topological order of nodes, passes, groups of nodes and parts of a graph: one sort, and the places where things wait that may come next.
import { ArgumentError } from '../../../errors/index.ts'
import { checkNode } from '../../../protocol/graphChecks.ts'
import { PriorityQueue, checkCount, checkIterable } from '../../../protocol/index.ts'
import type { Node } from '../../graph/node.ts'

/** Where things wait that may come next. It says which of them does. */
export interface Ready<T> {
  add(item: T): void
  take(): T | undefined
}

/** What became ready first comes first. */
export class FirstReady<T> implements Ready<T> {
  readonly #items: T[] = []
  #head = 0

  add(item: T): void {
    this.#items.push(item)
  }

  take(): T | undefined {
    return this.#head < this.#items.length ? this.#items[this.#head++] : undefined
  }
}

/** What became ready last comes first. */
export class LastReady<T> implements Ready<T> {
  readonly #items: T[] = []

  add(item: T): void {
    this.#items.push(item)
  }

  take(): T | undefined {
    return this.#items.pop()
  }
}

/** The node that is first in the graph comes first, by `node.position`, which `graph.numberNodes()` sets. */
export class NodeHeap extends PriorityQueue<Node> implements Ready<Node> {
  constructor() {
    super((a, b) => a.position < b.position)
  }
}

/** An order, and what has no place in it. */
export interface Sorted<T> {
  /** Each thing comes after those that it needs. */
  readonly order: readonly T[]
  /** Those that cannot be ordered, because they are in a cycle or need something in a cycle. */
  readonly cyclic: readonly T[]
}

/** Sorts different things. `usersOf` gives those that need a thing, as often as they need it; others than `items` do not count. */
export function sortByNeed<T>(items: readonly T[], usersOf: (item: T) => Iterable<T>, ready: Ready<T>): Sorted<T> {
  const missing = new Map<T, number>(items.map((item) => [item, 0]))
  for (const item of items)
    for (const user of usersOf(item)) {
      const count = missing.get(user)
      if (count !== undefined) missing.set(user, count + 1)
    }
  for (const item of items) if (missing.get(item) === 0) ready.add(item)
  const order = new Set<T>()
  for (let item = ready.take(); item !== undefined; item = ready.take()) {
    order.add(item)
    for (const user of usersOf(item)) {
      const count = missing.get(user)
      if (count === undefined) continue
      missing.set(user, count - 1)
      if (count === 1) ready.add(user)
    }
  }
  return { order: [...order], cyclic: items.filter((item) => !order.has(item)) }
}

/** Things, and which others each of them needs. */
export class Dependencies<T> {
  /** The things that need each one. */
  readonly #users = new Map<T, Set<T>>()

  constructor(items: Iterable<T> = []) {
    for (const item of items) this.add(item)
  }

  add(item: T): void {
    if (!this.#users.has(item)) this.#users.set(item, new Set())
  }

  /** Declares that `item` needs `needed`. That a thing needs itself is ignored. */
  require(item: T, needed: T): void {
    this.add(item)
    this.add(needed)
    if (item !== needed) this.#users.get(needed)?.add(item)
  }

  /** The things in an order in which each comes after those that it needs; see {@link sortByNeed}. */
  order(ready: Ready<T>): Sorted<T> {
    return sortByNeed([...this.#users.keys()], (item) => this.#users.get(item) ?? [], ready)
  }
}

/** The nodes as an array. Throws ArgumentError unless they are nodes. */
export function nodesOf(where: string, nodes: Iterable<Node>): Node[] {
  checkIterable(where, 'nodes', nodes)
  const list = [...nodes]
  for (const node of list) checkNode(where, node, 'nodes')
  return list
}

/**
 * The nodes, each behind those that it needs: first those that need none of the others, in the order given, then their users, breadth first. Throws ArgumentError for a
 * node that is given twice. PyTorch's topo_sort.
 */
export function topoSort(nodes: Iterable<Node>): Node[] {
  checkCount('topoSort', arguments, 1)
  const given = nodesOf('topoSort', nodes)
  if (new Set(given).size < given.length) throw new ArgumentError('topoSort: a node is in the list twice.')
  return [...sortByNeed(given, (node) => node.users, new FirstReady()).order]
}
