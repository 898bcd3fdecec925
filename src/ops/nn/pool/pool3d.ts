// Pooling over lines and volumes: the maximum and the mean over windows.
import { ShapeError } from '../../../errors/index.ts'
import { formatShape, hasNoElements } from '../../../tensor/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { squeeze, unsqueeze } from '../../view/reshape.ts'
import { avgPool2d } from './avgPool2d.ts'
import type { AvgPoolOptions } from './avgPool2d.ts'
import { divisorOf } from './divisor.ts'
import { maxPool2d } from './maxPool2d.ts'
import { maxOver, meanOver, sizesOf, spatialSizes, steppedWindows, strideOf, windowTable, checkSpatial, single } from './windowTables.ts'
import type { Sizes } from './windowTables.ts'

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
    const divisor = divisorOf(op, countIncludePad, divisorOverride)
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
    return meanOver(input, sizes, table, typeof divisor === 'number' ? table.inside.map(() => divisor) : table[divisor])
  },
})
