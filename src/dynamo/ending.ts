// The end of a segment: which values are needed, compiling and running it, and the data that its lazy tensors get.
import { GradNode, enableGrad, noGrad } from '../autograd/index.ts'
import { runKernel, withoutModes, dispatch } from '../dispatch/index.ts'
import { present } from '../errors/index.ts'
import { clone } from '../ops/index.ts'
import { copyInto } from '../ops/eager/copy.ts'
import { Tensor, asTensor, isContiguous, sameShape } from '../tensor/index.ts'
import type { Storage } from '../tensor/index.ts'
import { EscapedTensorError } from './errors.ts'
import { argValue, evaluate } from './evaluate.ts'
import type { Segment, Write } from './segment.ts'
import { neededSteps } from './traceTree.ts'
import type { ArgStep, CompiledSegment, Step } from './traceTree.ts'

/** What is needed at the end of a segment. */
export interface Demand {
  /** Tensors whose data is needed; those of other segments are ignored. */
  readonly needed: readonly Tensor[]
  /** Needed tensors that require grad get a compiled backward. */
  readonly gradients: boolean
  /** The tape is kept (it continues after this segment, or has hooks): every value that it recorded is computed. */
  readonly keepTape: boolean
}

/** What is to be compiled. */
export interface SegmentRequest {
  readonly segment: Segment
  readonly outputs: readonly number[]
  /** From output position to the slot of the input that it overwrites. */
  readonly writeBacks: ReadonlyMap<number, number>
  readonly heads: readonly number[]
}

/** Compiles a segment; returns null if no joint graph can be made for its heads. Calls `segment.restoreStorages()` once it has read the tape. */
export type CompileSegment = (request: SegmentRequest) => CompiledSegment | null

/** A segment that has ended. It computes on demand the values that were not known to be needed. */
export class EndedSegment {
  readonly segment: Segment
  readonly end: Step
  /** What was run; null if nothing was needed. */
  compiled: CompiledSegment | null = null
  /** Part of this path was recorded or compiled for the first time: what is needed later is not known yet. */
  fresh: boolean
  /** Versions of the inputs' storages when it ran, by slot. */
  readonly #versions: (number | undefined)[]
  /** Copies of inputs that were overwritten since, by slot. */
  readonly #kept = new Map<number, Tensor>()

