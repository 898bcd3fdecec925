// The tensors of a file as a tree: groups by the parts of their names, which open and close.
import { isTensorItem } from '../../weights.ts'
import type { StoredTensor, StoredValue, WeightsView } from '../../weights.ts'

/** A line of the tree: a group, a tensor, or another value. */
export interface TreeItem {
  /** The last part of its path. */
  readonly name: string
  readonly path: string
  readonly parent: TreeItem | null
  readonly depth: number
  /** Empty unless this is a group. */
  readonly children: TreeItem[]
  /** Null for a group. */
  readonly item: StoredTensor | StoredValue | null
  /** The tensors in it, and their bytes. */
  tensors: number
  bytes: number
}

const newItem = (name: string, parent: TreeItem | null, item: TreeItem['item']): TreeItem => ({
  name,
  path: parent === null || parent.path === '' ? name : `${parent.path}.${name}`,
  parent,
  depth: parent === null ? -1 : parent.depth + 1,
  children: [],
  item,
  tensors: 0,
  bytes: 0,
})

/** The tree. Its root is no line. */
export function treeOf({ items }: WeightsView): TreeItem {
  const root = newItem('', null, null)
  const groups = new Map<TreeItem, Map<string, TreeItem>>()
  for (const item of items) {
    let at = root
    for (const part of item.path.slice(0, -1)) {
      let inside = groups.get(at)
      if (inside === undefined) groups.set(at, (inside = new Map<string, TreeItem>()))
      let group = inside.get(part)
      if (group === undefined) {
        group = newItem(part, at, null)
        inside.set(part, group)
        at.children.push(group)
      }
      at = group
    }
    const leaf = newItem(item.path.at(-1) ?? '', at, item)
    at.children.push(leaf)
    if (!isTensorItem(item)) continue
    for (let up: TreeItem | null = leaf; up !== null; up = up.parent) {
      up.tensors++
      up.bytes += item.bytes
    }
  }
  return root
}

/** All items below one, in order. */
export function* below(root: TreeItem): Generator<TreeItem> {
  const stack = root.children.toReversed()
  for (let item = stack.pop(); item !== undefined; item = stack.pop()) {
    yield item
    for (let i = item.children.length - 1; i >= 0; i--) {
      const child = item.children[i]
      if (child !== undefined) stack.push(child)
    }
  }
}

/** The lines that are seen: those in open groups; while something is searched for, what was found, with the groups around it. */
export function linesOf(root: TreeItem, isOpen: (group: TreeItem) => boolean, hits: ReadonlySet<TreeItem> | null): readonly TreeItem[] {
  const lines: TreeItem[] = []
  const shown = hits === null ? null : withGroups(hits)
  const stack = root.children.toReversed()
  for (let item = stack.pop(); item !== undefined; item = stack.pop()) {
    if (shown !== null && !shown.has(item)) continue
    lines.push(item)
    if (shown === null && !isOpen(item)) continue
    for (let i = item.children.length - 1; i >= 0; i--) {
      const child = item.children[i]
      if (child !== undefined) stack.push(child)
    }
  }
  return lines
}

function withGroups(hits: ReadonlySet<TreeItem>): ReadonlySet<TreeItem> {
  const shown = new Set<TreeItem>()
  for (const hit of hits) for (let at: TreeItem | null = hit; at !== null && !shown.has(at); at = at.parent) shown.add(at)
  return shown
}

/** The tensors and values whose path, dtype or shape contains all words of a text; null for an empty text. */
export function search(root: TreeItem, text: string): ReadonlySet<TreeItem> | null {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  if (words.length === 0) return null
  const known = ({ path, item }: TreeItem): string =>
    (item !== null && isTensorItem(item) ? `${path} ${item.dtype}[${item.shape.join(', ')}]` : path).toLowerCase()
  return new Set([...below(root)].filter((item) => item.item !== null && words.every((word) => known(item).includes(word))))
}
