// The trace tree: what a compiled function has done so far, operator by operator. Each call walks along it; the checks of the walk are the guards.
import type { JointGraph } from '../../aot/index.ts'
import { dispatchState } from '../../dispatch/index.ts'
import type { Arg, OpDef } from '../../dispatch/index.ts'
import { present } from '../../errors/index.ts'
import type { GraphModule, Node } from '../../fx/index.ts'
import { agreesInSegment, operatorState, readState, segmentState, underSegmentState } from '../../guards/index.ts'
import type { MetState } from '../../guards/index.ts'
import { isBeyondLimit } from '../../kernels/index.ts'
import { numelOf } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import type { CapturedStack } from '../../provenance/index.ts'
import type { Cost } from './budget.ts'
import type { BreakReason } from '../reports/breaks.ts'
import { OftenSeen, Sizes } from './sizes.ts'
import type { SizePolicy, SizedLayout, SizedResults } from './sizes.ts'

/** Results of up to this many elements are small. */
const SMALL = 16

/** One argument of a recorded call. */
export type ArgStep =
  /** A value that the segment already knows. */
  | { readonly kind: 'slot'; readonly slot: number }
  | InputStep
  /** A number that differs from call to call: an input of the graph, of one kind (see {@link numberKind}). */
  | { readonly kind: 'scalar'; readonly slot: number; readonly number: NumberKind }
  | { readonly kind: 'const'; readonly value: Arg }
  | { readonly kind: 'list'; readonly items: readonly ArgStep[] }

/** A tensor from outside, met here for the first time. */
export interface InputStep {
  readonly kind: 'input'
  readonly slot: number
  readonly spec: InputSpec
}

/** What the graph relies on of a number that may change: nothing, that it is an integer of 32 bits, or that it is a size (see sizes.ts). A number of no kind is a constant. */
export type NumberKind = 'any' | 'int32' | 'size'

/** An outside tensor as it was recorded. */
export interface InputSpec extends Required<Pick<TensorSpec, 'shape' | 'dtype' | 'strides'>> {
  readonly requiresGrad: boolean
  /** What must agree with it. */
  readonly state: MetState
  /** Which of its dimensions may have other sizes; null: none. */
  readonly sizes: SizedLayout | null
  /** A name for the placeholder, if one is known. */
  readonly name: string | null
}

/** A walk whose sizes a compiled segment may be for. */
export interface SizedWalk {
  readonly sizes: Sizes | null
  /** Outside tensors and numbers by slot. */
  readonly bound: readonly unknown[]
}

/** A compiled segment: which slots go in and come out. */
export interface CompiledSegment {
  readonly gm: GraphModule
  /** From the values of the inputs to those of the outputs; outputs at `heads` have a history if an input requires grad. */
  readonly run: (...inputs: readonly unknown[]) => readonly unknown[]
  readonly inputSlots: readonly number[]
  readonly outputSlots: readonly number[]
  /** Outputs (slots) from which a backward outside of the function may start. */
  readonly heads: readonly number[]
  /** The tape behind the heads that the backward was compiled for; see tape.ts. */
  readonly tape: readonly unknown[]
  /** The joint graph; null if there are no heads. */
  readonly joint: JointGraph | null
  /** The node of a slot in the joint graph, if it has one. */
  readonly nodeOf: (slot: number) => Node | undefined
  /** Output positions that the compiled function has already written into their input. */
  readonly writtenInPlace: ReadonlySet<number>
  /** These, and those that a run of a graph with sizes may write into their input, which it then returns. */
  readonly mayOverwrite: ReadonlySet<number>
  /** For a joint graph with sizes: the numbers that come after the inputs; what does not hold, if it is not for the sizes of this walk. Null: there are none. */
  readonly sizesFor: ((walk: SizedWalk) => readonly number[] | string) | null
  /** Whether it does what the program would: it calls its operators one by one, with the same bits. */
  readonly isProgram: () => boolean
  readonly cost: Cost
}

/** The numbers that a compiled segment takes after its inputs; null if it is not for the sizes of a walk. */
export function numbersFor({ sizesFor }: CompiledSegment, walk: SizedWalk): readonly number[] | null {
  const found = sizesFor === null ? NO_NUMBERS : sizesFor(walk)
  return typeof found === 'string' ? null : found
}

