// The joint graph of a segment with sizes. Its forward half is the recorded steps. For the backward the steps are called once more on tensors whose sizes are symbols, and if that leaves the tape that the program's own calls
// have left, the derivatives are traced from it. What they asked of sizes must hold for each list of sizes that the graph is used with, and the sizes that operators take are numbers of that list.
import { ProxyTensorMode, traceBackward } from '../../aot/index.ts'
import type { JointGraph } from '../../aot/index.ts'
import { newShapeEnv } from '../../aot/makeFx/symbolicGraphs.ts'
import { symbolicInput } from '../../aot/run/symbolicSizes.ts'
import { SizePlaceholders } from '../../aot/trace/sizePlaceholders.ts'
import { enableGrad, gradBetween, isNode, noGrad, OpNode, producerOf } from '../../autograd/index.ts'
import type { Edge, GradNode } from '../../autograd/index.ts'
import { FakeTensorMode, dispatch, withMode } from '../../dispatch/index.ts'
import type { Arg } from '../../dispatch/index.ts'
import { present } from '../../errors/index.ts'
import type { Node } from '../../fx/index.ts'
import { tapeState } from '../../guards/index.ts'
import { isSymbolicSize } from '../../protocol/index.ts'
import type { ShapeEnv, SymInt, SymbolExpr } from '../../symbols/index.ts'
import { Tensor, asTensor, scalarOf } from '../../tensor/index.ts'
import { exitsOf, gradInputsOf } from '../segment/tape.ts'
import type { Segment } from '../segment/segment.ts'
import type { Sizes } from '../tree/sizes.ts'
import { neededSteps, withoutLists } from '../tree/traceTree.ts'
import type { ArgStep, SizedWalk, Step } from '../tree/traceTree.ts'
import type { Plan } from './plan.ts'
import { openGraph, writeBackPositions } from './segmentGraph.ts'
import type { OpenGraph } from './segmentGraph.ts'

/** The joint graph of a segment. */
export interface SegmentJoint {
  readonly joint: JointGraph
  /** The node of each slot. */
  readonly nodes: ReadonlyMap<number, Node>
  /** Null: the graph is for the sizes of the walk from which it was made. */
  readonly sizes: JointSizes | null
}

/** The sizes of a joint graph for any that agree with what its derivatives asked. They come after the inputs of the segment's graph. */
export interface JointSizes {
  /** Their numbers in a walk; what does not hold for it, if the graph is not for its sizes. */
  readonly for: (walk: SizedWalk) => readonly number[] | string
  /** What a recorded size was in the walk from which the graph was made. */
  readonly hintOf: (size: number) => number
}

/** The values of slots with symbols for sizes. */
class SymbolicRun {
  readonly env: ShapeEnv = newShapeEnv()
  readonly #values = new Map<number, unknown>()
  readonly #slots = new Map<unknown, number>()

  /** Calls the steps that `outputs` need, under the grad mode of the program's calls. Throws what their shape rules throw. */
  constructor(segment: Segment, outputs: readonly number[]) {
    const { steps, slots } = neededSteps(segment.cursor, outputs)
    const mode = new FakeTensorMode({ shapeEnv: this.env })
    for (const arg of segment.cursor.path().flatMap((step) => withoutLists(step.args))) {
      if ((arg.kind !== 'input' && arg.kind !== 'scalar') || !slots.has(arg.slot)) continue
      const sized = arg.kind === 'input' ? arg.spec.sizes : arg.number === 'size' ? 'size' : null
      this.#set(arg.slot, symbolicInput(segment.bound[arg.slot], sized, this.env, mode))
    }
    for (const step of steps) {
      const call = (): void => {
        const result = dispatch(
          step.operator,
          step.args.map((arg) => this.#argument(arg)),
        )
        for (const [i, value] of (result instanceof Tensor ? [result] : result).entries()) this.#set(step.firstSlot + i, value)
      }
      withMode(mode, () => (step.recording ? enableGrad(call) : noGrad(call)))
    }
  }

  #set(slot: number, value: unknown): void {
    this.#values.set(slot, value)
    this.#slots.set(value, slot)
  }

