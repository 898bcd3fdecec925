// The patches of images as columns, and images as sums of patches: F.unfold and F.fold.
import { ArgumentError, ShapeError } from '../../../errors/index.ts'
import { formatShape, sizeEq, sizeFloorDiv, sizeMod, sizeMul, sizeNumber } from '../../../tensor/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import { zeros } from '../../create/creation.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { constantIndices } from '../../view/indices.ts'
import { constantPadNd } from '../../join/join.ts'
import { sizeAt } from '../../shared/shapes.ts'
import { indexSelect } from '../../view/indexing.ts'
import { indexAdd } from '../../view/positions.ts'
import { reshape } from '../../view/reshape.ts'
import type { Pair } from '../windows.ts'
import { windowCount, windowPair } from '../windows.ts'
import { range } from '../pool/windowTables.ts'

const F = 'torch.nn.functional'

/** The positions are a list of JavaScript, which takes more memory than the tensor. */
const MOST_POSITIONS = 2 ** 24

/** How patches lie in an image; numbers hold for both dimensions. */
export interface PatchOptions {
  readonly dilation?: Pair
  readonly padding?: Pair
  readonly stride?: Pair
}

interface GivenPatches {
  readonly kernel: unknown
  readonly dilation: unknown
  readonly padding: unknown
  readonly stride: unknown
}

interface Patches {
  /** How many elements a patch has, and how many patches there are. */
  readonly taps: number
  readonly count: number
  /** The padding around the image: [left, right, top, bottom]. */
  readonly amounts: readonly number[]
  /** The flat position in the padded image of each element of a patch, for each patch. */
  readonly positions: readonly number[]
}

/** The patches of an image [height, width]. */
function patchesOf(op: string, [height, width]: readonly [number, number], given: GivenPatches): Patches {
  const [kh, kw] = windowPair(op, 'kernel_size', given.kernel, 1)
  const [dh, dw] = windowPair(op, 'dilation', given.dilation, 1)
  const [ph, pw] = windowPair(op, 'padding', given.padding, 0)
  const [sh, sw] = windowPair(op, 'stride', given.stride, 1)
  const [rows, columns] = [windowCount(height, kh, sh, ph, dh), windowCount(width, kw, sw, pw, dw)]
  if (rows < 1 || columns < 1)
    throw new ShapeError(
      `${op}: patches of size [${kh}, ${kw}] with dilation [${dh}, ${dw}] do not fit into images of size [${height}, ${width}] with padding [${ph}, ${pw}].`,
    )
  if (rows * columns * kh * kw > MOST_POSITIONS)
    throw new ArgumentError(`${op}: the patches of an image would have ${rows * columns * kh * kw} elements; at most ${MOST_POSITIONS} are possible.`)
  const positions = range(kh).flatMap((p) =>
    range(kw).flatMap((q) => range(rows).flatMap((i) => range(columns).map((j) => (i * sh + p * dh) * (width + 2 * pw) + j * sw + q * dw))),
  )
  return { taps: kh * kw, count: rows * columns, amounts: [pw, pw, ph, ph], positions }
}

/**
 * The patches of images as columns. PyTorch's `F.unfold`.
 *
 * Shapes: [N, C, H, W] gives [N, C kh kw, L], L being the number of patches; [C, H, W] gives [C kh kw, L].
 *
 * @throws ShapeError unless the input has 3 or 4 dimensions, and if no patch fits.
 * @throws ArgumentError if a size is out of range.
 * @example F.unfold(torch.tensor([[[1, 2, 3], [4, 5, 6]]]), 2).toArray() // [[1, 2], [2, 3], [4, 5], [5, 6]]
 */
export const unfoldPatches: OpFunction<(input: Tensor, kernelSize: Pair, dilation?: Pair | PatchOptions, padding?: Pair, stride?: Pair) => Tensor> =
  defineOp({
    schema: 'unfold(Tensor input, any kernel_size, any dilation=1, any padding=0, any stride=1) -> Tensor',
    namespace: 'torch.nn.functional',
    decompose: (input, kernel, dilation, padding, stride) => {
      const op = `${F}.unfold`
      if (input.ndim !== 3 && input.ndim !== 4)
        throw new ShapeError(`${op}: expected images [N, C, H, W] or [C, H, W], got shape ${formatShape(input.symSizes)}.`)
      const lead = input.symSizes.slice(0, -3)
      const channels = sizeAt(input.symSizes, -3)
      const { taps, count, amounts, positions } = patchesOf(op, [sizeNumber(sizeAt(input.symSizes, -2)), sizeNumber(sizeAt(input.symSizes, -1))], {
        kernel,
        dilation,
        padding,
        stride,
      })
      const padded = amounts.some((n) => n > 0) ? constantPadNd(input, amounts) : input
      const planes = reshape(padded, [...lead, channels, sizeMul(sizeAt(padded.symSizes, -2), sizeAt(padded.symSizes, -1))])
      return reshape(indexSelect(planes, -1, constantIndices(positions)), [...lead, sizeMul(channels, taps), count])
    },
  })

/**
 * Images of size `outputSize` as the sums of their patches, which are columns: the gradient of unfold. PyTorch's `F.fold`.
 *
 * Shapes: [N, C kh kw, L] gives [N, C, H, W]; [C kh kw, L] gives [C, H, W].
 *
 * @throws ShapeError if the number of columns, or of their elements, does not fit the size of the images.
 * @throws ArgumentError if a size is out of range.
 * @example F.fold(torch.tensor([[1, 2], [2, 3], [4, 5], [5, 6]]), [2, 3], 2).toArray() // [[[1, 4, 3], [4, 10, 6]]]
 */
export const fold: OpFunction<
  (input: Tensor, outputSize: Pair, kernelSize: Pair, dilation?: Pair | PatchOptions, padding?: Pair, stride?: Pair) => Tensor
> = defineOp({
  schema: 'fold(Tensor input, any output_size, any kernel_size, any dilation=1, any padding=0, any stride=1) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (input, outputSize, kernel, dilation, padding, stride) => {
    const op = `${F}.fold`
    const size = windowPair(op, 'output_size', outputSize, 1)
    const { taps, count, amounts, positions } = patchesOf(op, size, { kernel, dilation, padding, stride })
    if ((input.ndim !== 2 && input.ndim !== 3) || !sizeEq(sizeMod(sizeAt(input.symSizes, -2), taps), 0) || !sizeEq(sizeAt(input.symSizes, -1), count))
      throw new ShapeError(
        `${op}: expected ${count} columns whose size is a multiple of ${taps}, [N, C * ${taps}, ${count}] or [C * ${taps}, ${count}], for images of size [${size.join(', ')}], got shape ${formatShape(input.symSizes)}.`,
      )
    const lead = [...input.symSizes.slice(0, -2), sizeFloorDiv(sizeAt(input.symSizes, -2), taps)]
    const [left = 0, right = 0, top = 0, bottom = 0] = amounts
    const [height, width] = [size[0] + top + bottom, size[1] + left + right]
    const planes = zeros([...lead, height * width], { dtype: input.dtype })
    const sums = indexAdd(planes, -1, constantIndices(positions), reshape(input, [...lead, taps * count]))
    const images = reshape(sums, [...lead, height, width])
    return left + top > 0 ? constantPadNd(images, [-left, -right, -top, -bottom]) : images
  },
})
