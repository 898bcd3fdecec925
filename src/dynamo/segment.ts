// A walk through a segment: each operator call is checked against the trace tree, or recorded in it. Nothing is computed here; ending.ts does that.
import { dispatchState, withoutModes } from '../dispatch/index.ts'
import type { Arg, OpDef, Result } from '../dispatch/index.ts'
import { present } from '../errors/index.ts'
import { opByName } from '../ops/index.ts'
import { captureStack } from '../provenance/index.ts'
import { Tensor, asTensor } from '../tensor/index.ts'
import type { Pending, Storage, TensorSpec } from '../tensor/index.ts'
import { describeDifference, isScalarArgument, sameButForNumbers, sameConstant } from './arguments.ts'
import { Step, fitsSpec } from './traceTree.ts'
import type { ArgStep, InputSpec } from './traceTree.ts'

let nextStamp = 1

/** What a segment needs of its capture. */
export interface SegmentHost {
  /** A name for an outside tensor. */
  nameOf(tensor: Tensor): string | null
  /** Asked before another path is recorded next to others. False if the limit is reached. */
  mayBranch(describe: () => string): boolean
  /** Called when a lazy tensor of `segment` is read. */
  read(segment: Segment, tensor: Tensor): void
}

/** Thrown inside the mode: the segment must end before the call can run. */
export class EndFirst extends Error {
  /** How the call runs then: in a new segment, on real memory, or (with everything after it) eagerly. */
  readonly next: 'record' | 'compute' | 'eager'

  constructor(reason: string, next: EndFirst['next']) {
    super(reason)
    this.next = next
  }
}

/** An outside tensor that was written to. It has no storage until the segment ends, so that reads are noticed. */
export interface Write {
  readonly storage: Storage
  /** The slot of its new value. */
  slot: number
  /** Its slot as an input. */
  readonly input: number
}

/** The state of one walk. Afterwards its lazy tensors ask it for their data. */
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
  /** Outside tensors by storage, and the storages that several of them share; kept from the first write on. */
  #storages: Map<Storage, Tensor> | null = null
  readonly #shared = new Set<Storage>()
  /** An earlier path like the one being recorded: numbers that differ from it become inputs. */
  #shadow: Step | null = null
  /** Whether this walk recorded a step. */
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

  /** Gives written tensors their storages back, which still hold the old values. */
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
      const child = children[i]
      if (child !== undefined && child.op === op && child.recording === dispatchState.recording && this.#agrees(child, args))
        return (this.cursor = child)
    }
    return this.#record(op, args, inPlace)
  }

  #agrees(step: Step, args: readonly Arg[]): boolean {
    const recorded = step.args
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
      // Undo what this loop has bound.
      for (const bound of recorded.slice(0, i + 1)) this.#unbind(bound)
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
        return Array.isArray(arg) && arg.length === r.items.length && r.items.every((item, i) => this.#agreesSlowly(item, arg[i]))
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
    const storage = present(tensor.storage, 'the storage of an outside tensor')
    // A view of a tensor that was written to in this segment would show the old value.
    if (this.#writtenStorages.has(storage)) throw new EndFirst('another tensor on the same memory was written to', 'record')
    if (this.#storages !== null) this.#see(this.#storages, tensor)
    tensor.captureStamp = this.stamp
    tensor.captureSlot = slot
    this.bound[slot] = tensor
  }

  /** The slot of a tensor in this segment; -1 for an outside tensor that it has not met yet. Lazy tensors of earlier segments are computed. */
  #slotOf(tensor: Tensor): number {
    if (tensor.captureStamp === this.stamp) return tensor.captureSlot
    if (tensor.storage === null) withoutModes(() => tensor.realize())
    return -1
  }

  // ---- recording ----

  #record(op: OpDef, args: readonly Arg[], inPlace: OpDef | null): Step {
    const { cursor } = this
    // Arguments are checked first, so that an error changes nothing.
    const spec = withoutModes(() => {
      // An in-place operator also checks that the result fits.
      if (inPlace !== null) (inPlace.meta as (...a: readonly Arg[]) => unknown)(...args)
      return (op.meta as (...a: readonly Arg[]) => TensorSpec | readonly TensorSpec[])(...args)
    })
    const shadow = this.#shadowFor(op, args)
    if (cursor.children.length > 0 && !this.#host.mayBranch(() => describeDifference(present(cursor.children.at(-1), 'the last path'), op, args)))
      throw new EndFirst('config.recompileLimit', 'eager')
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
          items: arg.map((a: Arg, i) => describe(a, position, like?.kind === 'list' ? like.items[i] : undefined)),
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

  /** The recorded step that differs from this call in numbers only; the shadow follows it while the new path is recorded. */
  #shadowFor(op: OpDef, args: readonly Arg[]): Step | null {
    const candidates = this.cursor.children.length > 0 ? this.cursor.children : (this.#shadow?.children ?? [])
    this.#shadow = candidates.findLast((c) => c.op === op && c.args.every((r, i) => sameButForNumbers(r, args[i]))) ?? null
    return this.#shadow
  }

  // ---- lazy tensors ----

  #results(step: Step, op: OpDef): Result {
    const { results } = step
    const isView = op.tags.has('view')
    const [result] = results
    if (step.single && result !== undefined) return this.#lazy(result, step.firstSlot, isView ? step : null)
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

  /** The tensor of which a view operator makes a view; null if it is an item of a list. */
  sourceOf(view: Step): Tensor | null {
    const [source] = view.args
    if (source === undefined || (source.kind !== 'slot' && source.kind !== 'input')) return null
    return asTensor(this.at(source.slot), 'the base of a view')
  }

  /** The tensor (or number) that stands for a slot. */
  at(slot: number): unknown {
    return this.lazies[slot] ?? this.bound[slot]
  }

  /** The lazy tensor at a slot. Throws InternalError if there is none. */
  lazyAt(slot: number): Tensor {
    return present(this.lazies[slot], 'a lazy tensor')
  }

  // ---- writes ----

  /** Records an in-place operator as the functional one; the tensor stands for its result from here on. */
  #writeTo(op: OpDef, functional: OpDef, args: readonly Arg[]): Tensor {
    const self = asTensor(args[0], 'the first argument of an in-place operator')
    if (self.viewBase !== null || this.#viewed.has(self) || this.#isShared(self))
      throw new EndFirst('in-place operator on a view, or on a tensor that has views', 'compute')
    let step = this.#advance(functional, args, op)
    const result = present(step.results[0], 'the result of an in-place operator')
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

  /** Whether another outside tensor of this segment shares its memory. */
  #isShared(self: Tensor): boolean {
    if (self.storage === null) return false
    if (this.#storages === null) {
      this.#storages = new Map()
      for (const value of this.bound) if (value instanceof Tensor) this.#see(this.#storages, value)
    }
    const other = this.#storages.get(self.storage)
    return this.#shared.has(self.storage) || (other !== undefined && other !== self)
  }

  /** Notes the storage of an outside tensor in `storages`. */
  #see(storages: Map<Storage, Tensor>, tensor: Tensor): void {
    const storage = tensor.storage ?? this.writes.get(tensor)?.storage
    if (storage === undefined) return
    const known = storages.get(storage)
    if (known === undefined) storages.set(storage, tensor)
    else if (known !== tensor) this.#shared.add(storage)
  }
}

const castOp = (): OpDef => present(opByName('torch.ops.tensorfx.to_copy'), 'the cast operator')
