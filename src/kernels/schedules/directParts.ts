// The parts of a direct convolution: results whose windows have the same elements. A transposed one with strides has several.
import type { Reach } from './borderedPlanes.ts'
import { axisParts } from './convolution.ts'
import type { AxisPart, ConvolutionProblem } from './convolution.ts'
import { up } from './notation.ts'

/** A convolution of groups, or the gradient of its images. */
export interface DirectProblem extends ConvolutionProblem {
  /** Whether it is the gradient of the images: out[image, feature, y, x] sums image[image, c, (y + padH - ky * dilationH) / strideH, …] * weight[feature, c, ky, kx] where the division is exact. */
  readonly transposed: boolean
  /** The number of groups, each of which has `sizes.channels` channels and `sizes.features` features of its own. Their weights follow each other. */
  readonly groups: number
}

/** Results whose windows have the same elements. */
export interface Part {
  readonly y: AxisPart
  readonly x: AxisPart
  readonly depth: number
  /** Columns from one row of results to the next: in whole quads, or as many as there are. */
  readonly rowStride: number
  /** Where its packed weights begin. */
  readonly weights: number
}

/** More columns than pixels, as a fraction of them, for which rows are filled up to whole quads. */
const MOST_WASTE = 1 / 6

/** The parts of a convolution, given the columns that are computed in lanes. */
export const partsOf = ({ sizes, transposed }: DirectProblem, quad: number): readonly Part[] => {
  const [rows, cols] = axisParts(sizes, transposed)
  let weights = 0
  return rows.flatMap((y) =>
    cols.map((x) => {
      const depth = sizes.channels * y.taps.count * x.taps.count
      const whole = up(x.count, quad)
      const part = { y, x, depth, rowStride: whole <= x.count * (1 + MOST_WASTE) ? whole : x.count, weights }
      weights += depth * sizes.features
      return part
    }),
  )
}

/** What the windows of parts reach along one side. */
export function reachOf(parts: readonly AxisPart[]): Reach {
  const ends = parts.flatMap(({ count, read: step, taps }) => {
    const last = taps.offset + (taps.count - 1) * taps.offsetStep
    return taps.count === 0 ? [] : [Math.min(taps.offset, last), (count - 1) * step + Math.max(taps.offset, last)]
  })
  return { low: Math.min(...ends), high: Math.max(...ends) }
}