  constructor(segment: Segment) {
    this.segment = segment
    this.end = segment.cursor
    this.fresh = segment.fresh
    this.#versions = segment.bound.map((value) =>
      value instanceof Tensor ? (value.storage?.version ?? segment.writes.get(value)?.storage.version) : undefined,
    )
  }

  /** Whether inputs were copied. */
  get kept(): boolean {
    return this.#kept.size > 0
  }

  /** Copies the inputs on `storage` (null: all inputs) before they are overwritten. */
  keepInputs(storage: Storage | null): void {
    this.segment.bound.forEach((value, slot) => {
      if (!(value instanceof Tensor) || this.#kept.has(slot) || value.storage === null) return
      if ((storage === null || value.storage === storage) && value.storage.version === this.#versions[slot])
        this.#kept.set(
          slot,
          withoutModes(() => noGrad(() => clone(value))),
        )
    })
  }

  /** Computes a tensor that left the segment unnoticed, again from the inputs. Throws EscapedTensorError if they have been modified. */
  recompute(tensor: Tensor): void {
    const slot = tensor.captureSlot
    this.end.learned.add(slot)
    if (this.segment.views.has(slot)) return takeView(this.segment, tensor, false)
    const values = evaluate(this.end, [slot], (input) => this.#input(input, tensor))
    adopt(tensor, asTensor(values.get(slot), 'a recomputed value'))
  }

  #input(slot: number, tensor: Tensor): unknown {
    const value = this.#kept.get(slot) ?? this.segment.bound[slot]
    if (!(value instanceof Tensor) || this.#kept.has(slot)) return value
    if (value.storage === null || value.storage.version !== this.#versions[slot]) throw new EscapedTensorError(tensor.shape)
    return value
  }
}

/** Computes what is needed of the segment: `demand`, writes, and what earlier calls turned out to need. `earlier`: the segments of this call before it. */
export function endSegment(ended: EndedSegment, demand: Demand, earlier: readonly EndedSegment[], compile: CompileSegment): void {
  const { end, segment } = ended
  try {
    let wanted = collect(segment, demand, end.keepsTape)
    let compiled = wanted.outputs.length === 0 ? null : findCompiled(end, wanted)
    if (compiled === undefined) {
      ended.fresh = true
      compiled = compile({ segment, outputs: wanted.outputs, writeBacks: wanted.writeBacks, heads: wanted.heads })
      if (compiled === null) {
        end.keepsTape = true
        wanted = collect(segment, demand, true)
        compiled = findCompiled(end, wanted) ?? compile({ segment, outputs: wanted.outputs, writeBacks: wanted.writeBacks, heads: [] })
      }
      if (compiled !== null && !end.ends.includes(compiled)) end.ends.push(compiled)
    }
    ended.compiled = compiled
    const writes = [...segment.writes]
    segment.restoreStorages()
    if (ended.fresh || earlier.some((e) => e.fresh)) {
      for (const [, { storage }] of writes) {
        if (ended.fresh) ended.keepInputs(storage)
        for (const e of earlier) if (ended.fresh || e.fresh) e.keepInputs(storage)
      }
    }
    if (compiled !== null) run(segment, compiled, writes)
    for (const view of wanted.views) if (view.storage === null) takeView(segment, view, wanted.heads.length > 0)
  } finally {
    segment.restoreStorages()
  }
}

/** Runs everything that the segment recorded on eager kernels, so that the program can continue without compile. */
export function computeAll(ended: EndedSegment): void {
  const { segment } = ended
  const slots = segment.lazies.flatMap((lazy, slot) => (lazy === undefined ? [] : [slot]))
  segment.restoreStorages()
  const values = evaluate(ended.end, slots, (slot) => segment.bound[slot])
  // All values come first, because a write must not change what is still to be read.
  for (const [tensor, { storage, slot }] of segment.writes) {
    withoutModes(() => copyInto(asTensor(values.get(slot), 'a written value'), tensor))
    storage.version++
  }
  for (const [slot, lazy] of segment.lazies.entries()) {
    if (lazy === undefined || lazy.storage !== null || lazy.captureSlot !== slot || segment.views.has(slot)) continue
    adopt(lazy, asTensor(values.get(slot), 'a lazy value'))
  }
  for (const slot of segment.views.keys()) {
    const lazy = segment.lazyAt(slot)
    if (lazy.storage === null) takeView(segment, lazy, false)
  }
}

interface Wanted {
  readonly outputs: readonly number[]
  readonly writeBacks: ReadonlyMap<number, number>
  readonly heads: readonly number[]
  /** Lazy tensors that become views of computed ones, bases first. */
  readonly views: readonly Tensor[]
}

function collect(segment: Segment, demand: Demand, keepsTape: boolean): Wanted {
  const writeBacks = new Map<number, number>()
  const outputs: number[] = []
  const known = new Set<number>()
  for (const { slot, input } of segment.writes.values()) {
    writeBacks.set(outputs.length, input)
    outputs.push(slot)
    known.add(slot)
  }
  const heads = new Set<number>()
  const views = new Set<Tensor>()
  const withGradients =
    demand.gradients && !demand.keepTape && !keepsTape && ![...segment.writes.keys()].some((t) => t.requiresGrad && t.gradFn !== null)
  const want = (tensor: Tensor, differentiable: boolean): void => {
    if (tensor.captureStamp !== segment.stamp || tensor.storage !== null || segment.writes.has(tensor)) return
    const slot = tensor.captureSlot
    const node = tensor.gradFn
    const released = node instanceof GradNode && node.released
    const head = differentiable && withGradients && tensor.requiresGrad && node !== null && !released
    const view = segment.views.get(slot)
    if (view !== undefined) {
      // The view is taken from its base afterwards, so that they share memory as in eager mode.
      want(present(segment.sourceOf(view), 'the base of a view'), head)
      views.add(tensor)
      return
    }
    if (head) heads.add(slot)
    if (known.has(slot)) return
    known.add(slot)
    outputs.push(slot)
  }
  for (const tensor of demand.needed) want(tensor, true)
  const tape = demand.keepTape || (demand.gradients && !withGradients)
  if (tape) for (const lazy of segment.lazies) if (lazy !== undefined && lazy.requiresGrad) want(lazy, false)
  for (const tensor of segment.mutatedLazies) want(tensor, false)
  for (const slot of segment.cursor.learned) want(segment.lazyAt(slot), false)
  for (const value of segment.bound) if (value instanceof Tensor && value.grad !== null) want(value.grad, false)
  return { outputs, writeBacks, heads: [...heads], views: [...views] }
}

function findCompiled(end: Step, wanted: Wanted): CompiledSegment | undefined {
  return end.ends.find((c) => sameShape(c.outputSlots, wanted.outputs) && sameShape(c.heads, wanted.heads))
}

function run(segment: Segment, compiled: CompiledSegment, writes: readonly (readonly [Tensor, Write])[]): void {
  withoutModes(() => {
    const inputs = compiled.inputSlots.map((slot) => segment.bound[slot])
    const values = (compiled.heads.length > 0 ? enableGrad : noGrad)(() => compiled.run(...inputs))
    const results = takeResults(
      compiled,
      values,
      inputs,
      writes.map(([target]) => target),
    )
    compiled.outputSlots.forEach((slot, i) => {
      const value = results[i]
      if (value === null || value === undefined) return
      const tensor = segment.lazyAt(slot)
      adopt(tensor, value)
      if (!compiled.heads.includes(slot)) return
      tensor.gradFn = value.gradFn
      tensor.outputNr = value.outputNr
    })
  })
}

/**
 * Copies the first values into `targets` (their results are null) unless the compiled code has done so, and returns the others. Every new tensor of the
 * program gets memory of its own, even if the backend returned an input, or one tensor twice.
 */
export function takeResults(
  compiled: CompiledSegment,
  values: readonly unknown[],
  inputs: readonly unknown[],
  targets: readonly Tensor[],
): readonly (Tensor | null)[] {
  const taken = new Set<Storage>()
  for (const input of inputs) if (input instanceof Tensor && input.storage !== null) taken.add(input.storage)
  writeBack(compiled, values, targets, taken)
  return values.map((output, i) => {
    if (i < targets.length) return null
    const value = asTensor(output, 'an output of a compiled graph')
    const result = taken.has(value.realize()) ? ownCopy(value) : value
    taken.add(result.realize())
    return result
  })
}

function writeBack(compiled: CompiledSegment, values: readonly unknown[], targets: readonly Tensor[], inputs: ReadonlySet<Storage>): void {
  const sources = targets.map((target, i) => {
    const value = asTensor(values[i], 'the new value of a tensor')
    // The new value of one tensor may lie in the old memory of another, which is overwritten too.
    return targets.length > 1 && value.storage !== target.storage && inputs.has(value.realize()) ? ownCopy(value) : value
  })
  sources.forEach((source, i) => {
    const target = present(targets[i], 'a tensor to write to')
    if (!compiled.writtenInPlace.has(i)) copyInto(source, target)
    present(target.storage, 'the storage of a written tensor').version++
  })
}

function ownCopy(value: Tensor): Tensor {
  const copy = Tensor.empty(value.shape, value.dtype)
  copyInto(value, copy)
  copy.requiresGrad = value.requiresGrad
  copy.gradFn = value.gradFn
  copy.outputNr = value.outputNr
  return copy
}

/** Gives a lazy view its data: the view that the program asked for, of its base. `withHistory`: the base got a new gradFn, so the view gets one too. */
function takeView(segment: Segment, view: Tensor, withHistory: boolean): void {
  const step = present(segment.views.get(view.captureSlot), 'the step of a view')
  const source = present(segment.sourceOf(step), 'the base of a view')
  if (source.storage === null) {
    if (source.captureStamp === segment.stamp && segment.views.has(source.captureSlot)) takeView(segment, source, withHistory)
    else source.realize()
  }
  const args = step.args.map((arg: ArgStep, i) => (i === 0 ? source : argValue(arg, (slot) => segment.bound[slot])))
  const history = withHistory && view.requiresGrad
  const results = withoutModes(() => (history ? enableGrad(() => dispatch(step.operator, args)) : noGrad(() => runKernel(step.operator, args))))
  const value = asTensor(results instanceof Tensor ? results : results[view.captureSlot - step.firstSlot], 'a view')
  adopt(view, value)
  if (!history) return
  view.gradFn = value.gradFn
  view.outputNr = value.outputNr
}

/** Gives a lazy tensor the data (and layout) of a computed one. */
function adopt(tensor: Tensor, value: Tensor): void {
  tensor.storage = value.realize()
  tensor.pending = null
  tensor.captureStamp = 0
  if (sameShape(tensor.strides, value.strides) && tensor.offset === value.offset) return
  // Only here does a tensor change its layout: nothing has seen it with the other one.
  const { strides, offset } = value
  Object.assign(tensor, { strides, offset, contiguousLayout: isContiguous(value.shape, strides) })
}

/** Whether the tape of the heads holds numbers that differ from call to call: a compiled backward cannot know them. */
export function numbersOnTape(segment: Segment, heads: readonly number[]): boolean {
  return neededSteps(segment.cursor, heads).steps.some(
    (step) =>
      step.args.some((arg) => arg.kind === 'scalar') && step.results.some((_, i) => segment.lazies[step.firstSlot + i]?.requiresGrad === true),
  )
}
