// What a search finds. Words must all occur in what is known of a node; `kind:relu` words ask for its op, operation, category or change.
import { categoryOf, operation } from '../layout/boxes.ts'
import type { PageNode } from '../pageData.ts'

/** A search: words, and kinds of which a node must have one each. */
export interface Query {
  readonly words: readonly string[]
  readonly kinds: readonly string[]
}

export function parseQuery(text: string): Query {
  const parts = text
    .toLowerCase()
    .split(/\s+/)
    .filter((part) => part !== '')
  const isKind = (part: string): boolean => part.startsWith('kind:')
  return { words: parts.filter((part) => !isKind(part)), kinds: parts.filter(isKind).map((part) => part.slice(5)) }
}

/** The kinds of a node: `call_module`, `conv2d`, `layer`, `added`. */
export function kindsOf(node: PageNode): string[] {
  return [node.op, operation(node), categoryOf(node), ...(node.change === 'same' ? [] : [node.change])].map((kind) => kind.toLowerCase())
}

const textOf = (node: PageNode): string =>
  [node.name, node.op, node.target, node.type, node.spec, ...node.modules.flatMap((m) => [m.path, m.className])].join(' ').toLowerCase()

/** The numbers of the nodes that a query finds, those first whose name begins with its first word; null for an empty query. */
export function find(nodes: readonly PageNode[], { words, kinds }: Query): number[] | null {
  if (words.length === 0 && kinds.length === 0) return null
  const found = nodes.filter((node) => {
    const own = kindsOf(node)
    return kinds.every((kind) => own.some((k) => k.startsWith(kind))) && words.every((word) => textOf(node).includes(word))
  })
  const isFirst = (node: PageNode): boolean => words[0] !== undefined && node.name.toLowerCase().startsWith(words[0])
  return [...found.filter(isFirst), ...found.filter((node) => !isFirst(node))].map((node) => node.index)
}

/** The categories and changes of the nodes, with how many nodes have each. */
export function kindCounts(nodes: readonly PageNode[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const node of nodes)
    for (const kind of [categoryOf(node), ...(node.change === 'same' ? [] : [node.change])]) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  return counts
}
