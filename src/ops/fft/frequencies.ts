// The frequencies of Fourier transforms, and their order: fftfreq, rfftfreq, fftshift, ifftshift.
import { ArgumentError } from '../../errors/index.ts'
import type { DType } from '../../kernels/index.ts'
import { wrapDim } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { arange, asLeaf } from '../create/creation.ts'
import type { CreationOptions } from '../create/creation.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import { cat } from '../join/join.ts'
import { mul } from '../pointwise/arithmetic.ts'
import { getDefaultDtype } from '../../tensor/index.ts'
import { sizeAt } from '../shared/shapes.ts'
import { roll } from '../view/repeat.ts'

/** Frequencies of `n` samples. */
type Frequencies = (n: number, d?: number | CreationOptions, options?: CreationOptions) => Tensor

function checkCount(op: string, n: number): void {
  if (n < 1) throw new ArgumentError(`${op}: argument 'n' must be at least 1, got ${n}.`)
}

const multiples = (from: number, to: number, dtype: DType | null): Tensor => arange(from, to, 1, { dtype: dtype ?? getDefaultDtype() })

/**
 * The frequencies of the elements of a transform of `n` samples that lie `d` apart: [0, 1, ..., -2, -1] / (n d). PyTorch's `torch.fft.fftfreq`.
 *
 * Shape: [n].
 *
 * @throws ArgumentError if `n` is below 1.
 * @example torch.fft.fftfreq(4).toArray() // [0, 0.25, -0.5, -0.25]
 */
export const fftfreq: OpFunction<Frequencies> = defineOp({
  schema: 'fftfreq(int n, float d=1, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  namespace: 'torch.fft',
  decompose: (n, d, dtype, requiresGrad) => {
    checkCount('torch.fft.fftfreq', n)
    const above = Math.ceil(n / 2)
    const order = n === 1 ? multiples(0, 1, dtype) : cat([multiples(0, above, dtype), multiples(above - n, 0, dtype)])
    return asLeaf('torch.fft.fftfreq', mul(order, 1 / (n * d)), requiresGrad)
  },
})

/**
 * The frequencies of the elements of `rfft` of `n` samples that lie `d` apart: [0, 1, ..., floor(n / 2)] / (n d). PyTorch's `torch.fft.rfftfreq`.
 *
 * Shape: [floor(n / 2) + 1].
 *
 * @throws ArgumentError if `n` is below 1.
 * @example torch.fft.rfftfreq(4).toArray() // [0, 0.25, 0.5]
 */
export const rfftfreq: OpFunction<Frequencies> = defineOp({
  schema: 'rfftfreq(int n, float d=1, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  namespace: 'torch.fft',
  decompose: (n, d, dtype, requiresGrad) => {
    checkCount('torch.fft.rfftfreq', n)
    return asLeaf('torch.fft.rfftfreq', mul(multiples(0, Math.floor(n / 2) + 1, dtype), 1 / (n * d)), requiresGrad)
  },
})

/** A shift of dimensions, by default of all. */
type Shift = (self: Tensor, dim?: number | readonly number[] | { readonly dim?: number | readonly number[] | null } | null) => Tensor

function shifted(op: string, self: Tensor, dim: readonly number[] | null, by: (size: number) => number): Tensor {
  const dims = dim?.map((d) => wrapDim(op, d, self.ndim)) ?? [...self.symSizes.keys()]
  return dims.length === 0
    ? self
    : roll(
        self,
        dims.map((d) => by(sizeAt(self.sizes, d))),
        dims,
      )
}

/**
 * The elements in the order of their frequencies: that of 0 moves to the middle. PyTorch's `torch.fft.fftshift`.
 *
 * Shape: that of `self`.
 *
 * @throws ShapeError if a dimension is out of range.
 * @example torch.fft.fftshift(torch.fft.fftfreq(4)).toArray() // [-0.5, -0.25, 0, 0.25]
 */
export const fftshift: OpFunction<Shift> = defineOp({
  schema: 'fftshift(Tensor self, int[]? dim=None) -> Tensor',
  namespace: 'torch.fft',
  decompose: (self, dim) => shifted('torch.fft.fftshift', self, dim, (size) => Math.floor(size / 2)),
})

/**
 * The inverse of {@link fftshift}. PyTorch's `torch.fft.ifftshift`.
 *
 * Shape: that of `self`.
 *
 * @throws ShapeError if a dimension is out of range.
 * @example torch.fft.ifftshift(torch.tensor([-2, -1, 0, 1])).toArray() // [0, 1, -2, -1]
 */
export const ifftshift: OpFunction<Shift> = defineOp({
  schema: 'ifftshift(Tensor self, int[]? dim=None) -> Tensor',
  namespace: 'torch.fft',
  decompose: (self, dim) => shifted('torch.fft.ifftshift', self, dim, (size) => Math.ceil(size / 2)),
})
