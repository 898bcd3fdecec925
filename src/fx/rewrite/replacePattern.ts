// replacePattern: find and replace on graphs. PyTorch's torch.fx.subgraph_rewriter.
import { ArgumentError } from '../../errors/index.ts'
import { Module } from '../../module/index.ts'
import { GraphError } from '../errors.ts'
import { Graph } from '../graph.ts'
import { GraphModule } from '../graphModule.ts'
import { Node } from '../node.ts'
import type { Argument } from '../node.ts'
import { symbolicTrace } from '../symbolicTrace.ts'
import type { Traceable } from '../tracer.ts'
import { SubgraphMatcher } from './matcher.ts'
import type { InternalMatch } from './match.ts'

/** A pattern or a replacement: a function or module, which is traced, a GraphModule, or a graph. */
export type Pattern = Traceable | Graph

/** One occurrence that was replaced; PyTorch's Match. */
export interface Match {
  /** The pattern's node from which it was found. */
  readonly anchor: Node
  /** Pattern node -> node of the graph, or the literal that a pattern placeholder stands for. */
  readonly nodesMap: ReadonlyMap<Node, Argument>
}

/** The same with the nodes that came in its place; PyTorch's ReplacedPatterns. */
export interface ReplacedPatterns extends Match {
  readonly replacements: readonly Node[]
}

/** Whether a match is to be replaced. */
export type MatchFilter = (match: InternalMatch, graph: Graph, pattern: Graph) => boolean

/** Options of {@link replacePatternWithFilters}. */
export interface ReplaceOptions {
  /** All must say yes. */
  readonly matchFilters?: readonly MatchFilter[]
  /** Literals of the pattern match any literal. Default false. */
  readonly ignoreLiterals?: boolean
  /** Makes the replacement for each match, instead of a fixed one. */
  readonly replacementCallback?: (match: InternalMatch, graph: Graph, pattern: Graph) => Graph
}

const graphOf = (pattern: Pattern): Graph =>
  pattern instanceof Graph ? pattern : pattern instanceof GraphModule ? pattern.graph : symbolicTrace(pattern).graph

/**
 * Replaces every occurrence of `pattern` in `gm` by `replacement`, both given as functions (traced), modules or graphs, with as many
 * parameters each. Of overlapping occurrences the first wins. New nodes take over the stack and module path of what they replace. Lints and recompiles.
 * Returns the matches. PyTorch's torch.fx.replace_pattern.
 */
export function replacePattern(gm: GraphModule, pattern: Pattern, replacement: Pattern): Match[] {
  return replaceAll('replacePattern', gm, pattern, replacement, {}).map(({ anchor, nodesMap }) => ({ anchor, nodesMap }))
}

/**
 * The same for the occurrences that pass all filters. The replacement is null when a callback makes one for each match. Returns the matches with the new nodes.
 * PyTorch's replace_pattern_with_filters.
 */
export function replacePatternWithFilters(
  gm: GraphModule,
  pattern: Pattern,
  replacement: Pattern | null,
  options: ReplaceOptions = {},
): ReplacedPatterns[] {
  return replaceAll('replacePatternWithFilters', gm, pattern, replacement, options)
}

function replaceAll(name: string, gm: GraphModule, pattern: Pattern, replacement: Pattern | null, options: ReplaceOptions): ReplacedPatterns[] {
  if (!(gm instanceof GraphModule))
    throw new ArgumentError(`${name}: the first argument must be a GraphModule; trace the model with symbolicTrace first.`)
  const { matchFilters = [], ignoreLiterals = false, replacementCallback } = options
  if (replacement === null && replacementCallback === undefined)
    throw new ArgumentError(`${name}: Must provide either a replacement GraphModule or a replacement callback`)
  const from = graphOf(pattern)
  const common = replacement === null || replacementCallback !== undefined ? null : replacementGraph(gm, replacement)
  const matches = new SubgraphMatcher(from, { ignoreLiterals })
    .match(gm.graph)
    .filter((match) => matchFilters.every((filter) => filter(match, gm.graph, from)))
  // Everything that can be wrong is checked before anything changes.
  const plans = matches.map((match) => ({
    match,
    to: common ?? (replacementCallback as NonNullable<typeof replacementCallback>)(match, gm.graph, from),
  }))
  const replacements = new Set(common === null ? plans.map((p) => p.to) : [common])
  for (const to of replacements) checkReplacement(name, gm, from, to)
  if (plans.length > 0) for (const to of replacements) adoptAttributes(gm, to)
  const replaced = new Map<Node, Node>()
  const done = plans.map(({ match, to }) => replaceOne(gm.graph, match, from, to, replaced))
  if (replacement instanceof Module) gm.deleteAllUnusedSubmodules()
  gm.graph.lint()
  gm.recompile()
  return done
}

