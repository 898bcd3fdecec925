// Sizes of convolutions for tests of their schedules.
import type { ConvolutionSizes } from '../../../src/kernels/schedules/convolution.ts'

/** Sizes of a convolution of one image with windows of 3x3 that move by 1, but for those that are given. */
export function sizesOf(sizes: Partial<ConvolutionSizes>): ConvolutionSizes {
  const { height = 8, width = 8, padH = 1, padW = 1 } = sizes
  return {
    ...{ batch: 1, channels: 16, features: 16, height, width, padH, padW, kernelHeight: 3, kernelWidth: 3, strideH: 1, strideW: 1 },
    ...{ dilationH: 1, dilationW: 1, outHeight: height + 2 * padH - 2, outWidth: width + 2 * padW - 2 },
    ...sizes,
  }
}
