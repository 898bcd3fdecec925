// replacePattern: find and replace on graphs.
import { ArgumentError } from '../errors/index.ts'
import { Module } from '../module/index.ts'
import { GraphError } from './errors.ts'
import { Graph } from './graph.ts'
import { GraphModule } from './graphModule.ts'
import { SubgraphMatcher } from './matcher.ts'
import type { Match } from './matcher.ts'
import { Node } from './node.ts'
import type { Argument } from './node.ts'
import { symbolicTrace } from './symbolicTrace.ts'
import type { Traceable } from './tracer.ts'

export type Pattern = Traceable | Graph

const graphOf = (pattern: Pattern): Graph =>
  pattern instanceof Graph ? pattern : pattern instanceof GraphModule ? pattern.graph : symbolicTrace(pattern).graph

/**
 * Replaces every occurrence of `pattern` in `gm` by `replacement`, both given as functions (traced), modules or graphs, with as many
 * parameters each. Overlapping occurrences: the first wins. Returns the matches. Lints and recompiles. PyTorch's torch.fx.replace_pattern.
 */
export function replacePattern(gm: GraphModule, pattern: Pattern, replacement: Pattern): Match[] {
  if (!(gm instanceof GraphModule))
    throw new ArgumentError('replacePattern: the first argument must be a GraphModule; trace the model with symbolicTrace first.')
  const from = graphOf(pattern)
  const to = graphOf(replacement)
  const fromInputs = from.findNodes({ op: 'placeholder' })
  const toInputs = to.findNodes({ op: 'placeholder' })
  if (fromInputs.length !== toInputs.length)
    throw new ArgumentError(
      `replacePattern: the pattern has ${fromInputs.length} parameters but the replacement has ${toInputs.length}; give both the same.`,
    )
  const matches = new SubgraphMatcher(from).match(gm.graph)
  const replaced = new Map<Node, Argument>()
  for (const match of matches) replaceOne(gm.graph, match, from, fromInputs, to, toInputs, replaced)
  if (replacement instanceof Module) adoptAttributes(gm, replacement)
  gm.graph.lint()
  gm.recompile()
  return matches
}

function replaceOne(
  graph: Graph,
  match: Match,
  from: Graph,
  fromInputs: readonly Node[],
  to: Graph,
  toInputs: readonly Node[],
  replaced: Map<Node, Argument>,
): void {
  // An input of this match may be the result of an earlier one.
  const current = (value: Argument): Argument => (value instanceof Node && replaced.has(value) ? (replaced.get(value) as Argument) : value)
  const values = new Map<Node, Argument>()
  toInputs.forEach((input, i) => values.set(input, current(match.nodesMap.get(fromInputs[i] as Node))))
  const matched = returnedNodes(from).map((n) => match.nodesMap.get(n) as Node)
  const firstUser = matched.flatMap((n) => [...n.users]).sort((a, b) => a.sortKey - b.sortKey)[0]
  const results = graph.insertingBefore(firstUser ?? graph.outputNode(), () => {
    const inputs = new Set(values.values())
    const value = graph.graphCopy(to, values)
    inheritOrigin(values.values(), inputs, match.anchor)
    return Array.isArray(value) ? (value as readonly Argument[]) : [value]
  })
  if (results.length !== matched.length)
    throw new GraphError(`replacePattern: the pattern returns ${matched.length} values but the replacement returns ${results.length}.`)
  matched.forEach((old, i) => {
    const result = results[i]
    if (!(result instanceof Node)) throw new GraphError('replacePattern: the replacement must return values of the graph.')
    old.replaceAllUsesWith(result)
    replaced.set(old, result)
  })
  for (const node of [...from.nodes.reversed()]) {
    if (node.op === 'placeholder' || node.op === 'output') continue
    const target = match.nodesMap.get(node)
    if (target instanceof Node && !target.erased) graph.eraseNode(target)
  }
}

const returnedNodes = (graph: Graph): readonly Node[] => graph.outputNode().allInputNodes

/** New nodes stand where the matched one stood in the user's program. */
function inheritOrigin(copies: Iterable<Argument>, inputs: ReadonlySet<Argument>, anchor: Node): void {
  for (const node of copies) {
    if (!(node instanceof Node) || inputs.has(node)) continue
    node.meta = {}
    for (const key of ['stack_trace', 'nn_module_stack']) if (anchor.meta[key] !== undefined) node.meta[key] = anchor.meta[key]
  }
}

/** Attributes of a replacement module that the target lacks. */
function adoptAttributes(gm: GraphModule, replacement: Module): void {
  const source = replacement instanceof GraphModule ? replacement : symbolicTrace(replacement)
  for (const node of gm.graph.nodes) {
    if (node.op !== 'call_module' && node.op !== 'get_attr') continue
    const path = node.target as string
    if (gm.attribute(path) !== undefined) continue
    const value = source.attribute(path)
    if (value === undefined)
      throw new GraphError(
        `Attempted to create a "${node.op}" node during subgraph rewriting with target ${path}, but the referenced attribute does not exist in the replacement GraphModule`,
      )
    if (value instanceof Module) gm.addSubmodule(path, value)
    else (gm as unknown as Record<string, unknown>)[path] = value
  }
  gm.deleteAllUnusedSubmodules()
}
