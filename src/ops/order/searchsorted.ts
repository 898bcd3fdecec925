// Places in sorted sequences, and what follows from them: buckets, membership and counts.
import type { Size } from '../../protocol/index.ts'
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { valueText } from '../../protocol/index.ts'
import { exactElements, formatShape, numbersOf, sameShape, scalarOf, sizeEq, sizeSub, Tensor, tensorFromValues } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { full, ones, scalarTensor, zeros } from '../create/creation.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { to } from '../pointwise/cast.ts'
import { eq, logicalNot } from '../pointwise/comparison.ts'
import { clamp } from '../pointwise/select.ts'
import { sizeAt } from '../shared/shapes.ts'
import { ascending, sort } from './sort.ts'
import { gather, scatterAdd } from '../view/indexing.ts'
import { reshape } from '../view/reshape.ts'

export interface SearchOptions {
  /** Whether the result is int32 instead of int64. */
  readonly outInt32?: boolean
  /** Whether a value goes behind equal ones. */
  readonly right?: boolean
}

export interface SearchsortedOptions extends SearchOptions {
  /** 'right' is another way to say `right`. */
  readonly side?: 'left' | 'right' | null
  /** The indices that sort the sequence, if it is not in order. */
  readonly sorter?: Tensor | null
}

function searchSpec(sequence: Tensor, values: Tensor, int32: boolean): TensorSpec<Size> {
  const shared = sequence.ndim === 1 || sameShape(sequence.symSizes.slice(0, -1), values.symSizes.slice(0, -1))
  if (sequence.ndim === 0 || !shared)
    throw new ShapeError(
      `torch.searchsorted: the sequence must have 1 dimension, or all but the last as the values; got shapes ${formatShape(sequence.symSizes)} and ${formatShape(values.symSizes)}.`,
    )
  return { shape: values.symSizes, dtype: int32 ? 'int32' : 'int64' }
}

/**
 * For each value, its place in a sorted sequence. Internal; what torch.searchsorted and torch.bucketize compute; PyTorch's `aten.searchsorted`.
 *
 * Shapes: `sequence` has 1 dimension, or all but the last in common with `values`. The result has the shape of `values`.
 *
 * @throws ShapeError if the shapes do not fit.
 * @example torch.ops.tensorfx.places(torch.tensor([1, 3]), torch.tensor([2]), false, false).toArray() // [1]
 */
export const places: Op['places'] = defineOp({
  schema: 'places(Tensor sequence, Tensor values, bool out_int32, bool right) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  vmap: { leading: ['sequence', 'values'] },
  onnx: { none: 'ONNX has no such function' },
  autocast: 'as is',
  meta: searchSpec,
  kernel: (sequence, values, int32, right) => {
    const spec = numbersOf(searchSpec(sequence, values, int32))
    const [sorted, wanted] = [exactElements(sequence), exactElements(values)]
    const n = sizeAt(sequence.sizes, -1)
    const perLine = sequence.ndim === 1 ? wanted.length : sizeAt(values.sizes, -1)
    const found = Array.from(wanted, (value, i) => {
      const start = sequence.ndim === 1 ? 0 : Math.floor(i / Math.max(1, perLine)) * n
      let [low, high] = [0, n]
      while (low < high) {
        const mid = (low + high) >> 1
        const order = ascending(sorted[start + mid] ?? NaN, value)
        if (order < 0 || (right && order === 0)) low = mid + 1
        else high = mid
      }
      return low
    })
    return tensorFromValues(found, spec.shape, spec.dtype)
  },
})

const asTensor = (op: string, value: unknown, like: Tensor): Tensor => {
  if (value instanceof Tensor) return value
  if (typeof value === 'number') return scalarTensor(value, { dtype: like.dtype })
  throw new ArgumentError(`${op}: argument 'input' must be a Tensor or a number, got ${valueText(value)}.`)
}

/**
 * The place of each value in a sorted sequence: how many elements are less, or with `right` not greater. PyTorch's `torch.searchsorted`.
 *
 * Shapes: the sequence has 1 dimension, or all but the last in common with the values. The result has the shape of the values, and is int64.
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws ArgumentError if the values are neither a Tensor nor a number, or `side` contradicts `right`.
 * @example torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([3, 6])).toArray() // [1, 3]
 */
