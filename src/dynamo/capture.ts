// One call of a compiled function: the mode under which it runs. Operators compute nothing; each is checked against the trace tree, or recorded in it.
// A value that the program needs ends the segment: it is compiled (once), run, and the code goes on with the real value.
import { isGradEnabled } from '../autograd/index.ts'
import { dispatchState, withoutModes } from '../dispatch/index.ts'
import type { Arg, DispatchMode, OpDef, Result } from '../dispatch/index.ts'
import { Interpreter } from '../fx/index.ts'
import { copyInto } from '../ops/eager/copy.ts'
import { captureStack } from '../provenance/index.ts'
import type { CapturedStack } from '../provenance/index.ts'
import { Storage, Tensor, isContiguous, sameShape } from '../tensor/index.ts'
import type { Pending, TensorSpec } from '../tensor/index.ts'
import { EscapedTensorError, FullGraphError } from './errors.ts'
import type { BreakReason } from './explain.ts'
import { buildGraph } from './segment.ts'
import type { CompiledSegment } from './segment.ts'
import { Step, fitsSpec } from './traceTree.ts'
import type { ArgStep, InputSpec } from './traceTree.ts'

let nextStamp = 1

/** What a capture asks of the compiled function that it belongs to. */
export interface CaptureHost {
  readonly fullgraph: boolean
  /** Compiles the segment ending at `end` for these outputs (slots), of which some are written back to inputs. */
  compileSegment(
    capture: Capture,
    end: Step,
    outputs: readonly number[],
    writeBacks: ReadonlyMap<number, number>,
    differentiable: readonly number[],
  ): CompiledSegment
  /** A name for an outside tensor. */
  nameOf(tensor: Tensor): string | null
  /** A new path was recorded next to others; `why` says what differed. */
  onBranch(why: string): void
}

/** The mode of one call. */
export class Capture implements DispatchMode {
  readonly name = 'LazyMode'
  readonly staysActive = true
  readonly host: CaptureHost
  segment: Segment
  readonly #finished: Segment[] = []

  constructor(host: CaptureHost, root: Step) {
    this.host = host
    this.segment = new Segment(this, root)
  }

  handle(op: OpDef, args: readonly Arg[]): Result {
    try {
      return this.segment.call(op, args)
    } catch (error) {
      if (!(error instanceof RetryAfterBreak)) throw error
      this.breakGraph([], 'a view of a tensor that was written to')
      return this.segment.call(op, args)
    }
  }

  /** Ends the running segment because a value is needed; the code goes on in a new one. */
  breakGraph(needed: readonly Tensor[], reason: string, keepAll = false): void {
    const stack = captureStack()
    const brk: BreakReason = { reason, userStack: stack }
    if (this.host.fullgraph) {
      this.segment.abandon()
      throw new FullGraphError(brk)
    }
    const { segment } = this
    const end = segment.cursor
    end.breakReason ??= brk
    segment.finish(needed, false, isGradEnabled(), keepAll)
    this.#finished.push(segment)
    end.after ??= Step.root()
    this.segment = new Segment(this, end.after)
  }

  /** Before `storage` is written to: finished segments of this call whose lazy tensors may still be asked for keep its old content. */
  preserve(storage: Storage): void {
    for (const segment of this.#finished) segment.preserve(storage)
  }
}

/** A segment being walked; afterwards what its lazy tensors ask for their data. */
export class Segment implements Pending {
  readonly #capture: Capture
  readonly stamp: number
  cursor: Step
  /** Outside tensors and numbers by slot. */
  readonly bound: unknown[] = []
  /** Lazy tensors by slot. */
  readonly lazies: (Tensor | undefined)[] = []
  /** Outside tensors that were written to: their storage (taken away so that reads are noticed) and the slot of the new value. */
  readonly writes = new Map<Tensor, { readonly storage: Storage; slot: number; readonly input: number }>()
  /** Lazy tensors that were written to: likely state that outlives the call. */
  readonly #mutatedLazies = new Set<Tensor>()
  readonly #viewed = new Set<Tensor>()
  #versions: Map<number, number> | null = null
  /** Content of inputs (by slot) from before they were written to, while somebody may still ask for what was computed from it. */
  readonly #kept = new Map<number, Tensor>()
  /** A path next to the one being recorded: numbers that differ from it become inputs. */
  #shadow: Step | null = null
  #finished = false

