// Normalizations without a mean: by the root mean square, and by the neighbouring channels.
import { dispatchState } from '../../../dispatch/index.ts'
import { ArgumentError, InternalError, ShapeError } from '../../../errors/index.ts'
import { dtypeInfo, realDType } from '../../../kernels/index.ts'
import type { Size } from '../../../protocol/index.ts'
import { Tensor, finfo, formatShape, numelOf, sameShape } from '../../../tensor/index.ts'
import { defineOp } from '../../define/defineOp.ts'
import { lateOperator } from '../../define/late.ts'
import { checkAdmits } from '../../eager/admittedTypes.ts'
import { launch } from '../../eager/launch.ts'
import type { Op } from '../../generated/signatures.ts'
import { accumulatedIn } from '../../eager/promotion.ts'
import { constantPadNd } from '../../join/join.ts'
import { add, div, mul, pow, sub } from '../../pointwise/arithmetic.ts'
import { to } from '../../pointwise/cast.ts'
import { rsqrt, square } from '../../pointwise/unary.ts'
import { mean } from '../../reduction/mean.ts'
import { sum } from '../../reduction/sum.ts'
import { checkOperand, numbersFor } from '../../shared/shapes.ts'
import { unfold } from '../../view/arrange.ts'
import { contiguous } from '../../view/reshape.ts'
import { rmsNormBackwardKernel, rmsNormKernel } from './normKernels.ts'
import { wideFor } from '../wide.ts'

/** The amounts for a padding of dimension 1 alone. */
const aroundChannels = (x: Tensor, before: number, after: number): readonly number[] => [...x.symSizes.slice(2).flatMap(() => [0, 0]), before, after]

const NAME = 'torch.nn.functional.rms_norm'

function check(input: Tensor, shape: readonly Size[], weight: Tensor | null): void {
  const own = input.symSizes.slice(Math.max(0, input.ndim - shape.length))
  if (shape.length === 0 || !sameShape(own, shape) || (weight !== null && !sameShape(weight.symSizes, shape)))
    throw new ShapeError(
      `${NAME}: the input must end in normalized_shape ${formatShape(shape)}, which is the shape of the weight, got shapes ${[input, ...(weight === null ? [] : [weight])].map((t) => formatShape(t.symSizes)).join(' and ')}.`,
    )
}

/** The same for the kernels, which read the operands as they are. */
function checkOperands(input: Tensor, shape: readonly Size[], weight: Tensor | null): void {
  check(input, shape, weight)
  checkAdmits(NAME, 'floating', input.dtype)
  checkOperand(NAME, 'weight', weight, shape, input.dtype)
}

function checkBackward(grad: Tensor, input: Tensor, shape: readonly Size[], rstd: Tensor, weight: Tensor | null): void {
  checkOperands(input, shape, weight)
  checkOperand(NAME, 'grad', grad, input.symSizes, input.dtype)
  checkOperand(NAME, 'rstd', rstd, statShape(input, shape), input.dtype)
}

/** The shape of the root of each row. */
const statShape = (input: Tensor, shape: readonly Size[]): readonly Size[] =>
  input.symSizes.map((size, i) => (i < input.ndim - shape.length ? size : 1))

/** What the kernels take as numbers: rows, width, and the count that a mean divides by. */
function sizes(input: Tensor, shape: readonly number[]): readonly [rows: number, width: number, count: number] {
  const width = numelOf(shape)
  return [width === 0 ? 0 : input.numel / width, width, width]
}

const lastDims = (shape: readonly Size[]): number[] => shape.map((_, d) => d - shape.length)

/** 1 / sqrt(mean of squares + eps) of each row, with operators. */
const inverseRoots = (x: Tensor, shape: readonly Size[], eps: number): Tensor => rsqrt(add(mean(square(x), lastDims(shape), true), eps))

/** The gradients of input and weight, with operators. */
function backwardFormula(grad: Tensor, input: Tensor, shape: readonly Size[], rstd: Tensor, weight: Tensor | null): readonly [Tensor, Tensor] {
  const normal = mul(input, rstd)
  const weighted = weight === null ? grad : mul(grad, weight)
  const lead = input.symSizes.slice(shape.length).map((_, d) => d)
  const ofWeight = mul(grad, normal)
  return [
    mul(rstd, sub(weighted, mul(normal, mean(mul(weighted, normal), lastDims(shape), true)))),
    lead.length === 0 ? ofWeight : sum(ofWeight, lead),
  ]
}

/**
 * The gradients of root mean square normalization: [input, weight]. Internal; PyTorch's `aten._fused_rms_norm_backward`.
 *
 * Shapes: that of `input`, and `normalizedShape`.
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws DTypeError unless the tensors have the same floating dtype.
 * @example torch.ops.tensorfx.fusedRmsNormBackward(torch.ones([1, 2]), torch.tensor([[3, 4]]), [2], torch.tensor([[0.5]]), null)[1].toArray() // [1.5, 2]
 */
