// Group normalization (a primitive with kernels and a decomposition), and instance normalization, which has a group per channel.
import { dispatchState } from '../../../dispatch/index.ts'
import { ArgumentError, InternalError, ShapeError } from '../../../errors/index.ts'
import { channelsLastHint } from '../../../protocol/index.ts'
import type { Size } from '../../../protocol/index.ts'
import {
  areNumbers,
  formatShape,
  numelOf,
  sizeEq,
  sizeFloorDiv,
  sizeMax,
  sizeMod,
  sizeMul,
  Tensor,
  sizeNumber,
  sizeProduct,
  hasNoElements,
  scalarOf,
} from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { lateOperator } from '../../define/late.ts'
import { launch } from '../../eager/launch.ts'
import type { Op } from '../../generated/signatures.ts'
import { add, div, mul, pow, sub } from '../../pointwise/arithmetic.ts'
import { to } from '../../pointwise/cast.ts'
import { rsqrt } from '../../pointwise/unary.ts'
import { mean, variance } from '../../reduction/mean.ts'
import { sum } from '../../reduction/sum.ts'
import { checkOperand, sizeAt } from '../../shared/shapes.ts'
import { contiguous, reshape } from '../../view/reshape.ts'
import { expand } from '../../view/windows.ts'
import { batchNorm } from './batchNorm.ts'
import { groupNormBackwardKernel, groupNormKernel } from './groupNormKernels.ts'
import type { LayerNormOptions } from './layerNorm.ts'
import { narrowTo, wideFor } from '../wide.ts'

const NAME = 'torch.nn.functional.group_norm'

function check(input: Tensor, group: number, weight: Tensor | null, bias: Tensor | null): void {
  const [, channels] = input.symSizes
  if (channels === undefined || !Number.isInteger(group) || group < 1 || !sizeEq(sizeMod(channels, group), 0))
    throw new ArgumentError(
      `${NAME}: num_groups must divide the channels of input (shape ${formatShape(input.symSizes)}, dimension 1), got ${group}.${weight !== null && areNumbers(input.symSizes) ? channelsLastHint('input', input.symSizes, weight.numel) : ''}`,
    )
  for (const [name, tensor] of Object.entries({ weight, bias })) checkOperand(NAME, name, tensor, [channels], input.dtype)
}

/** The shape of the statistics. */
const statShape = (input: Tensor, group: number): readonly Size[] => [sizeAt(input.symSizes, 0), group]

function checkBackward(grad: Tensor, input: Tensor, group: number, mu: Tensor, rstd: Tensor, weight: Tensor | null): void {
  check(input, group, weight, null)
  checkOperand(NAME, 'grad', grad, input.symSizes, input.dtype)
  checkOperand(NAME, 'mean', mu, statShape(input, group), input.dtype)
  checkOperand(NAME, 'rstd', rstd, statShape(input, group), input.dtype)
}

/** What the kernels take as numbers: samples, groups, channels of a group, elements of a channel, and the count that a mean divides by. */
function sizesOf(input: Tensor, group: number): readonly [images: number, groups: number, each: number, plane: number, count: number] {
  const [images = 0, channels = 0, ...plane] = input.sizes
  const [each, elements] = [channels / group, numelOf(plane)]
  return [images, group, each, elements, each * elements]
}

/** A vector with a value per channel, shaped to broadcast over the input. */
const spread = (t: Tensor, input: Tensor): Tensor =>
  reshape(
    t,
    input.symSizes.map((size, i): Size => (i === 1 ? size : 1)),
  )

/** The elements of a group in a row: [N, group, elements]. */
function inGroups(t: Tensor, group: number): Tensor {
  const images = sizeAt(t.symSizes, 0)
  return reshape(t, [images, group, sizeFloorDiv(t.symNumel, sizeMax(1, sizeMul(images, group)))])
}

/** The means of groups, 1 / sqrt(variance + eps), and the input minus the means, with operators: as [N, group, 1] and [N, group, elements]. */
function statistics(input: Tensor, group: number, eps: number) {
  const rows = inGroups(input, group)
  const mu = mean(rows, [-1], true)
  const centered = sub(rows, mu)
  return { mu, rstd: rsqrt(add(mean(mul(centered, centered), [-1], true), eps)), centered }
}

