// SubgraphMatcher: where a pattern graph occurs in a larger one. PyTorch's torch.fx.passes.utils.matcher_utils.
import { GraphError } from '../errors.ts'
import { formatArg, nodeTargetText } from '../format.ts'
import type { Graph } from '../graph.ts'
import { Node } from '../node.ts'
import type { Argument } from '../node.ts'
import type { InternalMatch } from './match.ts'
import { innerNodes } from './match.ts'
import { normalizedArgs, operationOf, sameKind } from './spelling.ts'

/** Options of {@link SubgraphMatcher}. */
export interface MatcherOptions {
  /** The pattern's output must be the graph's. Default false. */
  readonly matchOutput?: boolean
  /** Placeholders match placeholders only; else anything. Default false. */
  readonly matchPlaceholder?: boolean
  /** Of matches that share nodes only the first is reported. Default true. */
  readonly removeOverlappingMatches?: boolean
  /** Literals match any literal. Default false. */
  readonly ignoreLiterals?: boolean
}

/** The correspondence while it is built; undone step by step when it leads nowhere. */
class Attempt {
  readonly map = new Map<Node, Argument>()
  readonly #used = new Set<Argument>()
  readonly #trail: Node[] = []

  uses(node: Node): boolean {
    return this.#used.has(node)
  }

  add(pattern: Node, value: Argument): void {
    this.map.set(pattern, value)
    if (value instanceof Node) this.#used.add(value)
    this.#trail.push(pattern)
  }

  get mark(): number {
    return this.#trail.length
  }

  undo(mark: number): void {
    for (const pattern of this.#trail.splice(mark)) {
      this.#used.delete(this.map.get(pattern) as Argument)
      this.map.delete(pattern)
    }
  }
}

/** Why the match that came nearest failed. */
interface Failure {
  depth: number
  why: string
}

/**
 * Finds a pattern. Its placeholders match anything (also a literal, the same one everywhere), its returned nodes are where the search starts; names do not
 * matter, nor whether an operator is called as a function or as a method, with options by name or by position.
 */
export class SubgraphMatcher {
  readonly pattern: Graph
  readonly #options: Required<MatcherOptions>
  readonly #anchors: readonly Node[]
  readonly #returning: readonly Node[]
  readonly #placeholders: readonly Node[]
  #failure: Failure | null = null

  /** Throws GraphError for an empty pattern, or one with dead code. */
  constructor(pattern: Graph, options: MatcherOptions = {}) {
    this.pattern = pattern
    this.#options = { matchOutput: false, matchPlaceholder: false, removeOverlappingMatches: true, ignoreLiterals: false, ...options }
    if ([...pattern.nodes].every((n) => n.op === 'placeholder' || n.op === 'output'))
      throw new GraphError('SubgraphMatcher cannot be initialized with an empty pattern')
    const dead = [...pattern.nodes].find((n) => n.op !== 'output' && n.users.size === 0)
    if (dead !== undefined) throw new GraphError(`SubgraphMatcher cannot be initialized with an pattern with dead code: nobody uses '${dead.name}'.`)
    const output = pattern.outputNode()
    this.#placeholders = pattern.findNodes({ op: 'placeholder' })
    this.#returning = output.allInputNodes
    this.#anchors = this.#options.matchOutput ? [output] : this.#returning.filter((n) => n.users.size === 1)
  }

