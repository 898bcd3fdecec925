// A segment being walked: each operator call is checked against the trace tree, or recorded in it. Nothing is computed; ending.ts does that.
import { dispatchState, withoutModes } from '../dispatch/index.ts'
import type { Arg, OpDef, Result } from '../dispatch/index.ts'
import { opByName } from '../ops/index.ts'
import { captureStack } from '../provenance/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { Pending, Storage, TensorSpec } from '../tensor/index.ts'
import { describeDifference, isScalarArgument, sameButForNumbers, sameConstant } from './arguments.ts'
import { Step, fitsSpec } from './traceTree.ts'
import type { ArgStep, InputSpec } from './traceTree.ts'

let nextStamp = 1

/** What a segment asks of its capture. */
export interface SegmentHost {
  /** A name for an outside tensor. */
  nameOf(tensor: Tensor): string | null
  /** A path next to recorded ones is about to be recorded. False: there are enough of them. */
  mayBranch(describe: () => string): boolean
  /** Somebody reads a lazy tensor of `segment`. */
  read(segment: Segment, tensor: Tensor): void
}

/** Thrown inside the mode: the segment must end before the call can be taken. */
export class EndFirst extends Error {
  /** How the call is taken then: in a new segment, on real memory, or (with everything after it) eagerly. */
  readonly next: 'record' | 'compute' | 'eager'

  constructor(reason: string, next: EndFirst['next']) {
    super(reason)
    this.next = next
  }
}

/** An outside tensor that was written to. Its storage is taken away until the segment ends, so that reads are noticed. */
export interface Write {
  readonly storage: Storage
  /** The slot of its new value. */
  slot: number
  /** Its slot as an input. */
  readonly input: number
}

/** The state of one walk; afterwards what its lazy tensors ask for their data. */
export class Segment implements Pending {
  readonly #host: SegmentHost
  readonly stamp: number
  cursor: Step
  /** Outside tensors and numbers by slot. */
  readonly bound: unknown[] = []
  /** Lazy tensors by slot. */
  readonly lazies: (Tensor | undefined)[] = []
  /** The steps of the lazy tensors that are views, by slot. */
  readonly views = new Map<number, Step>()
  readonly writes = new Map<Tensor, Write>()
  /** Lazy tensors that were written to: likely state that outlives the call. */
  readonly mutatedLazies = new Set<Tensor>()
  readonly #viewed = new Set<Tensor>()
  readonly #writtenStorages = new Set<Storage>()
  /** Storages of outside tensors, and those that several of them share; from the first write on. */
  #storages: Map<Storage, Tensor> | null = null
  readonly #shared = new Set<Storage>()
  /** A path next to the one being recorded: numbers that differ from it become inputs. */
  #shadow: Step | null = null
  /** This walk recorded something. */
  fresh = false

  constructor(host: SegmentHost, root: Step) {
    this.#host = host
    this.cursor = root
    this.stamp = nextStamp++
  }

  /** One operator call. Throws EndFirst. */
  call(op: OpDef, args: readonly Arg[]): Result {
    if (op.functional !== null) return this.#writeTo(op, op.functional, args)
    return this.#results(this.#advance(op, args, null), op)
  }

  materialize(tensor: Tensor): void {
    this.#host.read(this, tensor)
  }

  /** Gives written tensors their storages back; the values are still the old ones. */
  restoreStorages(): void {
    for (const [tensor, { storage }] of this.writes) {
      tensor.storage = storage
      tensor.pending = null
      tensor.captureStamp = 0
    }
  }

  // ---- checking ----

  /** The step for this call: the recorded one that it agrees with, or a new one. */
  #advance(op: OpDef, args: readonly Arg[], inPlace: OpDef | null): Step {
    const { children } = this.cursor
    for (let i = 0; i < children.length; i++) {
      const child = children[i] as Step
      if (child.op === op && child.recording === dispatchState.recording && this.#agrees(child, args)) return (this.cursor = child)
    }
    return this.#record(op, args, inPlace)
  }

