// Pooling over lines and volumes, adaptive pooling, and pooling by powers.
import { ShapeError } from '../../../errors/index.ts'
import { formatShape, hasNoElements } from '../../../tensor/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { abs, mul, pow, sign } from '../../pointwise/arithmetic.ts'
import { relu } from '../../pointwise/activation.ts'
import { squeeze, unsqueeze } from '../../view/reshape.ts'
import { avgPool2d, maxPool2d } from './pool.ts'
import type { AvgPoolOptions } from './pool.ts'
import {
  adaptiveSizes,
  adaptiveWindows,
  maxOver,
  meanOver,
  sizesOf,
  spatialSizes,
  steppedWindows,
  strideOf,
  windowTable,
  checkSpatial,
} from './windowTables.ts'
import type { Sizes } from './windowTables.ts'
import { fixedDivisor } from '../windows.ts'

const F = 'torch.nn.functional'

/** Options of the pooling by maximum. */
export interface MaxPoolNdOptions {
  readonly stride?: Sizes | null
  readonly padding?: Sizes
  readonly dilation?: Sizes
  readonly ceilMode?: boolean
  readonly returnIndices?: boolean
}

type MaxPoolNd = {
  (input: Tensor, kernelSize: Sizes, options: MaxPoolNdOptions & { readonly returnIndices: true }): readonly [Tensor, Tensor]
  (input: Tensor, kernelSize: Sizes, options?: MaxPoolNdOptions & { readonly returnIndices?: false }): Tensor
  (input: Tensor, kernelSize: Sizes, stride?: Sizes | null, padding?: Sizes, dilation?: Sizes, ceilMode?: boolean, returnIndices?: false): Tensor
}

type AvgPool1d = {
  (input: Tensor, kernelSize: Sizes, options?: Omit<AvgPoolOptions, 'divisorOverride'>): Tensor
  (input: Tensor, kernelSize: Sizes, stride?: Sizes | null, padding?: Sizes, ceilMode?: boolean, countIncludePad?: boolean): Tensor
}

type AvgPool3d = {
  (input: Tensor, kernelSize: Sizes, options?: AvgPoolOptions): Tensor
  (
    input: Tensor,
    kernelSize: Sizes,
    stride?: Sizes | null,
    padding?: Sizes,
    ceilMode?: boolean,
    countIncludePad?: boolean,
    divisorOverride?: number | null,
  ): Tensor
}

type AdaptiveMaxPool = {
  (input: Tensor, outputSize: Sizes | readonly (number | null)[], options: true | { readonly returnIndices: true }): readonly [Tensor, Tensor]
  (input: Tensor, outputSize: Sizes | readonly (number | null)[], options?: false | { readonly returnIndices?: false }): Tensor
}

/** One integer, for the only dimension of a line. */
const single = (op: string, name: string, value: unknown, least: number): number => sizesOf(op, name, value, 1, least)[0] ?? 0

/**
 * The maximum over windows of a line; with `returnIndices` also the position of each. PyTorch's `F.max_pool1d`.
 *
 * Shapes: [.., L] gives [.., OL].
 *
 * @throws ShapeError unless the input has 2 or 3 dimensions and the window fits.
 * @throws ArgumentError if a window size is out of range.
 * @example F.maxPool1d(torch.tensor([[1, 7, 3, 2]]), 2).toArray() // [[7, 3]]
 */
export const maxPool1d: OpFunction<MaxPoolNd> = defineOp({
  schema:
    'max_pool1d(Tensor self, any kernel_size, any? stride=None, any padding=0, any dilation=1, bool ceil_mode=False, bool return_indices=False) -> any',
  namespace: 'torch.nn.functional',
  decompose: (input, kernelSize, stride, padding, dilation, ceilMode, returnIndices) => {
    const op = `${F}.max_pool1d`
    checkSpatial(op, input, 1)
    if (hasNoElements(input.symSizes.slice(input.ndim - 2)))
      throw new ShapeError(`${op}: only the batch may be empty, got an input of shape ${formatShape(input.symSizes)}.`)
    const kernel = single(op, 'kernel_size', kernelSize, 1)
    const [values, indices] = maxPool2d(
      unsqueeze(input, -2),
      [1, kernel],
      [1, ...strideOf(op, stride, [kernel])],
      [0, single(op, 'padding', padding, 0)],
      [1, single(op, 'dilation', dilation, 1)],
      ceilMode,
      true,
    )
    return returnIndices ? [squeeze(values, -2), squeeze(indices, -2)] : squeeze(values, -2)
  },
})

