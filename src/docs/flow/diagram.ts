// A diagram: some functions, and how they lead to each other.

/** Functions, and edges between them. `isDirect`: without others in between. */
export interface Diagram {
  readonly ids: readonly string[]
  readonly edges: readonly DiagramEdge[]
}

interface DiagramEdge {
  readonly from: string
  readonly to: string
  readonly isDirect: boolean
}

/** The edges between some functions: calls, and ways through functions that are not drawn. The latter are left out where others say the same. */
export function diagramOf(ids: readonly string[], next: (id: string) => readonly string[]): Diagram {
  const drawn = new Set(ids)
  const direct = ids.flatMap((from) =>
    [...new Set(next(from))].filter((to) => drawn.has(to) && to !== from).map((to) => ({ from, to, isDirect: true })),
  )
  const isKnown = (from: string, to: string): boolean => direct.some((edge) => edge.from === from && edge.to === to)
  const indirect = ids.flatMap((from) =>
    [...drawnBehind(from, drawn, next)].filter((to) => !isKnown(from, to)).map((to) => ({ from, to, isDirect: false })),
  )
  let edges: readonly DiagramEdge[] = [...direct, ...indirect]
  // One after the other: of a cycle, one edge stays.
  for (const edge of indirect) {
    const others = edges.filter((one) => one !== edge)
    if (leads(others, edge.from, edge.to)) edges = others
  }
  return { ids, edges }
}

/** The other drawn functions that a function reaches through functions which are not drawn. */
function drawnBehind(from: string, drawn: ReadonlySet<string>, next: (id: string) => readonly string[]): ReadonlySet<string> {
  const seen = new Set<string>()
  const found = new Set<string>()
  const queue = next(from).filter((to) => !drawn.has(to))
  for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
    if (seen.has(id)) continue
    seen.add(id)
    for (const to of next(id))
      if (drawn.has(to)) found.add(to)
      else queue.push(to)
  }
  found.delete(from)
  return found
}

function leads(edges: readonly DiagramEdge[], from: string, to: string): boolean {
  const seen = new Set([from])
  for (const id of seen) for (const edge of edges) if (edge.from === id) seen.add(edge.to)
  return from !== to && seen.has(to)
}
