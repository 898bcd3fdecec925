// A segment: the part of a call between two graph breaks, as it is being walked. Each operator call follows the recorded step that it agrees with, or records a new one. Nothing is
// computed here; endSegment.ts does that.
//
// Tensors are known by slots. What the segment knows of their memory it notes on the storage: the slot that holds its current value, whether several tensors share it (a view was
// made, or two outside tensors lie on it), and, as the storage's writer, that the segment must be run before the memory may be looked at.
import { upcomingSeq } from '../../autograd/index.ts'
import { devices, dispatchState, isArgList, markView, numberKind, withoutModes } from '../../dispatch/index.ts'
import type { Arg, OpDef, Result } from '../../dispatch/index.ts'
import { present } from '../../errors/index.ts'
import { agreesAtOperator, metStateOf } from '../../guards/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { captureStack } from '../../provenance/index.ts'
import { Storage, Tensor, asTensor, sameShape } from '../../tensor/index.ts'
import type { Writer } from '../../tensor/index.ts'
import { agreesWithInput, isOfKind, itemOf, sameButForNumbers, sameConstant } from '../tree/arguments.ts'
import { evaluate } from '../run/evaluate.ts'
import { SegmentNotes } from './segmentNotes.ts'
import { anyDiffers, fakesOf, hasSizes, offsetOf, resultsFor } from '../tree/results.ts'
import { isSize } from '../tree/sizes.ts'
import type { SizePolicy, SizedLayout, Sizes } from '../tree/sizes.ts'
import { Step, neededSteps } from '../tree/traceTree.ts'
import type { ArgStep, InputSpec, InputStep, NumberKind } from '../tree/traceTree.ts'

let nextStamp = 1

/** What is computed twice rather than ending a segment. */
const SMALL_STEPS = 4
const SMALL_NUMEL = 2 ** 16

/** Where a program looked at memory that a segment has to bring up to date. */
export type OnRead = (segment: Segment, storage: Storage) => void

export class Segment extends SegmentNotes implements Writer {
  readonly stamp: number
  /** Nodes of the tape from this number on were recorded by the segment. */
  readonly firstSeq: number = upcomingSeq()
  cursor: Step
  /** Outside tensors and numbers by slot, and the versions of the tensors' storages when they were met. */
  readonly bound: unknown[] = []
  readonly versions: number[] = []
  /** Lazy tensors by slot: results of operators. */
  readonly lazies: (Tensor | undefined)[] = []
  /** Whether memory with views was written: views may have to be taken anew (see {@link isCurrent}). */
  hasStaleViews = false
  /** All in-place operators in order: the slot of the new value, and the tensor. */
  readonly writeLog: (readonly [number, Tensor])[] = []
  /** Whether this walk recorded a step. */
  fresh = false
  /** The sizes that the walk has noted so far; null: none, and everything is as it was recorded. */
  sizes: Sizes | null = null
  /** Fake tensors like the values of slots whose shapes depend on sizes, as they are in this walk: of inputs when they were met, and of results. */
  readonly #likes: (Tensor | undefined)[] = []
  /** By slot: whether the value has another layout than the one that was recorded. */
  readonly #differs: boolean[] = []
  /** What decides which positions become sizes; null: none does. */
  readonly #policy: SizePolicy | null
  readonly #root: Step
  /** An earlier path like the one being recorded: numbers that differ from it become inputs. */
  #shadow: Step | null = null
  readonly #onRead: OnRead

  constructor(root: Step, onRead: OnRead, policy: SizePolicy | null = null) {
    super()
    this.cursor = root
    this.#root = root
    this.#policy = policy
    this.stamp = nextStamp++
    this.#onRead = onRead
  }

  settle(storage: Storage): void {
    this.#onRead(this, storage)
  }

  // ---- following the recorded path ----

