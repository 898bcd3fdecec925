// torch.fft of two and of any number of dimensions.
import { defineOp } from '../define/defineOp.ts'
import type { OpFunction } from '../define/declaration.ts'
import type { Tensor } from '../../tensor/index.ts'
import { sizeAt } from '../shared/shapes.ts'
import { complexInput, extentOf, fromHalf, halfTransform, realInput, transform } from './along.ts'
import type { Extent } from './along.ts'

/** Options of the transforms of several dimensions. */
export interface FourierOptions {
  /** The sizes of the dimensions: cut, or with zeros appended. Default: all elements. */
  readonly s?: readonly number[] | null
  /** The dimensions. Default: the last two, or as many as `s` has, or all. */
  readonly dim?: readonly number[] | null
  readonly norm?: 'backward' | 'ortho' | 'forward' | null
}

/** A transform of several dimensions. */
type Transform = (
  self: Tensor,
  s?: readonly number[] | FourierOptions | null,
  dim?: readonly number[] | FourierOptions | null,
  norm?: 'backward' | 'ortho' | 'forward' | FourierOptions | null,
) => Tensor

/** The extent of a real result, whose last size is by default an even number of elements. */
function evenExtent(op: string, self: Tensor, s: readonly number[] | null, dim: readonly number[] | null): Extent {
  const { dims, sizes } = extentOf(op, self, s, dim)
  const isGiven = s !== null && s.at(-1) !== -1
  return { dims, sizes: isGiven || sizes.length === 0 ? sizes : [...sizes.slice(0, -1), 2 * (sizeAt(sizes, -1) - 1)] }
}

/**
 * The discrete Fourier transform over the last two dimensions. PyTorch's `torch.fft.fft2`.
 *
 * Shape: that of `self`, with the sizes `s` along `dim`; the result is complex.
 *
 * @throws ArgumentError for lengths below 1, lists of different lengths or another `norm`; ShapeError if a dimension is out of range or named twice; DTypeError for float16 and bfloat16.
 * @example torch.fft.fft2(torch.ones([2, 4])).shape // [2, 4]
 */
export const fft2: OpFunction<Transform> = defineOp({
  schema: 'fft2(Tensor self, int[]? s=None, int[] dim=[-2,-1], str? norm=None) -> Tensor',
  namespace: 'torch.fft',
  autocast: 'float32',
  decompose: (self, s, dim, norm) =>
    transform('torch.fft.fft2', complexInput('torch.fft.fft2', self), extentOf('torch.fft.fft2', self, s, dim), norm, false),
})

/**
 * The discrete Fourier transform over several dimensions, by default all. PyTorch's `torch.fft.fftn`.
 *
 * Shape: that of `self`, with the sizes `s` along `dim`; the result is complex.
 *
 * @throws ArgumentError for lengths below 1, lists of different lengths or another `norm`; ShapeError if a dimension is out of range or named twice; DTypeError for float16 and bfloat16.
 * @example torch.fft.fftn(torch.ones([2, 4])).shape // [2, 4]
 */
export const fftn: OpFunction<Transform> = defineOp({
  schema: 'fftn(Tensor self, int[]? s=None, int[]? dim=None, str? norm=None) -> Tensor',
  namespace: 'torch.fft',
  autocast: 'float32',
  decompose: (self, s, dim, norm) =>
    transform('torch.fft.fftn', complexInput('torch.fft.fftn', self), extentOf('torch.fft.fftn', self, s, dim), norm, false),
})

/**
 * The inverse discrete Fourier transform over the last two dimensions. PyTorch's `torch.fft.ifft2`.
 *
 * Shape: that of `self`, with the sizes `s` along `dim`; the result is complex.
 *
 * @throws ArgumentError for lengths below 1, lists of different lengths or another `norm`; ShapeError if a dimension is out of range or named twice; DTypeError for float16 and bfloat16.
 * @example torch.fft.ifft2(torch.ones([2, 4])).shape // [2, 4]
 */
export const ifft2: OpFunction<Transform> = defineOp({
  schema: 'ifft2(Tensor self, int[]? s=None, int[] dim=[-2,-1], str? norm=None) -> Tensor',
  namespace: 'torch.fft',
  autocast: 'float32',
  decompose: (self, s, dim, norm) =>
    transform('torch.fft.ifft2', complexInput('torch.fft.ifft2', self), extentOf('torch.fft.ifft2', self, s, dim), norm, true),
})

