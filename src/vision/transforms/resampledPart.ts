// A part of an image resized, where the part is known only as tensors: a product with a matrix of weights for the rows, and one for the columns. The weights are those of `interpolate`.
import { arange } from '../../ops/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { asBatch } from '../functional/geometry.ts'
import type { InterpolationOptions } from '../functional/geometry.ts'

/** What is taken from a dimension, and how many pixels it becomes. */
export interface Extent {
  readonly start: Tensor
  readonly length: Tensor
  readonly size: number
}

type How = Required<InterpolationOptions>

/** The rectangle of `rows` and `columns` of an image, resized. Shape: [..., C, H, W] to [..., C, rows.size, columns.size]. */
export function resampledPart(image: Tensor, rows: Extent, columns: Extent, how: How): Tensor {
  if (how.interpolation === 'nearest' || how.interpolation === 'nearest-exact') {
    const offset = how.interpolation === 'nearest' ? 0 : 0.5
    return image.indexSelect(-2, nearestPlaces(rows, offset)).indexSelect(-1, nearestPlaces(columns, offset))
  }
  return asBatch(image, (batch) => {
    const down = weights(batch.size(-2), rows, how).to(batch.dtype)
    const across = weights(batch.size(-1), columns, how).to(batch.dtype)
    return down.matmul(batch.matmul(across.t()))
  })
}

/** Pixels of the input on which those of the result lie. */
function nearestPlaces({ start, length, size }: Extent, offset: number): Tensor {
  const steps = arange(size, { dtype: 'float64' }).add(offset).mul(length.to('float64')).div(size).floor().to('int64')
  return steps.minimum(length.sub(1)).add(start)
}

/** How much of each pixel of the input is in each pixel of the result: [size, own]. */
function weights(own: number, { start, length, size }: Extent, { interpolation, antialias }: How): Tensor {
  const extent = length.to('float64')
  const scale = extent.div(size)
  const centers = arange(size, { dtype: 'float64' }).add(0.5).mul(scale)
  const places = arange(own, { dtype: 'float64' }).sub(start)
  const inside = places.ge(0).logicalAnd(places.lt(extent))
  // Without smoothing, pixels outside of the part are as those of its edge.
  const middles = antialias ? centers : centers.clamp({ min: 0.5 }).minimum(extent.sub(0.5))
  const distances = places.add(0.5).sub(middles.unsqueeze(-1)).abs()
  const kernel = interpolation === 'bilinear' ? triangle : cubic
  const raw = kernel(antialias ? distances.div(scale.clamp({ min: 1 })) : distances).mul(inside)
  return raw.div(raw.sum(-1, { keepdim: true }))
}

const triangle = (distance: Tensor): Tensor => distance.neg().add(1).clamp({ min: 0 })

/** Keys' kernel with the constant of smoothing, -0.5. */
function cubic(distance: Tensor): Tensor {
  const near = distance.mul(1.5).sub(2.5).mul(distance).mul(distance).add(1)
  const far = distance.mul(-0.5).add(2.5).mul(distance).sub(4).mul(distance).add(2)
  return near.where(distance.lt(1), far.where(distance.lt(2), 0))
}