/**
 * The maximum over windows of a volume; with `returnIndices` also the flat position of each. PyTorch's `F.max_pool3d`.
 *
 * Shapes: [.., D, H, W] gives [.., OD, OH, OW].
 *
 * @throws ShapeError unless the input has 4 or 5 dimensions and the window fits.
 * @throws ArgumentError if a window size is out of range.
 * @example F.maxPool3d(torch.tensor([[[[1, 7], [3, 2]], [[4, 9], [0, 5]]]]), 2).toArray() // [[[[9]]]]
 */
export const maxPool3d: OpFunction<MaxPoolNd> = defineOp({
  schema:
    'max_pool3d(Tensor self, any kernel_size, any? stride=None, any padding=0, any dilation=1, bool ceil_mode=False, bool return_indices=False) -> any',
  namespace: 'torch.nn.functional',
  autocast: 'float32',
  decompose: (input, kernelSize, stride, padding, dilation, ceilMode, returnIndices) => {
    const op = `${F}.max_pool3d`
    const kernel = sizesOf(op, 'kernel_size', kernelSize, 3, 1)
    const axes = steppedWindows(op, input, {
      kernel,
      stride: strideOf(op, stride, kernel),
      padding: sizesOf(op, 'padding', padding, 3, 0),
      dilation: sizesOf(op, 'dilation', dilation, 3, 1),
      ceilMode,
    })
    const sizes = spatialSizes(op, input, 3)
    const both = maxOver(input, sizes, [windowTable(axes, sizes)])
    return returnIndices ? both : both[0]
  },
})

/**
 * The mean over windows of a line. PyTorch's `F.avg_pool1d`.
 *
 * Shapes: [.., L] gives [.., OL].
 *
 * @throws ShapeError unless the input has 2 or 3 dimensions and the window fits.
 * @throws ArgumentError if a window size is out of range.
 * @example F.avgPool1d(torch.tensor([[1, 7, 3, 2]]), 2).toArray() // [[4, 2.5]]
 */
export const avgPool1d: OpFunction<AvgPool1d> = defineOp({
  schema: 'avg_pool1d(Tensor self, any kernel_size, any? stride=None, any padding=0, bool ceil_mode=False, bool count_include_pad=True) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (input, kernelSize, stride, padding, ceilMode, countIncludePad) => {
    const op = `${F}.avg_pool1d`
    checkSpatial(op, input, 1)
    const kernel = single(op, 'kernel_size', kernelSize, 1)
    const [step = kernel] = strideOf(op, stride, [kernel])
    return squeeze(avgPool2d(unsqueeze(input, -2), [1, kernel], [1, step], [0, single(op, 'padding', padding, 0)], ceilMode, countIncludePad), -2)
  },
})

/**
 * The mean over windows of a volume. PyTorch's `F.avg_pool3d`.
 *
 * Shapes: [.., D, H, W] gives [.., OD, OH, OW].
 *
 * @throws ShapeError unless the input has 4 or 5 dimensions and the window fits.
 * @throws ArgumentError if a window size or `divisorOverride` is out of range.
 * @example F.avgPool3d(torch.tensor([[[[1, 7], [3, 1]], [[4, 8], [0, 8]]]]), 2).toArray() // [[[[4]]]]
 */
export const avgPool3d: OpFunction<AvgPool3d> = defineOp({
  schema:
    'avg_pool3d(Tensor self, any kernel_size, any? stride=None, any padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor',
  namespace: 'torch.nn.functional',
  autocast: 'float32',
  decompose: (input, kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride) => {
    const op = `${F}.avg_pool3d`
    const divisor = fixedDivisor(op, divisorOverride)
    const kernel = sizesOf(op, 'kernel_size', kernelSize, 3, 1)
    const axes = steppedWindows(op, input, {
      kernel,
      stride: strideOf(op, stride, kernel),
      padding: sizesOf(op, 'padding', padding, 3, 0),
      dilation: [1, 1, 1],
      ceilMode,
    })
    const sizes = spatialSizes(op, input, 3)
    const table = windowTable(axes, sizes)
    const counts = countIncludePad ? table.covered : table.inside
    return meanOver(input, sizes, table, divisor === null ? counts : counts.map(() => divisor))
  },
})

function adaptiveMean(op: string, input: Tensor, outputSize: unknown, spatial: number): Tensor {
  const wanted = adaptiveSizes(op, input, outputSize, spatial)
  const sizes = spatialSizes(op, input, spatial)
  const table = windowTable(
    sizes.map((size, d) => adaptiveWindows(size, wanted[d] ?? 1)),
    sizes,
  )
  return meanOver(input, sizes, table, table.inside)
}