  #agrees(step: Step, args: readonly Arg[]): boolean {
    const recorded = step.args
    for (let i = 0; i < recorded.length; i++) {
      const r = recorded[i] as ArgStep
      const arg = args[i] as Arg
      // The usual arguments first.
      let ok: boolean
      if (r.kind === 'slot') ok = arg instanceof Tensor && arg.captureStamp === this.stamp && arg.captureSlot === r.slot
      else if (r.kind === 'const' && typeof r.value !== 'object') ok = Object.is(r.value, arg)
      else ok = this.#agreesSlowly(r, arg)
      if (ok) continue
      // Take back what was bound on the way.
      for (let k = 0; k <= i; k++) this.#unbind(recorded[k] as ArgStep)
      return false
    }
    return true
  }

  #agreesSlowly(r: ArgStep, arg: Arg): boolean {
    switch (r.kind) {
      case 'slot':
        return arg instanceof Tensor && this.#slotOf(arg) === r.slot
      case 'input':
        if (!(arg instanceof Tensor) || this.#slotOf(arg) !== -1 || !fitsSpec(arg, r.spec)) return false
        this.#bind(arg, r.slot)
        return true
      case 'scalar':
        if (typeof arg !== 'number') return false
        this.bound[r.slot] = arg
        return true
      case 'list':
        return Array.isArray(arg) && arg.length === r.items.length && r.items.every((item, i) => this.#agreesSlowly(item, arg[i] as Arg))
      default:
        return sameConstant(r.value, arg)
    }
  }

  #unbind(r: ArgStep): void {
    if (r.kind === 'list') for (const item of r.items) this.#unbind(item)
    if (r.kind !== 'input' && r.kind !== 'scalar') return
    const value = this.bound[r.slot]
    if (value instanceof Tensor) value.captureStamp = 0
    this.bound[r.slot] = undefined
  }

  #bind(tensor: Tensor, slot: number): void {
    const storage = tensor.storage as Storage
    // A view of something that was written to here would show the old value.
    if (this.#writtenStorages.has(storage)) throw new EndFirst('another tensor over the same memory was written to', 'record')
    if (this.#storages !== null) this.#see(tensor)
    tensor.captureStamp = this.stamp
    tensor.captureSlot = slot
    this.bound[slot] = tensor
  }

  /** The slot of a tensor in this segment; -1 for one from outside that it has not met. Lazy tensors of earlier segments are computed. */
  #slotOf(tensor: Tensor): number {
    if (tensor.captureStamp === this.stamp) return tensor.captureSlot
    if (tensor.storage === null) withoutModes(() => tensor.realize())
    return -1
  }

  // ---- recording ----

  #record(op: OpDef, args: readonly Arg[], inPlace: OpDef | null): Step {
    const { cursor } = this
    // First the checks of the arguments: after an error everything is as before.
    const spec = withoutModes(() => {
      // An in-place operator also checks that the result fits.
      if (inPlace !== null) (inPlace.meta as (...a: readonly Arg[]) => unknown)(...args)
      return (op.meta as (...a: readonly Arg[]) => TensorSpec | readonly TensorSpec[])(...args)
    })
    const shadow = this.#shadowFor(op, args)
    if (cursor.children.length > 0 && !this.#host.mayBranch(() => describeDifference(cursor.children.at(-1) as Step, op, args))) {
      throw new EndFirst('config.recompileLimit', 'eager')
    }
    let slot = cursor.nextSlot
    const describe = (arg: Arg, position: number, like: ArgStep | undefined): ArgStep => {
      if (arg instanceof Tensor) {
        const known = this.#slotOf(arg)
        if (known >= 0) return { kind: 'slot', slot: known }
        const spec: InputSpec = {
          shape: arg.shape,
          dtype: arg.dtype,
          strides: arg.strides,
          requiresGrad: arg.requiresGrad,
          name: this.#host.nameOf(arg),
        }
        this.#bind(arg, slot)
        return { kind: 'input', slot: slot++, spec }
      }
      if (Array.isArray(arg)) {
        if (!arg.some((a) => a instanceof Tensor)) return { kind: 'const', value: arg }
        return {
          kind: 'list',
          items: (arg as readonly Arg[]).map((a, i) => describe(a, position, like?.kind === 'list' ? like.items[i] : undefined)),
        }
      }
      const differs = like !== undefined && (like.kind === 'scalar' || (like.kind === 'const' && !Object.is(like.value, arg)))
      const dynamic =
        typeof arg === 'number' && isScalarArgument(op, position) && (differs || op.dynamicScalars.includes(op.schema.args[position]?.name ?? ''))
      if (!dynamic) return { kind: 'const', value: arg }
      this.bound[slot] = arg
      return { kind: 'scalar', slot: slot++ }
    }
    const described = args.map((arg, i) => describe(arg, i, shadow?.args[i]))
    const single = !Array.isArray(spec)
    const results = (single ? [spec as TensorSpec] : (spec as readonly TensorSpec[])).map((s) => Tensor.fake(s))
    const step = new Step(op, described, results, single, slot, slot + results.length, cursor, captureStack(), dispatchState.recording)
    cursor.children.push(step)
    this.cursor = step
    this.fresh = true
    return step
  }

  /** The recorded step that differs from this call in numbers only: walked along while the new path is recorded. */
  #shadowFor(op: OpDef, args: readonly Arg[]): Step | null {
    const candidates = this.cursor.children.length > 0 ? this.cursor.children : (this.#shadow?.children ?? [])
    this.#shadow = candidates.findLast((c) => c.op === op && c.args.every((r, i) => sameButForNumbers(r, args[i] as Arg))) ?? null
    return this.#shadow
  }

  // ---- lazy tensors ----

  #results(step: Step, op: OpDef): Result {
    const { results } = step
    const isView = op.tags.has('view')
    if (step.single) return this.#lazy(results[0] as Tensor, step.firstSlot, isView ? step : null)
    return results.map((r, i) => this.#lazy(r, step.firstSlot + i, isView ? step : null))
  }

  #lazy(like: Tensor, slot: number, view: Step | null): Tensor {
    const tensor = new Tensor(like.shape, like.dtype, null, undefined, undefined, like)
    tensor.pending = this
    tensor.captureStamp = this.stamp
    tensor.captureSlot = slot
    this.lazies[slot] = tensor
    if (view !== null) this.#noteView(tensor, slot, view)
    return tensor
  }

  #noteView(tensor: Tensor, slot: number, view: Step): void {
    const source = this.sourceOf(view)
    if (source === null) return
    tensor.viewBase = source.viewBase ?? source
    this.#viewed.add(tensor.viewBase)
    this.views.set(slot, view)
  }

  /** The tensor that a view operator looked at. */
  sourceOf(view: Step): Tensor | null {
    const source = view.args[0] as ArgStep
    return source.kind === 'slot' || source.kind === 'input' ? (this.at(source.slot) as Tensor) : null
  }

  /** The tensor (or number) that stands for a slot. */
  at(slot: number): unknown {
    return this.lazies[slot] ?? this.bound[slot]
  }

  // ---- writes ----

  /** An in-place operator: the functional one, and the tensor stands for its result from now on. */
  #writeTo(op: OpDef, functional: OpDef, args: readonly Arg[]): Tensor {
    const self = args[0] as Tensor
    if (self.viewBase !== null || this.#viewed.has(self) || this.#isShared(self))
      throw new EndFirst('in-place operator on a view, or on a tensor that has views', 'compute')
    let step = this.#advance(functional, args, op)
    const result = step.results[0] as Tensor
    // The tensor keeps its dtype.
    if (result.dtype !== self.dtype) step = this.#advance(castOp(), [this.#lazy(result, step.firstSlot, null), self.dtype], null)
    const slot = step.firstSlot
    if (self.storage !== null) {
      this.writes.set(self, { storage: self.storage, slot, input: self.captureSlot })
      this.#writtenStorages.add(self.storage)
      self.storage = null
      self.pending = this
    } else {
      const write = this.writes.get(self)
      if (write === undefined) this.mutatedLazies.add(self)
      else write.slot = slot
    }
    self.captureStamp = this.stamp
    self.captureSlot = slot
    this.lazies[slot] = self
    return self
  }

  /** Whether another outside tensor of this segment lies over the same memory. */
  #isShared(self: Tensor): boolean {
    if (self.storage === null) return false
    if (this.#storages === null) {
      this.#storages = new Map()
      for (const value of this.bound) if (value instanceof Tensor) this.#see(value)
    }
    const other = this.#storages.get(self.storage)
    return this.#shared.has(self.storage) || (other !== undefined && other !== self)
  }

  #see(tensor: Tensor): void {
    const storages = this.#storages as Map<Storage, Tensor>
    const storage = tensor.storage ?? this.writes.get(tensor)?.storage
    if (storage === undefined) return
    const known = storages.get(storage)
    if (known === undefined) storages.set(storage, tensor)
    else if (known !== tensor) this.#shared.add(storage)
  }
}

const castOp = (): OpDef => opByName('torch.ops.tensorfx.to_copy') as OpDef
