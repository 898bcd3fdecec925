// One call of a compiled function, while it runs: the mode that sees its operators. None of them computes anything. Each is followed on the trace tree, or recorded in it; where the
// program needs a value, and at the end of the call, the segment so far ends (endSegment.ts), and the next one starts.
import { devices, dispatchBelowAutograd, dispatchState, disposeData, isArgList, withoutModes } from '../../dispatch/index.ts'
import type { Arg, DispatchMode, IndexRule, OpDef, Result } from '../../dispatch/index.ts'
import { present } from '../../errors/index.ts'
import { captureStack } from '../../provenance/index.ts'
import { Tensor, asTensor } from '../../tensor/index.ts'
import type { Storage } from '../../tensor/index.ts'
import { describeDifference } from '../tree/arguments.ts'
import type { Mismatch } from '../reports/reports.ts'
import { breakCauses, stateChange } from '../reports/breaks.ts'
import type { BreakCause } from '../reports/breaks.ts'
import type { Budget } from '../tree/budget.ts'
import type { BackendChoice } from '../compile/compileSegment.ts'
import { config } from '../../config.ts'
import { EndedSegment } from '../end/endedSegment.ts'
import { computeAll, endSegment } from '../end/endSegment.ts'
import { FullGraphError } from '../reports/errors.ts'
import { argValue } from '../run/evaluate.ts'
import { forEachHeld } from './heldTensors.ts'
import type { Demand } from '../compile/plan.ts'
import type { Reports } from '../reports/reports.ts'
import { opByName } from '../../ops/index.ts'
import { Segment } from '../segment/segment.ts'
import { pathInto } from '../segment/sharedWrites.ts'
import { Step, under } from '../tree/traceTree.ts'
import type { TraceTree } from '../tree/traceTree.ts'
import type { CallWatch } from './watch.ts'

/** The call that is captured. */
export interface CapturedCall {
  readonly tree: TraceTree
  readonly fullgraph: boolean
  readonly choice: BackendChoice
  readonly reports: Reports
  readonly budget: Budget
  /** How many calls with the sizes of this one the program has answered itself. */
  readonly programCalls: number
  /** Reports this call to event listeners; null if there were none when it began. */
  readonly watch: CallWatch | null
  /** A name for an outside tensor. */
  nameOf(tensor: Tensor): string | null
  /** What may hold new tensors when the call is over: the arguments, the module. */
  readonly holders: readonly unknown[]
  /** Whether later calls of a path still learn which values the program keeps; a pure function (skipReplay) keeps none. */
  readonly learns: boolean
}

const NO_LEAVES: readonly Tensor[] = []

/** The mode of one call. */
export class Capture implements DispatchMode {
  readonly name = 'LazyMode'
  readonly staysActive = true
  readonly knowsDevices = true
  readonly #call: CapturedCall
  #segment: Segment
  /** The segments that have ended. */
  readonly ended: EndedSegment[] = []
  /** Capture is over: the rest of this call runs operator by operator. */
  #eager = false
  /** That happened because no more paths may be recorded. */
  #fellBack = false
  #leaves: Set<Tensor> | null = null
  #isSeen = false
  /** What the program has disposed of, and the current segment still reads or computes. */
  readonly #disposed: Storage[] = []

  constructor(call: CapturedCall) {
    this.#call = call
    this.#segment = this.#start(call.tree.root)
  }

  #start(root: Step): Segment {
    return new Segment(root.now(), (segment, storage) => this.#read(segment, storage), this.#call.tree.policy)
  }

  /** The program asks whether it is captured, and may do something else where it is not. */
  isSeen(): void {
    this.#isSeen = true
  }

