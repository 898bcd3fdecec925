// replacePattern: find-and-replace on graphs. PyTorch's torch.fx.subgraph_rewriter.
import { ArgumentError } from '../../errors/index.ts'
import { Module } from '../../module/index.ts'
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { checkArgument, checkCount, checkOptions, isCallable, isClass, isFunction, remembered } from '../../protocol/index.ts'
import { GraphError } from '../graph/errors.ts'
import { Graph } from '../graph/graph.ts'
import { referringNodes } from '../graph/lint.ts'
import { freePath } from '../run/attributes.ts'
import { GraphModule } from '../run/graphModule.ts'
import { Node } from '../graph/node.ts'
import type { Argument, Meta } from '../graph/node.ts'
import { symbolicTrace } from '../trace/symbolicTrace.ts'
import type { Traceable } from '../trace/tracer.ts'
import { SubgraphMatcher } from './matcher.ts'
import type { InternalMatch } from './matcher.ts'

/** A pattern or a replacement: a function or module, which is traced, or a GraphModule or graph. */
export type Pattern = Traceable | Graph

/** An occurrence of a pattern that was replaced; PyTorch's Match. */
export interface Match {
  /** The node of the pattern from which the search started. */
  readonly anchor: Node
  /** From node of the pattern to node of the graph, or to the literal that a placeholder of the pattern stands for. */
  readonly nodesMap: ReadonlyMap<Node, Argument>
}

/** A {@link Match} and the nodes that replaced it; PyTorch's ReplacedPatterns. */
export interface ReplacedPatterns extends Match {
  readonly replacements: readonly Node[]
}

/** Whether to replace a match. */
export type MatchFilter = (match: InternalMatch, graph: Graph, pattern: Graph) => boolean

/** Options of {@link replacePatternWithFilters}. */
export interface ReplaceOptions {
  /** Only matches that pass all filters are replaced. */
  readonly matchFilters?: readonly MatchFilter[]
  /** A literal in the pattern matches any literal. Default false. */
  readonly ignoreLiterals?: boolean
  /** Makes the replacement for each match. */
  readonly replacementCallback?: (match: InternalMatch, graph: Graph, pattern: Graph) => Graph
}

function graphOf(where: string, name: string, pattern: Pattern): Graph {
  if (pattern instanceof Graph) return pattern
  checkArgument(isCallable(pattern) && !isClass(pattern), where, name, 'a function, a Module or a Graph', pattern)
  return pattern instanceof GraphModule ? pattern.graph : symbolicTrace(pattern).graph
}

/**
 * Replaces every occurrence of `pattern` in `gm` with `replacement`. Both are functions (which are traced), modules or graphs, and must have the same number of
 * parameters. Of overlapping occurrences only the first is replaced. New nodes get the stack trace and module path of what they replace. Lints and recompiles.
 * Returns the matches. Throws ArgumentError or GraphError, before changing anything, for a replacement that does not fit. PyTorch's torch.fx.replace_pattern.
 */
export function replacePattern(gm: GraphModule, pattern: Pattern, replacement: Pattern): Match[] {
  checkCount('replacePattern', arguments, 3)
  return replaceAll('replacePattern', gm, pattern, replacement, {}).map(({ anchor, nodesMap }) => ({ anchor, nodesMap }))
}

/**
 * Like {@link replacePattern}, but replaces only the occurrences that pass all filters. If a callback makes the replacement of each match, pass null as
 * `replacement`. Returns the matches with the new nodes. PyTorch's replace_pattern_with_filters.
 */
export function replacePatternWithFilters(
  gm: GraphModule,
  pattern: Pattern,
  replacement: Pattern | null,
  options: ReplaceOptions = {},
): ReplacedPatterns[] {
  checkCount('replacePatternWithFilters', arguments, 4)
  checkOptions('replacePatternWithFilters', options, { matchFilters: true, ignoreLiterals: 'boolean', replacementCallback: true })
  return replaceAll('replacePatternWithFilters', gm, pattern, replacement, options)
}