/** Statistics [N, group] as [N, group, 1]. */
const perGroup = (stat: Tensor): Tensor => reshape(stat, [...stat.symSizes, 1])

/** The elements of a group of one sample. */
function elementsOf(input: Tensor, group: number): Size {
  const [, channels = 0, ...plane] = input.symSizes
  return sizeMul(sizeFloorDiv(channels, group), sizeProduct(plane))
}

/** The gradient of the input from that of the means; null if there is none. */
function meanGradient(input: Tensor, group: number, grad: Tensor | null): Tensor | null {
  if (grad === null) return null
  const count = elementsOf(input, group)
  return reshape(expand(div(perGroup(grad), scalarOf(count)), [sizeAt(input.symSizes, 0), group, count]), input.symSizes)
}

/** The same from the gradient of 1 / sqrt(variance + eps). */
function rstdGradient(input: Tensor, group: number, [mu, rstd]: readonly [Tensor, Tensor], grad: Tensor | null): Tensor | null {
  if (grad === null) return null
  const count = scalarOf(sizeMul(-1, elementsOf(input, group)))
  return reshape(mul(sub(inGroups(input, group), mu), div(mul(perGroup(grad), pow(rstd, 3)), count)), input.symSizes)
}

/** The gradients with operators; the statistics are [N, group, 1]. */
function backwardFormula(
  grad: Tensor,
  input: Tensor,
  group: number,
  [mu, rstd]: readonly [Tensor, Tensor],
  weight: Tensor | null,
): readonly [Tensor, Tensor, Tensor] {
  const normal = mul(sub(inGroups(input, group), mu), rstd)
  const weighted = inGroups(weight === null ? grad : mul(grad, spread(weight, grad)), group)
  const ofRows = mul(rstd, sub(sub(weighted, mean(weighted, [-1], true)), mul(normal, mean(mul(weighted, normal), [-1], true))))
  const others = input.symSizes.map((_, d) => d).filter((d) => d !== 1)
  return [reshape(ofRows, input.symSizes), sum(mul(grad, reshape(normal, input.symSizes)), others), sum(grad, others)]
}

/**
 * The gradients of group normalization: [input, weight, bias]. Internal; PyTorch's `aten.native_group_norm_backward`.
 *
 * Shapes: that of `input`, and twice [C]; the statistics are [N, group].
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws DTypeError unless the tensors have the same dtype.
 * @example torch.ops.tensorfx.fusedGroupNormBackward(torch.ones([1, 2]), torch.tensor([[1, 3]]), 1, torch.tensor([[2]]), torch.tensor([[1]]), null)[1].toArray() // [-1, 1]
 */
export const fusedGroupNormBackward: Op['fusedGroupNormBackward'] = defineOp({
  schema: 'fused_group_norm_backward(Tensor grad, Tensor input, int group, Tensor mean, Tensor rstd, Tensor? weight) -> (Tensor, Tensor, Tensor)',
  namespace: 'torch.ops.tensorfx',
  meta: (grad, input, group, mu, rstd, weight) => {
    checkBackward(grad, input, group, mu, rstd, weight)
    const vector = { shape: [sizeAt(input.symSizes, 1)], dtype: input.dtype }
    return [{ shape: input.symSizes, dtype: input.dtype }, vector, vector]
  },
  halvesInFloat32: true,
  kernel: (grad, input, group, mu, rstd, weight): readonly [Tensor, Tensor, Tensor] => {
    checkBackward(grad, input, group, mu, rstd, weight)
    const vector = (): Tensor => Tensor.empty([sizeAt(input.sizes, 1)], input.dtype)
    const results = [Tensor.empty(input.sizes, input.dtype), vector(), vector()] as const
    const operands = [grad, input, mu, rstd, ...(weight === null ? [] : [weight])].map((t) => contiguous(t))
    const sizes = sizesOf(input, group)
    launch(groupNormBackwardKernel(input.dtype, weight !== null, sizes[3] === 1), [...results, ...operands], sizes)
    return results
  },
  decompose: (grad, input, group, mu, rstd, weight) => {
    const wide = wideFor(input)
    return narrowTo(input, backwardFormula(wide(grad), wide(input), group, [perGroup(wide(mu)), perGroup(wide(rstd))], wide(weight)))
  },
  // The derivative of fusedGroupNorm uses the formula itself if it has to be differentiated.
  derivative: () => {
    throw new InternalError('fused_group_norm_backward is never recorded')
  },
})

