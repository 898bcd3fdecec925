// Graham's fractional pooling: the maximum over windows at random places.
import { ArgumentError } from '../../../errors/index.ts'
import { valueText } from '../../../protocol/index.ts'
import { numelOf } from '../../../tensor/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { rand } from '../../random/random.ts'
import { maxOver, range, sizesOf, spatialSizes, windowTable } from './windowTables.ts'
import type { Sizes, WindowTable } from './windowTables.ts'

const F = 'torch.nn.functional'

export interface FractionalPoolOptions {
  readonly outputSize?: Sizes | null
  /** The sizes of the result as fractions of those of the input. Give this or `outputSize`. */
  readonly outputRatio?: number | readonly number[] | null
  readonly returnIndices?: boolean
  /** Where the windows start, in place of random numbers: uniform ones in [0, 1), one for each plane and dimension. */
  readonly _randomSamples?: Tensor | null
}

type FractionalPool = {
  (input: Tensor, kernelSize: Sizes, options: FractionalPoolOptions & { readonly returnIndices: true }): readonly [Tensor, Tensor]
  (input: Tensor, kernelSize: Sizes, options?: FractionalPoolOptions & { readonly returnIndices?: false }): Tensor
}

/** The windows of Graham's fractional pooling: `count` of them, about evenly spread, from a random start; the last one ends with the line. */
function fractionalWindows(size: number, count: number, kernel: number, sample: number): readonly (readonly number[])[] {
  const step = count > 1 ? (size - kernel) / (count - 1) : 0
  return range(count).map((i) => {
    const start = i === count - 1 ? size - kernel : Math.trunc((i + sample) * step) - Math.trunc(sample * step)
    return range(kernel).map((j) => start + j)
  })
}

function fractional(
  op: string,
  input: Tensor,
  spatial: number,
  given: { kernel: unknown; size: unknown; ratio: unknown; indices: boolean; samples: Tensor | null },
): Tensor | readonly Tensor[] {
  const sizes = spatialSizes(op, input, spatial)
  const kernel = sizesOf(op, 'kernel_size', given.kernel, spatial, 1)
  if ((given.size === null) === (given.ratio === null)) throw new ArgumentError(`${op}: give output_size or output_ratio, one of them.`)
  const ratios: readonly unknown[] = Array.isArray(given.ratio) ? given.ratio : range(spatial).map(() => given.ratio)
  const wanted =
    given.size !== null
      ? sizesOf(op, 'output_size', given.size, spatial, 1)
      : sizes.map((size, d) => {
          const ratio = ratios[d]
          if (typeof ratio === 'number' && ratio > 0 && ratio < 1) return Math.floor(size * ratio)
          throw new ArgumentError(`${op}: output_ratio must be between 0 and 1, got ${valueText(given.ratio)}.`)
        })
  if (sizes.some((size, d) => (wanted[d] ?? 1) + (kernel[d] ?? 1) - 1 > size))
    throw new ArgumentError(
      `${op}: output_size [${wanted.join(', ')}] and kernel_size [${kernel.join(', ')}] are too large for sizes [${sizes.join(', ')}].`,
    )
  const planes = numelOf(input.sizes.slice(0, -spatial))
  const samples = given.samples ?? rand([planes, spatial], { dtype: 'float64' })
  const numbers = Array.from(samples.detach().contiguous().toTypedArray(), Number)
  // The samples of an image are for the width first; those of a volume are in the order of its dimensions.
  const tables = range(planes).map((plane): WindowTable =>
    windowTable(
      sizes.map((size, d) => {
        const sample = numbers[plane * spatial + (spatial === 2 ? 1 - d : d)] ?? 0
        return fractionalWindows(size, wanted[d] ?? 1, kernel[d] ?? 1, sample)
      }),
      sizes,
    ),
  )
  const both = maxOver(input, sizes, tables)
  return given.indices ? both : both[0]
}

/**
 * The maximum over windows of an image whose places are random, which makes any output size possible. PyTorch's `F.fractional_max_pool2d`.
 *
 * Shapes: [.., H, W] gives [.., h, w].
 *
 * @throws ShapeError unless the input has 3 or 4 dimensions.
 * @throws ArgumentError unless `outputSize` or `outputRatio` is given, and fits the input.
 * @example F.fractionalMaxPool2d(torch.tensor([[[1, 2], [4, 3]]]), 2, { outputSize: 1 }).toArray() // [[[4]]]
 */
export const fractionalMaxPool2d: OpFunction<FractionalPool> = defineOp({
  schema:
    'fractional_max_pool2d(Tensor self, any kernel_size, any? output_size=None, any? output_ratio=None, bool return_indices=False, Tensor? _random_samples=None) -> any',
  namespace: 'torch.nn.functional',
  tags: ['random'],
  autocast: 'float32',
  decompose: (input, kernel, size, ratio, indices, samples) =>
    fractional(`${F}.fractional_max_pool2d`, input, 2, { kernel, size, ratio, indices, samples }),
})

/**
 * The maximum over windows of a volume whose places are random. PyTorch's `F.fractional_max_pool3d`.
 *
 * Shapes: [.., D, H, W] gives [.., d, h, w].
 *
 * @throws ShapeError unless the input has 4 or 5 dimensions.
 * @throws ArgumentError unless `outputSize` or `outputRatio` is given, and fits the input.
 * @example F.fractionalMaxPool3d(torch.tensor([[[[1, 2], [4, 3]]]]), [1, 2, 2], { outputSize: 1 }).toArray() // [[[[4]]]]
 */
export const fractionalMaxPool3d: OpFunction<FractionalPool> = defineOp({
  schema:
    'fractional_max_pool3d(Tensor self, any kernel_size, any? output_size=None, any? output_ratio=None, bool return_indices=False, Tensor? _random_samples=None) -> any',
  namespace: 'torch.nn.functional',
  tags: ['random'],
  autocast: 'float32',
  decompose: (input, kernel, size, ratio, indices, samples) =>
    fractional(`${F}.fractional_max_pool3d`, input, 3, { kernel, size, ratio, indices, samples }),
})