function replaceAll(name: string, gm: GraphModule, pattern: Pattern, replacement: Pattern | null, options: ReplaceOptions): ReplacedPatterns[] {
  checkGraphModule(name, gm)
  const { matchFilters = [], ignoreLiterals = false, replacementCallback } = options
  if (replacement === null && replacementCallback === undefined)
    throw new ArgumentError(`${name}: Must provide either a replacement GraphModule or a replacement callback`)
  const from = graphOf(name, 'pattern', pattern)
  const common = replacement === null || replacementCallback !== undefined ? null : replacementGraph(name, gm, replacement)
  const matches = new SubgraphMatcher(from, { ignoreLiterals })
    .match(gm.graph)
    .filter((match) => matchFilters.every((filter) => filter(match, gm.graph, from)))
  // Check everything before changing anything.
  const plans = matches.flatMap((match) => {
    const to = common ?? replacementCallback?.(match, gm.graph, from)
    return to === undefined ? [] : [{ match, to }]
  })
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

/** The graph of a replacement. Attributes of a traced function are renamed if `gm` has other attributes of these names. */
function replacementGraph(where: string, gm: GraphModule, replacement: Pattern): Graph {
  const graph = graphOf(where, 'replacement', replacement)
  const module = graph.owningModule
  if (!isFunction(replacement) || !(module instanceof GraphModule)) return graph
  const renamed = new Map<string, string>()
  for (const node of [...referringNodes(graph)]) {
    const path = node.target
    const free = remembered(renamed, path, () => {
      const made = freePath(gm, path, module.attribute(path))
      if (made !== path) module.assignAttribute(made, module.attribute(path))
      return made
    })
    node.target = free
  }
  return graph
}

function checkReplacement(name: string, gm: GraphModule, from: Graph, to: Graph): void {
  for (const node of referringNodes(to)) {
    if (gm.attribute(node.target) === undefined && to.owningModule?.attribute(node.target) === undefined)
      throw new GraphError(
        `${name}: Attempted to create a "${node.op}" node during subgraph rewriting with target ${node.target}, but the referenced attribute does not exist in the replacement GraphModule`,
      )
  }
  const count = (graph: Graph): number => graph.findNodes({ op: 'placeholder' }).length
  if (count(from) !== count(to))
    throw new ArgumentError(
      `${name}: the pattern has ${count(from)} parameters but the replacement has ${count(to)}; both must have the same number.`,
    )
  const wanted = returned(from).length
  const given = returned(to)
  if (given.length !== wanted) throw new GraphError(`${name}: the pattern returns ${wanted} values but the replacement returns ${given.length}.`)
  if (!given.every((value) => value instanceof Node))
    throw new GraphError(`${name}: the replacement must return values that it computes, not constants.`)
}

/** The values that a graph returns, in order. A value that it returns twice is listed twice. */
function returned(graph: Graph): Argument[] {
  return leaves(graph.outputNode().args[0])
}

function leaves(value: Argument): Argument[] {
  if (value instanceof Node || typeof value !== 'object' || value === null) return [value]
  return Object.values(value).flatMap((v) => leaves(v))
}

function replaceOne(graph: Graph, match: InternalMatch, from: Graph, to: Graph, replaced: Map<Node, Node>): ReplacedPatterns {
  // An input of this match may be the result of an earlier one.
  const current = (value: Argument): Argument => (value instanceof Node ? (replaced.get(value) ?? value) : value)
  match.placeholderNodes.forEach((value, i) => (match.placeholderNodes[i] = current(value)))
  for (const [pattern, value] of match.nodesMap) match.nodesMap.set(pattern, current(value))
  const values = new Map<Node, Argument>(to.findNodes({ op: 'placeholder' }).map((input, i) => [input, match.placeholderNodes[i]]))
  const inputs = new Set(values.values())
  const meta = inheritedMeta(match)
  const results = graph.insertingBefore(firstAfter(match.returningNodes), () => leaves(graph.graphCopy(to, values)))
  const replacements = [...values.values()].filter((value): value is Node => value instanceof Node && !inputs.has(value))
  for (const node of replacements) node.meta = { ...meta }
  returned(from).forEach((pattern, i) => {
    const old = pattern instanceof Node ? match.nodesMap.get(pattern) : undefined
    const result = results[i]
    if (!(old instanceof Node) || !(result instanceof Node) || result === old || replaced.has(old)) return
    old.replaceAllUsesWith(result)
    replaced.set(old, result)
  })
  for (const node of from.nodes.reversed()) {
    if (node.op === 'placeholder' || node.op === 'output') continue
    const target = match.nodesMap.get(node)
    if (target instanceof Node && !target.erased) graph.eraseNode(target)
  }
  return { anchor: match.anchors[0], nodesMap: match.nodesMap, replacements }
}

/** Where to insert the replacement: before the first user of a returned node, or after the last returned node if they have no users. */
function firstAfter(nodes: readonly Node[]): Node | null {
  const byOrder = (a: Node, b: Node): number => a.compareTo(b)
  const users = nodes.flatMap((n) => [...n.users]).sort(byOrder)
  return users[0] ?? [...nodes].sort(byOrder).at(-1)?.next ?? null
}

/** The stack trace and module path of the matched code, which new nodes inherit. */
function inheritedMeta(match: InternalMatch): Meta {
  const anchor = match.nodesMap.get(match.anchors[0])
  if (!(anchor instanceof Node)) return {}
  return Object.fromEntries(['stack_trace', 'nn_module_stack'].flatMap((key) => (anchor.meta[key] === undefined ? [] : [[key, anchor.meta[key]]])))
}

/** Adds the attributes that the replacement refers to and `gm` lacks. */
function adoptAttributes(gm: GraphModule, to: Graph): void {
  for (const { target: path } of referringNodes(to)) if (gm.attribute(path) === undefined) gm.assignAttribute(path, to.owningModule?.attribute(path))
}
