// The normalizations as PyTorch's autograd has them, with the statistics as further results: torch.native_layer_norm and its like. Captured PyTorch graphs call them.
import { formatShape, sizeEq, Tensor, sizeMod, sizeProduct } from '../../../tensor/index.ts'
import { ArgumentError, ShapeError } from '../../../errors/index.ts'
import { zeros } from '../../create/creation.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import type { Op } from '../../generated/signatures.ts'
import { checkAdmits } from '../../eager/admittedTypes.ts'
import { reshape } from '../../view/reshape.ts'
import { normalized } from './batchNorm.ts'
import { groupNormWithStatistics } from './groupNorm.ts'
import { nativeLayerNorm } from './layerNorm.ts'

/**
 * Layer normalization with its statistics: [result, mean, 1 / sqrt(variance + eps)]. The gradients are those of the result; the statistics give none, as in PyTorch. PyTorch's
 * `torch.native_layer_norm`.
 *
 * Shapes: that of `input`; the statistics have size 1 in the normalized dimensions.
 *
 * @throws ShapeError if the input does not end in `normalizedShape`, or `weight` or `bias` have another shape.
 * @example torch.nativeLayerNorm(torch.tensor([[1, 3]]), [2], null, null, 0).map((t) => t.toArray()) // [[[-1, 1]], [[2]], [[1]]]
 */
export const torchNativeLayerNorm: Op['torchNativeLayerNorm'] = defineOp({
  schema: 'native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)',
  decompose: (input, normalizedShape, weight, bias, eps): readonly [Tensor, Tensor, Tensor] =>
    nativeLayerNorm(input, normalizedShape, weight, bias, eps),
})

/**
 * Group normalization with its statistics: [result, mean, 1 / sqrt(variance + eps)] of each group. The input is read as [N, C, HxW], whatever its shape. PyTorch's
 * `torch.native_group_norm`.
 *
 * Shapes: that of `input`; `weight` and `bias` are [C]; the statistics are [N, group].
 *
 * @throws ArgumentError if `group` does not divide `C`.
 * @throws DTypeError unless `input` is floating.
 * @throws ShapeError if `input` does not have N C HxW elements, or `weight` or `bias` not C.
 * @example torch.nativeGroupNorm(torch.tensor([[1, 3]]), null, null, 1, 2, 1, 1, 0).map((t) => t.toArray()) // [[[-1, 1]], [[2]], [[1]]]
 */
export const nativeGroupNorm: Op['nativeGroupNorm'] = defineOp({
  schema:
    'native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)',
  decompose: (input, weight, bias, n, c, plane, group, eps): readonly [Tensor, Tensor, Tensor] => {
    const op = 'torch.native_group_norm'
    checkAdmits(op, 'floating', input.dtype)
    if (group < 1 || !sizeEq(sizeMod(c, group), 0)) throw new ArgumentError(`${op}: group must divide the ${c.toString()} channels, got ${group}.`)
    const count = sizeProduct([n, c, plane])
    if (!sizeEq(input.symNumel, count))
      throw new ShapeError(`${op}: input must have N C HxW = ${count.toString()} elements, got shape ${formatShape(input.symSizes)}.`)
    for (const [name, t] of Object.entries({ weight, bias }))
      if (t !== null && !sizeEq(t.symNumel, c))
        throw new ShapeError(`${op}: ${name} must have ${c.toString()} elements, one per channel, got shape ${formatShape(t.symSizes)}.`)
    const vector = (t: Tensor | null): Tensor | null => (t === null ? null : reshape(t, [c]))
    const [out, mu, rstd] = groupNormWithStatistics(reshape(input, [n, c, plane]), group, { weight: vector(weight), bias: vector(bias), eps })
    return [reshape(out, input.symSizes), mu, rstd]
  },
})

