// The graph of a segment: from recorded steps to the GraphModule that a backend gets.
import { readableArguments } from '../aot/index.ts'
import { present } from '../errors/index.ts'
import { Graph, GraphModule, operator } from '../fx/index.ts'
import type { Argument, Node } from '../fx/index.ts'
import type { Tensor, TensorSpec } from '../tensor/index.ts'
import { neededSteps } from './traceTree.ts'
import type { ArgStep, Step } from './traceTree.ts'

/** A graph without its output node, and which node computes each slot. */
export interface OpenGraph {
  readonly graph: Graph
  readonly nodes: ReadonlyMap<number, Node>
  /** Slots of the placeholders, in order. */
  readonly inputSlots: readonly number[]
}

/** A segment as a graph module. */
export interface SegmentGraph {
  readonly gm: GraphModule
  readonly inputSlots: readonly number[]
}

const specOf = (t: Tensor): TensorSpec => ({ shape: t.shape, dtype: t.dtype, strides: t.strides })

/**
 * The steps that `outputs` need, as nodes; placeholders come first, in the order in which the program met them. Of steps with several results, `allResults` gives each a node, not only
 * those that are needed: a backward may read the others.
 */
export function openGraph(end: Step, outputs: readonly number[], names: (slot: number) => string | null, allResults = false): OpenGraph {
  const graph = new Graph()
  const nodes = new Map<number, Node>()
  const inputSlots: number[] = []
  const needed = neededSteps(end, outputs)
  const placeholder = (arg: ArgStep): void => {
    if (arg.kind === 'list') arg.items.forEach(placeholder)
    if ((arg.kind !== 'input' && arg.kind !== 'scalar') || !needed.slots.has(arg.slot)) return
    const node = graph.placeholder(names(arg.slot) ?? `${arg.kind === 'scalar' ? 's' : 't'}${inputSlots.length}`)
    if (arg.kind === 'input')
      node.meta['val'] = { shape: arg.spec.shape, dtype: arg.spec.dtype, strides: arg.spec.strides, requiresGrad: arg.spec.requiresGrad }
    nodes.set(arg.slot, node)
    inputSlots.push(arg.slot)
  }
  // A tensor that a later step needs may have been met first by a step that is not needed.
  for (const step of end.path()) step.args.forEach(placeholder)
  for (const step of needed.steps) emit(graph, step, nodes, (slot) => allResults || needed.slots.has(slot))
  return { graph, nodes, inputSlots }
}

/**
 * The graph module of the segment that ends at `end`, returning `outputs`. `names` gives placeholder names by slot; `writeBacks` the slots of inputs
 * whose new values are outputs (by output position).
 */
export function buildGraph(
  end: Step,
  outputs: readonly number[],
  names: (slot: number) => string | null,
  writeBacks: ReadonlyMap<number, number>,
  className: string,
): SegmentGraph {
  const { graph, nodes, inputSlots } = openGraph(end, outputs, names)
  graph.output(outputs.map((slot) => nodeAt(nodes, slot)))
  const gm = new GraphModule({}, graph, className)
  gm.meta['writeBacks'] = writeBackPositions(writeBacks, inputSlots)
  return { gm, inputSlots }
}

/** From output positions and input slots to output and input positions; an input whose old value is not read has no position. */
export function writeBackPositions(writeBacks: ReadonlyMap<number, number>, inputSlots: readonly number[]): ReadonlyMap<number, number> {
  return new Map([...writeBacks].map(([position, slot]): [number, number] => [position, inputSlots.indexOf(slot)]).filter(([, input]) => input >= 0))
}

const nodeAt = (nodes: ReadonlyMap<number, Node>, slot: number): Node => present(nodes.get(slot), `the node of slot ${slot}`)

/** Appends the node of a step, and a getitem node for each result of several that is needed. */
function emit(graph: Graph, step: Step, nodes: Map<number, Node>, isNeeded: (slot: number) => boolean): void {
  const value = (arg: ArgStep): Argument => {
    if (arg.kind === 'const') return arg.value
    if (arg.kind === 'list') return arg.items.map(value)
    return nodeAt(nodes, arg.slot)
  }
  const { schema, fn } = step.operator
  const { args, kwargs } = readableArguments(schema.args, step.args.map(value))
  const node = graph.callFunction(fn, args, kwargs)
  if (step.stack !== null) node.meta['stack_trace'] = step.stack
  const [single] = step.results
  if (step.single && single !== undefined) {
    node.meta['val'] = specOf(single)
    nodes.set(step.firstSlot, node)
    return
  }
  node.meta['val'] = step.results.map(specOf)
  step.results.forEach((result, i) => {
    if (!isNeeded(step.firstSlot + i)) return
    const item = graph.callFunction(operator.getitem, [node, i])
    item.meta['val'] = specOf(result)
    nodes.set(step.firstSlot + i, item)
  })
}
