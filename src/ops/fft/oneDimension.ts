// torch.fft of one dimension: discrete Fourier transforms of complex, real and Hermitian numbers.
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import type { Tensor } from '../../tensor/index.ts'
import { sizeAt } from '../shared/shapes.ts'
import { complexInput, dimensionOf, fromHalf, halfTransform, realInput, transform } from './along.ts'
import type { Extent } from './along.ts'

/** One dimension, with all its elements unless `n` says how many. */
function one(op: string, self: Tensor, n: number | null, dim: number, all = (size: number): number => size): Extent {
  const at = dimensionOf(op, self, dim)
  return { dims: [at], sizes: [n ?? all(sizeAt(self.sizes, at))] }
}

/** How many real numbers a half transform comes from, if nothing is said: an even number. */
const even = (size: number): number => 2 * (size - 1)

/**
 * The discrete Fourier transform along a dimension, of `n` elements: cut, or with zeros appended. PyTorch's `torch.fft.fft`.
 *
 * Shape: that of `self`, with `n` elements along `dim`; the result is complex.
 *
 * @throws ArgumentError for a length below 1 or another `norm`; ShapeError if `dim` is out of range; DTypeError for float16 and bfloat16.
 * @example torch.fft.fft(torch.tensor([1, 2])).toArray() // [{ re: 3, im: 0 }, { re: -1, im: 0 }]
 */
export const fft: Op['fft'] = defineOp({
  schema: 'fft(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor',
  namespace: 'torch.fft',
  autocast: 'float32',
  decompose: (self, n, dim, norm) => transform('torch.fft.fft', complexInput('torch.fft.fft', self), one('torch.fft.fft', self, n, dim), norm, false),
})

/**
 * The inverse of {@link fft}. PyTorch's `torch.fft.ifft`.
 *
 * Shape: that of `self`, with `n` elements along `dim`; the result is complex.
 *
 * @throws ArgumentError for a length below 1 or another `norm`; ShapeError if `dim` is out of range; DTypeError for float16 and bfloat16.
 * @example torch.fft.ifft(torch.tensor([3, -1])).toArray() // [{ re: 1, im: 0 }, { re: 2, im: 0 }]
 */
export const ifft: Op['ifft'] = defineOp({
  schema: 'ifft(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor',
  namespace: 'torch.fft',
  autocast: 'float32',
  decompose: (self, n, dim, norm) =>
    transform('torch.fft.ifft', complexInput('torch.fft.ifft', self), one('torch.fft.ifft', self, n, dim), norm, true),
})

/**
 * The first half of the discrete Fourier transform of real numbers, of which the other half is the conjugate. PyTorch's `torch.fft.rfft`.
 *
 * Shape: that of `self`, with floor(n / 2) + 1 elements along `dim`; the result is complex.
 *
 * @throws ArgumentError for a length below 1 or another `norm`; ShapeError if `dim` is out of range; DTypeError for complex numbers, float16 and bfloat16.
 * @example torch.fft.rfft(torch.tensor([1, 2, 3, 4])).shape // [3]
 */
export const rfft: Op['rfft'] = defineOp({
  schema: 'rfft(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor',
  namespace: 'torch.fft',
  autocast: 'float32',
  decompose: (self, n, dim, norm) =>
    halfTransform('torch.fft.rfft', realInput('torch.fft.rfft', self), one('torch.fft.rfft', self, n, dim), norm, false),
})

/**
 * The inverse of {@link rfft}: `n` real numbers, by default an even number of them. PyTorch's `torch.fft.irfft`.
 *
 * Shape: that of `self`, with `n` elements along `dim`; the result is real.
 *
 * @throws ArgumentError for a length below 1 or another `norm`; ShapeError if `dim` is out of range; DTypeError for float16 and bfloat16.
 * @example torch.fft.irfft(torch.fft.rfft(torch.tensor([1, 2, 3, 4]))).toArray() // [1, 2, 3, 4]
 */
export const irfft: Op['irfft'] = defineOp({
  schema: 'irfft(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor',
  namespace: 'torch.fft',
  autocast: 'float32',
  decompose: (self, n, dim, norm) =>
    fromHalf('torch.fft.irfft', complexInput('torch.fft.irfft', self), one('torch.fft.irfft', self, n, dim, even), norm, true),
})

/**
 * The transform of a Hermitian signal, of which `self` is the first half: `n` real numbers. PyTorch's `torch.fft.hfft`.
 *
 * Shape: that of `self`, with `n` elements along `dim`; the result is real.
 *
 * @throws ArgumentError for a length below 1 or another `norm`; ShapeError if `dim` is out of range; DTypeError for float16 and bfloat16.
 * @example torch.fft.hfft(torch.tensor([1, 2, 3])).toArray() // [8, -2, 0, -2]
 */
export const hfft: Op['hfft'] = defineOp({
  schema: 'hfft(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor',
  namespace: 'torch.fft',
  autocast: 'float32',
  decompose: (self, n, dim, norm) =>
    fromHalf('torch.fft.hfft', complexInput('torch.fft.hfft', self), one('torch.fft.hfft', self, n, dim, even), norm, false),
})

/**
 * The inverse of {@link hfft}: the first half of a Hermitian signal. PyTorch's `torch.fft.ihfft`.
 *
 * Shape: that of `self`, with floor(n / 2) + 1 elements along `dim`; the result is complex.
 *
 * @throws ArgumentError for a length below 1 or another `norm`; ShapeError if `dim` is out of range; DTypeError for complex numbers, float16 and bfloat16.
 * @example torch.fft.ihfft(torch.tensor([8, -2, 0, -2])).toArray() // [{ re: 1, im: 0 }, { re: 2, im: 0 }, { re: 3, im: 0 }]
 */
export const ihfft: Op['ihfft'] = defineOp({
  schema: 'ihfft(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor',
  namespace: 'torch.fft',
  autocast: 'float32',
  decompose: (self, n, dim, norm) =>
    halfTransform('torch.fft.ihfft', realInput('torch.fft.ihfft', self), one('torch.fft.ihfft', self, n, dim), norm, true),
})
