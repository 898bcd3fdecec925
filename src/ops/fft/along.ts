// Fourier transforms along dimensions of complex tensors, with PyTorch's lengths and factors: what the functions of torch.fft are made of.
import { ArgumentError, DTypeError, ShapeError } from '../../errors/index.ts'
import { complexDType, dtypeInfo, isComplexDType } from '../../kernels/index.ts'
import type { ComplexDType } from '../../kernels/index.ts'
import { valueText } from '../../protocol/index.ts'
import { formatShape, getDefaultDtype, wrapDim } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { onPairs, toComplex } from '../complex/parts.ts'
import { cat, constantPadNd } from '../join/join.ts'
import { conj, real } from '../complex/construct.ts'
import { mul } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { flip } from '../view/repeat.ts'
import { sizeAt } from '../shared/shapes.ts'
import { transpose } from '../view/permute.ts'
import { narrow } from '../view/slicing.ts'
import { fftLines } from './lines.ts'

/** What a transform is divided by: nothing, the number of elements, or its square root. */
type Norm = string | null

/** The factor of a transform over `count` elements: `backward` and null give it to the inverse ones, `forward` to the others. */
function factorOf(op: string, norm: Norm, count: number, inverse: boolean): number {
  if (norm === 'ortho') return 1 / Math.sqrt(count)
  if (norm !== null && norm !== 'backward' && norm !== 'forward')
    throw new ArgumentError(`${op}: argument 'norm' must be 'backward', 'ortho' or 'forward', got ${valueText(norm)}.`)
  return (norm === 'forward') !== inverse ? 1 / count : 1
}

/** The complex dtype of a transform. Integers have that of the default dtype. */
function transformed(op: string, { dtype }: Tensor): ComplexDType {
  if (dtype === 'float16' || dtype === 'bfloat16') throw new DTypeError(`${op}: not implemented for ${dtype}; convert it first: x.float().`)
  return complexDType(dtypeInfo[dtype].differentiable ? dtype : getDefaultDtype())
}

/** The input as complex numbers. */
export const complexInput = (op: string, self: Tensor): Tensor => toComplex(self, transformed(op, self))

/** The input of a transform of real numbers. Throws DTypeError for complex ones. */
export function realInput(op: string, self: Tensor): Tensor {
  if (isComplexDType(self.dtype)) throw new DTypeError(`${op}: self must be real, got ${self.dtype}; use torch.fft.fft, or torch.real(x).`)
  return to(self, transformed(op, self) === 'complex128' ? 'float64' : 'float32')
}

/** Cuts a dimension to `n` elements, or appends zeros. */
export function resized(op: string, x: Tensor, dim: number, n: number): Tensor {
  const size = sizeAt(x.sizes, dim)
  if (n < 1) throw new ArgumentError(`${op}: the number of elements must be at least 1, got ${n} (shape ${formatShape(x.symSizes)}).`)
  if (n === size) return x
  if (n < size) return narrow(x, dim, 0, n)
  const at = dim < 0 ? dim + x.ndim : dim
  return constantPadNd(x, [...Array.from({ length: 2 * (x.ndim - 1 - at) }, () => 0), 0, n - size])
}

/** The transform along one dimension, without a factor. */
function alongOne(x: Tensor, dim: number, inverse: boolean): Tensor {
  const isLast = dim === x.ndim - 1
  const moved = isLast ? x : transpose(x, dim, -1)
  const result = onPairs(moved, (pairs) => fftLines(pairs, inverse))
  return isLast ? result : transpose(result, dim, -1)
}

const scaled = (x: Tensor, factor: number): Tensor => (factor === 1 ? x : mul(x, factor))

/** The sizes and dimensions of an n-dimensional transform. */
export interface Extent {
  readonly sizes: readonly number[]
  readonly dims: readonly number[]
}

/** The index of a dimension. Throws ShapeError if the tensor has no such one. */
export function dimensionOf(op: string, self: Tensor, dim: number): number {
  if (self.ndim === 0) throw new ShapeError(`${op}: self has no dimensions, and at least one is transformed; use x.reshape(1).`)
  return wrapDim(op, dim, self.ndim)
}

