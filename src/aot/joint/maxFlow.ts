// Maximum flow and minimum cut (Dinic's algorithm) on a directed graph.
import { present } from '../../errors/index.ts'

interface Vertex {
  readonly id: number
  readonly edges: Edge[]
  /** Distance from the source along edges with room; -1 if it is unreachable. */
  level: number
  /** Index of the first edge that may still carry flow in this phase. */
  next: number
}

class Edge {
  readonly from: Vertex
  readonly to: Vertex
  /** Capacity that is left. */
  room: number
  /** The edge in the other direction; its room is the flow on this one. */
  readonly back: Edge

  constructor(from: Vertex, to: Vertex, room: number, back?: Edge) {
    this.from = from
    this.to = to
    this.room = room
    this.back = back ?? new Edge(to, from, 0, this)
    from.edges.push(this)
  }
}

/** A flow network on the nodes 0, 1, …. Capacities may be Infinity. */
export class FlowNetwork {
  readonly #vertices: readonly Vertex[]

  constructor(nodes: number) {
    this.#vertices = Array.from({ length: nodes }, (_, id) => ({ id, edges: [], level: -1, next: 0 }))
  }

  addEdge(from: number, to: number, capacity: number): void {
    void new Edge(this.#vertex(from), this.#vertex(to), capacity)
  }

  /** The nodes on the source's side of a minimum cut; null if source and sink are joined by edges that cannot be cut. */
  minCut(source: number, sink: number): Set<number> | null {
    const [from, to] = [this.#vertex(source), this.#vertex(sink)]
    for (;;) {
      this.#level(from)
      if (to.level === -1) return new Set(this.#vertices.filter((vertex) => vertex.level >= 0).map((vertex) => vertex.id))
      for (let pushed = push(from, to); pushed > 0; pushed = push(from, to)) if (pushed === Infinity) return null
    }
  }

  #vertex(id: number): Vertex {
    return present(this.#vertices[id], `node ${id} of the flow network`)
  }

  /** Starts a phase: the distance of each node from the source along edges with room. */
  #level(source: Vertex): void {
    for (const vertex of this.#vertices) {
      vertex.level = -1
      vertex.next = 0
    }
    source.level = 0
    const queue = [source]
    for (const vertex of queue) {
      for (const { to, room } of vertex.edges) {
        if (to.level !== -1 || room <= 0) continue
        to.level = vertex.level + 1
        queue.push(to)
      }
    }
  }
}

/** The next edge from a node on which flow gets closer to the sink. */
function openEdge(vertex: Vertex): Edge | undefined {
  while (vertex.next < vertex.edges.length) {
    const edge = vertex.edges[vertex.next]
    if (edge !== undefined && edge.room > 0 && edge.to.level === vertex.level + 1) return edge
    vertex.next++
  }
  return undefined
}

/** Pushes flow along one path, without recursion because graphs are deep. Returns how much; 0 if there is no path left. */
function push(source: Vertex, sink: Vertex): number {
  const path: Edge[] = []
  let vertex = source
  while (vertex !== sink) {
    const edge = openEdge(vertex)
    if (edge !== undefined) {
      path.push(edge)
      vertex = edge.to
      continue
    }
    const last = path.pop()
    if (last === undefined) return 0
    vertex = last.from
    vertex.next++
  }
  const amount = path.reduce((least, edge) => Math.min(least, edge.room), Infinity)
  for (const edge of path) {
    edge.room -= amount
    edge.back.room += amount
  }
  return amount
}