/**
 * Batch normalization with what its backward needs: [result, mean, 1 / sqrt(variance + eps)] of the batch; without `training` the statistics are empty, and the running ones count. With
 * `training` the running ones are updated in place. PyTorch's `torch.native_batch_norm`.
 *
 * Shapes: input [N, C, ..]; the other tensors are [C]. The results are that of `input`, and twice [C], or [0].
 *
 * @throws ShapeError for fewer than 2 dimensions, or if a vector does not have one value per channel.
 * @throws ArgumentError if `training` is false and there are no running statistics.
 * @example torch.nativeBatchNorm(torch.tensor([[1], [3]]), null, null, null, null, true, 0.1, 0).map((t) => t.toArray()) // [[[-1], [1]], [2], [1]]
 */
export const torchNativeBatchNorm: Op['torchNativeBatchNorm'] = defineOp({
  schema:
    'native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)',
  decompose: (input, weight, bias, runningMean, runningVar, training, momentum, eps): readonly [Tensor, Tensor, Tensor] =>
    normalized(input, runningMean, runningVar, weight, bias, training, momentum, eps),
})

/**
 * `torch.nativeBatchNorm`, whose running statistics may be left out: `torch._nativeBatchNormLegit(input, weight, bias, training, momentum, eps)`. PyTorch's `aten._native_batch_norm_legit`.
 *
 * Shapes: input [N, C, ..]; the other tensors are [C]. The results are that of `input`, and twice [C], or [0].
 *
 * @throws ShapeError for fewer than 2 dimensions, or if a vector does not have one value per channel.
 * @throws ArgumentError if `training` is false and there are no running statistics.
 * @example torch._nativeBatchNormLegit(torch.tensor([[1], [3]]), null, null, true, 0.1, 0)[0].toArray() // [[-1], [1]]
 */
export const nativeBatchNormLegit: OpFunction<{
  (
    input: Tensor,
    weight: Tensor | null,
    bias: Tensor | null,
    runningMean: Tensor,
    runningVar: Tensor,
    training: boolean,
    momentum: number,
    eps: number,
  ): readonly [Tensor, Tensor, Tensor]
  (input: Tensor, weight: Tensor | null, bias: Tensor | null, training: boolean, momentum: number, eps: number): readonly [Tensor, Tensor, Tensor]
}> = defineOp({
  schema:
    '_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, any running_mean, any running_var, any training, any momentum=None, any eps=None) -> (Tensor, Tensor, Tensor)',
  decompose: (input, weight, bias, ...rest): readonly [Tensor, Tensor, Tensor] => {
    const [runningMean, runningVar, training, momentum, eps] = typeof rest[0] === 'boolean' ? [null, null, ...rest] : rest
    if (
      !(runningMean === null || runningMean instanceof Tensor) ||
      !(runningVar === null || runningVar instanceof Tensor) ||
      typeof training !== 'boolean' ||
      typeof momentum !== 'number' ||
      typeof eps !== 'number'
    )
      throw new ArgumentError(
        'torch._native_batch_norm_legit: expected (input, weight, bias, running_mean, running_var, training, momentum, eps), where the running statistics are both Tensors or both left out.',
      )
    return normalized(input, runningMean, runningVar, weight, bias, training, momentum, eps)
  },
})

/**
 * `torch.nativeBatchNorm` in training, with an empty reserve for the backward pass as fourth result. PyTorch's `aten._batch_norm_with_update`.
 *
 * Shapes: input [N, C, ..]; the other tensors are [C]. The results are that of `input`, twice [C], and [0].
 *
 * @throws ShapeError for fewer than 2 dimensions, or if a vector does not have one value per channel.
 * @example torch._batchNormWithUpdate(torch.tensor([[1], [3]]), null, null, torch.zeros([1]), torch.ones([1]), 0.1, 0)[0].toArray() // [[-1], [1]]
 */
export const batchNormWithUpdate: Op['batchNormWithUpdate'] = defineOp({
  schema:
    '_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)',
  decompose: (input, weight, bias, runningMean, runningVar, momentum, eps): readonly [Tensor, Tensor, Tensor, Tensor] => [
    ...normalized(input, runningMean, runningVar, weight, bias, true, momentum, eps),
    zeros([0], { dtype: 'uint8' }),
  ],
})