  /**
   * Goes on to the recorded step that this call agrees with. Returns null, and stays, if there is none. `written`: the in-place operator for which `op` stands. Throws what the checks of an operator throw that
   * gets other sizes, and then nothing has changed.
   */
  follow(op: OpDef, args: readonly Arg[], written: OpDef | null): Step | null {
    for (const child of this.cursor.children) {
      if (child.op !== op || !agreesAtOperator(child.state)) continue
      const before = this.sizes
      if (this.#agrees(child, args) && (!child.isSized || this.#resize(child, args, written, before))) return (this.cursor = child)
    }
    return null
  }

  /** Finds what the results of a step are for the present sizes. Returns false, as if the call did not agree, if there are more or fewer of them. */
  #resize(step: Step, args: readonly Arg[], written: OpDef | null, before: Sizes | null): boolean {
    const sizes = present(this.sizes, 'the sizes of a step')
    const offset = offsetOf(args)
    let known = step.asRecorded !== null && !anyDiffers(step.args, this.#differs) ? step.asRecorded : sizes.knownAt(step)
    try {
      if (known === undefined || (known.offset !== offset && step.operator.tags.has('view'))) {
        known = resultsFor(step, args)
        sizes.note(step, known)
      }
      if (written !== null && known.fits !== written) {
        withoutModes(() => written.meta(...args))
        known.fits = written
      }
    } catch (error) {
      this.#leave(step.args, before)
      throw error
    }
    if (known.results.length !== step.results.length) {
      this.#leave(step.args, before)
      return false
    }
    for (let i = 0; i < known.results.length; i++) {
      this.#likes[step.firstSlot + i] = known.results[i]
      this.#differs[step.firstSlot + i] = !known.isAsRecorded
    }
    return true
  }

  /** Undoes what these arguments have bound. */
  #leave(args: readonly ArgStep[], sizes: Sizes | null): void {
    for (const arg of args) this.#unbind(arg)
    this.sizes = sizes
  }