export const fusedRmsNormBackward: Op['fusedRmsNormBackward'] = defineOp({
  schema: 'fused_rms_norm_backward(Tensor grad, Tensor input, SymInt[] normalized_shape, Tensor rstd, Tensor? weight) -> (Tensor, Tensor)',
  namespace: 'torch.ops.tensorfx',
  meta: (grad, input, shape, rstd, weight) => {
    checkBackward(grad, input, shape, rstd, weight)
    return [
      { shape: input.symSizes, dtype: input.dtype },
      { shape, dtype: input.dtype },
    ]
  },
  halvesInFloat32: true,
  kernel: (grad, input, shape, rstd, weight): readonly [Tensor, Tensor] => {
    checkBackward(grad, input, shape, rstd, weight)
    const results = [Tensor.empty(input.sizes, input.dtype), Tensor.empty(shape, input.dtype)] as const
    const operands = [grad, input, rstd, ...(weight === null ? [] : [weight])].map((t) => contiguous(t))
    launch(rmsNormBackwardKernel(input.dtype, weight !== null), [...results, ...operands], sizes(input, shape))
    return results
  },
  decompose: (grad, input, shape, rstd, weight): readonly [Tensor, Tensor] => {
    const wide = wideFor(input)
    const [ofInput, ofWeight] = backwardFormula(wide(grad), wide(input), shape, wide(rstd), wide(weight))
    return [to(ofInput, input.dtype), to(ofWeight, input.dtype)]
  },
  // The derivative of fusedRmsNorm uses the formula itself if it has to be differentiated.
  derivative: () => {
    throw new InternalError('fused_rms_norm_backward is never recorded')
  },
})

/**
 * Root mean square normalization: [result, 1 / sqrt(mean of squares + eps)]. The gradients are those of the result. Internal; PyTorch's `aten._fused_rms_norm`.
 *
 * Shapes: that of `input`; the roots have size 1 in the normalized dimensions.
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws DTypeError unless the tensors have the same floating dtype.
 * @example torch.ops.tensorfx.fusedRmsNorm(torch.tensor([[6, 8]]), [2], null, 0)[0].toArray() // [[0.848528, 1.13137]]
 */
export const fusedRmsNorm: Op['fusedRmsNorm'] = defineOp({
  schema: 'fused_rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, float eps) -> (Tensor, Tensor)',
  namespace: 'torch.ops.tensorfx',
  vmap: { leading: ['input'] },
  meta: (input, shape, weight) => {
    checkOperands(input, shape, weight)
    return [
      { shape: input.symSizes, dtype: input.dtype },
      { shape: statShape(input, shape), dtype: input.dtype },
    ]
  },
  halvesInFloat32: true,
  kernel: (input, shape, weight, eps): readonly [Tensor, Tensor] => {
    checkOperands(input, shape, weight)
    const { dtype } = input
    const results = [Tensor.empty(input.sizes, dtype), Tensor.empty(numbersFor(NAME, statShape(input, shape)), dtype)] as const
    const operands = [input, ...(weight === null ? [] : [weight])].map((t) => contiguous(t))
    launch(rmsNormKernel(dtype, weight !== null), [...results, ...operands], [...sizes(input, shape), eps])
    return results
  },
  decompose: (input, shape, weight, eps): readonly [Tensor, Tensor] => {
    const wide = wideFor(input)
    const x = wide(input)
    const rstd = inverseRoots(x, shape, eps)
    const normal = mul(x, rstd)
    return [to(weight === null ? normal : mul(normal, wide(weight)), input.dtype), to(rstd, input.dtype)]
  },
  derivative: ([g], { args: [input, shape, weight, eps], outputs: [, rstd] }) => {
    if (g === null) return [null, null, null, null]
    // If the gradient is differentiated again, the roots must be functions of the input.
    const [gi, gw] = dispatchState.gradEnabled
      ? backwardFormula(g, input, shape, inverseRoots(input, shape, eps), weight)
      : lateOperator<Op['fusedRmsNormBackward']>('torch.ops.tensorfx.fused_rms_norm_backward')(g, input, shape, rstd, weight)
    return [gi, null, weight === null ? null : gw, null]
  },
})

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
  decompose: (input, shape, weight, given) => {
    check(input, shape, weight)
    const eps = given ?? finfo(realDType(input.dtype)).eps
    if (dtypeInfo[input.dtype].floating && (weight === null || weight.dtype === input.dtype)) return fusedRmsNorm(input, shape, weight, eps)[0]
    // Complex numbers, and weights of another dtype.
    const x = to(input, accumulatedIn(input.dtype))
    const normal = mul(x, inverseRoots(x, shape, eps))
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
