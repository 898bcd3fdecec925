// The tree of modules of a graph: consecutive nodes that were recorded in the same module call are a group. A group of many items is cut into sections, which are
// laid out one by one: layered layouts take far more than twice the time for twice the nodes.
import type { PageGraph, PageNode } from '../pageData.ts'

/** A node in the tree. */
export interface Leaf {
  readonly kind: 'node'
  readonly node: PageNode
  readonly parent: Group
  readonly place: number
}

/** A module call, the whole graph, or a section of one of these. Sections are always open and have no box of their own. */
export interface Group {
  readonly kind: 'group' | 'section' | 'root'
  /** The path of the module call, such as `layer1.0@2`; '' for the root and for sections. */
  readonly path: string
  readonly className: string
  readonly parent: Group | null
  readonly children: Item[]
  /** Its place among its parent's children. */
  readonly place: number
  /** How many nodes are in it. */
  readonly size: number
}

export type Item = Leaf | Group

/** The groups of a graph, and where each node is among them. */
export interface Tree {
  readonly root: Group
  /** By the number of the node. */
  readonly leaves: readonly Leaf[]
  /** The module calls, outermost first, in graph order. */
  readonly groups: readonly Group[]
}

/** Groups with more items than this are cut into sections of about half as many. */
const MOST_ITEMS = 120
/** So are groups of module calls with more nodes than this: opened, they would be one endless column. */
const MOST_NODES = 600

interface Draft {
  readonly path: string
  readonly className: string
  readonly children: (PageNode | Draft)[]
  first: number
  last: number
}

export function makeTree(graph: PageGraph): Tree {
  const leaves: Leaf[] = []
  const groups: Group[] = []
  const crossings = crossingsOf(graph.nodes)
  const build = (draft: Draft, kind: Group['kind'], parent: Group | null, place: number): Group => {
    const group: Group = { kind, path: draft.path, className: draft.className, parent, children: [], place, size: draft.last - draft.first + 1 }
    if (kind === 'group') groups.push(group)
    const sections = cut(draft.children, group.size, crossings)
    const fill = (into: Group, children: readonly (PageNode | Draft)[]): void => {
      children.forEach((child, i) => {
        if (isDraft(child)) into.children.push(build(child, 'group', into, i))
        else {
          const leaf: Leaf = { kind: 'node', node: child, parent: into, place: i }
          leaves[child.index] = leaf
          into.children.push(leaf)
        }
      })
    }
    if (sections.length === 1) fill(group, draft.children)
    else {
      sections.forEach((children, i) => {
        const size = children.reduce((sum, child) => sum + sizeOf(child), 0)
        const section: Group = { kind: 'section', path: '', className: '', parent: group, children: [], place: i, size }
        group.children.push(section)
        fill(section, children)
      })
    }
    return group
  }
  const root = build(draftOf(graph.nodes), 'root', null, 0)
  return { root, leaves, groups }
}

const isDraft = (child: PageNode | Draft): child is Draft => 'children' in child
const sizeOf = (child: PageNode | Draft): number => (isDraft(child) ? child.last - child.first + 1 : 1)
const lastOf = (child: PageNode | Draft): number => (isDraft(child) ? child.last : child.index)

function draftOf(nodes: readonly PageNode[]): Draft {
  const root: Draft = { path: '', className: '', children: [], first: 0, last: nodes.length - 1 }
  const open = [root]
  for (const node of nodes) {
    let depth = 0
    while (depth < node.modules.length && open[depth + 1]?.path === node.modules[depth]?.path) depth++
    open.length = depth + 1
    for (const { path, className } of node.modules.slice(depth)) {
      const draft: Draft = { path, className, children: [], first: node.index, last: node.index }
      open.at(-1)?.children.push(draft)
      open.push(draft)
    }
    open.at(-1)?.children.push(node)
    for (const draft of open) draft.last = Math.max(draft.last, node.index)
  }
  return root
}

/** For each node, how many nodes up to it have values that later nodes read: the edges that a cut behind it would cross. */
function crossingsOf(nodes: readonly PageNode[]): number[] {
  const changes = Array.from({ length: nodes.length + 1 }, () => 0)
  for (const node of nodes) {
    const last = node.users.reduce((most, user) => Math.max(most, user), node.index)
    changes[node.index] = (changes[node.index] ?? 0) + 1
    changes[last] = (changes[last] ?? 0) - 1
  }
  let open = 0
  return nodes.map((_, i) => (open += changes[i] ?? 0))
}

/** The children in sections, cut where the fewest values are in use; one section if they are few. */
function cut(children: readonly (PageNode | Draft)[], size: number, crossings: readonly number[]): (readonly (PageNode | Draft)[])[] {
  if (children.length <= MOST_ITEMS && size <= MOST_NODES) return [children]
  const sections: (readonly (PageNode | Draft)[])[] = []
  let start = 0
  while (start < children.length) {
    let [end, nodes, best, least] = [start, 0, start + 1, Infinity]
    while (end < children.length && end - start < MOST_ITEMS / 2) {
      const child = children[end]
      if (child === undefined || (end > start && nodes + sizeOf(child) > MOST_NODES / 4)) break
      nodes += sizeOf(child)
      end++
      const crossing = crossings[lastOf(child)] ?? 0
      // The second half of a full section is where it may end.
      if ((end - start >= MOST_ITEMS / 4 || nodes >= MOST_NODES / 8) && crossing <= least) [best, least] = [end, crossing]
    }
    const stop = end === children.length || least === Infinity ? end : best
    sections.push(children.slice(start, stop))
    start = stop
  }
  return sections
}

/** The groups around an item, innermost first. */
export function ancestors(item: Item): Group[] {
  const found: Group[] = []
  for (let at = item.parent; at !== null; at = at.parent) found.push(at)
  return found
}
