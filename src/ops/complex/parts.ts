// Real and imaginary parts of tensors, and complex tensors of them: what the rules for complex numbers are written with.
import { isComplexDType, realDType } from '../../kernels/index.ts'
import type { ComplexDType } from '../../kernels/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { fullOf } from '../create/creation.ts'
import { stack } from '../join/join.ts'
import { to } from '../pointwise/cast.ts'
import { select } from '../view/slicing.ts'
import { fromPairs, viewAsReal } from './views.ts'

/** A complex tensor. */
export type ComplexTensor = Tensor & { readonly dtype: ComplexDType }

/** Whether a value is a complex tensor. */
export const isComplex = (value: unknown): value is ComplexTensor => value instanceof Tensor && isComplexDType(value.dtype)

/** The real part; a real tensor itself. */
export const re = (x: Tensor): Tensor => (isComplex(x) ? select(viewAsReal(x), -1, 0) : x)

/** The imaginary part, zeros for a real tensor. */
export const im = (x: Tensor): Tensor => (isComplex(x) ? select(viewAsReal(x), -1, 1) : fullOf(x.symSizes, 0, x.dtype))

/** The complex tensor of two parts of one shape and dtype. */
export const fromParts = (real: Tensor, imaginary: Tensor): Tensor => fromPairs(stack([real, imaginary], -1))

/** A tensor in a complex dtype; itself if it has it already. */
export function toComplex(x: Tensor, dtype: ComplexDType): Tensor {
  if (x.dtype === dtype) return x
  const real = realDType(dtype)
  if (isComplex(x)) return fromPairs(to(viewAsReal(x), real))
  return fromParts(to(x, real), fullOf(x.symSizes, 0, real))
}

/** What becomes of the numbers of a complex tensor, all in the same way. */
export const onPairs = (x: Tensor, map: (pairs: Tensor) => Tensor): Tensor => fromPairs(map(viewAsReal(x)))
