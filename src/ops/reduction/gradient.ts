// torch.gradient: slopes between samples.
import type { Size } from '../../protocol/index.ts'
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { valueText } from '../../protocol/index.ts'
import { formatShape, sizeEq, Tensor, sizeAdd, sizeLess, sizeSub } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import { cat } from '../join/join.ts'
import { add, div, mul, neg, sub } from '../pointwise/arithmetic.ts'
import { dimAndSize } from '../shared/shapes.ts'
import { reshape } from '../view/reshape.ts'
import { narrow } from '../view/slicing.ts'

/** Options of {@link gradient}. */
export interface GradientOptions {
  /** The distance between samples, one for each of `dim`, or their coordinates, a vector for each. Default 1. */
  readonly spacing?: number | readonly number[] | readonly Tensor[]
  /** Default: all dimensions. */
  readonly dim?: number | readonly number[] | null
  /** The order of the estimate at both ends, 1 (default) or 2. */
  readonly edgeOrder?: number
}

/** Slopes of samples whose neighbours are `gaps` apart: a number, or a tensor with the size of `x` along `dim` less 1. */
function slopes(x: Tensor, dim: number, size: Size, gaps: Tensor | number, edgeOrder: number): Tensor {
  const part = (start: Size, length: Size): Tensor => narrow(x, dim, start, length)
  const gap = (start: Size, length: Size): Tensor | number => (gaps instanceof Tensor ? narrow(gaps, dim, start, length) : gaps)
  /** The slope, at the second of three neighbours, of the parabola through them, which are `before` and `after` apart. */
  const middle = (first: Size, length: Size): Tensor => {
    if (typeof gaps === 'number') return div(sub(part(sizeAdd(first, 2), length), part(first, length)), 2 * gaps)
    const [before, after] = [narrow(gaps, dim, first, length), narrow(gaps, dim, sizeAdd(first, 1), length)]
    const whole = add(before, after)
    const left = mul(part(first, length), div(neg(after), mul(before, whole)))
    const right = mul(part(sizeAdd(first, 2), length), div(before, mul(after, whole)))
    return add(add(left, mul(part(sizeAdd(first, 1), length), div(sub(after, before), mul(before, after)))), right)
  }
  const step = (first: Size): Tensor => div(sub(part(sizeAdd(first, 1), 1), part(first, 1)), gap(first, 1))
  const last = sizeSub(size, 2)
  if (edgeOrder === 1) return cat(sizeEq(size, 2) ? [step(0), step(0)] : [step(0), middle(0, last), step(last)], dim)
  // A parabola's slope changes evenly: the mean of those at two neighbours is that between them.
  const edge = (first: Size, inner: Size): Tensor => sub(mul(step(first), 2), middle(inner, 1))
  return cat([edge(0, 0), middle(0, last), edge(last, sizeSub(size, 3))], dim)
}

/**
 * The slopes of samples along each of the dimensions `dim` (all, by default), by second-order differences: a tensor for each. PyTorch's `torch.gradient`.
 *
 * Shapes: each result has the shape of `self`, which needs `edgeOrder` + 1 samples along each dimension.
 *
 * @throws ShapeError if there are fewer, or coordinates do not fit.
 * @throws ArgumentError for a `spacing` of another length than `dim`, or an `edgeOrder` other than 1 and 2.
 * @example torch.gradient(torch.tensor([1, 2, 4, 8]))[0].toArray() // [1, 1.5, 3, 4]
 */
export const gradient: OpFunction<(self: Tensor, options?: GradientOptions) => readonly Tensor[]> = defineOp({
  schema: 'gradient(Tensor self, *, any? spacing=1, int[]? dim=None, int edge_order=1) -> Tensor[]',
  decompose: (self, spacing, dim, edgeOrder) => {
    if (edgeOrder !== 1 && edgeOrder !== 2) throw new ArgumentError(`torch.gradient: edgeOrder must be 1 or 2, got ${edgeOrder}.`)
    const dims = dim ?? self.symSizes.map((_, i) => i)
    const list: readonly unknown[] = Array.isArray(spacing) ? spacing : dims.map(() => spacing ?? 1)
    if (list.length !== dims.length)
      throw new ArgumentError(`torch.gradient: spacing must be a number, or a list of ${dims.length}, one for each dimension; got ${list.length}.`)
    return dims.map((given, i) => {
      const [at, size] = dimAndSize('torch.gradient', self, given)
      if (sizeLess(size, edgeOrder + 1))
        throw new ShapeError(
          `torch.gradient: each dimension needs at least ${edgeOrder + 1} samples for edgeOrder ${edgeOrder}, got shape ${formatShape(self.symSizes)}.`,
        )
      const distance = list[i]
      if (typeof distance === 'number') return slopes(self, at, size, distance, edgeOrder)
      if (!(distance instanceof Tensor)) throw new ArgumentError(`torch.gradient: spacing must be numbers or Tensors, got ${valueText(distance)}.`)
      if (distance.ndim !== 1 || !sizeEq(distance.symSizes[0], size))
        throw new ShapeError(
          `torch.gradient: the coordinates of dimension ${at} must have shape ${formatShape([size])}, got ${formatShape(distance.symSizes)}.`,
        )
      const count = sizeSub(size, 1)
      const gaps = sub(narrow(distance, 0, 1, count), narrow(distance, 0, 0, count))
      const along = self.symSizes.map((_, d) => (d === at ? count : 1))
      return slopes(self, at, size, reshape(gaps, along), edgeOrder)
    })
  },
})