function adaptiveMax(op: string, input: Tensor, outputSize: unknown, spatial: number, returnIndices: boolean): Tensor | readonly Tensor[] {
  const wanted = adaptiveSizes(op, input, outputSize, spatial)
  const sizes = spatialSizes(op, input, spatial)
  const axes = sizes.map((size, d) => adaptiveWindows(size, wanted[d] ?? 1))
  const both = maxOver(input, sizes, [windowTable(axes, sizes)])
  return returnIndices ? both : both[0]
}

/**
 * The mean over windows of a line, chosen so that there are `outputSize` of them. PyTorch's `F.adaptive_avg_pool1d`.
 *
 * Shapes: [.., L] gives [.., outputSize].
 *
 * @throws ShapeError unless the input has 2 or 3 dimensions.
 * @throws ArgumentError if an output size is not positive.
 * @example F.adaptiveAvgPool1d(torch.tensor([[1, 2, 3, 4]]), 2).toArray() // [[1.5, 3.5]]
 */
export const adaptiveAvgPool1d: OpFunction<(input: Tensor, outputSize: Sizes) => Tensor> = defineOp({
  schema: 'adaptive_avg_pool1d(Tensor self, any output_size) -> Tensor',
  autocast: 'untouched',
  namespace: 'torch.nn.functional',
  decompose: (input, outputSize) => adaptiveMean(`${F}.adaptive_avg_pool1d`, input, outputSize, 1),
})

/**
 * The mean over windows of a volume, chosen so that the output has `outputSize`; null keeps a size. PyTorch's `F.adaptive_avg_pool3d`.
 *
 * Shapes: [.., D, H, W] gives [.., d, h, w].
 *
 * @throws ShapeError unless the input has 4 or 5 dimensions.
 * @throws ArgumentError if an output size is not positive.
 * @example F.adaptiveAvgPool3d(torch.ones([1, 2, 2, 2]), 1).toArray() // [[[[1]]]]
 */
export const adaptiveAvgPool3d: OpFunction<(input: Tensor, outputSize: Sizes | readonly (number | null)[]) => Tensor> = defineOp({
  schema: 'adaptive_avg_pool3d(Tensor self, any output_size) -> Tensor',
  namespace: 'torch.nn.functional',
  autocast: 'float32',
  decompose: (input, outputSize) => adaptiveMean(`${F}.adaptive_avg_pool3d`, input, outputSize, 3),
})

/**
 * The maximum over windows of a line, chosen so that there are `outputSize` of them; with `returnIndices` also the positions. PyTorch's `F.adaptive_max_pool1d`.
 *
 * Shapes: [.., L] gives [.., outputSize].
 *
 * @throws ShapeError unless the input has 2 or 3 dimensions.
 * @throws ArgumentError if an output size is not positive.
 * @example F.adaptiveMaxPool1d(torch.tensor([[1, 2, 4, 3]]), 2).toArray() // [[2, 4]]
 */
export const adaptiveMaxPool1d: OpFunction<AdaptiveMaxPool> = defineOp({
  schema: 'adaptive_max_pool1d(Tensor self, any output_size, bool return_indices=False) -> any',
  namespace: 'torch.nn.functional',
  decompose: (input, outputSize, returnIndices) => adaptiveMax(`${F}.adaptive_max_pool1d`, input, outputSize, 1, returnIndices),
})

/**
 * The maximum over windows of an image, chosen so that the output has `outputSize`; null keeps a size. PyTorch's `F.adaptive_max_pool2d`.
 *
 * Shapes: [.., H, W] gives [.., h, w].
 *
 * @throws ShapeError unless the input has 3 or 4 dimensions.
 * @throws ArgumentError if an output size is not positive.
 * @example F.adaptiveMaxPool2d(torch.tensor([[[1, 2], [4, 3]]]), 1).toArray() // [[[4]]]
 */
export const adaptiveMaxPool2d: OpFunction<AdaptiveMaxPool> = defineOp({
  schema: 'adaptive_max_pool2d(Tensor self, any output_size, bool return_indices=False) -> any',
  namespace: 'torch.nn.functional',
  decompose: (input, outputSize, returnIndices) => adaptiveMax(`${F}.adaptive_max_pool2d`, input, outputSize, 2, returnIndices),
})

/**
 * The maximum over windows of a volume, chosen so that the output has `outputSize`; null keeps a size. PyTorch's `F.adaptive_max_pool3d`.
 *
 * Shapes: [.., D, H, W] gives [.., d, h, w].
 *
 * @throws ShapeError unless the input has 4 or 5 dimensions.
 * @throws ArgumentError if an output size is not positive.
 * @example F.adaptiveMaxPool3d(torch.tensor([[[[1, 2], [4, 3]]]]), 1).toArray() // [[[[4]]]]
 */
