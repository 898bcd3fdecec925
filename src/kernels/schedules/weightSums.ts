// The gradient of a convolution's weight over pixels as a problem, and the order in which its sums add their products.
import { touches64Bits } from '../ir/analysis.ts'
import { constant } from '../ir/loopIr.ts'
import type { ConvolutionOperand, ConvolutionSizes, WeightGradientProblem } from './convolution.ts'
import { largestDivisor, up } from './notation.ts'

/** Lanes of a sum that has some. */
export const LANES = 4
/** The largest window whose sums have lanes in strict code, and the limit for the images of such a sum. */
const MOST_IN_LANES = 25
const BYTES_IN_LANES = 128 * 1024

/** The order in which a sum adds its products: those of `images` images and of every `lanes`-th pixel of a row one after the other, then the sums of the lanes in halves, then what the next images come to. */
export interface SumOrder {
  readonly images: number
  readonly lanes: 1 | typeof LANES
}

/** The gradient of the weight of a convolution with groups. `features` counts those of all groups. */
export interface DirectWeightProblem extends WeightGradientProblem {
  /** The number of groups, each of which has `sizes.channels` channels and `sizes.features` features of its own. */
  readonly groups: number
  /** Null for any order. */
  readonly order: SumOrder | null
}

/** The order of sums that strict compiled code has always had: in lanes where rows of pixels are whole vectors that windows of few elements read one by one. */
export function strictOrder({ sizes, groups, image, gradient, epilogue }: Omit<DirectWeightProblem, 'order'>): SumOrder {
  const { batch, channels, features, outHeight, outWidth, kernelHeight, kernelWidth, strideH, strideW, dilationH, dilationW } = sizes
  const isRun = groups === 1 && image.col === 1 && gradient.col === 1 && gradient.row === outWidth
  const isDense = strideH === 1 && strideW === 1 && dilationH === 1 && dilationW === 1
  if (!isRun || !isDense || outWidth % LANES !== 0 || kernelHeight * kernelWidth > MOST_IN_LANES || touches64Bits(epilogue(constant('float32', 0))))
    return { images: 1, lanes: 1 }
  const copied = channels * (outHeight + kernelHeight - 1) * (outWidth + kernelWidth - 1)
  const bytes = 4 * (copied + up(features, 4) * outHeight * outWidth)
  return { images: largestDivisor(batch, (images) => images * bytes <= BYTES_IN_LANES), lanes: LANES }
}

/** Where the window has one row or column and no border, the problem of an image that has only the pixels that are read. */
export function withoutSkippedPixels({ sizes, image }: WeightGradientProblem): {
  readonly sizes: ConvolutionSizes
  readonly image: ConvolutionOperand
} {
  const [rows, cols] = [sizes.kernelHeight === 1 && sizes.padH === 0, sizes.kernelWidth === 1 && sizes.padW === 0]
  return {
    sizes: {
      ...sizes,
      ...(rows ? { height: sizes.outHeight, strideH: 1 } : {}),
      ...(cols ? { width: sizes.outWidth, strideW: 1 } : {}),
    },
    image: { ...image, row: image.row * (rows ? sizes.strideH : 1), col: image.col * (cols ? sizes.strideW : 1) },
  }
}
