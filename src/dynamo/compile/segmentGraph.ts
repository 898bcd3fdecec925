// The graph of a segment: from recorded steps to the GraphModule that a backend gets.
import { readableArguments } from '../../aot/index.ts'
import { present } from '../../errors/index.ts'
import { recordOf, recordValue } from '../../fx/graph/nodeValue.ts'
import { Graph, GraphModule, operator } from '../../fx/index.ts'
import type { Argument, Node } from '../../fx/index.ts'
import type { Segment } from '../segment/segment.ts'
import { neededSteps } from '../tree/traceTree.ts'
import type { ArgStep, Step } from '../tree/traceTree.ts'

/** A graph without its output node, and which node computes each slot. */
export interface OpenGraph {
  readonly graph: Graph
  readonly nodes: ReadonlyMap<number, Node>
  /** Slots of the placeholders, in order. */
  readonly inputSlots: readonly number[]
}

/** What becomes of a segment in its graph. */
export interface GraphOptions {
  /** Placeholder names by slot. */
  readonly names: (slot: number) => string | null
  /** Whether sizes are inputs of the graph, after all others, so that it is for any sizes. Otherwise they are the numbers of the present walk. */
  readonly takesSizes: boolean
  /** Of steps with several results, whether each gets a node, not only those that are needed: a backward may read the others. Default: false. */
  readonly allResults?: boolean
}

/** A segment as a graph module. */
export interface SegmentGraph {
  readonly gm: GraphModule
  /** Which node computes each slot. */
  readonly nodes: ReadonlyMap<number, Node>
  readonly inputSlots: readonly number[]
}

/** The steps that `outputs` need, as nodes; placeholders come first, in the order in which the program met them. Shapes are those of the present walk. */
export function openGraph(segment: Segment, outputs: readonly number[], { names, takesSizes, allResults = false }: GraphOptions): OpenGraph {
  const end = segment.cursor
  const graph = new Graph()
  const nodes = new Map<number, Node>()
  const inputSlots: number[] = []
  const needed = neededSteps(end, outputs)
  const placeholder = (arg: ArgStep, areSizes: boolean): void => {
    if (arg.kind === 'list') for (const item of arg.items) placeholder(item, areSizes)
    if ((arg.kind !== 'input' && arg.kind !== 'scalar') || !needed.slots.has(arg.slot) || isSizeStep(arg) !== areSizes) return
    const kind = isSizeStep(arg) ? 'size' : arg.kind === 'scalar' ? 's' : 't'
    const node = graph.placeholder(names(arg.slot) ?? `${kind}${inputSlots.length}`)
    if (arg.kind === 'input') {
      const { shape, dtype, strides, requiresGrad } = segment.metAs(arg)
      recordValue(node, { shape, dtype, strides, requiresGrad })
    }
    nodes.set(arg.slot, node)
    inputSlots.push(arg.slot)
  }
  // A tensor that a later step needs may have been met first by a step that is not needed.
  const path = end.path()
  for (const step of path) for (const arg of step.args) placeholder(arg, false)
  if (takesSizes) for (const step of path) for (const arg of step.args) placeholder(arg, true)
  for (const step of needed.steps) emit(graph, step, nodes, segment, (slot) => allResults || needed.slots.has(slot))
  return { graph, nodes, inputSlots }
}

const isSizeStep = (arg: ArgStep): boolean => arg.kind === 'scalar' && arg.number === 'size'

/** The graph module of the segment, returning `outputs`. `writeBacks`: the slots of inputs whose new values are outputs (by output position). */
export function buildGraph(
  segment: Segment,
  outputs: readonly number[],
  options: GraphOptions,
  writeBacks: ReadonlyMap<number, number>,
  className: string,
): SegmentGraph {
  const { graph, nodes, inputSlots } = openGraph(segment, outputs, options)
  graph.output(outputs.map((slot) => nodeAt(nodes, slot)))
  const gm = new GraphModule({}, graph, className)
  gm.meta['writeBacks'] = writeBackPositions(writeBacks, inputSlots)
  return { gm, nodes, inputSlots }
}

/** From output positions and input slots to output and input positions; an input whose old value is not read has no position. */
export function writeBackPositions(writeBacks: ReadonlyMap<number, number>, inputSlots: readonly number[]): ReadonlyMap<number, number> {
  return new Map([...writeBacks].map(([position, slot]): [number, number] => [position, inputSlots.indexOf(slot)]).filter(([, input]) => input >= 0))
}

const nodeAt = (nodes: ReadonlyMap<number, Node>, slot: number): Node => present(nodes.get(slot), `the node of slot ${slot}`)

/** Appends the node of a step, and a getitem node for each result of several that is needed. */
function emit(graph: Graph, step: Step, nodes: Map<number, Node>, segment: Segment, isNeeded: (slot: number) => boolean): void {
  const value = (arg: ArgStep): Argument => {
    if (arg.kind === 'const') return arg.value
    if (arg.kind === 'list') return arg.items.map(value)
    if (isSizeStep(arg) && !nodes.has(arg.slot)) return Number(segment.bound[arg.slot])
    return nodeAt(nodes, arg.slot)
  }
  const { schema, fn } = step.operator
  const { args, kwargs } = readableArguments(schema.args, step.args.map(value))
  const node = graph.callFunction(fn, args, kwargs)
  if (step.stack !== null) node.meta['stack_trace'] = step.stack
  if (step.single) {
    recordValue(node, recordOf(segment.likeOf(step)))
    nodes.set(step.firstSlot, node)
    return
  }
  const results = step.results.map((_, i) => segment.likeOf(step, i))
  recordValue(node, results.map(recordOf))
  results.forEach((result, i) => {
    if (!isNeeded(step.firstSlot + i)) return
    const item = graph.callFunction(operator.getitem, [node, i])
    recordValue(item, recordOf(result))
    nodes.set(step.firstSlot + i, item)
  })
}