/**
 * The inverse discrete Fourier transform over several dimensions, by default all. PyTorch's `torch.fft.ifftn`.
 *
 * Shape: that of `self`, with the sizes `s` along `dim`; the result is complex.
 *
 * @throws ArgumentError for lengths below 1, lists of different lengths or another `norm`; ShapeError if a dimension is out of range or named twice; DTypeError for float16 and bfloat16.
 * @example torch.fft.ifftn(torch.ones([2, 4])).shape // [2, 4]
 */
export const ifftn: OpFunction<Transform> = defineOp({
  schema: 'ifftn(Tensor self, int[]? s=None, int[]? dim=None, str? norm=None) -> Tensor',
  namespace: 'torch.fft',
  autocast: 'float32',
  decompose: (self, s, dim, norm) =>
    transform('torch.fft.ifftn', complexInput('torch.fft.ifftn', self), extentOf('torch.fft.ifftn', self, s, dim), norm, true),
})

/**
 * The half of the discrete Fourier transform of real numbers that says all: the last dimension has floor(n / 2) + 1 elements, over the last two dimensions. PyTorch's `torch.fft.rfft2`.
 *
 * Shape: that of `self`, with the sizes `s` along `dim`; the result is complex.
 *
 * @throws ArgumentError for lengths below 1, lists of different lengths or another `norm`; ShapeError if a dimension is out of range or named twice; DTypeError for float16 and bfloat16.
 * @example torch.fft.rfft2(torch.ones([2, 4])).shape // [2, 3]
 */
export const rfft2: OpFunction<Transform> = defineOp({
  schema: 'rfft2(Tensor self, int[]? s=None, int[] dim=[-2,-1], str? norm=None) -> Tensor',
  namespace: 'torch.fft',
  autocast: 'float32',
  decompose: (self, s, dim, norm) =>
    halfTransform('torch.fft.rfft2', realInput('torch.fft.rfft2', self), extentOf('torch.fft.rfft2', self, s, dim), norm, false),
})

/**
 * The half of the discrete Fourier transform of real numbers that says all: the last dimension has floor(n / 2) + 1 elements, over several dimensions, by default all. PyTorch's `torch.fft.rfftn`.
 *
 * Shape: that of `self`, with the sizes `s` along `dim`; the result is complex.
 *
 * @throws ArgumentError for lengths below 1, lists of different lengths or another `norm`; ShapeError if a dimension is out of range or named twice; DTypeError for float16 and bfloat16.
 * @example torch.fft.rfftn(torch.ones([2, 4])).shape // [2, 3]
 */
export const rfftn: OpFunction<Transform> = defineOp({
  schema: 'rfftn(Tensor self, int[]? s=None, int[]? dim=None, str? norm=None) -> Tensor',
  namespace: 'torch.fft',
  autocast: 'float32',
  decompose: (self, s, dim, norm) =>
    halfTransform('torch.fft.rfftn', realInput('torch.fft.rfftn', self), extentOf('torch.fft.rfftn', self, s, dim), norm, false),
})

/**
 * The real numbers of which `self` is the half transform (the inverse of rfft), over the last two dimensions. PyTorch's `torch.fft.irfft2`.
 *
 * Shape: that of `self`, with the sizes `s` along `dim`; the result is real.
 *
 * @throws ArgumentError for lengths below 1, lists of different lengths or another `norm`; ShapeError if a dimension is out of range or named twice; DTypeError for float16 and bfloat16.
 * @example torch.fft.irfft2(torch.ones([2, 3])).shape // [2, 4]
 */
export const irfft2: OpFunction<Transform> = defineOp({
  schema: 'irfft2(Tensor self, int[]? s=None, int[] dim=[-2,-1], str? norm=None) -> Tensor',
  namespace: 'torch.fft',
  autocast: 'float32',
  decompose: (self, s, dim, norm) =>
    fromHalf('torch.fft.irfft2', complexInput('torch.fft.irfft2', self), evenExtent('torch.fft.irfft2', self, s, dim), norm, true),
})

/**
 * The real numbers of which `self` is the half transform (the inverse of rfft), over several dimensions, by default all. PyTorch's `torch.fft.irfftn`.
 *
 * Shape: that of `self`, with the sizes `s` along `dim`; the result is real.
 *
 * @throws ArgumentError for lengths below 1, lists of different lengths or another `norm`; ShapeError if a dimension is out of range or named twice; DTypeError for float16 and bfloat16.
 * @example torch.fft.irfftn(torch.ones([2, 3])).shape // [2, 4]
 */