  constructor(capture: Capture, root: Step) {
    this.#capture = capture
    this.cursor = root
    this.stamp = nextStamp++
  }

  // ---- checking and recording ----

  call(op: OpDef, args: readonly Arg[]): Result {
    if (op.functional !== null) return this.#writeTo(op.functional, args)
    return this.#results(this.#advance(op, args), op)
  }

  /** The step for this call: the recorded one that it agrees with, or a new one. */
  #advance(op: OpDef, args: readonly Arg[]): Step {
    const { children } = this.cursor
    for (let i = 0; i < children.length; i++) {
      const child = children[i] as Step
      if (child.op === op && child.recording === dispatchState.recording && this.#agrees(child, args)) return (this.cursor = child)
    }
    return this.#record(op, args)
  }

  #agrees(step: Step, args: readonly Arg[]): boolean {
    const recorded = step.args
    let bound = 0
    for (let i = 0; i < recorded.length; i++) {
      const r = recorded[i] as ArgStep
      const arg = args[i] as Arg
      const ok =
        r.kind === 'slot'
          ? arg instanceof Tensor && arg.captureStamp === this.stamp && arg.captureSlot === r.slot
          : r.kind === 'const' && typeof r.value !== 'object'
            ? Object.is(r.value, arg)
            : this.#agreesSlowly(r, arg)
      if (!ok) {
        // Take back what was bound on the way.
        for (let k = 0; k < i; k++) if ((recorded[k] as ArgStep).kind !== 'const') bound += this.#unbind(recorded[k] as ArgStep)
        void bound
        return false
      }
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

  #unbind(r: ArgStep): number {
    if (r.kind === 'input') {
      const tensor = this.bound[r.slot]
      if (tensor instanceof Tensor) tensor.captureStamp = 0
      this.bound[r.slot] = undefined
      return 1
    }
    if (r.kind === 'list') for (const item of r.items) this.#unbind(item)
    return 0
  }

  #bind(tensor: Tensor, slot: number): void {
    // A view of something that was written to here would show the old value.
    if (this.writes.size > 0) for (const { storage } of this.writes.values()) if (storage === tensor.storage) throw new RetryAfterBreak()
    tensor.captureStamp = this.stamp
    tensor.captureSlot = slot
    this.bound[slot] = tensor
  }