export const searchsorted: OpFunction<(sortedSequence: Tensor, input: Tensor | number, options?: SearchsortedOptions) => Tensor> = defineOp({
  schema: 'searchsorted(Tensor sorted_sequence, any input, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor',
  decompose: (sequence, input, int32, right, side, sorter) => {
    if (side !== null && side !== 'right' && (side !== 'left' || right))
      throw new ArgumentError(`torch.searchsorted: side must be 'left' or 'right', and agree with right=${right}; got ${valueText(side)}.`)
    const sorted = sorter === null ? sequence : gather(sequence, -1, sorter)
    return places(sorted, asTensor('torch.searchsorted', input, sequence), int32, right || side === 'right')
  },
})

/**
 * The bucket of each value: boundaries[i - 1] < value <= boundaries[i], or with `right` boundaries[i - 1] <= value < boundaries[i]. PyTorch's `torch.bucketize`.
 *
 * Shapes: `boundaries` has 1 dimension. The result has the shape of `input`, and is int64.
 *
 * @throws ShapeError unless `boundaries` has 1 dimension.
 * @throws ArgumentError if the values are neither a Tensor nor a number.
 * @example torch.bucketize(torch.tensor([3, 6]), torch.tensor([1, 3, 5])).toArray() // [1, 3]
 */
export const bucketize: OpFunction<(input: Tensor | number, boundaries: Tensor, options?: SearchOptions) => Tensor> = defineOp({
  schema: 'bucketize(any input, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor',
  decompose: (input, boundaries, int32, right) => {
    if (boundaries.ndim !== 1)
      throw new ShapeError(`torch.bucketize: boundaries must have 1 dimension, got shape ${formatShape(boundaries.symSizes)}.`)
    return places(boundaries, asTensor('torch.bucketize', input, boundaries), int32, right)
  },
})

/**
 * Whether each element is one of `testElements`; with `invert`, whether it is not. PyTorch's `torch.isin`.
 *
 * Shapes: the result has the shape of `elements`, and is bool.
 *
 * @throws ArgumentError if an argument is not a Tensor.
 * @example torch.isin(torch.tensor([1, 2, 3]), torch.tensor([3, 1])).toArray() // [true, false, true]
 */
export const isin: Op['isin'] = defineOp({
  schema: 'isin(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor',
  decompose: (elements, test, _unique, invert) => {
    if (sizeEq(test.symNumel, 0)) return full(elements.symSizes, invert ? 1 : 0, { dtype: 'bool' })
    const [sorted] = sort(reshape(test, [-1]))
    const flat = reshape(elements, [-1])
    const found = eq(gather(sorted, 0, clamp(places(sorted, flat, false, false), 0, scalarOf(sizeSub(test.symNumel, 1)))), flat)
    return reshape(invert ? logicalNot(found) : found, elements.symSizes)
  },
})

/**
 * How often each number from 0 on occurs, or the sums of `weights` by number. PyTorch's `torch.bincount`.
 *
 * Shape: [n] gives as many elements as the greatest number needs, and at least `minlength`.
 *
 * @throws ShapeError unless `self` has 1 dimension.
 * @throws ArgumentError if a number is negative.
 * @example torch.bincount(torch.tensor([1, 3, 1]).long()).toArray() // [0, 2, 0, 1]
 */
export const bincount: OpFunction<(self: Tensor, options?: { readonly weights?: Tensor | null; readonly minlength?: number }) => Tensor> = defineOp({
  schema: 'bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor',
  method: true,
  decompose: (self, weights, minlength) => {
    if (self.ndim !== 1) throw new ShapeError(`torch.bincount: expected 1 dimension, got shape ${formatShape(self.symSizes)}.`)
    const numbers = Array.from(self.toTypedArray(), Number)
    const wrong = numbers.findIndex((n) => n < 0)
    if (wrong >= 0) throw new ArgumentError(`torch.bincount: numbers must not be negative, got ${numbers[wrong]} at position ${wrong}.`)
    const size = numbers.reduce((most, n) => Math.max(most, n + 1), minlength)
    const values = weights === null ? ones(self.symSizes, { dtype: 'int64' }) : weights.dtype === 'float32' ? weights : to(weights, 'float64')
    return scatterAdd(zeros([size], { dtype: values.dtype }), 0, to(self, 'int64'), values)
  },
})