const NO_NUMBERS: readonly number[] = []

/** What is recorded of one call of an operator. */
export interface RecordedCall {
  readonly op: OpDef
  readonly args: readonly ArgStep[]
  /** Fake tensors like the results: new lazy tensors copy their layout. */
  readonly results: readonly Tensor[]
  /** Whether the operator returns one tensor, not a list. */
  readonly single: boolean
  /** The slot of its first result. */
  readonly firstSlot: number
  /** Where the program made the call. */
  readonly stack: CapturedStack | null
  /** Whether autograd recorded the call: under noGrad it does not. */
  readonly recording: boolean
  /** For a view operator: the offset of the tensor that the recorded views are of. */
  readonly sourceOffset: number
  /** Whether the shapes of the results depend on sizes of the path: `results` are those of the call that recorded it, and `Segment.likeOf` has those of the present one. */
  readonly isSized: boolean
  /** Of such a call: whether the results are as recorded whenever the tensors among its arguments are. Default: false. */
  readonly followsRecorded?: boolean
}

const NO_CALL: Omit<RecordedCall, 'op'> & { readonly op: null } = {
  op: null,
  args: [],
  results: [],
  single: true,
  firstSlot: 0,
  stack: null,
  recording: false,
  sourceOffset: 0,
  isSized: false,
}

/** A point of the tree: after a recorded call, whose facts it has as fields, or the start of a segment, where `op` is null. */
export class Step {
  readonly op: OpDef | null
  readonly args: RecordedCall['args']
  readonly results: RecordedCall['results']
  readonly single: boolean
  readonly firstSlot: number
  /** First slot that is free after this step. */
  readonly nextSlot: number
  readonly parent: Step | null
  readonly stack: CapturedStack | null
  readonly recording: boolean
  readonly sourceOffset: number
  /** Whether the library made the call, in a backward or an optimizer's step. */
  readonly internal: boolean = dispatchState.internal
  /** What an operator must agree in: the values of `operatorState`. */
  readonly state: readonly unknown[] = readState(operatorState, null)
  readonly isSized: boolean
  /** What is known of the results where all tensors among the arguments are as recorded; null: that says nothing of the results. */
  readonly asRecorded: SizedResults | null
  /** The values of `segmentState` at the call: all steps of a segment have the same. */
  readonly underState: readonly unknown[]
  /** Whether the call must not fail for the memory limit: it belongs to something that has to end once it has begun, as an optimizer's step. */
  readonly beyondLimit: boolean = isBeyondLimit()
  readonly children: Step[] = []
  /** What was compiled for segments that end here, one for each choice of outputs. */
  readonly ends: CompiledSegment[] = []
  #often: OftenSeen<CompiledSegment> | null = null
  /** The joint graph could not be traced here (a number of each call is on the tape, …): the tape itself is kept. */
  keepsTape = false
  /** The same for graphs that take sizes. */
  keepsSizedTape = false
  /** Slots of segments ending here that turned out to be needed after the segment. */
  readonly learned = new Set<number>()
  /** How many segments have ended here. */
  calls = 0
  /** For the start of a segment: its starts under other state. */
  #others: Step[] | null = null
  /** For the start of a segment: the lists of sizes that begin there. */
  #sizes: Sizes | null = null
  readonly #kept = new Map<boolean, readonly number[]>()
  /** The start of the segment after a graph break here. */
  after: Step | null = null
  breakReason: BreakReason | null = null

  /** `call`: null for the start of a segment. */
  constructor(parent: Step | null, call: RecordedCall | null) {
    const { op, args, results, single, firstSlot, stack, recording, sourceOffset, isSized, followsRecorded = false } = call ?? NO_CALL
    this.op = op
    this.args = args
    this.results = results
    this.single = single
    this.firstSlot = firstSlot
    this.nextSlot = firstSlot + results.length
    this.parent = parent
    this.stack = stack
    this.recording = recording
    this.sourceOffset = sourceOffset
    this.isSized = isSized
    this.asRecorded = followsRecorded ? { results, offset: sourceOffset, isAsRecorded: true, fits: null } : null
    this.underState = parent?.underState ?? readState(segmentState, null)
  }

  /** The start of a segment. */
  static root(): Step {
    return new Step(null, null)
  }