  #argument(arg: ArgStep): Arg {
    if (arg.kind === 'const') return arg.value
    if (arg.kind === 'list') return arg.items.map((item) => this.#argument(item))
    const value = this.#values.get(arg.slot)
    return value instanceof Tensor || typeof value === 'number' ? value : isSymbolicSize(value) ? scalarOf(value) : null
  }

  tensorAt(slot: number): Tensor {
    return asTensor(this.#values.get(slot), 'a value with symbols')
  }

  /** The number or the tensor of an input; undefined if the steps do not need it. */
  at(slot: number): unknown {
    return this.#values.get(slot)
  }

  slotOf(tensor: Tensor): number {
    return this.#slots.get(tensor) ?? -1
  }
}

/** Whether the calls with symbols have left the tape that those of the program have left behind the heads: the same operators, of the same values, with the same edges. */
function hasSameTape(segment: Segment, heads: readonly number[], run: SymbolicRun): boolean {
  const pairs = new Map<GradNode, GradNode>()
  const nodes: (readonly [GradNode, GradNode])[] = []
  const isSameEdge = (own: Edge, ownNr: number, other: Edge, otherNr: number): boolean => {
    if (own === null || other === null) return own === other
    // Inputs are leaves here, and may have a history in the program.
    if (!isNode(other)) {
      const input = segment.bound[run.slotOf(other)]
      if (!(input instanceof Tensor)) return false
      return isNode(own) ? producerOf(input) === own && input.outputNr === ownNr : input === own
    }
    if (!isNode(own) || ownNr !== otherNr) return false
    const known = pairs.get(own)
    if (known !== undefined) return known === other
    pairs.set(own, other)
    nodes.push([own, other])
    return true
  }
  const isSameNode = ([own, other]: readonly [GradNode, GradNode]): boolean =>
    own.targets.length === other.targets.length &&
    tapeState.every((kind) => kind.read(own) !== null && kind.read(own) === kind.read(other)) &&
    own instanceof OpNode &&
    other instanceof OpNode &&
    own.outputs.every((output, i) => segment.slotOf(output) === run.slotOf(present(other.outputs[i], 'a result'))) &&
    own.targets.every((target, k) => isSameEdge(target, own.outputNrs?.[k] ?? 0, other.targets[k] ?? null, other.outputNrs?.[k] ?? 0))
  for (const slot of heads) {
    const [own, other] = [segment.lazyAt(slot), run.tensorAt(slot)]
    if (!isSameEdge(producerOf(own), own.outputNr, producerOf(other), other.outputNr)) return false
  }
  // The list grows in the loop.
  for (const pair of nodes) if (!isSameNode(pair)) return false
  return true
}

/** What is compiled with gradients. */
export interface JointRequest extends Plan {
  readonly segment: Segment
  readonly mayWriteInPlace: boolean
}

/** What the joint graph of a segment has beside its derivatives. */
export function jointParts(
  { graph, nodes, inputSlots }: OpenGraph,
  { outputs, heads, writeBacks, mayWriteInPlace }: JointRequest,
): Pick<JointGraph, 'graph' | 'inputs' | 'outputs' | 'heads' | 'writeBacks' | 'writesInPlace' | 'mayBeOverwritten'> {
  const nodeOf = (slot: number): Node => present(nodes.get(slot), `the node of slot ${slot}`)
  return {
    graph,
    inputs: inputSlots.map(nodeOf),
    outputs: outputs.map(nodeOf),
    heads: heads.map((slot) => outputs.indexOf(slot)),
    writeBacks: writeBackPositions(writeBacks, inputSlots),
    writesInPlace: mayWriteInPlace,
    mayBeOverwritten: true,
  }
}

/** The joint graph of a segment with sizes. Returns why, if there is none. Throws what shape rules and derivatives throw. */
export function sizedJoint(request: JointRequest, names: (slot: number) => string | null): SegmentJoint | string {
  const { segment, outputs, heads, tape } = request
  const open = openGraph(segment, outputs, { names, takesSizes: true, allResults: true })
  const { graph, nodes, inputSlots } = open
  if (!exitsOf(tape).every((slot) => inputSlots.includes(slot))) return 'a gradient leaves through a tensor that the graph does not read'
  // Offsets in memory are no sizes.
  if (neededSteps(segment.cursor, outputs).steps.some(isAtOffset)) return 'a view counts from the start of its memory'
  const run = new SymbolicRun(segment, outputs)
  if (!hasSameTape(segment, heads, run)) return 'the tape depends on more than the recorded operators'
  const parts = jointParts(open, request)
  const sizes = new SizePlaceholders(graph, run.env, parts.inputs.at(-1) ?? null)
  const mode = new ProxyTensorMode({ graph, resolve: (tensor) => nodes.get(run.slotOf(tensor)), sizes: () => sizes })
  const { positions: gradInputs } = gradInputsOf(segment, inputSlots)
  const wanted = gradInputs.map((position) => run.tensorAt(inputSlots[position] ?? -1))
  const backward = traceBackward(
    mode,
    heads.map((slot) => run.tensorAt(slot)),
    (tangents, roots) => gradBetween(roots, wanted, tangents),
  )
  const placeholders = sizes.placeholders.map(({ node }) => node)
  const joint: JointGraph = {
    ...parts,
    inputs: [...parts.inputs, ...placeholders],
    gradInputs,
    takesSizes: true,
    ...backward,
    forwardNodes: new Set([...backward.forwardNodes, ...placeholders]),
  }
  return { joint, nodes, sizes: new SizesOf(run, sizes, inputSlots) }
}

const isAtOffset = ({ operator }: Step): boolean => operator.name === 'as_strided' || operator.name === 'as_strided_scatter'

/** The sizes of a joint graph for each list of the segment's. */
class SizesOf implements JointSizes {
  readonly #env: ShapeEnv
  readonly #sizes: SizePlaceholders
  /** By slot: the sizes and the strides of a tensor, or a size, as expressions; for numbers that may change otherwise null. */
  readonly #inputs: readonly { readonly slot: number; readonly layout: readonly (SymInt | number)[] }[]
  readonly #known = new WeakMap<Sizes, readonly number[] | string>()