/** The graph of a replacement. What a function uses from outside gets names that `gm` has no other use for. */
function replacementGraph(gm: GraphModule, replacement: Pattern): Graph {
  const graph = graphOf(replacement)
  if (typeof replacement !== 'function') return graph
  const module = graph.owningModule as GraphModule
  const renamed = new Map<string, string>()
  for (const node of referring(graph)) {
    const path = node.target as string
    const value = module.attribute(path)
    if (!renamed.has(path)) {
      let fresh = path
      for (let i = 1; gm.attribute(fresh) !== undefined && gm.attribute(fresh) !== value; i++) fresh = `${path}_${i}`
      renamed.set(path, fresh)
      if (fresh !== path) module.assignAttribute(fresh, value)
    }
    node.target = renamed.get(path) as string
  }
  return graph
}

/** Nodes that refer to an attribute of the module. */
const referring = (graph: Graph): Node[] => [...graph.findNodes({ op: 'get_attr' }), ...graph.findNodes({ op: 'call_module' })]

function checkReplacement(name: string, gm: GraphModule, from: Graph, to: Graph): void {
  for (const node of referring(to)) {
    if (gm.attribute(node.target as string) === undefined && to.owningModule?.attribute(node.target as string) === undefined)
      throw new GraphError(
        `${name}: Attempted to create a "${node.op}" node during subgraph rewriting with target ${node.target as string}, but the referenced attribute does not exist in the replacement GraphModule`,
      )
  }
  const count = (graph: Graph): number => graph.findNodes({ op: 'placeholder' }).length
  if (count(from) !== count(to))
    throw new ArgumentError(`${name}: the pattern has ${count(from)} parameters but the replacement has ${count(to)}; give both the same.`)
  const wanted = returned(from).length
  const given = returned(to)
  if (given.length !== wanted) throw new GraphError(`${name}: the pattern returns ${wanted} values but the replacement returns ${given.length}.`)
  if (!given.every((value) => value instanceof Node))
    throw new GraphError(`${name}: the replacement must return values that it computes, not constants.`)
}

/** The values that a graph returns, in order; a value that it returns twice is there twice. */
function returned(graph: Graph): Argument[] {
  return leaves(graph.outputNode().args[0] as Argument)
}

function leaves(value: Argument): Argument[] {
  if (value instanceof Node || typeof value !== 'object' || value === null) return [value]
  return Object.values(value).flatMap((v) => leaves(v as Argument))
}

function replaceOne(graph: Graph, match: InternalMatch, from: Graph, to: Graph, replaced: Map<Node, Node>): ReplacedPatterns {
  // What this match takes may be the result of an earlier one.
  match.placeholderNodes.forEach((value, i) => {
    const now = value instanceof Node ? replaced.get(value) : undefined
    if (now !== undefined) match.placeholderNodes[i] = now
  })
  for (const [pattern, value] of match.nodesMap) {
    const now = value instanceof Node ? replaced.get(value) : undefined
    if (now !== undefined) match.nodesMap.set(pattern, now)
  }
  const values = new Map<Node, Argument>(to.findNodes({ op: 'placeholder' }).map((input, i) => [input, match.placeholderNodes[i] as Argument]))
  const inputs = new Set(values.values())
  const origin = originOf(match)
  const results = graph.insertingBefore(firstAfter(match.returningNodes), () => leaves(graph.graphCopy(to, values) as Argument))
  const replacements = [...values.values()].filter((value): value is Node => value instanceof Node && !inputs.has(value))
  for (const node of replacements) node.meta = { ...origin }
  returned(from).forEach((pattern, i) => {
    const old = match.nodesMap.get(pattern as Node) as Node
    const result = results[i] as Node
    if (result === old || replaced.has(old)) return
    old.replaceAllUsesWith(result)
    replaced.set(old, result)
  })
  for (const node of from.nodes.reversed()) {
    if (node.op === 'placeholder' || node.op === 'output') continue
    const target = match.nodesMap.get(node)
    if (target instanceof Node && !target.erased) graph.eraseNode(target)
  }
  return { anchor: match.anchors[0] as Node, nodesMap: match.nodesMap, replacements }
}

/** Where the replacement goes: before the first user of a returned node; without users, behind the last of them. */
function firstAfter(nodes: readonly Node[]): Node | null {
  const byOrder = (a: Node, b: Node): number => a.sortKey - b.sortKey
  const users = nodes.flatMap((n) => [...n.users]).sort(byOrder)
  return users[0] ?? [...nodes].sort(byOrder).at(-1)?.next ?? null
}

/** New nodes stand where the matched one stood in the user's program. */
function originOf(match: InternalMatch): Record<string, unknown> {
  const anchor = match.nodesMap.get(match.anchors[0] as Node)
  if (!(anchor instanceof Node)) return {}
  return Object.fromEntries(['stack_trace', 'nn_module_stack'].flatMap((key) => (anchor.meta[key] === undefined ? [] : [[key, anchor.meta[key]]])))
}

/** Attributes that the replacement refers to and the module lacks come along. */
function adoptAttributes(gm: GraphModule, to: Graph): void {
  for (const node of referring(to)) {
    const path = node.target as string
    if (gm.attribute(path) === undefined) gm.assignAttribute(path, to.owningModule?.attribute(path))
  }
}