export const irfftn: OpFunction<Transform> = defineOp({
  schema: 'irfftn(Tensor self, int[]? s=None, int[]? dim=None, str? norm=None) -> Tensor',
  namespace: 'torch.fft',
  autocast: 'float32',
  decompose: (self, s, dim, norm) =>
    fromHalf('torch.fft.irfftn', complexInput('torch.fft.irfftn', self), evenExtent('torch.fft.irfftn', self, s, dim), norm, true),
})

/**
 * The transform of a Hermitian signal, of which `self` is a half: real numbers, over the last two dimensions. PyTorch's `torch.fft.hfft2`.
 *
 * Shape: that of `self`, with the sizes `s` along `dim`; the result is real.
 *
 * @throws ArgumentError for lengths below 1, lists of different lengths or another `norm`; ShapeError if a dimension is out of range or named twice; DTypeError for float16 and bfloat16.
 * @example torch.fft.hfft2(torch.ones([2, 3])).shape // [2, 4]
 */
export const hfft2: OpFunction<Transform> = defineOp({
  schema: 'hfft2(Tensor self, int[]? s=None, int[] dim=[-2,-1], str? norm=None) -> Tensor',
  namespace: 'torch.fft',
  decompose: (self, s, dim, norm) =>
    fromHalf('torch.fft.hfft2', complexInput('torch.fft.hfft2', self), evenExtent('torch.fft.hfft2', self, s, dim), norm, false),
})

/**
 * The transform of a Hermitian signal, of which `self` is a half: real numbers, over several dimensions, by default all. PyTorch's `torch.fft.hfftn`.
 *
 * Shape: that of `self`, with the sizes `s` along `dim`; the result is real.
 *
 * @throws ArgumentError for lengths below 1, lists of different lengths or another `norm`; ShapeError if a dimension is out of range or named twice; DTypeError for float16 and bfloat16.
 * @example torch.fft.hfftn(torch.ones([2, 3])).shape // [2, 4]
 */
export const hfftn: OpFunction<Transform> = defineOp({
  schema: 'hfftn(Tensor self, int[]? s=None, int[]? dim=None, str? norm=None) -> Tensor',
  namespace: 'torch.fft',
  decompose: (self, s, dim, norm) =>
    fromHalf('torch.fft.hfftn', complexInput('torch.fft.hfftn', self), evenExtent('torch.fft.hfftn', self, s, dim), norm, false),
})

/**
 * The half of a Hermitian signal of which `self` is the transform (the inverse of hfft), over the last two dimensions. PyTorch's `torch.fft.ihfft2`.
 *
 * Shape: that of `self`, with the sizes `s` along `dim`; the result is complex.
 *
 * @throws ArgumentError for lengths below 1, lists of different lengths or another `norm`; ShapeError if a dimension is out of range or named twice; DTypeError for float16 and bfloat16.
 * @example torch.fft.ihfft2(torch.ones([2, 4])).shape // [2, 3]
 */
export const ihfft2: OpFunction<Transform> = defineOp({
  schema: 'ihfft2(Tensor self, int[]? s=None, int[] dim=[-2,-1], str? norm=None) -> Tensor',
  namespace: 'torch.fft',
  decompose: (self, s, dim, norm) =>
    halfTransform('torch.fft.ihfft2', realInput('torch.fft.ihfft2', self), extentOf('torch.fft.ihfft2', self, s, dim), norm, true),
})

/**
 * The half of a Hermitian signal of which `self` is the transform (the inverse of hfft), over several dimensions, by default all. PyTorch's `torch.fft.ihfftn`.
 *
 * Shape: that of `self`, with the sizes `s` along `dim`; the result is complex.
 *
 * @throws ArgumentError for lengths below 1, lists of different lengths or another `norm`; ShapeError if a dimension is out of range or named twice; DTypeError for float16 and bfloat16.
 * @example torch.fft.ihfftn(torch.ones([2, 4])).shape // [2, 3]
 */
export const ihfftn: OpFunction<Transform> = defineOp({
  schema: 'ihfftn(Tensor self, int[]? s=None, int[]? dim=None, str? norm=None) -> Tensor',
  namespace: 'torch.fft',
  decompose: (self, s, dim, norm) =>
    halfTransform('torch.fft.ihfftn', realInput('torch.fft.ihfftn', self), extentOf('torch.fft.ihfftn', self, s, dim), norm, true),
})
