// The arithmetic of views: which strides show a storage in another shape.
import { ShapeError } from '../../errors/index.ts'
import { formatShape, numelOf } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'

/** The layout of a view of `self`. */
export const viewSpec = (self: Tensor, shape: readonly number[], strides: readonly number[], offset: number = self.offset): TensorSpec => ({
  shape,
  strides,
  offset,
  dtype: self.dtype,
})

/** A shape with one -1 filled in. Throws ShapeError when the sizes do not fit. */
export function inferShape(op: string, self: Tensor, shape: readonly number[]): readonly number[] {
  const unknown = shape.indexOf(-1)
  const known = shape.reduce((n, s) => (s === -1 ? n : n * s), 1)
  const out = unknown < 0 ? shape : shape.map((s, i) => (i === unknown ? self.numel / known : s))
  if (shape.filter((s) => s === -1).length > 1 || out.some((s) => !Number.isInteger(s) || s < 0) || numelOf(out) !== self.numel) {
    throw new ShapeError(
      `${op}: the shape ${formatShape(shape)} does not hold the ${self.numel} elements of self (shape ${formatShape(self.shape)}).`,
    )
  }
  return out
}

/** Strides under which self's elements form `shape` without a copy; null when its layout does not allow that. */
export function viewStrides(
  self: Pick<Tensor, 'shape' | 'strides' | 'ndim' | 'numel' | 'contiguousLayout'>,
  shape: readonly number[],
): readonly number[] | null {
  if (self.contiguousLayout || self.numel === 0) {
    const out = new Array<number>(shape.length)
    let step = 1
    for (let i = shape.length - 1; i >= 0; i--) {
      out[i] = step
      step *= Math.max(1, shape[i] as number)
    }
    return out
  }
  const out = new Array<number>(shape.length).fill(0)
  let target = shape.length - 1
  let d = self.ndim - 1
  while (d >= 0) {
    // A run of dimensions that walk as one.
    const base = self.strides[d] as number
    let size = self.shape[d] as number
    while (d > 0 && (self.shape[d - 1] === 1 || size === 1 || self.strides[d - 1] === (self.strides[d] as number) * (self.shape[d] as number))) {
      if (size === 1) return viewStridesSqueezed(self, shape)
      d--
      size *= self.shape[d] as number
    }
    d--
    let step = base
    while (target >= 0 && size > 1) {
      const s = shape[target] as number
      if (size % s !== 0) return null
      out[target--] = step
      step *= s
      size /= s
    }
    if (size !== 1) return null
  }
  for (; target >= 0; target--) {
    if (shape[target] !== 1) return null
    out[target] = 1
  }
  return out
}

/** Layouts with dimensions of size 1 in odd places: without them. */
function viewStridesSqueezed(self: Pick<Tensor, 'shape' | 'strides' | 'ndim' | 'numel'>, shape: readonly number[]): readonly number[] | null {
  const keep = self.shape.flatMap((s, i) => (s === 1 ? [] : [i]))
  if (keep.length === self.ndim) return null
  const squeezedShape = keep.map((i) => self.shape[i] as number)
  const squeezedStrides = keep.map((i) => self.strides[i] as number)
  return viewStrides({ shape: squeezedShape, strides: squeezedStrides, ndim: keep.length, numel: self.numel, contiguousLayout: false }, shape)
}