  /** What the call, which has ended, ran: nothing but the operators of the program, one by one, or kernels as well; null if that was not on known paths, or if the program may do something else where it is not captured. */
  get work(): 'program' | 'kernels' | null {
    if (this.#isSeen || this.isEager || this.isFresh) return null
    return this.ended.every(({ compiled }) => compiled === null || compiled.isProgram()) ? 'program' : 'kernels'
  }

  // ---- one operator ----

  handle(op: OpDef, args: readonly Arg[]): Result {
    if (this.#segment.hasStaleViews) for (const tensor of tensorsOf(args)) this.#refresh(tensor)
    if (this.#eager) return this.#runNow(op, args)
    if (!this.#segment.cursor.isCurrent) this.#changeState()
    if (devices.operators?.crosses(op, args) === true) return this.#runAlone(op, args, breakCauses.move)
    if (op.functional !== null) return this.#inPlace(op, op.functional, args)
    if (op.tags.has('rejectsData') && !this.#call.fullgraph) return this.#runAlone(op, args, breakCauses.rejectsData)
    if (op.tags.has('dataShape')) return this.#runAlone(op, args, breakCauses.dataShape)
    if (!isWindow(op, args)) return this.#runAlone(op, args, breakCauses.window)
    const step = this.#step(op, args)
    return step === null ? this.#runNow(op, args) : this.#segment.results(step)
  }

  /** The state has changed under which the segment is compiled. */
  #changeState(): void {
    const { cursor } = this.#segment
    if (cursor.op === null) this.#segment = this.#start(cursor)
    else this.breakGraph([], stateChange(cursor.underState))
  }

  /** Records an in-place operator as the functional one; the tensor stands for its result from here on. */
  #inPlace(op: OpDef, functional: OpDef, args: readonly Arg[]): Result {
    const self = asTensor(args[0], 'the first argument of an in-place operator')
    const segment = this.#segment
    const isShared = segment.reachesOthers(self, args)
    const path = isShared ? pathInto(segment, self, functional, args, this.#call.fullgraph) : null
    if (isShared && path === null) return this.#runAlone(op, args, breakCauses.sharedMemory)
    let step = this.#step(functional, args, op)
    if (step !== null && step.results[0]?.dtype !== self.dtype) {
      // The tensor keeps its dtype.
      const wide = this.#segment.lazy(step)
      step = this.#step(castOp(), [wide, self.dtype])
    }
    if (step === null) return this.#runNow(op, args)
    if (path === null || this.#segment !== segment) {
      this.#segment.write(step.firstSlot, self)
      return self
    }
    const whole = path.scatter(segment.lazy(step))
    if (this.#eager) return this.#runNow(op, args)
    segment.write(segment.slotOf(whole), path.base)
    return self
  }

  /** An operator that gives a tensor another shape is recorded as a view if the tensor has no memory yet; otherwise it runs on that. */
  changeView(_qualname: string, self: Tensor, change: () => Tensor, ofItself: boolean): Tensor {
    if (this.#segment.hasStaleViews) this.#refresh(self)
    if (ofItself && !this.#eager && this.#segment.isOwn(self)) return change()
    this.breakGraph([self], breakCauses.viewChange)
    if (self.storage !== null) for (const ended of this.ended) ended.keepInputs(self.storage)
    return withoutModes(change)
  }

  rename(tensor: Tensor, to: Tensor): void {
    if (!this.#eager) this.#segment.rename(tensor, to)
  }

  /** Takes a view anew if its memory was written since. */
  #refresh(tensor: Tensor): void {
    const segment = this.#segment
    const slot = segment.slotOf(tensor)
    const view = segment.views.get(slot)
    if (view === undefined || segment.isCurrent(tensor)) return
    const source = segment.sourceOf(view)
    this.#refresh(source)
    const { recording } = dispatchState
    dispatchState.recording = false
    try {
      const [, ...rest] = view.args
      const step = this.#step(view.operator, [source, ...rest.map((arg) => argValue(arg, (at) => segment.bound[at]))])
      if (step !== null) segment.moveView(tensor, step, step.firstSlot + slot - view.firstSlot)
    } finally {
      dispatchState.recording = recording
    }
  }

  /**
   * The step for a call: the recorded one, or a new one. Null if no more paths may be recorded; then everything so far has been computed. `written`: the in-place operator for which `op`
   * stands.
   */
  #step(op: OpDef, args: readonly Arg[], written: OpDef | null = null): Step | null {
    if (op.indices !== null) this.#checkIndices(op, op.indices, args)
    const known = this.#segment.follow(op, args, written)
    if (known !== null) return known
    if (tensorsOf(args).some(isStandIn)) {
      this.breakGraph(
        tensorsOf(args).filter((tensor) => !isStandIn(tensor)),
        breakCauses.standIn,
      )
      return null
    }
    if (this.#bringUpToDate(args)) return this.#eager ? null : this.#step(op, args, written)
    // An in-place operator also checks that the result fits. A recorded step has been checked.
    if (written !== null) withoutModes(() => written.meta(...args))
    const last = this.#segment.cursor.children.at(-1)
    if (!(last === undefined ? this.#mayCompile() : this.#mayBranch(describeDifference(last, op, args, this.#call.tree.policy)))) {
      this.#leave()
      return null
    }
    const step = this.#segment.record(op, args, (tensor) => this.#call.nameOf(tensor))
    this.#call.watch?.recorded(step, args)
    return step
  }

  /** Throws if an operator will reject its indices: here, at the program's call, not when the graph runs. */
  #checkIndices(op: OpDef, rule: IndexRule, args: readonly Arg[]): void {
    const position = op.schema.args.findIndex(({ name }) => name === rule.argument)
    const indices = args[position]
    // A device checks its indices itself, without waiting for them here.
    if (!(indices instanceof Tensor) || indices.device !== 'cpu') return
    const known = this.#knownNow(indices)
    if (known === null) return
    withoutModes(() => {
      try {
        rule.check(...(known === indices ? args : args.with(position, known)))
      } catch (error) {
        // The kernel would have rejected a wrong shape first.
        op.meta(...args)
        throw error
      }
    })
  }

  /** The values of a tensor. A segment that computes them must end, unless that takes few small steps, or must not (fullgraph): then null. */
  #knownNow(tensor: Tensor): Tensor | null {
    const segment = this.#segment
    const { storage } = tensor
    if (this.#eager || storage === null || storage.writer === null) return tensor
    if (storage.writer !== segment || segment.slotOf(tensor) < 0) {
      storage.writer.settle(storage)
      return tensor
    }
    const small = segment.smallValue(tensor)
    if (small !== null) return small
    if (this.#call.fullgraph) return null
    this.breakGraph([tensor], breakCauses.indices)
    return tensor
  }

  #mayBranch(mismatch: Mismatch): boolean {
    const { tree, reports } = this.#call
    const isWithinLimit = tree.branches < config.recompileLimit
    if (isWithinLimit && !this.#mayCompile(mismatch.text)) return false
    if (isWithinLimit) tree.branches++
    reports.missed('step', mismatch, isWithinLimit)
    return isWithinLimit
  }

  /** Whether what is new may be compiled. If not, the program is told; `change`: what is new, if that is known. */
  #mayCompile(change: string | null = null): boolean {
    const { budget, reports } = this.#call
    const isAllowed = budget.mayCompile
    if (!isAllowed) reports.overBudget(budget.owed, change)
    return isAllowed
  }

  /** Leaves the recorded paths: computes what was called so far, and from here on each operator when it is called. */
  #leave(): void {
    this.#eager = true
    this.#fellBack = true
    const ended = new EndedSegment(this.#segment, false)
    this.ended.push(ended)
    computeAll(ended)
    this.#freeDisposed()
  }

  /** Computes outside tensors whose memory waits for a segment: an earlier one, or this one, through another tensor. Returns whether there were any. */
  #bringUpToDate(args: readonly Arg[]): boolean {
    let any = false
    for (const tensor of tensorsOf(args)) {
      const { storage } = tensor
      if (storage === null || storage.writer === null || this.#segment.slotOf(tensor) >= 0) continue
      any = true
      storage.writer.settle(storage)
    }
    return any
  }

  /** Ends the segment and runs an operator on real memory. */
  #runAlone(op: OpDef, args: readonly Arg[], cause: BreakCause): Result {
    this.breakGraph(tensorsOf(args), cause)
    if (op.functional !== null) {
      const { storage } = asTensor(args[0], 'the first argument of an in-place operator')
      if (storage !== null) for (const ended of this.ended) ended.keepInputs(storage)
    }
    return this.#runNow(op, args)
  }

  #runNow(op: OpDef, args: readonly Arg[]): Result {
    return withoutModes(() => dispatchBelowAutograd(op, args))
  }

  // ---- the ends of segments ----

  /** Ends the current segment because a value is needed; the program continues in a new one. Throws FullGraphError with fullgraph. */
  breakGraph(needed: readonly Tensor[], cause: BreakCause, storages: readonly Storage[] = []): void {
    if (this.#eager) return
    const segment = this.#segment
    const { cursor } = segment
    if (this.#call.fullgraph) {
      const error = new FullGraphError({ ...cause, userStack: captureStack() })
      this.abandon()
      throw error
    }
    if (cursor.breakReason === null) {
      cursor.breakReason = { ...cause, userStack: captureStack() }
      this.#call.reports.broke(cursor.breakReason)
    }
    cursor.after ??= Step.root()
    this.#segment = this.#start(cursor.after)
    this.#end(segment, { needed, storages, gradients: false, keepTape: true, leaves: this.#leavesWith(segment), reason: cursor.breakReason })
  }

  /** Whether part of its path was recorded or compiled for the first time. */
  get isFresh(): boolean {
    for (const ended of this.ended) if (ended.fresh) return true
    return false
  }

  /** Whether the call has left the recorded paths for good. */
  get isEager(): boolean {
    return this.#fellBack
  }

  /** Breaks the graph before code that compile cannot see and that may write to any tensor. */
  breakForEagerCode(needed: readonly Tensor[], cause: BreakCause): void {
    this.breakGraph(needed, cause)
    for (const ended of this.ended) if (ended.learns) ended.keepInputs(null)
  }

  /** What the program may still read of earlier segments is computed from their inputs, which are kept. What the current one reads or computes is freed after its end. */
  beforeFree(storage: Storage, mayWait: boolean): boolean {
    for (const ended of this.ended) if (ended.learns) ended.keepInputs(storage)
    const waits = mayWait && !this.#eager && this.#segment.knows(storage)
    if (waits) this.#disposed.push(storage)
    return waits
  }

  /** Frees what was disposed in the segment that has ended. What it did not compute has no memory. */
  #freeDisposed(): void {
    for (const storage of this.#disposed.splice(0)) {
      this.beforeFree(storage, false)
      if (!storage.isDeferred) disposeData(storage)
    }
  }

  /** Ends the call: computes what is needed of its last segment. */
  finish(demand: Pick<Demand, 'needed' | 'gradients' | 'keepTape' | 'everything'>): void {
    if (this.#eager) return
    this.#eager = true
    this.#learnHeld()
    const { needed, gradients, keepTape, everything } = demand
    // Not a spread: V8 allocates the copy among old objects, where it would keep alive what this call has computed.
    this.#end(this.#segment, { needed, gradients, keepTape, everything, leaves: this.#leavesWith(this.#segment), reason: null })
    // Later calls will know what is needed. Until then writes to the inputs of this one keep the old data.
    for (const ended of this.ended) if (ended.learns) ended.watchInputs()
  }

  /** Ends the call with its last segment computed operator by operator. */
  abandon(): void {
    if (this.#eager) return
    this.#eager = true
    const ended = new EndedSegment(this.#segment, false)
    this.ended.push(ended)
    computeAll(ended)
    this.#freeDisposed()
  }

  /** The leaves that the call has met, with those of a segment that ends. */
  #leavesWith({ bound }: Segment): Iterable<Tensor> {
    for (const input of bound) {
      if (!(input instanceof Tensor && input.requiresGrad && input.isLeaf)) continue
      this.#leaves ??= new Set()
      this.#leaves.add(input)
    }
    return this.#leaves ?? NO_LEAVES
  }

  #end(segment: Segment, demand: Demand): void {
    // What earlier segments did not compute but is needed comes before the writes of this one, which may change its inputs.
    for (const { storage } of demand.needed) computeEarlier(segment, storage)
    for (const { grad } of demand.leaves) if (grad !== null) computeEarlier(segment, grad.storage)
    const earlier = this.ended.slice()
    const ended = new EndedSegment(segment, this.#call.learns)
    this.ended.push(ended)
    const isCompiled = under(segment.cursor, () => endSegment(ended, demand, earlier, this.#call))
    this.#freeDisposed()
    if (isCompiled) return
    this.#fellBack = true
    this.#call.reports.overBudget(this.#call.budget.owed, null)
  }

  /** When a path is new, the tensors that arguments and modules hold by now are results, too. */
  #learnHeld(): void {
    const segment = this.#segment
    if (!segment.fresh && !this.ended.some((e) => e.fresh)) return
    forEachHeld(this.#call.holders, ({ storage }) => {
      if (storage?.writer === segment) {
        // What the call writes to memory from outside is a result in any case.
        if (!segment.writes.has(storage)) segment.cursor.learned.add(storage.captureSlot)
      } else if (storage?.isDeferred === true) storage.writer?.settle(storage)
    })
  }

  /** Memory that waits for `segment` is being read. */
  #read(segment: Segment, storage: Storage): void {
    if (segment === this.#segment && !this.#eager) {
      withoutModes(() => this.breakGraph([], breakCauses.read, [storage]))
      if (storage.writer === null) return
    }
    // There was an error in between, or the segment ended without computing this.
    const ended = this.ended.find((e) => e.segment === segment)
    present(ended, 'the segment of a lazy tensor').recompute(storage)
  }
}

/** Computes memory that waits for an earlier segment. */
function computeEarlier(segment: Segment, storage: Storage | null): void {
  if (storage !== null && storage.writer !== null && storage.writer !== segment && storage.isDeferred) storage.writer.settle(storage)
}

/** Whether the results of an operator lie inside the memory of its arguments, so that these are all that it depends on. */
function isWindow(op: OpDef, args: readonly Arg[]): boolean {
  const [self] = args
  if (op.name !== 'as_strided' || !(self instanceof Tensor)) return true
  return self.offset === 0 && self.contiguousLayout && (self.viewBase === null || self.viewBase.numel === self.numel)
}

/** Whether the tensor stands for one that was overwritten: its data is gone, and only operators that need no more than its shape may get it. */
function isStandIn({ storage }: Tensor): boolean {
  return storage !== null && storage.writer !== null && !(storage.writer instanceof Segment)
}

/** All tensors among arguments. */
function tensorsOf(args: readonly Arg[]): Tensor[] {
  return args.flatMap((arg) => (arg instanceof Tensor ? [arg] : isArgList(arg) ? tensorsOf(arg) : []))
}

/** The operator that casts the result of an in-place operator to the dtype of its tensor. */
const castOp = (): OpDef => present(opByName('torch.ops.tensorfx.to_copy'), 'the cast operator')
