// Normalizations without a mean: by the root mean square, and by the neighbouring channels.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { realDType } from '../../kernels/index.ts'
import { finfo, formatShape, sameShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { accumulatedIn } from '../eager/promotion.ts'
import { constantPadNd } from '../join.ts'
import { add, div, mul, pow } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { rsqrt, square } from '../pointwise/unary.ts'
import { mean } from '../reduction/mean.ts'
import { unfold } from '../view/arrange.ts'

/** The amounts for a padding of dimension 1 alone. */
const aroundChannels = (x: Tensor, before: number, after: number): readonly number[] => [...x.symSizes.slice(2).flatMap(() => [0, 0]), before, after]

/**
 * Divides by the root mean square over the last dimensions, to whose square `eps` is added, and multiplies by `weight`. Without `eps` it is the precision of the dtype.
 * PyTorch's `F.rms_norm`.
 *
 * Shapes: that of `input`, which ends in `normalizedShape`; `weight` has the shape `normalizedShape`.
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws DTypeError unless `input` is floating.
 * @example F.rmsNorm(torch.tensor([[3, 4]]), [2], { eps: 0 }).toArray() // [[0.848528, 1.13137]]
 */
export const rmsNorm: Op['rmsNorm'] = defineOp({
  schema: 'rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (input, shape, weight, eps) => {
    const own = input.symSizes.slice(Math.max(0, input.ndim - shape.length))
    if (shape.length === 0 || !sameShape(own, shape) || (weight !== null && !sameShape(weight.symSizes, shape)))
      throw new ShapeError(
        `torch.nn.functional.rms_norm: the input must end in normalized_shape ${formatShape(shape)}, which is the shape of the weight, got shapes ${[input, ...(weight === null ? [] : [weight])].map((t) => formatShape(t.symSizes)).join(' and ')}.`,
      )
    const x = to(input, accumulatedIn(input.dtype))
    const dims = shape.map((_, d) => d - shape.length)
    const normal = mul(x, rsqrt(add(mean(square(x), dims, true), eps ?? finfo(realDType(input.dtype)).eps)))
    return to(weight === null ? normal : mul(normal, weight), input.dtype)
  },
})

/**
 * Divides each channel by a power of the mean square of the `size` channels around it: input / (k + alpha * mean)^beta. PyTorch's `F.local_response_norm`.
 *
 * Shape: that of `input`, [N, C, ..].
 *
 * @throws ShapeError unless the input has at least 3 dimensions.
 * @throws ArgumentError unless `size` is positive.
 * @example F.localResponseNorm(torch.tensor([[[1], [2]]]), 1, { alpha: 1, beta: 1 }).toArray() // [[[0.5], [0.4]]]
 */
export const localResponseNorm: Op['localResponseNorm'] = defineOp({
  schema: 'local_response_norm(Tensor input, int size, float alpha=0.0001, float beta=0.75, float k=1.0) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (input, size, alpha, beta, k) => {
    const name = 'torch.nn.functional.local_response_norm'
    if (input.ndim < 3)
      throw new ShapeError(`${name}: the input must have at least 3 dimensions [N, C, ..], got shape ${formatShape(input.symSizes)}.`)
    if (size < 1) throw new ArgumentError(`${name}: size must be a positive number of channels, got ${size}.`)
    const x = to(input, accumulatedIn(input.dtype))
    const squares = constantPadNd(square(x), aroundChannels(x, Math.floor(size / 2), Math.floor((size - 1) / 2)))
    return to(div(x, pow(add(mul(mean(unfold(squares, 1, size, 1), -1), alpha), k), beta)), input.dtype)
  },
})