  /** Whether code runs under the state that its segment belongs to. */
  get isCurrent(): boolean {
    return agreesInSegment(this.underState)
  }

  /** For the start of a segment: that under the present state. */
  now(): Step {
    if (this.isCurrent) return this
    this.#others ??= []
    const known = this.#others.find((other) => other.isCurrent)
    if (known !== undefined) return known
    const made = Step.root()
    this.#others.push(made)
    return made
  }

  /** Of segments with sizes that end here: what was compiled for lists of sizes that come often. */
  get often(): OftenSeen<CompiledSegment> {
    return (this.#often ??= new OftenSeen())
  }

  /** For the start of a segment: the empty list of sizes. */
  get noSizes(): Sizes {
    if (this.#sizes === null || this.#sizes.isFull) this.#sizes = Sizes.none()
    return this.#sizes
  }

  /** The operator that was called. Throws InternalError for the start of a segment. */
  get operator(): OpDef {
    return present(this.op, 'the operator of a step')
  }

  /** Whether one of the results is among `slots`. */
  gives(slots: ReadonlySet<number>): boolean {
    for (let i = 0; i < this.results.length; i++) if (slots.has(this.firstSlot + i)) return true
    return false
  }

  /**
   * Slots of results that a program probably keeps, so that segments that end here return them: those that no step up to here uses (a new state, a loss for a list) and, in training,
   * whose inputs change at each call, small values that it computes itself (a loss, a norm), which cost next to nothing. `changesState`: it writes to
   * memory from outside.
   */
  kept(changesState: boolean): readonly number[] {
    const known = this.#kept.get(changesState)
    if (known !== undefined) return known
    const used = new Set<number>()
    const kept: number[] = []
    const steps = this.path().reverse()
    const isTraining = changesState || steps.some((step) => step.recording || step.internal)
    for (const step of steps) {
      const isUnused = !step.gives(used)
      step.results.forEach(({ shape }, i) => {
        if (isUnused || (isTraining && !step.internal && numelOf(shape) <= SMALL && !step.operator.tags.has('fill'))) kept.push(step.firstSlot + i)
      })
      for (const arg of step.args) visitSlots(arg, (slot) => used.add(slot))
    }
    this.#kept.set(changesState, kept.reverse())
    return kept
  }

  /** The steps from the segment's start to this one. */
  path(): Step[] {
    const steps: Step[] = []
    for (let step: Step | null = this; step !== null && step.op !== null; step = step.parent) steps.push(step)
    return steps.reverse()
  }
}

/** The arguments, and the items of lists among them in the place of the lists. */
export const withoutLists = (args: readonly ArgStep[]): readonly Exclude<ArgStep, { readonly kind: 'list' }>[] =>
  args.flatMap((arg) => (arg.kind === 'list' ? withoutLists(arg.items) : [arg]))

/** Visits the slots that an argument refers to. */
export function visitSlots(arg: ArgStep, see: (slot: number) => void): void {
  if (arg.kind === 'list') for (const item of arg.items) visitSlots(item, see)
  else if (arg.kind !== 'const') see(arg.slot)
}

/** The steps that `outputs` depend on, in order, and all slots that they need. The search ends when it has found more than `most`. */
export function neededSteps(
  end: Step,
  outputs: readonly number[],
  most = Infinity,
): { readonly steps: readonly Step[]; readonly slots: ReadonlySet<number> } {
  const slots = new Set(outputs)
  const steps: Step[] = []
  for (let step: Step | null = end; step !== null && step.op !== null; step = step.parent) {
    if (!step.gives(slots)) continue
    steps.push(step)
    if (steps.length > most) break
    for (const arg of step.args) visitSlots(arg, (slot) => slots.add(slot))
  }
  return { steps: steps.reverse(), slots }
}

/** The paths taken by calls with arguments of one kind. */
export interface TraceTree {
  readonly root: Step
  /** How many paths were recorded after the first. */
  branches: number
  /** What decides which sizes differ from call to call on one path; null: each path is for the shapes that it was recorded with. */
  readonly policy: SizePolicy | null
}

/** Runs `fn` under the state that a segment belongs to. */
export const under = <T>({ underState, isCurrent }: Step, fn: () => T): T => (isCurrent ? fn() : underSegmentState(underState, fn))