export const adaptiveMaxPool3d: OpFunction<AdaptiveMaxPool> = defineOp({
  schema: 'adaptive_max_pool3d(Tensor self, any output_size, bool return_indices=False) -> any',
  namespace: 'torch.nn.functional',
  autocast: 'float32',
  decompose: (input, outputSize, returnIndices) => adaptiveMax(`${F}.adaptive_max_pool3d`, input, outputSize, 3, returnIndices),
})

/** (sum of x^p)^(1/p) from the mean of x^p: PyTorch multiplies by the size of the whole window, even where it is cut off. */
const rootOf = (means: Tensor, count: number, p: number): Tensor => pow(mul(mul(sign(means), relu(abs(means))), count), 1 / p)

type LpPool = {
  (input: Tensor, normType: number, kernelSize: Sizes, options?: { readonly stride?: Sizes | null; readonly ceilMode?: boolean }): Tensor
  (input: Tensor, normType: number, kernelSize: Sizes, stride?: Sizes | null, ceilMode?: boolean): Tensor
}

/**
 * The p-norm of windows of a line, p being `normType`. PyTorch's `F.lp_pool1d`.
 *
 * Shapes: [.., L] gives [.., OL].
 *
 * @throws ShapeError unless the input has 2 or 3 dimensions and the window fits.
 * @throws ArgumentError if a window size is out of range.
 * @example F.lpPool1d(torch.tensor([[3, 4, 0, 2]]), 2, 2).toArray() // [[5, 2]]
 */
export const lpPool1d: OpFunction<LpPool> = defineOp({
  schema: 'lp_pool1d(Tensor self, float norm_type, any kernel_size, any? stride=None, bool ceil_mode=False) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (input, p, kernelSize, stride, ceilMode) => {
    const kernel = single(`${F}.lp_pool1d`, 'kernel_size', kernelSize, 1)
    const [step = kernel] = strideOf(`${F}.lp_pool1d`, stride, [kernel])
    return rootOf(avgPool1d(pow(input, p), kernel, step, 0, ceilMode), kernel, p)
  },
})

/**
 * The p-norm of windows of an image, p being `normType`. PyTorch's `F.lp_pool2d`.
 *
 * Shapes: [.., H, W] gives [.., OH, OW].
 *
 * @throws ShapeError unless the input has 3 or 4 dimensions and the window fits.
 * @throws ArgumentError if a window size is out of range.
 * @example F.lpPool2d(torch.tensor([[[3, 4], [0, 0]]]), 2, 2).toArray() // [[[5]]]
 */
export const lpPool2d: OpFunction<LpPool> = defineOp({
  schema: 'lp_pool2d(Tensor self, float norm_type, any kernel_size, any? stride=None, bool ceil_mode=False) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (input, p, kernelSize, stride, ceilMode) => {
    const kernel = sizesOf(`${F}.lp_pool2d`, 'kernel_size', kernelSize, 2, 1)
    const step = strideOf(`${F}.lp_pool2d`, stride, kernel)
    return rootOf(avgPool2d(pow(input, p), kernel, step, 0, ceilMode), (kernel[0] ?? 1) * (kernel[1] ?? 1), p)
  },
})

/**
 * The p-norm of windows of a volume, p being `normType`. PyTorch's `F.lp_pool3d`.
 *
 * Shapes: [.., D, H, W] gives [.., OD, OH, OW].
 *
 * @throws ShapeError unless the input has 4 or 5 dimensions and the window fits.
 * @throws ArgumentError if a window size is out of range.
 * @example F.lpPool3d(torch.tensor([[[[3, 4], [0, 0]]]]), 2, [1, 2, 2]).toArray() // [[[[5]]]]
 */
export const lpPool3d: OpFunction<LpPool> = defineOp({
  schema: 'lp_pool3d(Tensor self, float norm_type, any kernel_size, any? stride=None, bool ceil_mode=False) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (input, p, kernelSize, stride, ceilMode) => {
    const kernel = sizesOf(`${F}.lp_pool3d`, 'kernel_size', kernelSize, 3, 1)
    const step = strideOf(`${F}.lp_pool3d`, stride, kernel)
    return rootOf(
      avgPool3d(pow(input, p), kernel, step, 0, ceilMode),
      kernel.reduce((a, b) => a * b, 1),
      p,
    )
  },
})
