// The minifier's six strategies. Each takes a state (a graph and one input per placeholder), tries smaller variants, and returns the first one that
// still fails, or null. It may change the state that it gets.
import { present } from '../errors/index.ts'
import { Graph } from '../fx/index.ts'
import type { Argument, Node } from '../fx/index.ts'

export interface ReproState {
  graph: Graph
  inputs: unknown[]
}

/** Judges a candidate. */
export type Tester = (graph: Graph, inputs: readonly unknown[]) => Promise<boolean>

export interface Strategy {
  readonly name: string
  readonly run: (state: ReproState, granularity: number, fails: Tester) => Promise<ReproState | null>
}

/** Key in `node.meta` of the value that a node had in the failing run. */
export const CONCRETE_VALUE = 'concrete_value'

/** Drops consecutive chunks of the returned values. */
const removeOutputs: Strategy = {
  name: 'Remove outputs',
  async run({ graph, inputs }, granularity, fails) {
    const step = Math.max(1, granularity / 2)
    const output = graph.outputNode()
    const values = output.args[0]
    if (!Array.isArray(values) || values.length <= 1) return null
    for (let at = 0; at < values.length; at += step) {
      const rest: readonly Argument[] = [...values.slice(0, at), ...values.slice(at + step)]
      if (rest.length === 0) continue
      output.args = [rest]
      if (await fails(graph, inputs)) return { graph, inputs }
    }
    return null
  },
}

const eliminateDeadCode: Strategy = {
  name: 'Eliminate dead code',
  async run({ graph, inputs }, _granularity, fails) {
    return graph.eliminateDeadCode().length > 0 && (await fails(graph, inputs)) ? { graph, inputs } : null
  },
}

const removeUnusedInputs: Strategy = {
  name: 'Remove unused inputs',
  async run(state, _granularity, fails) {
    const next = withoutUnusedInputs(state)
    return next !== null && (await fails(next.graph, next.inputs)) ? next : null
  },
}

/** Turns tensors that the graph holds or loads into inputs, so that later strategies can drop or replace them. */
const consolidateInputs: Strategy = {
  name: 'Consolidate Inputs',
  async run({ graph, inputs }, _granularity, fails) {
    const before = inputs.length
    const attributes = graph.findNodes({ op: 'get_attr' }).filter((n) => n.meta[CONCRETE_VALUE] !== undefined)
    const next = [...inputs]
    for (const node of attributes) toPlaceholder(graph, node, next)
    const state = placeholdersFirst({ graph, inputs: next })
    return state.inputs.length > before && (await fails(state.graph, state.inputs)) ? state : null
  },
}

/** Returns early: the first prefix that fails, in the order of a binary search over granularities. */
const truncateSuffix: Strategy = {
  name: 'Truncate suffix',
  async run({ graph, inputs }, granularity, fails) {
    const prefix = new Graph()
    const copies = new Map<Node, Node>()
    let index = 0
    for (const node of graph.nodes) {
      const at = index++
      if (node.op === 'output') break
      const copy = copyInto(prefix, node, copies)
      // Multiples of 2 * granularity were tried at the coarser granularity.
      if (node.op === 'placeholder' || at % granularity !== 0 || at % (2 * granularity) === 0) continue
      const output = prefix.output([copy])
      if (prefix.nodes.length < graph.nodes.length && (await fails(prefix, inputs))) return { graph: prefix, inputs }
      prefix.eraseNode(output)
    }
    return null
  },
}

/** Replaces runs of nodes by inputs with the values that the nodes had. */
const deltaDebugging: Strategy = {
  name: 'Delta Debugging',
  async run(state, granularity, fails) {
    const count = state.graph.nodes.length
    for (let start = 0; start < count; start += granularity) {
      const graph = state.graph.deepCopy()
      const inputs = [...state.inputs]
      const range = [...graph.nodes].slice(start, start + granularity)
      let removing = false
      for (const node of range) removing = replaceByInput(graph, node, inputs) || removing
      if (!removing) continue
      graph.eliminateDeadCode()
      const ordered = placeholdersFirst({ graph, inputs })
      const next = withoutUnusedInputs(ordered) ?? ordered
      if (await fails(next.graph, next.inputs)) return next
    }
    return null
  },
}

export const strategies: Readonly<
  Record<'removeOutputs' | 'eliminateDeadCode' | 'removeUnusedInputs' | 'consolidateInputs' | 'truncateSuffix' | 'deltaDebugging', Strategy>
> = {
  removeOutputs,
  eliminateDeadCode,
  removeUnusedInputs,
  consolidateInputs,
  truncateSuffix,
  deltaDebugging,
}

/** Replaces a node by an input and returns whether it did. A node with several values stays, and the values taken from it become inputs. */
function replaceByInput(graph: Graph, node: Node, inputs: unknown[]): boolean {
  if (node.erased || node.op === 'output' || node.op === 'placeholder') return false
  const value = node.meta[CONCRETE_VALUE]
  if (value === undefined) return false
  if (Array.isArray(value)) {
    let any = false
    for (const user of [...node.users])
      if (user.meta[CONCRETE_VALUE] !== undefined && !Array.isArray(user.meta[CONCRETE_VALUE])) any = toPlaceholder(graph, user, inputs) || any
    return any
  }
  return toPlaceholder(graph, node, inputs)
}

/** Makes a placeholder in the node's place, fed with the node's value. */
function toPlaceholder(graph: Graph, node: Node, inputs: unknown[]): boolean {
  if (node.op === 'placeholder') return false
  const placeholders = graph.findNodes({ op: 'placeholder' })
  const last = placeholders.at(-1)
  const make = (): Node => graph.placeholder(node.name)
  const placeholder = last === undefined ? graph.insertingBefore(null, make) : graph.insertingAfter(last, make)
  Object.assign(placeholder.meta, node.meta)
  node.replaceAllUsesWith(placeholder)
  graph.eraseNode(node)
  inputs.push(node.meta[CONCRETE_VALUE])
  return true
}

/** Copies a node, whose inputs `copies` has, to the end of a graph. */
function copyInto(graph: Graph, node: Node, copies: Map<Node, Node>): Node {
  const copy = graph.nodeCopy(node, (input) => present(copies.get(input), `the copy of ${input.name}`))
  copies.set(node, copy)
  return copy
}

/** The same graph with its placeholders in front, in the order of the inputs. */
function placeholdersFirst({ graph, inputs }: ReproState): ReproState {
  const ordered = new Graph()
  const copies = new Map<Node, Node>()
  for (const node of graph.nodes) if (node.op === 'placeholder') copyInto(ordered, node, copies)
  for (const node of graph.nodes) if (node.op !== 'placeholder') copyInto(ordered, node, copies)
  return { graph: ordered, inputs }
}

/** The state without the inputs that are not used; null if all are used. */
function withoutUnusedInputs({ graph, inputs }: ReproState): ReproState | null {
  const placeholders: readonly Node[] = graph.findNodes({ op: 'placeholder' })
  const unused = placeholders.filter((n) => n.users.size === 0)
  if (unused.length === 0) return null
  const kept = inputs.filter((_, i) => placeholders[i]?.users.size !== 0)
  for (const node of unused) graph.eraseNode(node)
  return { graph, inputs: kept }
}