/** Resolves `s` and `dim`: without `dim` the last ones, as many as `s` has, or all; without `s` all elements; -1 stands for them as well. */
export function extentOf(op: string, self: Tensor, s: readonly number[] | null, dim: readonly number[] | null): Extent {
  if (s !== null && dim !== null && s.length !== dim.length)
    throw new ArgumentError(`${op}: 's' and 'dim' must have the same length, got ${formatShape(s)} and ${formatShape(dim)}.`)
  if (s !== null && s.length > self.ndim)
    throw new ShapeError(`${op}: 's' has ${s.length} sizes for a tensor of shape ${formatShape(self.symSizes)}.`)
  const dims = (dim ?? Array.from({ length: s?.length ?? self.ndim }, (_, i) => i - (s?.length ?? self.ndim))).map((d) => dimensionOf(op, self, d))
  if (new Set(dims).size !== dims.length) throw new ShapeError(`${op}: 'dim' must name each dimension once, got ${formatShape(dims)}.`)
  return { dims, sizes: dims.map((d, i) => (s === null || s[i] === -1 ? sizeAt(self.sizes, d) : sizeAt(s, i))) }
}

/** The transform of complex numbers over dimensions. */
export function transform(op: string, self: Tensor, { dims, sizes }: Extent, norm: Norm, inverse: boolean): Tensor {
  let x = dims.reduce((cut, dim, i) => resized(op, cut, dim, sizeAt(sizes, i)), self)
  for (const dim of dims.toReversed()) x = alongOne(x, dim, inverse)
  return scaled(
    x,
    factorOf(
      op,
      norm,
      sizes.reduce((a, b) => a * b, 1),
      inverse,
    ),
  )
}

/** The first half of the transform of real numbers: the other half is its conjugate. `inverse` gives the conjugate's convention, of ihfft. */
export function halfTransform(op: string, self: Tensor, extent: Extent, norm: Norm, inverse: boolean): Tensor {
  const { dims, sizes } = extent
  const last = dims.at(-1)
  if (last === undefined) throw new ShapeError(`${op}: at least one dimension must be transformed.`)
  const n = sizeAt(sizes, -1)
  const x = toComplex(resized(op, self, last, n), complexDType(self.dtype))
  const half = narrow(alongOne(x, last, inverse), last, 0, Math.floor(n / 2) + 1)
  const rest = dims.slice(0, -1)
  const whole = rest.reduceRight((y, dim, i) => alongOne(resized(op, y, dim, sizeAt(sizes, i)), dim, inverse), half)
  return scaled(
    whole,
    factorOf(
      op,
      norm,
      sizes.reduce((a, b) => a * b, 1),
      inverse,
    ),
  )
}

/** The real numbers of which the input is the first half of a transform; `extent` is that of the result. */
export function fromHalf(op: string, self: Tensor, { dims, sizes }: Extent, norm: Norm, inverse: boolean): Tensor {
  const last = dims.at(-1)
  if (last === undefined) throw new ShapeError(`${op}: at least one dimension must be transformed.`)
  const n = sizeAt(sizes, -1)
  if (n < 1) throw new ArgumentError(`${op}: the number of elements must be at least 1, got ${n}.`)
  const cut = resized(op, self, last, Math.floor(n / 2) + 1)
  const rest = dims.slice(0, -1)
  const half = rest.reduceRight((y, dim, i) => alongOne(resized(op, y, dim, sizeAt(sizes, i)), dim, inverse), cut)
  const mirrored = Math.ceil(n / 2) - 1
  const whole = mirrored <= 0 ? half : cat([half, conj(flip(narrow(half, last, 1, mirrored), [last]))], last)
  return scaled(
    real(alongOne(whole, last, inverse)),
    factorOf(
      op,
      norm,
      sizes.reduce((a, b) => a * b, 1),
      inverse,
    ),
  )
}
