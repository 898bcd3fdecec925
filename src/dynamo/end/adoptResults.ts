// From the values that a compiled graph returns to the memory of the program's tensors.
import { enableGrad } from '../../autograd/index.ts'
import { giveTape } from '../../aot/index.ts'
import { devices, dispatch, withoutModes } from '../../dispatch/index.ts'
import { present } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { copyInto } from '../../ops/eager/copy.ts'
import { Storage, Tensor, adoptLayout, asTensor, sameShape } from '../../tensor/index.ts'
import { argValue } from '../run/evaluate.ts'
import type { Segment } from '../segment/segment.ts'
import { SegmentTape, gradInputsOf } from '../segment/tape.ts'
import type { CompiledSegment, Step } from '../tree/traceTree.ts'

/** Whether a tensor is all of its memory, in order, so that the memory can be another's. */
const isAllOf = (storage: Storage, { contiguousLayout, numel, dtype }: Tensor): boolean =>
  contiguousLayout && numel * dtypeInfo[dtype].size === storage.nbytes

/** New memory of that size, where `value` is. */
function memoryBeside(value: Tensor, nbytes: number): Storage {
  const { device, sizes, dtype } = value
  if (device === 'cpu' || devices.operators === null) return Storage.allocate(nbytes, sizes, dtype)
  return devices.operators.allocate(dtype, nbytes / dtypeInfo[dtype].size)
}

function isIn(storage: Storage, inputs: readonly unknown[]): boolean {
  for (const input of inputs) if (input instanceof Tensor && input.storage === storage) return true
  return false
}

/** A copy with memory of its own, and the history of `value`. */
function ownCopy(value: Tensor): Tensor {
  const { sizes, dtype, numel } = value
  const copy = new Tensor(sizes, dtype, memoryBeside(value, numel * dtypeInfo[dtype].size))
  copyInto(value, copy)
  const { requiresGrad, gradFn, outputNr } = value
  return Object.assign(copy, { requiresGrad, gradFn, outputNr })
}

/** Gives a lazy tensor the memory of a computed one. */
export function adopt(tensor: Tensor, computed: Tensor): void {
  const storage = present(tensor.storage, 'the storage of a lazy tensor')
  const isAsExpected = sameShape(tensor.steps, computed.steps) && computed.offset === 0
  let value = computed
  if (!isAsExpected && storage.captureShared) {
    // Views of the tensor rely on its layout.
    value = new Tensor(tensor.sizes, tensor.dtype, memoryBeside(computed, storage.nbytes), tensor.steps, 0, tensor)
    copyInto(computed, value)
  }
  storage.writer = null
  storage.moveTo(value.realize())
  // A result that was not asked for has no elements, whatever the compiled code returned for it.
  if (isAsExpected || storage.captureShared || tensor.numel === 0) return
  // Only here does a tensor change its layout: nothing has seen it with the other one.
  adoptLayout(tensor, value)
}

/** The data of memory that is about to be overwritten. */
export interface OldData {
  /** Whether something else may still be computed from it. */
  isNeeded(storage: Storage): boolean
  /** Gets it in a storage of its own, when `storage` has taken the new data. */
  keep(storage: Storage, old: Storage): void
}

/**
 * Writes the first values into `targets`, unless the compiled code has done so, and returns the others. Every new tensor of the program gets memory of its own, even if the
 * backend returned an input, or one tensor twice. `oldData`: for values that may still be computed from what is overwritten; null if there are none.
 */
export function takeResults(
  compiled: CompiledSegment,
  values: readonly unknown[],
  inputs: readonly unknown[],
  targets: readonly Tensor[],
  oldData: OldData | null,
): readonly (Tensor | null)[] {
  // The usual case: one new tensor.
  const only = values[0]
  if (values.length === 1 && targets.length === 0 && only instanceof Tensor) return [isIn(only.realize(), inputs) ? ownCopy(only) : only]
  const taken = new Set<Storage>()
  for (const input of inputs) if (input instanceof Tensor && input.storage !== null) taken.add(input.storage)
  const sources = targets.map((target, i) => {
    const value = asTensor(values[i], 'the new value of a tensor')
    // The new value of one tensor may lie in the old memory of another, which is overwritten too.
    return targets.length > 1 && value.storage !== target.storage && taken.has(value.realize()) ? ownCopy(value) : value
  })
  sources.forEach((source, i) => {
    const target = present(targets[i], 'a tensor to write to')
    const storage = target.realize()
    if (compiled.writtenInPlace.has(i) || source === target) return storage.noteWrite()
    let fresh = source.realize()
    const canMove = !taken.has(fresh) && isAllOf(fresh, source) && isAllOf(storage, target)
    if (oldData?.isNeeded(storage) !== true) {
      // Data that is not here yet cannot be copied; what stays on a device can, there.
      if (fresh.lateData === null || fresh.onDevice !== null || !canMove) return copyInto(source, target)
      taken.add(fresh)
      storage.moveTo(fresh)
      return undefined
    }
    if (!canMove) {
      fresh = memoryBeside(target, storage.nbytes)
      const whole = (memory: Storage): Tensor => new Tensor([storage.nbytes / dtypeInfo[target.dtype].size], target.dtype, memory)
      copyInto(whole(storage), whole(fresh))
      copyInto(source, new Tensor(target.sizes, target.dtype, fresh, target.steps, target.offset, target))
    }
    // The program's storage takes the new data; what needs the old data keeps the old memory.
    taken.add(fresh)
    oldData.keep(storage, storage.moveTo(fresh))
  })
  return values.map((output, i) => {
    if (i < targets.length) return null
    const value = asTensor(output, 'an output of a compiled graph')
    const result = taken.has(value.realize()) ? ownCopy(value) : value
    taken.add(result.realize())
    return result
  })
}

/** Gives the heads of a segment that was run the history of their values, and tells it about the tape of this call. */
export function attachHistory(segment: Segment, compiled: CompiledSegment, results: readonly (Tensor | null)[], onEager: () => void): void {
  const heads = compiled.heads.map((slot) => segment.lazyAt(slot))
  const { tensors } = gradInputsOf(segment, compiled.inputSlots)
  const tape = new SegmentTape(segment, heads, tensors, compiled.nodeOf, compiled.tape.includes(true), onEager)
  compiled.heads.forEach((slot, i) => {
    const value = results[compiled.outputSlots.indexOf(slot)]
    const head = heads[i]
    if (!(value instanceof Tensor) || head === undefined) return
    if (value.gradFn !== null) giveTape(value.gradFn, tape)
    head.gradFn = value.gradFn
    head.outputNr = value.outputNr
  })
}

/** Takes a view of a head anew, so that its history leads through that of the head. */
export function attachViewHistory(segment: Segment, view: Tensor): void {
  const { gradFn, outputNr } = viewAnew(segment, segment.slotOf(view), present(segment.views.get(segment.slotOf(view)), 'the step of a view'))
  view.gradFn = gradFn
  view.outputNr = outputNr
}

function viewAnew(segment: Segment, slot: number, step: Step): Tensor {
  const known = segment.sourceOf(step)
  const before = segment.views.get(segment.slotOf(known))
  const source = before === undefined ? known : viewAnew(segment, segment.slotOf(known), before)
  const args = step.args.map((arg, i) => (i === 0 ? source : argValue(arg, (at) => segment.bound[at])))
  const results = withoutModes(() => enableGrad(() => dispatch(step.operator, args)))
  return asTensor(results instanceof Tensor ? results : results[slot - step.firstSlot], 'a view')
}