  constructor(run: SymbolicRun, sizes: SizePlaceholders, inputSlots: readonly number[]) {
    const { env } = run
    this.#env = env
    this.#sizes = sizes
    this.#inputs = inputSlots.map((slot) => {
      const value = run.at(slot)
      const layout = value instanceof Tensor ? [...value.symSizes, ...value.symSteps] : isSymInt(value) ? [value] : []
      return { slot, layout: layout.map((size) => env.sizeOf(size)) }
    })
  }

  for(walk: SizedWalk): readonly number[] | string {
    const { sizes } = walk
    if (sizes === null) return 'sizes that change'
    let found = this.#known.get(sizes)
    if (found === undefined) {
      found = this.#find(walk)
      this.#known.set(sizes, found)
    }
    return found
  }

  hintOf(size: number): number {
    const known = this.#env.sizeOf(size)
    return typeof known === 'number' ? known : Number(known.hint)
  }

  #find({ bound }: SizedWalk): readonly number[] | string {
    const env = this.#env
    const values = new Map<SymbolExpr, number>()
    const places = this.#inputs.flatMap(({ slot, layout }) => {
      const input = bound[slot]
      const given = input instanceof Tensor ? [...input.sizes, ...input.steps] : [Number(input)]
      return layout.map((traced, i) => [traced, given[i] ?? NaN] as const)
    })
    for (const [traced, given] of places) {
      const expr = typeof traced === 'number' ? null : traced.ownExpr
      if (expr?.op === 'symbol' && !values.has(expr)) values.set(expr, given)
    }
    const failed = env.failedAt(values)
    if (failed !== null) return failed
    const valueOf = (traced: SymInt | number): number => (typeof traced === 'number' ? traced : env.valueAt(traced.ownExpr, values))
    for (const [traced, given] of places) if (valueOf(traced) !== given) return `a stride of ${traced.toString()}`
    return this.#sizes.placeholders.map(({ expr }) => env.valueAt(expr, values))
  }
}

const isSymInt = (value: unknown): value is SymInt => typeof value === 'object' && value !== null && !(value instanceof Tensor) && 'ownExpr' in value
