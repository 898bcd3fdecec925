// Pooling over windows that are chosen so that the result has a given size: the maximum in any number of dimensions, and the mean over lines and volumes.
import type { Tensor } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { adaptiveSizes, adaptiveWindows, maxOver, meanOver, spatialSizes, windowTable } from './windowTables.ts'
import type { Sizes, WindowTable } from './windowTables.ts'

const F = 'torch.nn.functional'

type AdaptiveMaxPool = {
  (input: Tensor, outputSize: Sizes | readonly (number | null)[], options: true | { readonly returnIndices: true }): readonly [Tensor, Tensor]
  (input: Tensor, outputSize: Sizes | readonly (number | null)[], options?: false | { readonly returnIndices?: false }): Tensor
}

/** The windows of an input that give a result of this size, and the input's own. */
function windowsFor(
  op: string,
  input: Tensor,
  outputSize: unknown,
  spatial: number,
): { readonly sizes: readonly number[]; readonly table: WindowTable } {
  const wanted = adaptiveSizes(op, input, outputSize, spatial)
  const sizes = spatialSizes(op, input, spatial)
  const axes = sizes.map((size, d) => adaptiveWindows(size, wanted[d] ?? 1))
  return { sizes, table: windowTable(axes, sizes) }
}

function adaptiveMean(op: string, input: Tensor, outputSize: unknown, spatial: number): Tensor {
  const { sizes, table } = windowsFor(op, input, outputSize, spatial)
  return meanOver(input, sizes, table, table.inside)
}

function adaptiveMax(op: string, input: Tensor, outputSize: unknown, spatial: number, returnIndices: boolean): Tensor | readonly Tensor[] {
  const { sizes, table } = windowsFor(op, input, outputSize, spatial)
  const both = maxOver(input, sizes, [table])
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
