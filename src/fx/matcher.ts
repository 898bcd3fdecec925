// SubgraphMatcher: where a pattern graph occurs in a larger one. PyTorch's passes.utils.matcher_utils.
import { GraphError } from './errors.ts'
import type { Graph } from './graph.ts'
import { Node } from './node.ts'
import type { Argument } from './node.ts'

/** One occurrence. */
export interface Match {
  /** The node matched by the pattern's (first) returned node. */
  readonly anchor: Node
  /** Pattern node -> node, or the literal that a pattern placeholder stands for. */
  readonly nodesMap: ReadonlyMap<Node, Argument>
}

/** Finds a pattern: its placeholders match anything, its returned nodes are the anchors, names do not matter. */
export class SubgraphMatcher {
  readonly #pattern: Graph
  readonly #anchors: readonly Node[]

  /** Throws GraphError for an empty pattern, or one with dead code. */
  constructor(pattern: Graph) {
    this.#pattern = pattern
    const calls = [...pattern.nodes].filter((n) => n.op !== 'placeholder' && n.op !== 'output')
    if (calls.length === 0) throw new GraphError('SubgraphMatcher cannot be initialized with an empty pattern')
    const dead = calls.find((n) => n.users.size === 0)
    if (dead !== undefined) throw new GraphError(`SubgraphMatcher cannot be initialized with a pattern with dead code: nobody uses '${dead.name}'.`)
    this.#anchors = pattern.outputNode().allInputNodes.filter((n) => [...n.users].every((u) => u.op === 'output'))
  }

  /** All matches in order; of two that overlap the first wins. */
  match(graph: Graph): Match[] {
    const [first, ...rest] = this.#anchors
    if (first === undefined) return []
    const taken = new Set<Node>()
    const matches: Match[] = []
    for (const candidate of graph.nodes) {
      const map = new Map<Node, Argument>()
      if (!this.#matchNode(first, candidate, map)) continue
      if (!rest.every((anchor) => this.#matchAnchor(anchor, graph, map))) continue
      const inner = this.#inner(map)
      if (inner.some((n) => taken.has(n)) || !this.#contained(map)) continue
      for (const node of inner) taken.add(node)
      matches.push({ anchor: candidate, nodesMap: map })
    }
    return matches
  }

  #matchAnchor(anchor: Node, graph: Graph, map: Map<Node, Argument>): boolean {
    for (const candidate of graph.nodes) {
      const attempt = new Map(map)
      if (!this.#matchNode(anchor, candidate, attempt)) continue
      for (const [key, value] of attempt) map.set(key, value)
      return true
    }
    return false
  }

  #matchNode(pattern: Node, node: Node, map: Map<Node, Argument>): boolean {
    const known = map.get(pattern)
    if (known !== undefined) return known === node
    if (pattern.op === 'placeholder') {
      map.set(pattern, node)
      return true
    }
    for (const value of map.values()) if (value === node && ![...map].some(([p, v]) => v === node && p.op === 'placeholder')) return false
    if (pattern.op !== node.op || pattern.op === 'output' || (pattern.op !== 'get_attr' && pattern.target !== node.target)) return false
    const attempt = new Map(map)
    attempt.set(pattern, node)
    if (!this.#matchArgument(pattern.args, node.args, attempt) || !this.#matchArgument(pattern.kwargs, node.kwargs, attempt)) return false
    for (const [key, value] of attempt) map.set(key, value)
    return true
  }

  #matchArgument(pattern: Argument, value: Argument, map: Map<Node, Argument>): boolean {
    if (pattern instanceof Node) {
      if (value instanceof Node) return this.#matchNode(pattern, value, map)
      if (pattern.op !== 'placeholder') return false
      // A placeholder may stand for a literal: the same one everywhere.
      if (map.has(pattern)) return Object.is(map.get(pattern), value)
      map.set(pattern, value)
      return true
    }
    if (value instanceof Node) return false
    if (typeof pattern !== 'object' || pattern === null || typeof value !== 'object' || value === null) return Object.is(pattern, value)
    if (Array.isArray(pattern) !== Array.isArray(value)) return false
    const keys = Object.keys(pattern)
    if (keys.length !== Object.keys(value).length) return false
    return keys.every(
      (key) => key in value && this.#matchArgument((pattern as Record<string, Argument>)[key], (value as Record<string, Argument>)[key], map),
    )
  }

  #inner(map: ReadonlyMap<Node, Argument>): Node[] {
    return [...map].filter(([pattern, value]) => pattern.op !== 'placeholder' && value instanceof Node).map(([, value]) => value as Node)
  }

  /** Inner values must not be used outside the match; returned ones may. */
  #contained(map: ReadonlyMap<Node, Argument>): boolean {
    const inner = new Set(this.#inner(map))
    const returned = new Set(this.#pattern.outputNode().allInputNodes.map((n) => map.get(n)))
    return [...inner].every((node) => returned.has(node) || [...node.users].every((u) => inner.has(u)))
  }
}
