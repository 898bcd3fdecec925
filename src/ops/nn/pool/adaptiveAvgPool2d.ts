// The mean over windows of images that are chosen so that the result has a given size.
import { ArgumentError } from '../../../errors/index.ts'
import { valueText } from '../../../protocol/index.ts'
import { formatShape, sizeNumber, sizeNumbers } from '../../../tensor/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { rangeOf } from '../../create/creation.ts'
import { cat, stack } from '../../join/join.ts'
import { floorDivide } from '../../pointwise/arithmetic.ts'
import { mean } from '../../reduction/mean.ts'
import { pairOf, sizeAt } from '../../shared/shapes.ts'
import { indexSelect } from '../../view/indexing.ts'
import { narrow } from '../../view/slicing.ts'
import { avgPool2d } from './avgPool2d.ts'
import type { Pair } from '../windows.ts'

/** [height, width] of the input, as the numbers on which the windows depend. */
const planeNumbers = (input: Tensor): readonly [number, number] => pairOf(sizeNumbers(input.symSizes.slice(-2)))

/** [height, width] of the output. null keeps a size of the input. */
function adaptiveSize(input: Tensor, outputSize: unknown): readonly [number, number] {
  const list: readonly unknown[] = Array.isArray(outputSize) ? outputSize : [outputSize]
  const positive = (size: unknown, own: number): number => (size === null ? own : typeof size === 'number' && Number.isInteger(size) ? size : 0)
  if (input.ndim >= 3 && list.length >= 1 && list.length <= 2) {
    const [height, width] = planeNumbers(input)
    const [h, w] = [positive(list[0], height), positive(list.at(-1), width)]
    if (h > 0 && w > 0) return [h, w]
  }
  throw new ArgumentError(
    `torch.nn.functional.adaptive_avg_pool2d: expected input [.., height, width] and a positive output size, got shape ${formatShape(input.symSizes)} and ${valueText(outputSize)}.`,
  )
}

/** The mean over `count` nearly equal stretches of dimension `dim`. */
function stretches(input: Tensor, dim: number, count: number): Tensor {
  const size = sizeNumber(sizeAt(input.symSizes, dim))
  // Stretches of one element or two, so that this costs as much as the result.
  if (count > size) {
    const from = (offset: number): Tensor => indexSelect(input, dim, floorDivide(rangeOf(offset, size, count, 'int64'), count))
    return mean(stack([from(0), from(size - 1)]), [0])
  }
  const parts = Array.from({ length: count }, (_, i) => {
    const start = Math.floor((i * size) / count)
    return mean(narrow(input, dim, start, Math.ceil(((i + 1) * size) / count) - start), [dim], true)
  })
  const [only] = parts
  return only !== undefined && count === 1 ? only : cat(parts, dim)
}

/**
 * The mean over windows chosen so that the output has `outputSize`; null keeps a size. PyTorch's `F.adaptive_avg_pool2d`.
 *
 * Shapes: [.., H, W] gives [.., h, w].
 *
 * @throws ArgumentError for fewer than 3 dimensions, or if an output size is not positive.
 * @example F.adaptiveAvgPool2d(torch.tensor([[[1, 2, 3], [4, 5, 6]]]), [1, 3]).toArray() // [[[2.5, 3.5, 4.5]]]
 */
export const adaptiveAvgPool2d: OpFunction<(input: Tensor, outputSize: Pair | readonly (number | null)[]) => Tensor> = defineOp({
  schema: 'adaptive_avg_pool2d(Tensor self, any output_size) -> Tensor',
  autocast: 'untouched',
  namespace: 'torch.nn.functional',
  meta: (input, outputSize) => ({ shape: [...input.symSizes.slice(0, -2), ...adaptiveSize(input, outputSize)], dtype: input.dtype }),
  decompose: (input, outputSize) => {
    const [h, w] = adaptiveSize(input, outputSize)
    const [height, width] = planeNumbers(input)
    if (h === 1 && w === 1) return mean(input, [-2, -1], true)
    if (h === height && w === width) return input
    if (height % h === 0 && width % w === 0) return avgPool2d(input, [height / h, width / w])
    // The window of (i, j) is a product of stretches, so the mean may be taken one dimension at a time.
    return stretches(stretches(input, -2, h), -1, w)
  },
})