/**
 * Group normalization: [result, mean, 1 / sqrt(variance + eps)]. All three have gradients. Internal; PyTorch's `aten.native_group_norm`.
 *
 * Shapes: that of `input`, [N, C, ..]; the statistics are [N, group].
 *
 * @throws ArgumentError if `group` does not divide the channels.
 * @throws ShapeError if `weight` or `bias` is not [C].
 * @throws DTypeError unless the tensors have the same dtype.
 * @example torch.ops.tensorfx.fusedGroupNorm(torch.tensor([[1, 3]]), 1, null, null, 0).map((t) => t.toArray()) // [[[-1, 1]], [[2]], [[1]]]
 */
export const fusedGroupNorm: Op['fusedGroupNorm'] = defineOp({
  schema: 'fused_group_norm(Tensor input, int group, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)',
  namespace: 'torch.ops.tensorfx',
  meta: (input, group, weight, bias) => {
    check(input, group, weight, bias)
    const stat = { shape: statShape(input, group), dtype: input.dtype }
    return [{ shape: input.symSizes, dtype: input.dtype }, stat, stat]
  },
  halvesInFloat32: true,
  kernel: (input, group, weight, bias, eps): readonly [Tensor, Tensor, Tensor] => {
    check(input, group, weight, bias)
    const { dtype } = input
    const stat = [sizeAt(input.sizes, 0), group]
    const results = [Tensor.empty(input.sizes, dtype), Tensor.empty(stat, dtype), Tensor.empty(stat, dtype)] as const
    const operands = [input, weight, bias].filter((t) => t !== null).map((t) => contiguous(t))
    const sizes = sizesOf(input, group)
    launch(groupNormKernel(dtype, weight !== null, bias !== null, sizes[3] === 1), [...results, ...operands], [...sizes, eps])
    return results
  },
  decompose: (input, group, weight, bias, eps) => {
    const wide = wideFor(input)
    const { mu, rstd, centered } = statistics(wide(input), group, eps)
    let out = reshape(mul(centered, rstd), input.symSizes)
    if (weight !== null) out = mul(out, spread(wide(weight), input))
    if (bias !== null) out = add(out, spread(wide(bias), input))
    const stat = statShape(input, group)
    return narrowTo(input, [out, reshape(mu, stat), reshape(rstd, stat)])
  },
  derivative: ([g, ofMean, ofRstd], { args: [input, group, weight, bias, eps], outputs: [, mean_, rstd_] }) => {
    // If the gradient is differentiated again, the statistics must be functions of the input.
    const again = dispatchState.gradEnabled
    const { mu, rstd } = again ? statistics(input, group, eps) : { mu: perGroup(mean_), rstd: perGroup(rstd_) }
    const fromStatistics = [meanGradient(input, group, ofMean), rstdGradient(input, group, [mu, rstd], ofRstd)]
    const results =
      g === null
        ? null
        : again
          ? backwardFormula(g, input, group, [mu, rstd], weight)
          : lateOperator<Op['fusedGroupNormBackward']>('torch.ops.tensorfx.fused_group_norm_backward')(g, input, group, mean_, rstd_, weight)
    const [gi, gw, gb] = results ?? [null, null, null]
    const total = [gi, ...fromStatistics].reduce((sum_, part) => (sum_ === null || part === null ? (sum_ ?? part) : add(sum_, part)))
    return [total, null, weight === null ? null : gw, bias === null ? null : gb, null]
  },
})