  /** All matches, in the order of the graph. */
  match(graph: Graph): InternalMatch[] {
    const candidates = this.#anchors.map((anchor) => [...graph.nodes].filter((node) => this.#nodesAreEqual(anchor, node)))
    const found: InternalMatch[] = []
    const attempt = new Attempt()
    const from = (index: number): void => {
      const anchor = this.#anchors[index]
      if (anchor === undefined) {
        found.push(this.#result(attempt))
        return
      }
      for (const node of candidates[index] as Node[]) {
        const mark = attempt.mark
        if (this.#matchNodes(anchor, node, attempt)) from(index + 1)
        attempt.undo(mark)
      }
    }
    if (this.#anchors.length > 0) from(0)
    const valid = found.filter((match) => this.#leak(match) === null && cycleThrough(innerNodes(match)) === null)
    return this.#options.removeOverlappingMatches ? withoutOverlaps(valid) : valid
  }

  /**
   * Why the pattern does not match at that node: the first difference of the attempt that came furthest, or what is wrong with the match. Null when it
   * does match there. `node` is to be what the pattern returns.
   */
  explain(node: Node): string | null {
    this.#failure = { depth: -1, why: '' }
    try {
      let why: string | null = null
      for (const anchor of this.#anchors) {
        const attempt = new Attempt()
        if (!this.#matchNodes(anchor, node, attempt)) continue
        // Other anchors are looked for in the whole graph.
        const match = this.match(node.graph).find((m) => m.nodesMap.get(anchor) === node)
        if (match !== undefined) return null
        const one: InternalMatch = { anchors: [anchor], nodesMap: attempt.map, placeholderNodes: [], returningNodes: [] }
        why =
          this.#leak(one) ??
          cycleThrough(innerNodes(one)) ??
          'another match uses some of its nodes, or another returned value of the pattern was not found'
      }
      return why ?? this.#failure.why
    } finally {
      this.#failure = null
    }
  }

  #result({ map }: Attempt): InternalMatch {
    return {
      anchors: this.#anchors,
      nodesMap: new Map(map),
      placeholderNodes: this.#placeholders.map((p) => map.get(p) as Argument),
      returningNodes: this.#returning.map((r) => map.get(r) as Node),
    }
  }

  #fail(attempt: Attempt, why: () => string): false {
    if (this.#failure !== null && attempt.mark > this.#failure.depth) this.#failure = { depth: attempt.mark, why: why() }
    return false
  }

  #nodesAreEqual(pattern: Node, node: Node): boolean {
    if (pattern.op === 'placeholder' && !this.#options.matchPlaceholder) return true
    if (!sameKind(pattern, node)) return false
    if (pattern.op === 'placeholder' || pattern.op === 'output' || pattern.op === 'get_attr') return true
    return operationOf(pattern) === operationOf(node)
  }

  #matchNodes(pattern: Node, node: Node, attempt: Attempt): boolean {
    if (attempt.map.has(pattern)) {
      const known = attempt.map.get(pattern)
      return known === node || this.#fail(attempt, () => `'${pattern.name}' of the pattern is both %${(known as Node).name} and %${node.name}`)
    }
    if (attempt.uses(node)) return this.#fail(attempt, () => `%${node.name} would have to be two nodes of the pattern, '${pattern.name}' one of them`)
    if (!this.#nodesAreEqual(pattern, node))
      return this.#fail(
        attempt,
        () => `'${pattern.name}' of the pattern is ${pattern.op} ${nodeTargetText(pattern)}, but %${node.name} is ${node.op} ${nodeTargetText(node)}`,
      )
    const mark = attempt.mark
    attempt.add(pattern, node)
    if (pattern.op === 'placeholder' || this.#matchArguments(pattern, node, attempt)) return true
    attempt.undo(mark)
    return false
  }

  #matchArguments(pattern: Node, node: Node, attempt: Attempt): boolean {
    const keys = Object.keys(pattern.kwargs)
    const others = Object.keys(node.kwargs)
    const sameForm = pattern.args.length === node.args.length && keys.length === others.length && keys.every((key, i) => key === others[i])
    const values = (of: Node): Argument[] => [...of.args, ...Object.values(of.kwargs)]
    const left = sameForm ? values(pattern) : normalizedArgs(pattern)
    const right = sameForm ? values(node) : normalizedArgs(node)
    if (left === null || right === null)
      return this.#fail(
        attempt,
        () => `'${pattern.name}' of the pattern has other arguments than %${node.name}: ${argsText(pattern)} and ${argsText(node)}`,
      )
    return this.#matchLists(left, right, attempt, pattern, node)
  }

  #matchLists(left: readonly Argument[], right: readonly Argument[], attempt: Attempt, pattern: Node, node: Node): boolean {
    if (left.length !== right.length)
      return this.#fail(attempt, () => `a list of '${pattern.name}' has ${left.length} elements, that of %${node.name} has ${right.length}`)
    return left.every((value, i) => this.#matchValue(value, right[i] as Argument, attempt, pattern, node))
  }

  #matchValue(left: Argument, right: Argument, attempt: Attempt, pattern: Node, node: Node): boolean {
    if (left instanceof Node) {
      if (right instanceof Node) return this.#matchNodes(left, right, attempt)
      if (left.op !== 'placeholder')
        return this.#fail(attempt, () => `'${pattern.name}' takes the node '${left.name}', %${node.name} takes ${formatArg(right)}`)
      if (!attempt.map.has(left)) {
        attempt.add(left, right)
        return true
      }
      return sameLiteral(attempt.map.get(left), right) || this.#fail(attempt, () => `'${left.name}' of the pattern stands for two literals`)
    }
    if (Array.isArray(left) && Array.isArray(right)) return this.#matchLists(left as Argument[], right as Argument[], attempt, pattern, node)
    if (!(right instanceof Node) && (this.#options.ignoreLiterals || sameLiteral(left, right))) return true
    return this.#fail(attempt, () => `'${pattern.name}' of the pattern has ${formatArg(left)} where %${node.name} has ${formatArg(right)}`)
  }

  /** A value inside the match that somebody outside uses; returned ones may be. */
  #leak(match: InternalMatch): string | null {
    const inner = new Set(innerNodes(match))
    const output = match.nodesMap.get(this.pattern.outputNode())
    for (const [pattern, value] of match.nodesMap) {
      if (pattern.op === 'placeholder' || pattern.op === 'output' || this.#returning.includes(pattern)) continue
      for (const user of (value as Node).users)
        if (!inner.has(user) && user !== output)
          return `%${(value as Node).name} is inside the match ('${pattern.name}' of the pattern), but %${user.name} outside of it uses it`
    }
    return null
  }
}

const argsText = (node: Node): string =>
  `(${[...node.args.map((a) => formatArg(a)), ...Object.entries(node.kwargs).map(([k, v]) => `${k}: ${formatArg(v)}`)].join(', ')})`

function sameLiteral(a: Argument, b: Argument): boolean {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null || a instanceof Node || b instanceof Node) return false
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false
  const [left, right] = [Object.entries(a), Object.entries(b)]
  return (
    left.length === right.length && left.every(([key, value]) => key in b && sameLiteral(value as Argument, (b as Record<string, Argument>)[key]))
  )
}

/** A path from a matched node over others back to a matched one: as one step, the match would need its own result. */
function cycleThrough(nodes: readonly Node[]): string | null {
  const inner = new Set(nodes)
  const last = Math.max(...nodes.map((n) => n.sortKey))
  const seen = new Set<Node>()
  const stack = nodes.flatMap((n) => [...n.users].filter((user) => !inner.has(user)))
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    // What stands behind the whole match cannot lead back into it.
    if (seen.has(node) || node.sortKey > last) continue
    seen.add(node)
    for (const user of node.users) {
      if (inner.has(user)) return `%${node.name} lies between nodes of the match: it uses one of them, and %${user.name} uses it`
      stack.push(user)
    }
  }
  return null
}

function withoutOverlaps(matches: readonly InternalMatch[]): InternalMatch[] {
  const taken = new Set<Node>()
  return matches.filter((match) => {
    const inner = innerNodes(match)
    if (inner.some((node) => taken.has(node))) return false
    for (const node of inner) taken.add(node)
    return true
  })
}
