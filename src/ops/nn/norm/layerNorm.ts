// Layer normalization: a primitive with kernels and a decomposition.
import { dispatchState } from '../../../dispatch/index.ts'
import { InternalError, ShapeError } from '../../../errors/index.ts'
import type { Size } from '../../../protocol/index.ts'
import { formatShape, numelOf, sameShape, Tensor } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { lateOperator } from '../../define/late.ts'
import type { Op } from '../../generated/signatures.ts'
import { launch } from '../../eager/launch.ts'
import { add, mul, sub } from '../../pointwise/arithmetic.ts'
import { rsqrt } from '../../pointwise/unary.ts'
import { mean } from '../../reduction/mean.ts'
import { sum } from '../../reduction/sum.ts'
import { checkOperand, numbersFor } from '../../shared/shapes.ts'
import { contiguous } from '../../view/reshape.ts'
import { layerNormBackwardKernel, layerNormKernel } from './normKernels.ts'
import { narrowTo, wideFor } from '../wide.ts'

const NAME = 'torch.nn.functional.layer_norm'

function check(input: Tensor, normalizedShape: readonly Size[], weight: Tensor | null, bias: Tensor | null): void {
  const tail = input.symSizes.slice(input.ndim - normalizedShape.length)
  if (normalizedShape.length === 0 || !sameShape(tail, normalizedShape)) {
    throw new ShapeError(`${NAME}: input of shape ${formatShape(input.symSizes)} must end in normalized_shape ${formatShape(normalizedShape)}.`)
  }
  for (const [name, tensor] of Object.entries({ weight, bias })) {
    if (tensor !== null && !sameShape(tensor.symSizes, normalizedShape)) {
      throw new ShapeError(
        `${NAME}: ${name} has shape ${formatShape(tensor.symSizes)} but normalized_shape is ${formatShape(normalizedShape)}; they must be equal.`,
      )
    }
    checkOperand(NAME, name, tensor, normalizedShape, input.dtype)
  }
}

const lastDims = (shape: readonly Size[]): number[] => shape.map((_, i) => i - shape.length)

/** The shape of the mean and the deviation of each row. */
const statShape = (input: Tensor, normalizedShape: readonly Size[]): readonly Size[] =>
  input.symSizes.map((size, i) => (i < input.ndim - normalizedShape.length ? size : 1))

function checkBackward(grad: Tensor, input: Tensor, normalizedShape: readonly Size[], mu: Tensor, rstd: Tensor, weight: Tensor | null): void {
  check(input, normalizedShape, weight, null)
  const stat = statShape(input, normalizedShape)
  checkOperand(NAME, 'grad', grad, input.symSizes, input.dtype)
  checkOperand(NAME, 'mean', mu, stat, input.dtype)
  checkOperand(NAME, 'rstd', rstd, stat, input.dtype)
}

/** What the kernels take as numbers: rows, width, and the count that a mean divides by. */
function sizes(input: Tensor, normalizedShape: readonly number[]): readonly [rows: number, width: number, count: number] {
  const width = numelOf(normalizedShape)
  return [width === 0 ? 0 : input.numel / width, width, width]
}

/** The rows' means, 1 / sqrt(variance + eps), and the input minus the means, with operators. */
function statistics(input: Tensor, normalizedShape: readonly Size[], eps: number) {
  const dims = lastDims(normalizedShape)
  const mu = mean(input, dims, true)
  const centered = sub(input, mu)
  return { mu, rstd: rsqrt(add(mean(mul(centered, centered), dims, true), eps)), centered }
}

function backwardFormula(
  grad: Tensor,
  input: Tensor,
  normalizedShape: readonly Size[],
  mu: Tensor,
  rstd: Tensor,
  weight: Tensor | null,
): readonly [Tensor, Tensor, Tensor] {
  const dims = lastDims(normalizedShape)
  const lead = input.symSizes.map((_, i) => i).slice(0, input.ndim - normalizedShape.length)
  const normal = mul(sub(input, mu), rstd)
  const weighted = weight === null ? grad : mul(grad, weight)
  const gi = mul(rstd, sub(sub(weighted, mean(weighted, dims, true)), mul(normal, mean(mul(weighted, normal), dims, true))))
  const total = (t: Tensor): Tensor => (lead.length === 0 ? t : sum(t, lead))
  return [gi, total(mul(grad, normal)), total(grad)]
}

/**
 * The gradients of layer normalization: [input, weight, bias]. Internal; PyTorch's `aten.native_layer_norm_backward`.
 *
 * Shapes: that of `input`, and twice `normalizedShape`.
 *
 * @throws ArgumentError if an argument does not fit the schema.
 * @example torch.ops.tensorfx.nativeLayerNormBackward(torch.ones([1, 2]), torch.tensor([[1, 3]]), [2], torch.tensor([[2]]), torch.tensor([[1]]), null)[1].toArray() // [-1, 1]
 */
