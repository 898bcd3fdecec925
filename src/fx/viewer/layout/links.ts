// The edges of a graph by the group in which they run. An edge leaves the groups around its source, crosses the innermost group that holds both ends, and enters the
// groups around its user. These lists do not depend on which groups are open.
import type { PageNode } from '../pageData.ts'
import { ancestors } from './tree.ts'
import type { Group, Item, Leaf, Tree } from './tree.ts'

/** The links of one group. */
export interface Links {
  /** Between its items, each pair once. */
  readonly inner: readonly (readonly [from: number, to: number])[]
  /** The values that come from outside, by the number of their node, with the items that lead to their users. */
  readonly entries: ReadonlyMap<number, ReadonlySet<number>>
  /** The values that are used outside, by the number of their node, with the item that they come from. */
  readonly exits: ReadonlyMap<number, number>
}

interface OpenLinks extends Links {
  readonly inner: [number, number][]
  readonly pairs: Set<string>
  readonly entries: Map<number, Set<number>>
  readonly exits: Map<number, number>
}

/** An edge from a node to one that reads it. */
export interface Edge {
  readonly from: Leaf
  readonly to: Leaf
}

export function edgesOf(nodes: readonly PageNode[], tree: Tree): Edge[] {
  return nodes.flatMap((node) => {
    const to = tree.leaves[node.index]
    return node.inputs.flatMap((input) => {
      const from = tree.leaves[input]
      return from === undefined || to === undefined ? [] : [{ from, to }]
    })
  })
}

/** The way of an edge: out of the groups around its source, innermost first, across one, and into the groups around its user, outermost first. */
export interface Way {
  readonly out: readonly (readonly [group: Group, item: Item])[]
  readonly across: readonly [group: Group, from: Item, to: Item]
  readonly into: readonly (readonly [group: Group, item: Item])[]
}

/** The way of an edge between two items, neither of which holds the other. */
export function wayOf(from: Item, to: Item): Way | null {
  const around = new Set(ancestors(to))
  const out: [Group, Item][] = []
  let a = from
  while (a.parent !== null && !around.has(a.parent)) {
    out.push([a.parent, a])
    a = a.parent
  }
  const into: [Group, Item][] = []
  let b = to
  while (b.parent !== null && b.parent !== a.parent) {
    into.unshift([b.parent, b])
    b = b.parent
  }
  return a.parent === null || a === b ? null : { out, across: [a.parent, a, b], into }
}

export function linksOf(edges: readonly Edge[]): ReadonlyMap<Group, Links> {
  const all = new Map<Group, OpenLinks>()
  const at = (group: Group): OpenLinks => {
    const known = all.get(group)
    if (known !== undefined) return known
    const fresh: OpenLinks = { inner: [], pairs: new Set(), entries: new Map(), exits: new Map() }
    all.set(group, fresh)
    return fresh
  }
  for (const { from, to } of edges) {
    const way = wayOf(from, to)
    if (way === null) continue
    const source = from.node.index
    for (const [group, item] of way.out) at(group).exits.set(source, item.place)
    const [group, a, b] = way.across
    const links = at(group)
    const pair = `${a.place}>${b.place}`
    if (!links.pairs.has(pair)) {
      links.pairs.add(pair)
      links.inner.push([a.place, b.place])
    }
    for (const [inner, item] of way.into) {
      const { entries } = at(inner)
      entries.set(source, (entries.get(source) ?? new Set()).add(item.place))
    }
  }
  return all
}

export const NO_LINKS: Links = { inner: [], entries: new Map(), exits: new Map() }
