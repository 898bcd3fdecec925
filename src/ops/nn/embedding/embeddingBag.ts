// Sums, means and maxima of rows of an embedding table, bag by bag.
import type { Size } from '../../../protocol/index.ts'
import { ArgumentError, ShapeError } from '../../../errors/index.ts'
import { valueText } from '../../../protocol/index.ts'
import { formatShape, sameShape, sizeAdd, sizeLess, sizeSub, scalarOf } from '../../../tensor/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import { rangeOf, ones, zeros } from '../../create/creation.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { checkIndexType } from '../../view/indices.ts'
import { div, mul, sub } from '../../pointwise/arithmetic.ts'
import { to } from '../../pointwise/cast.ts'
import { eq } from '../../pointwise/comparison.ts'
import { clamp, where } from '../../pointwise/select.ts'
import { searchsorted } from '../../order/searchsorted.ts'
import { sizeAt } from '../../shared/shapes.ts'
import { indexAdd } from '../../view/positions.ts'
import { reshape, unsqueeze } from '../../view/reshape.ts'
import { scatterReduce } from '../../view/scatter.ts'
import { narrow } from '../../view/slicing.ts'
import { expand } from '../../view/windows.ts'
import { embedding, renormalizeRows } from './embedding.ts'

const NAME = 'torch.nn.functional.embedding_bag'

export type EmbeddingBagMode = 'sum' | 'mean' | 'max'

export interface EmbeddingBagOptions {
  /** Where each bag begins in `input`, which is then a vector. */
  readonly offsets?: Tensor | null
  /** Rows that are looked up are first scaled down to this norm, in `weight` itself and without a gradient. */
  readonly maxNorm?: number | null
  /** The p of that norm; default 2. */
  readonly normType?: number
  readonly scaleGradByFreq?: boolean
  /** Default 'mean'. */
  readonly mode?: EmbeddingBagMode
  /** Factors of the rows, of the shape of `input`; for 'sum'. */
  readonly perSampleWeights?: Tensor | null
  /** Whether the last offset is the end of the last bag, and not the beginning of another one. */
  readonly includeLastOffset?: boolean
  /** Rows of this index do not count, and get no gradient. */
  readonly paddingIdx?: number | null
}

/** The number of bags, and the bag of each element of the flat input; the number itself for an element of none. */
interface Bags {
  readonly count: Size
  readonly of: Tensor
}

function bagsOf(input: Tensor, offsets: Tensor | null, includeLast: boolean): Bags {
  if ((input.ndim === 2) === (offsets !== null) || (input.ndim !== 1 && input.ndim !== 2) || (offsets !== null && offsets.ndim !== 1))
    throw new ShapeError(
      `${NAME}: expected an input [bags, indices] without offsets, or a vector of indices with a vector of offsets, got shape ${formatShape(input.symSizes)} and ${offsets === null ? 'no offsets' : `offsets of shape ${formatShape(offsets.symSizes)}`}.`,
    )
  if (offsets === null) {
    const [count = 0, size = 0] = input.symSizes
    return { count, of: reshape(expand(unsqueeze(rangeOf(0, 1, count, 'int64'), 1), [count, size]), [-1]) }
  }
  checkIndexType(NAME, 'offsets', offsets)
  const count = sizeSub(offsets.symNumel, includeLast ? 1 : 0)
  if (sizeLess(count, 0)) throw new ShapeError(`${NAME}: with include_last_offset there must be at least 1 offset, got none.`)
  return { count, of: sub(searchsorted(to(offsets, 'int64'), rangeOf(0, 1, input.symNumel, 'int64'), { right: true }), 1) }
}

/**
 * The sum, the mean or the maximum of the rows of `weight` in each bag of indices; 0 for an empty one. PyTorch's `F.embedding_bag`.
 *
 * Shapes: input [B, n] and weight [N, D] give [B, D]; so do input [n] and offsets [B], or [B + 1] with `includeLastOffset`.
 *
 * @throws ShapeError if the shapes do not fit, DTypeError if `input` does not hold integers.
 * @throws ArgumentError for an unknown `mode`, if `perSampleWeights` are given for another mode than 'sum', and if an index is out of range.
 * @example F.embeddingBag(torch.tensor([[0, 1], [1, 1]]).long(), torch.tensor([[1, 2], [3, 4]])).toArray() // [[2, 3], [3, 4]]
 */
export const embeddingBag: OpFunction<
  (input: Tensor, weight: Tensor, offsets?: Tensor | null | EmbeddingBagOptions, options?: EmbeddingBagOptions) => Tensor
> = defineOp({
  schema:
    "embedding_bag(Tensor input, Tensor weight, Tensor? offsets=None, *, float? max_norm=None, float norm_type=2.0, bool scale_grad_by_freq=False, str mode='mean', Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None) -> Tensor",
  namespace: 'torch.nn.functional',
  decompose: (input, weight, offsets, maxNorm, normType, scaleGradByFreq, mode, factors, includeLastOffset, padding) => {
    if (mode !== 'sum' && mode !== 'mean' && mode !== 'max')
      throw new ArgumentError(`${NAME}: mode must be 'sum', 'mean' or 'max', got ${valueText(mode)}.`)
    if (factors !== null && mode !== 'sum') throw new ArgumentError(`${NAME}: per_sample_weights are for mode 'sum', not '${mode}'.`)
    if (factors !== null && !sameShape(factors.symSizes, input.symSizes))
      throw new ShapeError(
        `${NAME}: per_sample_weights must have the shape of input, got ${formatShape(factors.symSizes)} and ${formatShape(input.symSizes)}.`,
      )
    renormalizeRows(weight, input, maxNorm, normType)
    const { count, of } = bagsOf(input, offsets, includeLastOffset)
    const flat = reshape(input, [-1])
    const found = embedding(flat, weight, padding, { scaleGradByFreq })
    const rows = factors === null ? found : mul(found, unsqueeze(reshape(factors, [-1]), -1))
    // What belongs to no bag, and what is only padding, goes into one behind the others.
    const skipped = padding === null ? null : eq(flat, scalarOf(padding < 0 ? sizeAdd(padding, sizeAt(weight.symSizes, 0)) : padding))
    const bags = skipped === null ? of : where(skipped, scalarOf(count), of)
    const width = sizeAt(weight.symSizes, 1)
    const empty = zeros([sizeAdd(count, 1), width], { dtype: weight.dtype })
    const bagOfEach = expand(unsqueeze(bags, -1), [flat.symNumel, width])
    const all = mode === 'max' ? scatterReduce(empty, 0, bagOfEach, rows, 'amax', { includeSelf: false }) : indexAdd(empty, 0, bags, rows)
    const out = narrow(all, 0, 0, count)
    if (mode !== 'mean') return out
    const sizes = indexAdd(zeros([sizeAdd(count, 1)], { dtype: weight.dtype }), 0, bags, ones([flat.symNumel], { dtype: weight.dtype }))
    return div(out, unsqueeze(clamp(narrow(sizes, 0, 0, count), 1), -1))
  },
})