  /** The slot of a tensor in this segment; -1 for one from outside that it has not met. Lazy tensors of earlier segments are computed. */
  #slotOf(tensor: Tensor): number {
    if (tensor.captureStamp === this.stamp) return tensor.captureSlot
    if (tensor.storage === null && tensor.pending !== null) withoutModes(() => tensor.realize())
    return -1
  }

  #record(op: OpDef, args: readonly Arg[]): Step {
    const { cursor } = this
    const shadow = this.#shadowFor(op, args)
    if (cursor.children.length > 0) this.#capture.host.onBranch(describeDifference(cursor.children.at(-1) as Step, op, args))
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
          name: this.#capture.host.nameOf(arg),
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
    const spec = withoutModes(() => (op.meta as (...a: readonly Arg[]) => TensorSpec | readonly TensorSpec[])(...args))
    const single = !Array.isArray(spec)
    const results = (single ? [spec as TensorSpec] : (spec as readonly TensorSpec[])).map((s) => Tensor.fake(s))
    const step = new Step(op, described, results, single, slot, slot + results.length, cursor, captureStack(), dispatchState.recording)
    cursor.children.push(step)
    this.cursor = step
    return step
  }

  /** The recorded step that differs from this call in numbers only: walked along while the new path is recorded. */
  #shadowFor(op: OpDef, args: readonly Arg[]): Step | null {
    const candidates = this.cursor.children.length > 0 ? this.cursor.children : (this.#shadow?.children ?? [])
    this.#shadow = candidates.findLast((c) => c.op === op && c.args.every((r, i) => sameButForNumbers(r, args[i] as Arg))) ?? null
    return this.#shadow
  }

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
    if (view !== null) {
      const source = view.args[0] as ArgStep
      const base =
        source.kind === 'slot' || source.kind === 'input' ? (this.lazies[source.slot] ?? (this.bound[source.slot] as Tensor | undefined)) : undefined
      if (base !== undefined) {
        tensor.viewBase = base.viewBase ?? base
        this.#viewed.add(tensor.viewBase)
      }
    }
    return tensor
  }

  /** An in-place operator: the functional one, and the tensor stands for its result from now on. */
  #writeTo(functional: OpDef, args: readonly Arg[]): Tensor {
    const self = args[0] as Tensor
    if (self.viewBase !== null || this.#viewed.has(self) || this.#aliased(self)) {
      // Views would have to follow: do it on real memory.
      this.#capture.breakGraph([self], 'in-place operator on a view (or on a tensor that has views)')
      const { storage } = self
      if (storage !== null) this.#capture.preserve(storage)
      return withoutModes(() => writeEagerly(functional, args, self))
    }
    const step = this.#advance(functional, args)
    const slot = step.firstSlot
    if (self.storage !== null) {
      const input = self.captureSlot
      this.writes.set(self, { storage: self.storage, slot, input })
      self.storage = null
      self.pending = this
    } else {
      const write = this.writes.get(self)
      if (write === undefined) this.#mutatedLazies.add(self)
      else write.slot = slot
    }
    self.captureStamp = this.stamp
    self.captureSlot = slot
    this.lazies[slot] = self
    return self
  }

  /** Whether another outside tensor of this segment shares its memory. */
  #aliased(self: Tensor): boolean {
    if (self.storage === null) return false
    return this.bound.some((t) => t instanceof Tensor && t !== self && t.storage === self.storage)
  }

  // ---- ending ----

  /**
   * Computes what is needed of this segment: `needed` tensors, writes, and what earlier calls turned out to need. `gradients`: those of `needed`
   * that require grad get a compiled backward; `keepTape`: all values that autograd recorded are computed; `keepAll`: all values are.
   */
  finish(needed: readonly Tensor[], gradients = false, keepTape = false, keepAll = false): void {
    if (this.#finished) return
    this.#finished = true
    const end = this.cursor
    const writes = [...this.writes]
    const slots: number[] = writes.map(([, w]) => w.slot)
    const writeBacks = new Map(writes.map(([, w], i) => [i, w.input]))
    const want = (slot: number): void => {
      if (slot >= 0 && !slots.includes(slot)) slots.push(slot)
    }
    const differentiable: number[] = []
    for (const tensor of needed) {
      if (tensor.captureStamp !== this.stamp || tensor.storage !== null) continue
      want(tensor.captureSlot)
      const node = tensor.gradFn as { released?: boolean } | null
      if (gradients && tensor.requiresGrad && node !== null && node.released !== true) differentiable.push(tensor.captureSlot)
    }
    // Numbers of each call cannot pass through the joint graph; and after a break the tape itself must go on: then all values on it are kept.
    const scalars = this.bound.some((v) => typeof v === 'number')
    if (keepTape || (scalars && differentiable.length > 0)) {
      differentiable.length = 0
      for (const lazy of this.lazies) if (lazy !== undefined && lazy.requiresGrad && lazy.captureStamp === this.stamp) want(lazy.captureSlot)
    }
    if (keepAll) for (const lazy of this.lazies) if (lazy !== undefined && lazy.captureStamp === this.stamp) want(lazy.captureSlot)
    for (const tensor of this.#mutatedLazies) want(tensor.captureSlot)
    for (const slot of end.learned) want(slot)
    for (const value of this.bound) {
      if (value instanceof Tensor && value.grad !== null && value.grad.storage === null && value.grad.captureStamp === this.stamp)
        want(value.grad.captureSlot)
    }
    this.#restoreStorages()
    if (slots.length === 0) return
    const key = `${slots.join()}|${differentiable.join()}`
    let compiled = end.ends.get(key)
    if (compiled === undefined) {
      compiled = withoutModes(() => this.#capture.host.compileSegment(this.#capture, end, slots, writeBacks, differentiable))
      end.ends.set(key, compiled)
      // Nobody knows yet which values outlive the segment: those that do are computed from the inputs as they are now.
      for (const [, { storage }] of writes) this.preserve(storage)
    }
    for (const [, { storage }] of writes) this.#capture.preserve(storage)
    this.#run(
      compiled,
      writes.map(([tensor]) => tensor),
    )
  }

  #run(compiled: CompiledSegment, written: readonly Tensor[]): void {
    withoutModes(() => {
      const inputs = compiled.inputSlots.map((slot) => this.bound[slot])
      this.#versions = new Map(
        compiled.inputSlots.map((slot, i) => [slot, inputs[i] instanceof Tensor ? ((inputs[i] as Tensor).storage?.version ?? 0) : 0]),
      )
      const values = compiled.run(...inputs)
      const adopted: Tensor[] = []
      compiled.outputSlots.forEach((slot, i) => {
        const value = values[i] as Tensor
        if (i < written.length) {
          const target = written[i] as Tensor
          if (!compiled.writtenInPlace.has(i)) copyInto(value, target)
          ;(target.storage as Storage).version++
          return
        }
        const tensor = this.lazies[slot]
        if (tensor === undefined) return
        adopt(tensor, value, inputs)
        adopted.push(tensor)
      })
      if (compiled.attach !== null) {
        const outputs = compiled.outputSlots.map((slot, i) => (i < written.length ? written[i] : this.lazies[slot]))
        compiled.attach(inputs, [...outputs, ...values.slice(compiled.results)])
      }
    })
  }

  #restoreStorages(): void {
    for (const [tensor, { storage }] of this.writes) {
      tensor.storage = storage
      tensor.pending = null
      tensor.captureStamp = 0
    }
  }

  /** Keeps the present content of the inputs in `storage`, which is about to be written to. */
  preserve(storage: Storage): void {
    this.bound.forEach((value, slot) => {
      if (!(value instanceof Tensor) || value.storage !== storage || this.#kept.has(slot)) return
      const copy = Tensor.empty(value.shape, value.dtype)
      copyInto(value, copy)
      this.#kept.set(slot, copy)
    })
  }

  /** Forgets the segment without running it. */
  abandon(): void {
    this.#finished = true
    this.#restoreStorages()
  }

  /** Pending: somebody reads a lazy tensor. */
  materialize(tensor: Tensor): void {
    if (!this.#finished) {
      this.#capture.breakGraph([tensor], 'the value of a tensor is read (item(), toArray(), printing)')
      return
    }
    this.#recompute(tensor)
  }

  /** A tensor that left the segment unnoticed: computed again from the inputs, if they still are what they were. */
  #recompute(tensor: Tensor): void {
    const slot = tensor.captureSlot
    this.cursor.learned.add(slot)
    const { gm, inputSlots } = buildGraph(this.cursor, [slot], () => null, new Map(), 'Recomputed', false)
    // A view of an input shows what is in it now; everything else was computed before it was written to.
    const isView = tensor.viewBase !== null && this.bound.includes(tensor.viewBase)
    const inputs = inputSlots.map((s) => (isView ? this.bound[s] : (this.#kept.get(s) ?? this.bound[s])))
    const changed =
      !isView &&
      inputs.some((value, i) => {
        if (!(value instanceof Tensor) || this.#kept.has(inputSlots[i] as number)) return false
        const before = this.#versions?.get(inputSlots[i] as number)
        return value.storage === null || (before !== undefined && value.storage.version !== before)
      })
    if (changed) throw new EscapedTensorError(tensor.shape)
    const [value] = withoutModes(() => new Interpreter(gm).run(...inputs)) as readonly Tensor[]
    adopt(tensor, value as Tensor, inputs)
  }
}

/** Thrown inside the mode when the segment must end before the call can be taken. */
class RetryAfterBreak extends Error {}

interface Writable {
  strides: readonly number[]
  offset: number
  contiguousLayout: boolean
}

/** The lazy tensor takes the data (and layout) of the computed one. */
function adopt(tensor: Tensor, value: Tensor, inputs: readonly unknown[]): void {
  const source = value.storage === null ? value.realize() : value.storage
  // An output that is an input's very memory, where the program made a new tensor, gets memory of its own.
  if (tensor.viewBase === null && inputs.some((i) => i instanceof Tensor && i.storage === source)) {
    const copy = Tensor.empty(value.shape, value.dtype)
    copyInto(value, copy)
    return adopt(tensor, copy, [])
  }
  tensor.storage = source
  tensor.pending = null
  tensor.captureStamp = 0
  if (!sameShape(tensor.strides, value.strides) || tensor.offset !== value.offset) {
    const writable = tensor as unknown as Writable
    writable.strides = value.strides
    writable.offset = value.offset
    writable.contiguousLayout = isContiguous(value.shape, value.strides)
  }
}

function writeEagerly(functional: OpDef, args: readonly Arg[], self: Tensor): Tensor {
  const result = (functional.kernel ?? functional.decompose) as (...a: readonly Arg[]) => Tensor
  copyInto(result(...args), self)
  self.realize().version++
  return self
}

const isScalarArgument = (op: OpDef, position: number): boolean => {
  const arg = op.schema.args[position]
  if (arg === undefined || op.pointwise?.baked?.includes(arg.name) === true) return false
  return (
    op.dynamicScalars.includes(arg.name) ||
    arg.type.base === 'Scalar' ||
    arg.type.base === 'float' ||
    (arg.type.base === 'Tensor' && op.tags.has('pointwise'))
  )
}

function sameConstant(a: Arg, b: Arg): boolean {
  if (Object.is(a, b)) return true
  return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((v, i) => sameConstant(v as Arg, b[i] as Arg))
}

function sameButForNumbers(r: ArgStep, arg: Arg): boolean {
  if (r.kind === 'slot' || r.kind === 'input') return arg instanceof Tensor
  if (r.kind === 'list') return Array.isArray(arg) && arg.length === r.items.length
  return typeof arg === 'number' ? r.kind === 'scalar' || typeof r.value === 'number' : r.kind === 'const' && sameConstant(r.value, arg)
}

/** Why a new path is recorded, in words. */
function describeDifference(other: Step, op: OpDef, args: readonly Arg[]): string {
  if (other.op !== op) return `expected ${other.op?.qualname ?? 'nothing'}, got ${op.qualname}`
  if (other.recording !== dispatchState.recording)
    return `${op.qualname} was called with${other.recording ? '' : 'out'} gradients, is now called with${other.recording ? 'out' : ''}`
  const at = other.args.findIndex((r, i) => r.kind === 'const' && !sameConstant(r.value, args[i] as Arg))
  if (at >= 0)
    return `argument '${op.schema.args[at]?.name ?? at}' of ${op.qualname} was ${JSON.stringify((other.args[at] as { value: Arg }).value)}, is now ${JSON.stringify(args[at])}`
  return `other operands of ${op.qualname}`
}

export type { CapturedStack }
