// A segment: the part of a trace between two graph breaks, as a graph, compiled once and run with each call's own inputs.
import { spell } from '../aot/index.ts'
import { Graph, GraphModule, operator } from '../fx/index.ts'
import type { Argument, Node } from '../fx/index.ts'
import { detach } from '../ops/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import type { Tensor, TensorSpec } from '../tensor/index.ts'
import type { ArgStep, Step } from './traceTree.ts'

/** A compiled segment: which slots go in and come out. */
export interface CompiledSegment {
  readonly gm: GraphModule
  readonly run: (...inputs: readonly unknown[]) => readonly unknown[]
  readonly inputSlots: readonly number[]
  readonly outputSlots: readonly number[]
  /** Output positions that the compiled function has written into their input already. */
  readonly writtenInPlace: ReadonlySet<number>
  /** How to attach a compiled backward; null when no output requires grad. */
  readonly attach: ((inputs: readonly unknown[], outputs: readonly unknown[]) => void) | null
  /** How many of the outputs of `run` belong to the segment (the rest is saved for the backward). */
  readonly results: number
}

export interface SegmentGraph {
  readonly gm: GraphModule
  readonly inputSlots: readonly number[]
}

const specOf = (t: Tensor): TensorSpec => ({ shape: t.shape, dtype: t.dtype, strides: t.strides })

/**
 * The graph of the segment that ends at `end`, returning `outputs`. `names` gives placeholder names by slot; `writeBacks` the slots of inputs whose
 * new values are outputs (by output position). `differentiated`: values that the program computed under noGrad are detached.
 */
export function buildGraph(
  end: Step,
  outputs: readonly number[],
  names: (slot: number) => string | null,
  writeBacks: ReadonlyMap<number, number>,
  className: string,
  differentiated: boolean,
): SegmentGraph {
  const graph = new Graph()
  const nodes = new Map<number, Node>()
  const inputSlots: number[] = []
  const steps = end.path()
  const needed = neededSlots(steps, outputs)
  const tracked = new Set<number>()
  // Placeholders first, in the order in which the program met them.
  for (const step of steps) {
    for (const arg of step.args)
      visitInputs(arg, (input) => {
        if (nodes.has(input.slot) || !needed.has(input.slot)) return
        const node = graph.placeholder(names(input.slot) ?? `${input.kind === 'scalar' ? 's' : 't'}${inputSlots.length}`)
        if (input.kind === 'input')
          node.meta['val'] = { shape: input.spec.shape, dtype: input.spec.dtype, strides: input.spec.strides, requiresGrad: input.spec.requiresGrad }
        nodes.set(input.slot, node)
        inputSlots.push(input.slot)
      })
  }
  for (const step of steps) {
    if (!step.results.some((_, i) => needed.has(step.firstSlot + i))) continue
    emit(graph, step, nodes, needed)
    if (differentiated) cutGradients(graph, step, nodes, tracked)
  }
  graph.output(outputs.map((slot) => nodes.get(slot) ?? null))
  const gm = new GraphModule({}, graph, className)
  gm.meta['writeBacks'] = new Map([...writeBacks].map(([position, slot]) => [position, inputSlots.indexOf(slot)]))
  return { gm, inputSlots }
}

function visitInputs(arg: ArgStep, see: (input: Extract<ArgStep, { kind: 'input' | 'scalar' }>) => void): void {
  if (arg.kind === 'input' || arg.kind === 'scalar') see(arg)
  else if (arg.kind === 'list') for (const item of arg.items) visitInputs(item, see)
}

function visitSlots(arg: ArgStep, see: (slot: number) => void): void {
  if (arg.kind === 'slot' || arg.kind === 'input' || arg.kind === 'scalar') see(arg.slot)
  else if (arg.kind === 'list') for (const item of arg.items) visitSlots(item, see)
}

/** Slots that the outputs depend on. */
function neededSlots(steps: readonly Step[], outputs: readonly number[]): Set<number> {
  const needed = new Set(outputs)
  for (let i = steps.length - 1; i >= 0; i--) {
    const step = steps[i] as Step
    if (!step.results.some((_, k) => needed.has(step.firstSlot + k))) continue
    for (const arg of step.args) visitSlots(arg, (slot) => needed.add(slot))
  }
  return needed
}

function emit(graph: Graph, step: Step, nodes: Map<number, Node>, needed: ReadonlySet<number>): void {
  const op = step.op as NonNullable<Step['op']>
  const value = (arg: ArgStep): Argument => {
    if (arg.kind === 'const') return arg.value as Argument
    if (arg.kind === 'list') return arg.items.map(value)
    return nodes.get(arg.slot) as Node
  }
  const { args, kwargs } = spell(op.schema.args, step.args.map(value))
  const node = graph.callFunction(op.fn, args, kwargs)
  if (step.stack !== null) node.meta['stack_trace'] = step.stack
  node.meta['val'] = step.single ? specOf(step.results[0] as Tensor) : step.results.map(specOf)
  if (step.single) {
    nodes.set(step.firstSlot, node)
    return
  }
  step.results.forEach((result, i) => {
    if (!needed.has(step.firstSlot + i)) return
    const item = graph.callFunction(operator.getitem as unknown as TargetFunction, [node, i])
    item.meta['val'] = specOf(result)
    nodes.set(step.firstSlot + i, item)
  })
}

/** Detaches the step's results where its arguments require grad (`tracked`) and autograd did not record it. */
function cutGradients(graph: Graph, step: Step, nodes: Map<number, Node>, tracked: Set<number>): void {
  let requiresGrad = false
  const see = (arg: ArgStep): void => {
    if (arg.kind === 'input' && arg.spec.requiresGrad) tracked.add(arg.slot)
    if (arg.kind === 'list') arg.items.forEach(see)
  }
  step.args.forEach(see)
  for (const arg of step.args) visitSlots(arg, (slot) => (requiresGrad ||= tracked.has(slot)))
  if (!requiresGrad) return
  step.results.forEach((result, i) => {
    const slot = step.firstSlot + i
    const node = nodes.get(slot)
    if (node === undefined) return
    if (step.recording) tracked.add(slot)
    else if (step.op?.fn !== detach && result.dtype.startsWith('float')) {
      const cut = graph.callFunction(detach, [node])
      cut.meta['val'] = specOf(result)
      if (step.stack !== null) cut.meta['stack_trace'] = step.stack
      nodes.set(slot, cut)
    }
  })
}
