// SubgraphMatcher: finds the occurrences of a pattern graph in a larger graph. PyTorch's torch.fx.passes.utils.matcher_utils.
import { checkGraph } from '../../protocol/graphChecks.ts'
import { checkCount, checkOptions, isObject } from '../../protocol/index.ts'
import { GraphError } from '../graph/errors.ts'
import { formatArg, nodeTargetText } from '../text/format.ts'
import type { Graph } from '../graph/graph.ts'
import { Node } from '../graph/node.ts'
import type { Argument } from '../graph/node.ts'
import { normalizedArgs, operationOf, sameKind } from './spelling.ts'

/** An occurrence of a pattern; PyTorch's InternalMatch. */
export interface InternalMatch {
  /** The nodes of the pattern from which the search started: those that only the pattern's output uses. */
  readonly anchors: readonly [Node, ...Node[]]
  /** From node of the pattern to node of the graph, or to the literal that a placeholder of the pattern stands for. */
  readonly nodesMap: Map<Node, Argument>
  /** What the placeholders of the pattern stand for, in order. */
  readonly placeholderNodes: Argument[]
  /** The nodes of the graph that the pattern returns, in order. */
  readonly returningNodes: Node[]
}

/** The nodes of the graph that match nodes of the pattern other than placeholders and the output, and the nodes that they match. */
function* innerPairs(nodesMap: ReadonlyMap<Node, Argument>): Generator<readonly [pattern: Node, node: Node]> {
  for (const [pattern, value] of nodesMap)
    if (pattern.op !== 'placeholder' && pattern.op !== 'output' && value instanceof Node) yield [pattern, value]
}

const innerNodes = (nodesMap: ReadonlyMap<Node, Argument>): Node[] => [...innerPairs(nodesMap)].map(([, node]) => node)

/** Options of {@link SubgraphMatcher}. */
export interface MatcherOptions {
  /** Match the pattern's output only with the output of the graph. Default false. */
  readonly matchOutput?: boolean
  /** Match placeholders only with placeholders. Default false: they match anything. */
  readonly matchPlaceholder?: boolean
  /** Report only the first of several matches that share nodes. Default true. */
  readonly removeOverlappingMatches?: boolean
  /** Match a literal with any literal. Default false. */
  readonly ignoreLiterals?: boolean
}

/** Why the attempt that got furthest failed. */
interface Failure {
  /** How many nodes it had matched. */
  depth: number
  why: string
}

/** A partial match. A step that leads nowhere is undone. */
class Attempt {
  readonly map = new Map<Node, Argument>()
  /** What still has to match. */
  readonly todo: Pair[] = []
  readonly #used = new Set<Argument>()
  readonly #trail: Node[] = []
  readonly #failure: Failure | null

  constructor(failure: Failure | null = null) {
    this.#failure = failure
  }

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

  /** Notes why a step is impossible, if someone wants to know. Returns false. */
  fail(why: () => string): false {
    if (this.#failure !== null && this.mark > this.#failure.depth) Object.assign(this.#failure, { depth: this.mark, why: why() })
    return false
  }

  undo(mark: number): void {
    for (const pattern of this.#trail.splice(mark)) {
      this.#used.delete(this.map.get(pattern))
      this.map.delete(pattern)
    }
  }
}

/** A value of the pattern and one of the graph, and the nodes whose arguments they are. */
type Pair<T = Argument> = readonly [left: T, right: T, pattern: Node, node: Node]

/**
 * Finds the occurrences of a pattern. A placeholder of the pattern matches anything; if it matches a literal, it must be the same literal everywhere. The search
 * starts at the nodes that the pattern returns. Names do not matter, nor whether an operator is called as a function or method, with options by name or position.
 */
export class SubgraphMatcher {
  readonly pattern: Graph
  readonly #options: Required<MatcherOptions>
  readonly #anchors: readonly Node[]
  readonly #returning: readonly Node[]
  readonly #placeholders: readonly Node[]

  /** Throws GraphError for an empty pattern, and for a pattern with dead code. */
  constructor(pattern: Graph, options: MatcherOptions = {}) {
    checkCount('SubgraphMatcher', arguments, 2)
    checkGraph('SubgraphMatcher', pattern, 'pattern')
    checkOptions('SubgraphMatcher', options, {
      matchOutput: 'boolean',
      matchPlaceholder: 'boolean',
      removeOverlappingMatches: 'boolean',
      ignoreLiterals: 'boolean',
    })
    this.pattern = pattern
    this.#options = { matchOutput: false, matchPlaceholder: false, removeOverlappingMatches: true, ignoreLiterals: false, ...options }
    if ([...pattern.nodes].every((n) => n.op === 'placeholder' || n.op === 'output'))
      throw new GraphError('SubgraphMatcher cannot be initialized with an empty pattern')
    const dead = [...pattern.nodes].find((n) => n.op !== 'output' && n.users.size === 0)
    if (dead !== undefined) throw new GraphError(`SubgraphMatcher cannot be initialized with an pattern with dead code: '${dead.name}' is unused.`)
    const output = pattern.outputNode()
    this.#placeholders = pattern.findNodes({ op: 'placeholder' })
    this.#returning = output.allInputNodes
    this.#anchors = this.#options.matchOutput ? [output] : this.#returning.filter((n) => n.users.size === 1)
  }

