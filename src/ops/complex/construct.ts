// Complex tensors from real ones, and what they consist of: complex, polar, real, imag, conj, angle.
import { DTypeError } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { broadcastShapes, getDefaultDtype } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { fullOf } from '../create/creation.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { mul, neg } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { eq, isnan, logicalAnd, lt } from '../pointwise/comparison.ts'
import { maskedFill, where } from '../pointwise/select.ts'
import { atan2 } from '../pointwise/trigonometry.ts'
import { cos, sin } from '../pointwise/unary.ts'
import { expand } from '../view/windows.ts'
import { fromParts, im, isComplex, re, toComplex } from './parts.ts'

/** Throws DTypeError unless both are float32 or float64, and alike. */
function checkParts(op: string, names: readonly [string, string], a: Tensor, b: Tensor): void {
  if (a.dtype !== b.dtype || (a.dtype !== 'float32' && a.dtype !== 'float64'))
    throw new DTypeError(
      `${op}: ${names[0]} and ${names[1]} must both be float32 or both float64, got ${a.dtype} and ${b.dtype}; convert them first: x.float().`,
    )
}

/**
 * Complex numbers from their real and imaginary parts. PyTorch's `torch.complex`.
 *
 * Shapes: `real` and `imag` broadcast.
 *
 * @throws DTypeError unless both are float32 or both float64; ShapeError if the shapes do not broadcast.
 * @example torch.complex(torch.tensor([1]), torch.tensor([2])).toArray() // [{ re: 1, im: 2 }]
 */
export const complex: Op['complex'] = defineOp({
  schema: 'complex(Tensor real, Tensor imag) -> Tensor',
  decompose: (real, imag) => {
    checkParts('torch.complex', ['real', 'imag'], real, imag)
    const shape = broadcastShapes('torch.complex', real.symSizes, imag.symSizes)
    return fromParts(expand(real, shape), expand(imag, shape))
  },
})

/**
 * Complex numbers from their absolute values and angles. PyTorch's `torch.polar`.
 *
 * Shapes: `abs` and `angle` broadcast.
 *
 * @throws DTypeError unless both are float32 or both float64; ShapeError if the shapes do not broadcast.
 * @example torch.polar(torch.tensor([2]), torch.tensor([0])).toArray() // [{ re: 2, im: 0 }]
 */
export const polar: Op['polar'] = defineOp({
  schema: 'polar(Tensor abs, Tensor angle) -> Tensor',
  autocast: 'float32',
  decompose: (abs, angle) => {
    checkParts('torch.polar', ['abs', 'angle'], abs, angle)
    return fromParts(mul(abs, cos(angle)), mul(abs, sin(angle)))
  },
})

/**
 * The real parts: a view of complex numbers; a real tensor itself. PyTorch's `torch.real`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.real(torch.tensor([{ re: 1, im: 2 }])).toArray() // [1]
 */
export const real: Op['real'] = defineOp({
  schema: 'real(Tensor self) -> Tensor',
  method: true,
  decompose: (self) => re(self),
})

/**
 * The imaginary parts of complex numbers: a view. PyTorch's `torch.imag`.
 *
 * Shape: that of `self`.
 *
 * @throws DTypeError if `self` is not complex.
 * @example torch.imag(torch.tensor([{ re: 1, im: 2 }])).toArray() // [2]
 */
export const imag: Op['imag'] = defineOp({
  schema: 'imag(Tensor self) -> Tensor',
  method: true,
  decompose: (self) => {
    if (!isComplex(self)) throw new DTypeError(`torch.imag: self must be complex, got ${self.dtype}, whose imaginary part is 0: torch.zerosLike(x).`)
    return im(self)
  },
})

/**
 * The complex conjugates: the imaginary parts negated, as a new tensor; a real tensor itself. PyTorch's `torch.conj`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.conj(torch.tensor([{ re: 1, im: 2 }])).toArray() // [{ re: 1, im: -2 }]
 */
export const conj: Op['conj'] = defineOp({
  schema: 'conj(Tensor self) -> Tensor',
  method: true,
  decompose: (self) => (isComplex(self) ? fromParts(re(self), neg(im(self))) : self),
})

/**
 * The same as {@link conj}. PyTorch's `torch.conj_physical`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.conjPhysical(torch.tensor([{ re: 1, im: 2 }])).toArray() // [{ re: 1, im: -2 }]
 */
export const conjPhysical: Op['conjPhysical'] = defineOp({
  schema: 'conj_physical(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  decompose: (self) => conj(self),
})

/**
 * `self`: conjugates are computed at once, so that none are pending. PyTorch's `torch.resolve_conj`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.resolveConj(torch.tensor([1, 2])).toArray() // [1, 2]
 */
export const resolveConj: Op['resolveConj'] = defineOp({
  schema: 'resolve_conj(Tensor self) -> Tensor',
  method: true,
  decompose: (self) => self,
})

/**
 * `self`: negatives are computed at once, so that none are pending. PyTorch's `torch.resolve_neg`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.resolveNeg(torch.tensor([1, 2])).toArray() // [1, 2]
 */
export const resolveNeg: Op['resolveNeg'] = defineOp({
  schema: 'resolve_neg(Tensor self) -> Tensor',
  method: true,
  decompose: (self) => self,
})

/**
 * The angle of each number, from -pi to pi: for real ones 0, or pi if they are negative. PyTorch's `torch.angle`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.angle(torch.tensor([{ re: 0, im: 1 }])).toArray() // [1.570796]
 */
export const angle: Op['angle'] = defineOp({
  schema: 'angle(Tensor self) -> Tensor',
  method: true,
  decompose: (self) => {
    if (!isComplex(self)) {
      const x = dtypeInfo[self.dtype].floating ? self : to(self, getDefaultDtype())
      const zero = mul(where(isnan(x), x, fullOf(x.symSizes, 0, x.dtype)), 1)
      return where(lt(x, 0), fullOf(x.symSizes, Math.PI, x.dtype), zero)
    }
    const [x, y] = [re(self), im(self)]
    // At 0 the gradient is 0, as in PyTorch.
    const isZero = logicalAnd(eq(x, 0), eq(y, 0))
    return where(isZero, atan2(y.detach(), x.detach()), atan2(y, maskedFill(x, isZero, 1)))
  },
})

/**
 * The tensor as complex64; itself if it is complex64 already. PyTorch's `Tensor.cfloat`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tensor([1]).cfloat().toArray() // [{ re: 1, im: 0 }]
 */
export const cfloat: Op['cfloat'] = defineOp({
  schema: 'cfloat(Tensor self) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self) => toComplex(self, 'complex64'),
})

/**
 * The tensor as complex128; itself if it is complex128 already. PyTorch's `Tensor.cdouble`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tensor([1]).cdouble().dtype // 'complex128'
 */
export const cdouble: Op['cdouble'] = defineOp({
  schema: 'cdouble(Tensor self) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self) => toComplex(self, 'complex128'),
})