export const nativeLayerNormBackward: Op['nativeLayerNormBackward'] = defineOp({
  schema:
    'native_layer_norm_backward(Tensor grad, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight) -> (Tensor, Tensor, Tensor)',
  namespace: 'torch.ops.tensorfx',
  meta: (grad, input, normalizedShape, mu, rstd, weight) => {
    checkBackward(grad, input, normalizedShape, mu, rstd, weight)
    const vector = { shape: normalizedShape, dtype: input.dtype }
    return [{ shape: input.symSizes, dtype: input.dtype }, vector, vector]
  },
  halvesInFloat32: true,
  kernel: (grad, input, normalizedShape, mu, rstd, weight): readonly [Tensor, Tensor, Tensor] => {
    checkBackward(grad, input, normalizedShape, mu, rstd, weight)
    const { dtype } = input
    const [gi, gw, gb] = [Tensor.empty(input.sizes, dtype), Tensor.empty(normalizedShape, dtype), Tensor.empty(normalizedShape, dtype)]
    const operands = [grad, input, mu, rstd, ...(weight === null ? [] : [weight])].map((t) => contiguous(t))
    launch(layerNormBackwardKernel(dtype, weight !== null), [gi, gw, gb, ...operands], sizes(input, normalizedShape))
    return [gi, gw, gb]
  },
  decompose: (grad, input, normalizedShape, mu, rstd, weight) => {
    const wide = wideFor(input)
    return narrowTo(input, backwardFormula(wide(grad), wide(input), normalizedShape, wide(mu), wide(rstd), wide(weight)))
  },
  // The derivative of nativeLayerNorm uses the formula itself if it has to be differentiated.
  derivative: () => {
    throw new InternalError('native_layer_norm_backward is never recorded')
  },
})

/**
 * Layer normalization: [result, mean, 1 / sqrt(variance + eps)]. Internal; PyTorch's `aten.native_layer_norm`.
 *
 * Shapes: that of `input`; the statistics have size 1 in the normalized dimensions.
 *
 * @throws ShapeError if the input does not end in `normalizedShape`, or `weight` or `bias` have another shape.
 * @example torch.ops.tensorfx.nativeLayerNorm(torch.tensor([[1, 3]]), [2], null, null, 0).map((t) => t.toArray()) // [[[-1, 1]], [[2]], [[1]]]
 */
export const nativeLayerNorm: Op['nativeLayerNorm'] = defineOp({
  schema: 'native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)',
  namespace: 'torch.ops.tensorfx',
  vmap: { leading: ['input'] },
  onnx: 'layerNorm',
  meta: (input, normalizedShape, weight, bias) => {
    check(input, normalizedShape, weight, bias)
    const stat = { shape: statShape(input, normalizedShape), dtype: input.dtype }
    return [{ shape: input.symSizes, dtype: input.dtype }, stat, stat]
  },
  halvesInFloat32: true,
  kernel: (input, normalizedShape, weight, bias, eps): readonly [Tensor, Tensor, Tensor] => {
    check(input, normalizedShape, weight, bias)
    const { dtype } = input
    const stat = numbersFor(NAME, statShape(input, normalizedShape))
    // Rows without elements have statistics too: NaN.
    const width = numelOf(normalizedShape)
    const [out, mu, rstd] = [Tensor.empty(input.sizes, dtype), Tensor.empty(stat, dtype), Tensor.empty(stat, dtype)]
    const operands = [input, weight, bias].filter((t) => t !== null).map((t) => contiguous(t))
    launch(layerNormKernel(dtype, weight !== null, bias !== null), [out, mu, rstd, ...operands], [numelOf(stat), width, width, eps])
    return [out, mu, rstd]
  },
  decompose: (input, normalizedShape, weight, bias, eps) => {
    const wide = wideFor(input)
    const { mu, rstd, centered } = statistics(wide(input), normalizedShape, eps)
    let out = mul(centered, rstd)
    if (weight !== null) out = mul(out, wide(weight))
    if (bias !== null) out = add(out, wide(bias))
    return narrowTo(input, [out, mu, rstd])
  },
  derivative: ([g], { args: [input, normalizedShape, weight, bias, eps], outputs: [, mu, rstd] }) => {
    if (g === null) return [null, null, null, null, null]
    // If the gradient is differentiated again, the statistics must be functions of the input.
    const again = dispatchState.gradEnabled ? statistics(input, normalizedShape, eps) : null
    const [gi, gw, gb] =
      again === null
        ? lateOperator<Op['nativeLayerNormBackward']>('torch.ops.tensorfx.native_layer_norm_backward')(g, input, normalizedShape, mu, rstd, weight)
        : backwardFormula(g, input, normalizedShape, again.mu, again.rstd, weight)
    return [gi, null, weight === null ? null : gw, bias === null ? null : gb, null]
  },
})

/** Options of layerNorm. */
export interface LayerNormOptions {
  readonly weight?: Tensor | null
  readonly bias?: Tensor | null
  /** Added to the variance. Default 1e-5. */
  readonly eps?: number
}

type LayerNorm = {
  (input: Tensor, normalizedShape: readonly number[], weight?: Tensor | null, bias?: Tensor | null, eps?: number): Tensor
  (input: Tensor, normalizedShape: readonly number[], weight: Tensor | null, bias: Tensor | null, options: LayerNormOptions): Tensor
  (input: Tensor, normalizedShape: readonly number[], options?: LayerNormOptions): Tensor
}

/**
 * Normalizes over the last dimensions (`normalizedShape`) to mean 0 and variance 1, times `weight` plus `bias`. PyTorch's `F.layer_norm`.
 *
 * Shapes: input [.., ...normalizedShape]; `weight` and `bias` have the shape `normalizedShape`. The result has the shape of `input`.
 *
 * @throws ShapeError if the input does not end in `normalizedShape`, or `weight` or `bias` have another shape.
 * @example F.layerNorm(torch.tensor([[1, 3]]), [2], { eps: 0 }).toArray() // [[-1, 1]]
 */
export const layerNorm: OpFunction<LayerNorm> = defineOp({
  schema: 'layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  meta: (input, normalizedShape, weight, bias) => {
    check(input, normalizedShape, weight, bias)
    return { shape: input.symSizes, dtype: input.dtype }
  },
  decompose: (...args) => nativeLayerNorm(...args)[0],
})
