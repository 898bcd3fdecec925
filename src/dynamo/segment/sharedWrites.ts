// Writes to memory that several tensors of a segment share. A graph has no memory: what is written to a view becomes, view by view, a scatter into what it is a view of, and in the end a
// new value of the tensor that covers the memory. Other views are taken anew when they are next used (Capture.#refresh).
import { dispatchState, isArgList } from '../../dispatch/index.ts'
import type { Arg, OpDef } from '../../dispatch/index.ts'
import { present } from '../../errors/index.ts'
import { isApart } from '../../aot/index.ts'
import { contiguous } from '../../ops/index.ts'
import { Tensor, sameShape } from '../../tensor/index.ts'
import { argValue } from '../run/evaluate.ts'
import type { Segment } from './segment.ts'
import type { Step } from '../tree/traceTree.ts'

/** A scatter computes the whole memory. Up to this many elements, or this many times as many as are written, that takes less time than another graph. */
const SMALL_NUMEL = 2 ** 12
const MOST_TIMES = 4

/** The way from a view to the tensor that covers its memory. */
export interface PathInto {
  readonly base: Tensor
  /** The value of `base` when the view has got `value`. Calls operators. */
  scatter(value: Tensor): Tensor
}

/**
 * The way along which a write to `self` can be recorded, though other tensors of the segment share its memory. Null if there is none: gradients are recorded, operands or several
 * tensors from outside lie on the memory, elements overlap or, unless the graph must not end here (`atAnyPrice`), that would take long.
 */
export function pathInto(segment: Segment, self: Tensor, functional: OpDef, args: readonly Arg[], atAnyPrice: boolean): PathInto | null {
  const { storage } = self
  if (dispatchState.recording || functional.indices !== null || self.numel === 0 || segment.slotOf(self) < 0) return null
  // A number that is copied into booleans is converted in another way than a graph does it.
  if (storage === null || segment.aliased.has(storage) || self.dtype === 'bool') return null
  if (!args.every((arg) => arg === self || isApartFrom(segment, self, arg))) return null
  const views: Step[] = []
  let base = self
  for (let view = segment.views.get(segment.slotOf(base)); view !== undefined; view = segment.views.get(segment.slotOf(base))) {
    if (!view.single || view.operator.scatter === null || view.operator.name === 'as_strided' || !isApart(base.shape, base.strides)) return null
    const source = segment.sourceOf(view)
    if (!atAnyPrice && base.numel < source.numel && !isOneOfEqualParts(base, source)) return null
    views.push(view)
    base = source
  }
  if (!base.contiguousLayout || (!atAnyPrice && base.numel > Math.max(SMALL_NUMEL, MOST_TIMES * self.numel))) return null
  const scatter = (value: Tensor): Tensor => {
    const whole = views.reduce((part, view) => {
      const [, ...rest] = view.args.map((arg) => argValue(arg, (slot) => segment.at(slot)))
      return present(view.operator.scatter, 'the scatter of a view')(part, segment.sourceOf(view), ...rest)
    }, value)
    return sameShape(whole.strides, base.strides) ? whole : contiguous(whole)
  }
  return { base, scatter }
}

/** Whether a view is an index of a dimension, or one of several parts of the same size: inductor fuses a scatter into these, and calls a kernel for others. */
function isOneOfEqualParts(view: Tensor, source: Tensor): boolean {
  const { shape, strides } = source
  return shape.some((size, dim) => {
    if (sameShape(view.strides, strides.toSpliced(dim, 1)) && sameShape(view.shape, shape.toSpliced(dim, 1))) return true
    const part = view.shape[dim] ?? 0
    const start = (view.offset - source.offset) / (strides[dim] ?? 1)
    return sameShape(view.strides, strides) && sameShape(view.shape, shape.with(dim, part)) && size % part === 0 && start % part === 0
  })
}

/** Whether an argument lies on other memory than `self`, which is up to date. */
function isApartFrom(segment: Segment, self: Tensor, arg: Arg): boolean {
  if (isArgList(arg)) return arg.every((item) => isApartFrom(segment, self, item))
  if (!(arg instanceof Tensor)) return true
  const { storage } = arg
  return storage !== null && storage !== self.storage && (storage.writer === null || (storage.writer === segment && segment.slotOf(arg) >= 0))
}