  #agrees(step: Step, args: readonly Arg[]): boolean {
    const recorded = step.args
    const before = this.sizes
    for (let i = 0; i < recorded.length; i++) {
      const r = recorded[i]
      const arg = args[i]
      if (r !== undefined && arg !== undefined) {
        // The most frequent kinds come first.
        let ok: boolean
        if (r.kind === 'slot') ok = arg instanceof Tensor && arg.captureStamp === this.stamp && arg.captureSlot === r.slot
        else if (r.kind === 'const' && typeof r.value !== 'object') ok = Object.is(r.value, arg)
        else ok = this.#agreesSlowly(r, arg)
        if (ok) continue
      }
      this.#leave(recorded.slice(0, i + 1), before)
      return false
    }
    return true
  }

  #agreesSlowly(r: ArgStep, arg: Arg | undefined): boolean {
    switch (r.kind) {
      case 'slot':
        return arg instanceof Tensor && this.slotOf(arg) === r.slot
      case 'input':
        if (!(arg instanceof Tensor) || this.slotOf(arg) !== -1 || !agreesWithInput(arg, r.spec) || arg.storage?.writer !== null) return false
        this.#bind(arg, r.slot)
        if (r.spec.sizes !== null) {
          this.#noteTensor(r.spec.sizes, arg, r.slot)
          this.#differs[r.slot] = !(sameShape(arg.sizes, r.spec.shape) && sameShape(arg.steps, r.spec.strides))
        }
        return true
      case 'scalar':
        if (!isOfKind(arg, r.number)) return false
        this.bound[r.slot] = arg
        if (r.number === 'size') this.#noteSize(Number(arg))
        return true
      case 'list':
        return isArgList(arg) && arg.length === r.items.length && r.items.every((item, i) => this.#agreesSlowly(item, arg[i]))
      default:
        return sameConstant(r.value, arg)
    }
  }

  #noteSize(size: number): void {
    this.sizes = (this.sizes ?? this.#root.noSizes).with(size)
  }

  #noteTensor(layout: SizedLayout, tensor: Tensor, slot: number): void {
    this.sizes = (this.sizes ?? this.#root.noSizes).ofTensor(layout, tensor)
    this.#likes[slot] = new Tensor(tensor.sizes, tensor.dtype, null, undefined, undefined, tensor)
  }

  /** A fake tensor like a result of a step, with its layout in this walk. */
  likeOf(step: Step, i = 0): Tensor {
    return present(step.isSized ? this.#likes[step.firstSlot + i] : step.results[i], 'the layout of a result')
  }

  /** An input of this walk as it was met. */
  metAs({ slot, spec }: InputStep): InputSpec {
    const like = spec.sizes === null ? undefined : this.#likes[slot]
    return like === undefined
      ? spec
      : { ...spec, shape: like.shape, strides: like.strides, state: { ...spec.state, sizes: like.sizes, steps: like.steps } }
  }

  #bind(tensor: Tensor, slot: number): void {
    const storage = tensor.storage ?? tensor.realize()
    tensor.captureStamp = this.stamp
    tensor.captureSlot = slot
    storage.captureShared = storage.captureStamp === this.stamp
    if (storage.captureShared) this.noteAliased(storage)
    storage.captureStamp = this.stamp
    storage.captureSlot = slot
    this.bound[slot] = tensor
    this.versions[slot] = storage.version
  }

  #unbind(r: ArgStep): void {
    if (r.kind === 'list') for (const item of r.items) this.#unbind(item)
    if (r.kind !== 'input') return
    const value = this.bound[r.slot]
    if (value instanceof Tensor) {
      value.captureStamp = 0
      // Another tensor on this memory stays known: it was the first, or there would be no second.
      if (value.storage !== null && !value.storage.captureShared) value.storage.captureStamp = 0
    }
    this.bound[r.slot] = undefined
  }

  /** The slot of a tensor; -1 for an outside tensor that the segment has not met yet. */
  slotOf(tensor: Tensor): number {
    return tensor.captureStamp === this.stamp ? tensor.captureSlot : -1
  }

  // ---- recording a new path ----

  /** Records a step and goes on to it. Throws what the operator's checks throw, and then nothing has changed. `nameOf` names outside tensors. */
  record(op: OpDef, args: readonly Arg[], nameOf: (tensor: Tensor) => string | null): Step {
    const { cursor } = this
    const spec = withoutModes(() => op.meta(...args))
    const shadow = this.#shadowFor(op, args)
    const policy = this.#policy
    let slot = cursor.nextSlot
    const describe = (arg: Arg, position: number, like: ArgStep | undefined): ArgStep => {
      if (arg instanceof Tensor) {
        const known = this.slotOf(arg)
        if (known >= 0) return { kind: 'slot', slot: known }
        const { shape, dtype, strides, requiresGrad } = arg
        const name = nameOf(arg)
        const sizes = policy?.layoutOf(arg, like?.kind === 'input' ? like.spec : null, name) ?? null
        this.#bind(arg, slot)
        if (sizes !== null) this.#noteTensor(sizes, arg, slot)
        return { kind: 'input', slot: slot++, spec: { shape, dtype, strides, requiresGrad, state: metStateOf(arg), sizes, name } }
      }
      if (isArgList(arg)) {
        const items = arg.map((a, i) => describe(a, position, itemOf(like, i)))
        return items.every((item) => item.kind === 'const') ? { kind: 'const', value: arg } : { kind: 'list', items }
      }
      const differs = like !== undefined && (like.kind === 'scalar' || (like.kind === 'const' && !Object.is(like.value, arg)))
      const number = this.#numberKind(op, args, position, arg, differs)
      if (number === null) return { kind: 'const', value: arg }
      this.bound[slot] = arg
      if (number === 'size') this.#noteSize(Number(arg))
      return { kind: 'scalar', slot: slot++, number }
    }
    const described = args.map((arg, i) => describe(arg, i, shadow?.args[i]))
    const results = fakesOf(spec)
    const sourceOffset = offsetOf(args)
    const isSized = this.sizes !== null && described.some((arg) => this.#isSized(arg))
    const step = new Step(cursor, {
      op,
      args: described,
      results,
      single: 'shape' in spec,
      firstSlot: slot,
      stack: captureStack(),
      recording: dispatchState.recording,
      sourceOffset,
      isSized,
      followsRecorded: isSized && !hasSizes(described) && !anyDiffers(described, this.#differs),
    })
    if (isSized) {
      this.sizes?.note(step, { results, offset: sourceOffset, isAsRecorded: true, fits: null })
      results.forEach((result, i) => (this.#likes[step.firstSlot + i] = result))
    }
    cursor.children.push(step)
    this.cursor = step
    this.fresh = true
    return step
  }

  /** The kind of a number that is recorded as an input; null: it is a constant. `differs`: from that of an earlier path. */
  #numberKind(op: OpDef, args: readonly Arg[], position: number, value: Arg, differs: boolean): NumberKind | null {
    const argument = op.schema.args[position]
    if (argument?.type.isSize === true && !op.dynamicScalars.includes(argument.name)) {
      const policy = this.#policy
      return policy !== null && (differs || policy.rule === 'all') && isSize(value) && !op.tags.has('custom') ? 'size' : null
    }
    const isDynamic = differs || dispatchState.changingNumbers || op.dynamicScalars.includes(argument?.name ?? '')
    return isDynamic || this.#isCount(args, value) ? numberKind(op, args, position) : null
  }

  /**
   * Whether a number that a derivative takes, as that of a mean divides by one, is a count of elements which differs from call to call. Only where all sizes do from the first call on, and nothing is recorded: a gradient of such
   * a number cannot be compiled.
   */
  #isCount(args: readonly Arg[], value: Arg): boolean {
    if (this.#policy?.rule !== 'all' || !dispatchState.internal || dispatchState.recording || !isSize(value)) return false
    return args.some(
      (arg) => arg instanceof Tensor && this.#likes[this.slotOf(arg)] !== undefined && (arg.numel === value || arg.sizes.includes(value)),
    )
  }

  /** Whether what an argument is depends on sizes of the path. */
  #isSized(arg: ArgStep): boolean {
    if (arg.kind === 'list') return arg.items.some((item) => this.#isSized(item))
    if (arg.kind === 'scalar') return arg.number === 'size'
    return arg.kind !== 'const' && this.#likes[arg.slot] !== undefined
  }

  /** The recorded step that differs from this call in numbers only; the shadow follows it while the new path is recorded. */
  #shadowFor(op: OpDef, args: readonly Arg[]): Step | null {
    const candidates = this.cursor.children.length > 0 ? this.cursor.children : (this.#shadow?.children ?? [])
    this.#shadow = candidates.findLast((c) => c.op === op && c.args.every((r, i) => sameButForNumbers(r, args[i], this.#policy !== null))) ?? null
    return this.#shadow
  }

  // ---- lazy tensors ----

  /** The results of a step as lazy tensors; views of known memory lie on it at once. */
  results(step: Step): Result {
    return step.single ? this.lazy(step) : step.results.map((_, i) => this.lazy(step, i))
  }

  /** The lazy tensor of one result. */
  lazy(step: Step, i = 0): Tensor {
    const like = this.likeOf(step, i)
    const slot = step.firstSlot + i
    const source = step.operator.tags.has('view') ? this.sourceOf(step) : null
    const tensor = source === null ? this.#newLazy(like, slot) : this.#newView(step, like, slot, source)
    tensor.captureStamp = this.stamp
    tensor.captureSlot = slot
    this.lazies[slot] = tensor
    return tensor
  }

  #newLazy(like: Tensor, slot: number): Tensor {
    const storage = Storage.deferred(like.numel * dtypeInfo[like.dtype].size, this, devices.here)
    storage.captureStamp = this.stamp
    storage.captureSlot = slot
    return new Tensor(like.sizes, like.dtype, storage, undefined, undefined, like)
  }

  #newView(step: Step, like: Tensor, slot: number, source: Tensor): Tensor {
    const storage = present(source.storage, 'the storage of the base of a view')
    storage.captureShared = true
    // as_strided counts from the start of the memory if it is given an offset, all other views from their source. With sizes the layout is of this call.
    const moved = step.isSized
      ? 0
      : step.args[3]?.kind === 'const' && step.args[3].value !== null && step.operator.name === 'as_strided'
        ? 0
        : source.offset - step.sourceOffset
    const view = new Tensor(like.sizes, like.dtype, storage, undefined, like.offset + moved, like)
    markView(view, source, step.operator)
    this.noteView(slot, step)
    return view
  }

  /** The tensor of which a view operator makes views. */
  sourceOf(view: Step): Tensor {
    const [source] = view.args
    if (source === undefined || (source.kind !== 'slot' && source.kind !== 'input')) return asTensor(null, 'the base of a view')
    return asTensor(this.at(source.slot), 'the base of a view')
  }

  /** The tensor (or number) that stands for a slot. */
  at(slot: number): unknown {
    return this.lazies[slot] ?? this.bound[slot]
  }

  /** Whether a tensor is computed by the segment, and lies on no memory before. */
  isOwn(tensor: Tensor): boolean {
    return this.slotOf(tensor) >= 0 && tensor.storage?.isDeferred === true && tensor.storage.writer === this
  }

  /** Whether the segment reads, writes or computes what is in `storage`. */
  knows(storage: Storage): boolean {
    return storage.writer === this || this.bound.some((value) => value instanceof Tensor && value.storage === storage)
  }

  /** What the segment knows of a lazy tensor belongs to the tensor `to` from here on. */
  rename(tensor: Tensor, to: Tensor): void {
    if (this.slotOf(tensor) < 0) return
    to.captureStamp = tensor.captureStamp
    to.captureSlot = tensor.captureSlot
    for (let slot = 0; slot < this.lazies.length; slot++) if (this.lazies[slot] === tensor) this.lazies[slot] = to
  }

  /** The lazy tensor at a slot. Throws InternalError if there is none. */
  lazyAt(slot: number): Tensor {
    return present(this.lazies[slot], 'a lazy tensor')
  }

  /** The value of a lazy tensor, computed at once if that takes a few steps on small tensors (a cast of indices, a range); otherwise null. */
  smallValue(tensor: Tensor): Tensor | null {
    const slot = this.slotOf(tensor)
    const { steps, slots } = neededSteps(this.cursor, [slot], SMALL_STEPS)
    if (steps.length > SMALL_STEPS || steps.some((step) => step.results.some(({ numel }) => numel > SMALL_NUMEL))) return null
    // Old data that a write is pending for could only be read by ending the segment.
    for (const needed of slots) {
      const input = this.bound[needed]
      if (input instanceof Tensor && input.storage?.writer !== null) return null
    }
    return evaluate(this.cursor, [slot], (input) => this.bound[input]).get(slot) ?? null
  }

  // ---- writes ----

  /** Whether a write to `self` reaches other tensors that the segment knows, or that `args` hold: it cannot be recorded as a new value of one tensor then. */
  reachesOthers(self: Tensor, args: readonly Arg[]): boolean {
    const { storage } = self
    if (storage?.captureStamp === this.stamp && (storage.captureShared || this.slotOf(self) < 0)) return true
    return args.some((arg) => (isArgList(arg) ? this.reachesOthers(self, arg) : arg instanceof Tensor && arg !== self && arg.storage === storage))
  }

  /** From here on `self` stands for the value at `slot`. */
  write(slot: number, self: Tensor): void {
    const storage = present(self.storage, 'the storage of a written tensor')
    const known = this.writes.get(storage)
    if (known !== undefined) known.slot = slot
    else if (storage.writer !== this) {
      this.noteWrite(storage, { tensor: self, slot, input: self.captureSlot, before: storage.version })
      storage.writer = this
    }
    this.writeLog.push([slot, self])
    self.captureSlot = slot
    storage.captureSlot = slot
    this.lazies[slot] = self
    this.dropView(slot)
    if (storage.captureShared) this.hasStaleViews = true
  }

  /** Whether what a tensor stands for is its present value: not if it is a view of memory that was written since. */
  isCurrent(tensor: Tensor): boolean {
    const view = this.views.get(this.slotOf(tensor))
    if (view === undefined) return true
    const source = this.sourceOf(view)
    const [arg] = view.args
    return arg !== undefined && 'slot' in arg && arg.slot === this.slotOf(source) && this.isCurrent(source)
  }

  /** A view stands for a result of `step`, which has taken it anew, from here on. */
  moveView(view: Tensor, step: Step, slot: number): void {
    view.captureSlot = slot
    this.lazies[slot] = view
    this.noteView(slot, step)
  }
}
