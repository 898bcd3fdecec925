// Batch norms folded into the layers before them, for inference. PyTorch's torch.nn.utils.fusion.
import { noGrad } from '../autograd/index.ts'
import { ArgumentError, ShapeError } from '../errors/index.ts'
import type { DType } from '../kernels/index.ts'
import { foldNorm } from '../module/index.ts'
import type { Module } from '../module/index.ts'
import { checkArgument, checkCount, checkModule } from '../protocol/index.ts'
import { checkTensor, formatShape } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import type { BatchNorm1d, BatchNorm2d, BatchNorm3d } from './batchNorm.ts'
import { Parameter } from './parameter.ts'

type BatchNorm = BatchNorm1d | BatchNorm2d | BatchNorm3d

/** A layer with a weight and perhaps a bias. */
type Layer = Module & { weight: Parameter; bias: Parameter | null }

const WHERE = 'nn.utils.fusion'

type Weights = readonly [weight: Parameter, bias: Parameter]

/**
 * The weight and the bias of a convolution followed by a batch norm, as one convolution. `transpose` is for transposed convolutions, whose weight has the outputs in
 * dimension 1. PyTorch's `torch.nn.utils.fusion.fuse_conv_bn_weights`.
 *
 * Shapes: the results have those of `convW` and [channels].
 *
 * @throws ShapeError unless the norm has as many channels as the convolution has outputs. (Transposed convolutions in groups cannot be fused.)
 */
export function fuseConvBnWeights(
  convW: Tensor,
  convB: Tensor | null,
  bnRm: Tensor,
  bnRv: Tensor,
  bnEps: number,
  bnW: Tensor | null,
  bnB: Tensor | null,
  transpose = false,
): Weights {
  checkCount('fuseConvBnWeights', arguments, 8)
  for (const [name, value] of Object.entries({ convW, bnRm, bnRv })) checkTensor(WHERE, name, value)
  for (const [name, value] of Object.entries({ convB, bnW, bnB })) if (value !== null) checkTensor(WHERE, name, value)
  checkArgument(typeof bnEps === 'number', WHERE, 'bnEps', 'a number', bnEps)
  const channels = transpose ? 1 : 0
  if (convW.shape[channels] !== bnRm.numel && bnRm.numel !== 1)
    throw new ShapeError(
      `${WHERE}: the norm has ${bnRm.numel} channels, and a weight of shape ${formatShape(convW.shape)} has ${convW.shape[channels]} outputs in dimension ${channels}; they must be equal.`,
    )
  const norm = { runningMean: bnRm, runningVar: bnRv, eps: bnEps, weight: bnW, bias: bnB }
  const [weight, bias] = noGrad(() => foldNorm<DType, Tensor>(convW, convB, norm, channels))
  return [new Parameter(weight, { requiresGrad: convW.requiresGrad }), new Parameter(bias, { requiresGrad: convB?.requiresGrad ?? false })]
}

/**
 * The weight and the bias of a linear layer followed by a batch norm, as one linear layer. PyTorch's `torch.nn.utils.fusion.fuse_linear_bn_weights`.
 *
 * Shapes: the results have those of `linearW` and [outFeatures].
 *
 * @throws ShapeError unless the norm has as many channels as the layer has outputs, or one.
 */
export function fuseLinearBnWeights(
  linearW: Tensor,
  linearB: Tensor | null,
  bnRm: Tensor,
  bnRv: Tensor,
  bnEps: number,
  bnW: Tensor | null,
  bnB: Tensor | null,
): Weights {
  checkCount('fuseLinearBnWeights', arguments, 7)
  return fuseConvBnWeights(linearW, linearB, bnRm, bnRv, bnEps, bnW, bnB)
}

/**
 * A copy of a convolution that computes what the convolution and the batch norm after it compute, in evaluation mode. `transpose` is for transposed convolutions.
 * PyTorch's `torch.nn.utils.fusion.fuse_conv_bn_eval`.
 *
 * @throws ArgumentError unless both are in evaluation mode and the norm has running statistics.
 * @throws ShapeError unless the channels fit.
 * @example
 * const fused = nn.utils.fusion.fuseConvBnEval(conv.eval(), norm.eval())
 */
export function fuseConvBnEval<L extends Layer>(conv: L, bn: BatchNorm, transpose = false): L {
  checkCount('fuseConvBnEval', arguments, 3)
  checkModule(WHERE, 'the layer', conv)
  checkModule(WHERE, 'the norm', bn)
  const { runningMean, runningVar, eps, weight, bias } = bn
  if (conv.training || bn.training || runningMean === null || runningVar === null)
    throw new ArgumentError(
      `${WHERE}: the layer and the norm must be in evaluation mode, and the norm must have running statistics; call eval() on both.`,
    )
  const fused = conv.deepCopy()
  const [own, shift] = fuseConvBnWeights(conv.weight, conv.bias, runningMean, runningVar, eps, weight, bias, transpose)
  fused.weight = own
  fused.bias = shift
  return fused
}

/**
 * A copy of a linear layer that computes what the layer and the batch norm after it compute, in evaluation mode. PyTorch's `torch.nn.utils.fusion.fuse_linear_bn_eval`.
 *
 * @throws ArgumentError unless both are in evaluation mode and the norm has running statistics.
 * @throws ShapeError unless the norm has as many features as the layer has outputs, or one.
 */
export function fuseLinearBnEval<L extends Layer>(linear: L, bn: BatchNorm): L {
  checkCount('fuseLinearBnEval', arguments, 2)
  return fuseConvBnEval(linear, bn)
}
