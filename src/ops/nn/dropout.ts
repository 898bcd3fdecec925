// Dropout: a random mask times the input. A composite, so that captures see the draw and the product.
import type { Size } from '../../protocol/index.ts'
import { ArgumentError, DTypeError, ShapeError } from '../../errors/index.ts'
import { formatShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { asFloating } from '../eager/promotion.ts'
import { add, mul } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { ge } from '../pointwise/comparison.ts'
import { where } from '../pointwise/select.ts'
import { lateOperator } from '../define/late.ts'
import type { rand as Rand } from '../random/random.ts'

/** Numbers in [0, 1). Only training draws them. */
const uniform = (size: readonly Size[]): Tensor => lateOperator<typeof Rand>('torch.rand')(size)

/** Options of dropout. */
export interface DropoutOptions {
  /** The probability that an element becomes 0. Default 0.5. */
  readonly p?: number
  /** Default true. */
  readonly training?: boolean
  readonly inplace?: boolean
}

/**
 * Sets elements to 0 with probability `p` and scales the others by 1 / (1 - p) while `training`; otherwise returns the input. PyTorch's `F.dropout`.
 *
 * Shape: that of `input`.
 *
 * @throws ArgumentError unless 0 <= p <= 1.
 * @example F.dropout(torch.tensor([1, 2]), { training: false }).toArray() // [1, 2]
 */
export const dropout: OpFunction<{
  (input: Tensor, p?: number, training?: boolean, inplace?: boolean): Tensor
  (input: Tensor, options?: DropoutOptions): Tensor
}> = defineOp({
  schema: 'dropout(Tensor input, float p=0.5, bool training=True, bool inplace=False) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  tags: ['random'],
  meta: (input) => ({ shape: input.symSizes, dtype: input.dtype }),
  decompose: (input, p, training, inplace) => {
    if (!(p >= 0 && p <= 1)) throw new ArgumentError(`torch.nn.functional.dropout: p must be between 0 and 1, got ${p}.`)
    if (!training || p === 0) return input
    const masked = p === 1 ? mul(input, 0) : mul(input, mul(to(ge(uniform(input.symSizes), p), input.dtype), 1 / (1 - p)))
    return inplace ? input.copy_(masked) : masked
  },
})

/**
 * The gradient of dropout: `gradOutput` where `mask` holds, times `scale`, and 0 elsewhere. PyTorch's `aten.native_dropout_backward`.
 *
 * Shape: that of `gradOutput`; integers become floats of the default dtype.
 *
 * @throws DTypeError unless `mask` is bool.
 * @example torch.nativeDropoutBackward(torch.tensor([1, 2]), torch.tensor([true, false]), 2).toArray() // [2, 0]
 */
export const nativeDropoutBackward: Op['nativeDropoutBackward'] = defineOp({
  schema: 'native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor',
  decompose: (grad, mask, scale) => {
    if (mask.dtype !== 'bool') throw new DTypeError(`torch.native_dropout_backward: mask must be bool, got ${mask.dtype}.`)
    const dtype = asFloating(grad.dtype)
    return mul(to(grad, dtype), mul(to(mask, dtype), scale))
  },
})

function checkProbability(name: string, p: number): void {
  if (!(p >= 0 && p <= 1)) throw new ArgumentError(`torch.nn.functional.${name}: p must be between 0 and 1, got ${p}.`)
}

/** The shape of a mask for whole channels of [N, C, ..], or of [C, ..] if `batched` is false. */
const channelMask = (input: Tensor, batched: boolean): readonly Size[] => input.symSizes.map((size, d) => (d < (batched ? 2 : 1) ? size : 1))

/** Sets whole channels to 0. */
function droppedChannels(spatial: number, input: Tensor, p: number, training: boolean, inplace: boolean): Tensor {
  const name = `dropout${spatial}d`
  checkProbability(name, p)
  if (input.ndim !== spatial + 1 && input.ndim !== spatial + 2)
    throw new ShapeError(
      `torch.nn.functional.${name}: expected an input of ${spatial + 1} or ${spatial + 2} dimensions, got shape ${formatShape(input.symSizes)}.`,
    )
  if (!training || p === 0) return input
  // PyTorch takes [N, C, H] of dropout2d for a batch too.
  const kept = to(ge(uniform(channelMask(input, input.ndim === spatial + 2 || spatial === 2)), p), input.dtype)
  const masked = mul(input, p === 1 ? mul(kept, 0) : mul(kept, 1 / (1 - p)))
  return inplace ? input.copy_(masked) : masked
}

/**
 * Sets whole channels to 0 with probability `p` and scales the others by 1 / (1 - p) while `training`. PyTorch's `F.dropout1d`.
 *
 * Shape: that of `input`, [N, C, L] or [C, L].
 *
 * @throws ArgumentError unless 0 <= p <= 1.
 * @throws ShapeError for another number of dimensions.
 * @example F.dropout1d(torch.ones([1, 2, 1]), { p: 1 }).sum().item() // 0
 */
export const dropout1d: Op['dropout1d'] = defineOp({
  schema: 'dropout1d(Tensor input, float p=0.5, bool training=True, bool inplace=False) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  tags: ['random'],
  decompose: (input, p, training, inplace) => droppedChannels(1, input, p, training, inplace),
})

/**
 * Sets whole channels to 0 with probability `p` and scales the others by 1 / (1 - p) while `training`. PyTorch's `F.dropout2d`.
 *
 * Shape: that of `input`, [N, C, H, W] or [N, C, L].
 *
 * @throws ArgumentError unless 0 <= p <= 1.
 * @throws ShapeError for another number of dimensions.
 * @example F.dropout2d(torch.ones([1, 2, 1, 1]), { p: 1 }).sum().item() // 0
 */
export const dropout2d: Op['dropout2d'] = defineOp({
  schema: 'dropout2d(Tensor input, float p=0.5, bool training=True, bool inplace=False) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  tags: ['random'],
  decompose: (input, p, training, inplace) => droppedChannels(2, input, p, training, inplace),
})

/**
 * Sets whole channels to 0 with probability `p` and scales the others by 1 / (1 - p) while `training`. PyTorch's `F.dropout3d`.
 *
 * Shape: that of `input`, [N, C, D, H, W] or [C, D, H, W].
 *
 * @throws ArgumentError unless 0 <= p <= 1.
 * @throws ShapeError for another number of dimensions.
 * @example F.dropout3d(torch.ones([1, 2, 1, 1, 1]), { p: 1 }).sum().item() // 0
 */
export const dropout3d: Op['dropout3d'] = defineOp({
  schema: 'dropout3d(Tensor input, float p=0.5, bool training=True, bool inplace=False) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  tags: ['random'],
  decompose: (input, p, training, inplace) => droppedChannels(3, input, p, training, inplace),
})

/** What SELU gives for very small numbers. */
const SATURATED = -1.7580993408473766

/** Sets elements to the value that SELU saturates at, and scales and shifts the result so that mean and variance stay. */
function saturated(name: string, input: Tensor, mask: readonly Size[], p: number, training: boolean, inplace: boolean): Tensor {
  checkProbability(name, p)
  if (!training || p === 0) return input
  const scale = p === 1 ? 0 : 1 / Math.sqrt((1 - p) * (1 + p * SATURATED ** 2))
  const masked = add(mul(where(ge(uniform(mask), p), input, SATURATED), scale), -scale * p * SATURATED)
  return inplace ? input.copy_(masked) : masked
}

/**
 * Dropout that keeps the mean and the variance of what SELU gives: dropped elements become its limit, and the result is scaled and shifted. PyTorch's `F.alpha_dropout`.
 *
 * Shape: that of `input`.
 *
 * @throws ArgumentError unless 0 <= p <= 1.
 * @example F.alphaDropout(torch.tensor([1, 2]), { training: false }).toArray() // [1, 2]
 */
export const alphaDropout: Op['alphaDropout'] = defineOp({
  schema: 'alpha_dropout(Tensor input, float p=0.5, bool training=False, bool inplace=False) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  tags: ['random'],
  decompose: (input, p, training, inplace) => saturated('alpha_dropout', input, input.symSizes, p, training, inplace),
})

/**
 * {@link alphaDropout} of whole channels. PyTorch's `F.feature_alpha_dropout`.
 *
 * Shape: that of `input`, [N, C, ..].
 *
 * @throws ArgumentError unless 0 <= p <= 1.
 * @example F.featureAlphaDropout(torch.ones([1, 2, 3]), { training: false }).shape // [1, 2, 3]
 */
export const featureAlphaDropout: Op['featureAlphaDropout'] = defineOp({
  schema: 'feature_alpha_dropout(Tensor input, float p=0.5, bool training=False, bool inplace=False) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  tags: ['random'],
  decompose: (input, p, training, inplace) => saturated('feature_alpha_dropout', input, channelMask(input, true), p, training, inplace),
})