  /** All matches, in graph order. */
  match(graph: Graph): InternalMatch[] {
    const [first, ...others] = this.#anchors
    if (first === undefined) return []
    const candidates = new Map(this.#anchors.map((anchor) => [anchor, [...graph.nodes].filter((node) => this.#nodesAreEqual(anchor, node))]))
    const found: InternalMatch[] = []
    const attempt = new Attempt()
    const extend = ([anchor, ...rest]: readonly Node[]): void => {
      if (anchor === undefined) {
        found.push(this.#result([first, ...others], attempt))
        return
      }
      for (const node of candidates.get(anchor) ?? []) {
        const mark = attempt.mark
        if (this.#matchNodes(anchor, node, attempt)) extend(rest)
        attempt.undo(mark)
      }
    }
    extend(this.#anchors)
    const valid = found.filter(({ nodesMap }) => this.#leak(nodesMap) === null && cycleThrough(innerNodes(nodesMap)) === null)
    return this.#options.removeOverlappingMatches ? withoutOverlaps(valid) : valid
  }

  /**
   * Why the pattern does not match at a node, which should be what the pattern returns: the first difference of the attempt that got furthest, or what is wrong
   * with the match. Null if the pattern matches there.
   */
  explain(node: Node): string | null {
    const failure: Failure = { depth: -1, why: '' }
    let why: string | null = null
    for (const anchor of this.#anchors) {
      const attempt = new Attempt(failure)
      if (!this.#matchNodes(anchor, node, attempt)) continue
      if (this.match(node.graph).some((match) => match.nodesMap.get(anchor) === node)) return null
      why =
        this.#leak(attempt.map) ??
        cycleThrough(innerNodes(attempt.map)) ??
        'another match uses some of its nodes, or another returned value of the pattern was not found'
    }
    return why ?? failure.why
  }

  #result(anchors: InternalMatch['anchors'], { map }: Attempt): InternalMatch {
    return {
      anchors,
      nodesMap: new Map(map),
      placeholderNodes: this.#placeholders.map((p) => map.get(p)),
      returningNodes: this.#returning.map((r) => map.get(r)).filter((node): node is Node => node instanceof Node),
    }
  }

  #nodesAreEqual(pattern: Node, node: Node): boolean {
    if (pattern.op === 'placeholder' && !this.#options.matchPlaceholder) return true
    if (!sameKind(pattern, node)) return false
    if (pattern.op === 'placeholder' || pattern.op === 'output' || pattern.op === 'get_attr') return true
    return operationOf(pattern) === operationOf(node)
  }

  /** Whether the part of the pattern that a node needs matches at `node`. Without recursion: patterns can be as deep as graphs. */
  #matchNodes(pattern: Node, node: Node, attempt: Attempt): boolean {
    const { mark, todo } = attempt
    todo.push([pattern, node, pattern, node])
    for (let pair = todo.pop(); pair !== undefined; pair = todo.pop()) {
      if (this.#matchValue(pair, attempt)) continue
      attempt.undo(mark)
      todo.length = 0
      return false
    }
    return true
  }

  #matchPair(pattern: Node, node: Node, attempt: Attempt): boolean {
    if (attempt.map.has(pattern)) {
      const known = attempt.map.get(pattern)
      return known === node || attempt.fail(() => `${quoted(pattern)} is both ${formatArg(known)} and %${node.name}`)
    }
    if (attempt.uses(node)) return attempt.fail(() => `%${node.name} would have to be two nodes of the pattern, '${pattern.name}' one of them`)
    if (!this.#nodesAreEqual(pattern, node))
      return attempt.fail(
        () => `${quoted(pattern)} is ${pattern.op} ${nodeTargetText(pattern)}, but %${node.name} is ${node.op} ${nodeTargetText(node)}`,
      )
    attempt.add(pattern, node)
    return pattern.op === 'placeholder' || this.#matchArguments(pattern, node, attempt)
  }

  #matchArguments(pattern: Node, node: Node, attempt: Attempt): boolean {
    const keys = Object.keys(pattern.kwargs)
    const others = Object.keys(node.kwargs)
    const sameForm = pattern.args.length === node.args.length && keys.length === others.length && keys.every((key, i) => key === others[i])
    const values = (of: Node): Argument[] => [...of.args, ...Object.values(of.kwargs)]
    const left = sameForm ? values(pattern) : normalizedArgs(pattern)
    const right = sameForm ? values(node) : normalizedArgs(node)
    if (left === null || right === null)
      return attempt.fail(() => `${quoted(pattern)} has other arguments than %${node.name}: ${argsText(pattern)} and ${argsText(node)}`)
    return this.#matchLists([left, right, pattern, node], attempt)
  }

  #matchLists([left, right, pattern, node]: Pair<readonly Argument[]>, attempt: Attempt): boolean {
    if (left.length !== right.length)
      return attempt.fail(() => `a list of '${pattern.name}' has ${left.length} elements, that of %${node.name} has ${right.length}`)
    // The first comes first.
    for (let i = left.length - 1; i >= 0; i--) attempt.todo.push([left[i], right[i], pattern, node])
    return true
  }

  #matchValue([left, right, pattern, node]: Pair, attempt: Attempt): boolean {
    if (left instanceof Node) {
      if (right instanceof Node) return this.#matchPair(left, right, attempt)
      if (left.op !== 'placeholder')
        return attempt.fail(() => `'${pattern.name}' takes the node '${left.name}', %${node.name} takes ${formatArg(right)}`)
      if (!attempt.map.has(left)) {
        attempt.add(left, right)
        return true
      }
      return sameLiteral(attempt.map.get(left), right) || attempt.fail(() => `${quoted(left)} stands for two literals`)
    }
    if (Array.isArray(left) && Array.isArray(right)) return this.#matchLists([left, right, pattern, node], attempt)
    if (holdsNode(left) && isObject(right) && sameKeys(left, right))
      return this.#matchLists([Object.values(left), Object.keys(left).map((key): Argument => Reflect.get(right, key)), pattern, node], attempt)
    if (!(right instanceof Node) && (this.#options.ignoreLiterals || sameLiteral(left, right))) return true
    return attempt.fail(() => `${quoted(pattern)} has ${formatArg(left)} where %${node.name} has ${formatArg(right)}`)
  }

  /** The use, outside the match, of a value that the pattern does not return; null if there is none. */
  #leak(nodesMap: ReadonlyMap<Node, Argument>): string | null {
    const inner = new Set(innerNodes(nodesMap))
    const output = nodesMap.get(this.pattern.outputNode())
    for (const [pattern, node] of innerPairs(nodesMap)) {
      if (this.#returning.includes(pattern)) continue
      for (const user of node.users)
        if (!inner.has(user) && user !== output)
          return `%${node.name} is inside the match (${quoted(pattern)}), but %${user.name} outside of it uses it`
    }
    return null
  }
}

const quoted = (node: Node): string => `'${node.name}' of the pattern`

const argsText = (node: Node): string =>
  `(${[...node.args.map((a) => formatArg(a)), ...Object.entries(node.kwargs).map(([k, v]) => `${k}: ${formatArg(v)}`)].join(', ')})`

/** Whether a node is somewhere in a record or slice. */
const holdsNode = (value: unknown): value is Readonly<Record<string, Argument>> =>
  isObject(value) && Object.values(value).some((item) => item instanceof Node || holdsNode(item))

const sameKeys = (a: object, b: object): boolean => {
  const keys = Object.keys(a)
  return Object.getPrototypeOf(a) === Object.getPrototypeOf(b) && keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key))
}

const sameLiteral = (a: Argument, b: Argument): boolean =>
  Object.is(a, b) ||
  (isObject(a) &&
    isObject(b) &&
    !(a instanceof Node) &&
    sameKeys(a, b) &&
    Object.entries(a).every(([key, value]) => sameLiteral(value, Reflect.get(b, key))))

/** A path from a matched node through other nodes back to a matched one; null if there is none. With such a path the match could not become one operation. */
function cycleThrough(nodes: readonly Node[]): string | null {
  const inner = new Set(nodes)
  const last = nodes.reduce((key, n) => Math.max(key, n.sortKey), 0)
  const seen = new Set<Node>()
  const stack = nodes.flatMap((n) => [...n.users].filter((user) => !inner.has(user)))
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    // Nodes after the whole match cannot lead back into it.
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
    const inner = innerNodes(match.nodesMap)
    if (inner.some((node) => taken.has(node))) return false
    for (const node of inner) taken.add(node)
    return true
  })
}
