// Cutting a part out of a failing graph: the kept operators stay as they are, and what they need from the others becomes inputs with the values of the failing run.
import { present } from '../../errors/index.ts'
import { Graph } from '../../fx/index.ts'
import type { Node } from '../../fx/index.ts'
import type { Calls } from '../runs/history.ts'

/** A graph with one input per placeholder. */
export interface ReproState {
  graph: Graph
  inputs: readonly unknown[]
  /** The inputs of the calls before, where the failure needs them. */
  earlier: Calls
}

/** Key in `node.meta` of the value that a node had in the failing run, and of those that it had in the calls before. */
export const CONCRETE_VALUE = 'concrete_value'
export const EARLIER_VALUES = 'earlier_values'

/** The values that a node had in the calls before. */
function earlierValues(node: Node): readonly unknown[] {
  const values: unknown = node.meta[EARLIER_VALUES]
  return Array.isArray(values) ? values : []
}

/** The nodes that compute: all but the inputs and the output. */
export const operatorsOf = (graph: Graph): readonly Node[] => [...graph.nodes].filter((node) => node.op !== 'placeholder' && node.op !== 'output')

/** Whether a node has several values, such as `topk`. An input holds one value, so such a node stays with those who take values from it. */
const isMany = (node: Node): boolean => Array.isArray(node.meta[CONCRETE_VALUE])

const canBeInput = (node: Node): boolean => node.op === 'placeholder' || (node.meta[CONCRETE_VALUE] !== undefined && !isMany(node))

/** The nodes that must be kept if these are. */
function closure(wanted: Iterable<Node>): ReadonlySet<Node> {
  const kept = new Set<Node>(wanted)
  for (const node of kept) {
    for (const input of node.allInputNodes) if (!canBeInput(input)) kept.add(input)
    if (isMany(node)) for (const user of node.users) if (user.op !== 'output') kept.add(user)
  }
  return kept
}

/** Copies a node, whose inputs `copies` has, to the end of a graph. */
function copyInto(graph: Graph, node: Node, copies: Map<Node, Node>): void {
  copies.set(
    node,
    graph.nodeCopy(node, (input) => copyOf(copies, input)),
  )
}

const copyOf = (copies: ReadonlyMap<Node, Node>, node: Node): Node => present(copies.get(node), `the copy of ${node.name}`)

/**
 * The state with only these operators, and those that cannot be separated from them. It returns each value that the rest would have used, and with `returnInputs` the
 * inputs that it returned. Null if it would return nothing, or if no operator goes away.
 */
export function keepOnly({ graph, inputs, earlier }: ReproState, wanted: Iterable<Node>, returnInputs = false): ReproState | null {
  const kept = closure(wanted)
  if (kept.size >= operatorsOf(graph).length) return null
  const nodes: readonly Node[] = [...graph.nodes]
  // A graph without operators can return nothing else.
  const withInputs = returnInputs || kept.size === 0
  const isReturned = (node: Node): boolean => graph.outputNode().allInputNodes.includes(node)
  const returns = (node: Node): boolean =>
    node.op === 'placeholder' ? withInputs && isReturned(node) : kept.has(node) && !isMany(node) && isUsedOutside(node, kept)
  const used = nodes.filter(returns)
  // An operator may fail whose result is unused.
  const outputs = used.length > 0 ? used : nodes.filter((node) => kept.has(node) && !isMany(node) && node.users.size === 0)
  if (outputs.length === 0) return null
  const needed = new Set([...kept].flatMap((node) => node.allInputNodes).concat(outputs))
  const positions = new Map<Node, number>(graph.findNodes({ op: 'placeholder' }).map((node, i) => [node, i]))
  const cut = new Graph()
  const copies = new Map<Node, Node>()
  const replaced = nodes.filter((node) => needed.has(node) && !kept.has(node))
  for (const node of replaced) {
    const input = cut.placeholder(node.op === 'placeholder' ? node.target : node.name)
    Object.assign(input.meta, node.meta)
    copies.set(node, input)
  }
  for (const node of nodes) if (kept.has(node)) copyInto(cut, node, copies)
  cut.output(outputs.map((node) => copyOf(copies, node)))
  const given = (values: readonly unknown[], computed: (node: Node) => unknown): readonly unknown[] =>
    replaced.map((node) => (node.op === 'placeholder' ? values[positions.get(node) ?? 0] : computed(node)))
  return {
    graph: cut,
    inputs: given(inputs, (node) => node.meta[CONCRETE_VALUE]),
    earlier: earlier.map((values, call) => given(values, (node) => earlierValues(node)[call])),
  }
}

const isUsedOutside = (node: Node, kept: ReadonlySet<Node>): boolean => [...node.users].some((user) => !kept.has(user))

/** The state without the inputs that are not used; null if all are used. */
export function withoutUnusedInputs({ graph, inputs, earlier }: ReproState): ReproState | null {
  const placeholders: readonly Node[] = graph.findNodes({ op: 'placeholder' })
  const unused = placeholders.filter((n) => n.users.size === 0)
  if (unused.length === 0) return null
  const used = placeholders.map((node) => node.users.size !== 0)
  const kept = (values: readonly unknown[]): readonly unknown[] => values.filter((_, i) => used[i] !== false)
  for (const node of unused) graph.eraseNode(node)
  return { graph, inputs: kept(inputs), earlier: earlier.map(kept) }
}

/** The state with inputs in the place of tensors that the graph holds; null if it holds none. */
export function withoutAttributes(state: ReproState): ReproState | null {
  const operators = operatorsOf(state.graph)
  return keepOnly(
    state,
    operators.filter((node) => node.op !== 'get_attr' || node.meta[CONCRETE_VALUE] === undefined),
  )
}