/** Group normalization in the dtype of the input, with its statistics: parameters of a wider dtype, as under autocast, do not widen the result. */
export function groupNormWithStatistics(
  input: Tensor,
  group: number,
  { weight, bias, eps }: { readonly weight: Tensor | null; readonly bias: Tensor | null; readonly eps: number },
): readonly [Tensor, Tensor, Tensor] {
  if ([weight, bias].every((t) => t === null || t.dtype === input.dtype)) return fusedGroupNorm(input, group, weight, bias, eps)
  const [normal, mu, rstd] = fusedGroupNorm(input, group, null, null, eps)
  const scaled = weight === null ? normal : mul(normal, spread(weight, input))
  return [to(bias === null ? scaled : add(scaled, spread(bias, input)), input.dtype), mu, rstd]
}

/** Options of groupNorm. */
export type GroupNormOptions = LayerNormOptions

/**
 * Normalizes groups of channels of each sample, times `weight` plus `bias` per channel. PyTorch's `F.group_norm`.
 *
 * Shapes: input [N, C, ..]; `weight` and `bias` are [C]. The result has the shape of `input`.
 *
 * @throws ArgumentError if `numGroups` does not divide the channels.
 * @example F.groupNorm(torch.tensor([[1, 3, 10, 30]]), 2, { eps: 0 }).toArray() // [[-1, 1, -1, 1]]
 */
export const groupNorm: OpFunction<{
  (input: Tensor, numGroups: number, weight?: Tensor | null, bias?: Tensor | null, eps?: number): Tensor
  (input: Tensor, numGroups: number, options?: GroupNormOptions): Tensor
}> = defineOp({
  schema: 'group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  meta: (input) => ({ shape: input.symSizes, dtype: input.dtype }),
  decompose: (input, numGroups, weight, bias, eps) => groupNormWithStatistics(input, numGroups, { weight, bias, eps })[0],
})

/** Moves the running statistics of an instance norm towards the means of those of the samples [N, C, values]. The running variance is the unbiased one. */
function updateRunning(samples: Tensor, runningMean: Tensor | null, runningVar: Tensor | null, momentum: number): void {
  const outer = dispatchState.gradEnabled
  dispatchState.gradEnabled = false
  try {
    runningMean?.lerp_(to(mean(samples, [0, 2]), runningMean.dtype), momentum)
    runningVar?.lerp_(to(mean(variance(samples, 2), [0]), runningVar.dtype), momentum)
  } finally {
    dispatchState.gradEnabled = outer
  }
}

/**
 * Normalizes each channel of each sample by its own statistics, times `weight` plus `bias` per channel. PyTorch's `F.instance_norm`.
 *
 * Shapes: input [N, C, ..]; the other tensors are [C]. The result has the shape of `input`.
 *
 * With running statistics, these are updated in place by the means of those of the samples.
 *
 * @throws ShapeError if there is only one value for a channel of a sample.
 * @example F.instanceNorm(torch.tensor([[[1, 3]]]), null, null, null, null, true, 0.1, 0).toArray() // [[[-1, 1]]]
 */
export const instanceNorm: Op['instanceNorm'] = defineOp({
  schema:
    'instance_norm(Tensor input, Tensor? running_mean=None, Tensor? running_var=None, Tensor? weight=None, Tensor? bias=None, bool use_input_stats=True, float momentum=0.1, float eps=1e-05) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  meta: (input) => ({ shape: input.symSizes, dtype: input.dtype }),
  decompose: (input, runningMean, runningVar, weight, bias, useInputStats, momentum, eps) => {
    if (!useInputStats) return batchNorm(input, runningMean, runningVar, weight, bias, false, momentum, eps)
    const [n = 1, given = 0, ...spatial] = input.symSizes
    // Group norm takes its number of groups, one for each channel, as a number.
    const [c, count] = [sizeNumber(given), sizeProduct(spatial)]
    if (sizeEq(count, 1))
      throw new ShapeError(
        `torch.nn.functional.instance_norm: expected more than 1 value for each channel of a sample, got input of shape ${formatShape(input.symSizes)}.`,
      )
    const out = groupNorm(input, c, weight, bias, eps)
    if (!hasNoElements(input.symSizes)) updateRunning(reshape(input.detach(), [n, c, count]), runningMean, runningVar, momentum)
    return out
  },
})
