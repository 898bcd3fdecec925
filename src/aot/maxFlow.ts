// Maximum flow and minimum cut (Dinic's algorithm) on a directed graph with integer nodes.

/** A flow network. Capacities may be Infinity. */
export class FlowNetwork {
  readonly #heads: number[] = []
  readonly #capacities: number[] = []
  readonly #edges: number[][]

  constructor(nodes: number) {
    this.#edges = Array.from({ length: nodes }, () => [])
  }

  /** Adds an edge; its reverse, of capacity 0, stands next to it. */
  addEdge(from: number, to: number, capacity: number): void {
    this.#edges[from]?.push(this.#heads.push(to) - 1)
    this.#capacities.push(capacity)
    this.#edges[to]?.push(this.#heads.push(from) - 1)
    this.#capacities.push(0)
  }

  /** The nodes on the source's side of a minimum cut; null when the two are joined by edges that cannot be cut. */
  minCut(source: number, sink: number): Set<number> | null {
    for (;;) {
      const levels = this.#levels(source)
      if (levels[sink] === -1) return new Set(levels.flatMap((level, node) => (level >= 0 ? [node] : [])))
      const next = new Array<number>(levels.length).fill(0)
      for (let pushed = this.#push(source, sink, levels, next); pushed > 0; pushed = this.#push(source, sink, levels, next)) {
        if (pushed === Infinity) return null
      }
    }
  }

  /** Distance of each node from the source along edges with room; -1 for unreachable ones. */
  #levels(source: number): number[] {
    const levels = new Array<number>(this.#edges.length).fill(-1)
    levels[source] = 0
    const queue = [source]
    for (let i = 0; i < queue.length; i++) {
      const node = queue[i] as number
      for (const edge of this.#edges[node] as number[]) {
        const to = this.#heads[edge] as number
        if (levels[to] !== -1 || (this.#capacities[edge] as number) <= 0) continue
        levels[to] = (levels[node] as number) + 1
        queue.push(to)
      }
    }
    return levels
  }

  /** Pushes flow along one path, without recursion: graphs are deep. Returns how much; 0 when there is no path left. */
  #push(source: number, sink: number, levels: readonly number[], next: number[]): number {
    const path: number[] = []
    let node = source
    while (node !== sink) {
      const edges = this.#edges[node] as number[]
      let advanced = false
      for (; (next[node] as number) < edges.length; (next[node] as number)++) {
        const edge = edges[next[node] as number] as number
        const to = this.#heads[edge] as number
        if ((this.#capacities[edge] as number) <= 0 || levels[to] !== (levels[node] as number) + 1) continue
        path.push(edge)
        node = to
        advanced = true
        break
      }
      if (advanced) continue
      const back = path.pop()
      if (back === undefined) return 0
      node = this.#heads[back ^ 1] as number
      ;(next[node] as number)++
    }
    const amount = Math.min(...path.map((edge) => this.#capacities[edge] as number))
    for (const edge of path) {
      ;(this.#capacities[edge] as number) -= amount
      ;(this.#capacities[edge ^ 1] as number) += amount
    }
    return amount
  }
}
