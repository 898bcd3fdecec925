// Whether two tensors hold the same values. These functions read data and return booleans, so they are not operators.
import { checkArgument, checkCount, checkOptions } from '../../protocol/index.ts'
import { Tensor, sameShape, exactElements } from '../../tensor/index.ts'
import { isComplexDType } from '../../kernels/index.ts'
import type { ElementValue } from '../../kernels/index.ts'

export interface AllcloseOptions {
  /** Relative tolerance, default 1e-5. */
  readonly rtol?: number
  /** Absolute tolerance, default 1e-8. */
  readonly atol?: number
  /** Whether NaN equals NaN. Default false. */
  readonly equalNan?: boolean
}

/** Whether |self - other| <= atol + rtol * |other| everywhere; false if the shapes differ. PyTorch's `torch.allclose`. */
export function allclose(self: Tensor, other: Tensor, options: AllcloseOptions = {}): boolean {
  checkCount('torch.allclose', arguments, 3)
  checkTensors('torch.allclose', self, other)
  checkOptions('torch.allclose', options, { rtol: 'number', atol: 'number', equalNan: 'boolean' })
  const { rtol = 1e-5, atol = 1e-8, equalNan = false } = options
  if (!sameShape(self.symSizes, other.symSizes)) return false
  if (isComplexDType(self.dtype) || isComplexDType(other.dtype)) return complexClose(pairElements(self), pairElements(other), rtol, atol, equalNan)
  const [values, others] = [exactElements(self), exactElements(other)]
  for (let i = 0; i < values.length; i++) if (!isClose(values[i] ?? NaN, others[i] ?? NaN, rtol, atol, equalNan)) return false
  return true
}

/** The elements in pairs of a real and an imaginary part. */
function pairElements(tensor: Tensor): readonly number[] {
  const numbers = Array.from(exactElements(tensor), Number)
  return isComplexDType(tensor.dtype) ? numbers : numbers.flatMap((x) => [x, 0])
}

/** {@link isClose} for complex numbers in pairs. */
function complexClose(values: readonly number[], others: readonly number[], rtol: number, atol: number, equalNan: boolean): boolean {
  for (let i = 0; i < values.length; i += 2) {
    const [a, b, c, d] = [values[i] ?? NaN, values[i + 1] ?? NaN, others[i] ?? NaN, others[i + 1] ?? NaN]
    if (a === c && b === d) continue
    const bothNaN = (Number.isNaN(a) || Number.isNaN(b)) && (Number.isNaN(c) || Number.isNaN(d))
    const error = Math.hypot(a - c, b - d)
    if (!(equalNan && bothNaN) && !(Number.isFinite(error) && error <= atol + rtol * Math.hypot(c, d))) return false
  }
  return true
}

/** Whether |a - b| <= atol + rtol * |b|. */
export function isClose(a: ElementValue, b: ElementValue, rtol: number, atol: number, equalNan: boolean): boolean {
  if (a === b) return true
  // Two integers that differ may be the same as numbers.
  if (typeof a === 'bigint' && typeof b === 'bigint' && rtol === 0 && atol === 0) return false
  const [x, y] = [Number(a), Number(b)]
  const error = Math.abs(x - y)
  // An infinite value is close to itself only.
  return x === y || (equalNan && Number.isNaN(x) && Number.isNaN(y)) || (Number.isFinite(error) && error <= atol + rtol * Math.abs(y))
}

/** Whether two tensors have the same shape and the same values. PyTorch's `torch.equal`. */
export function equal(self: Tensor, other: Tensor): boolean {
  checkCount('torch.equal', arguments, 2)
  checkTensors('torch.equal', self, other)
  return sameShape(self.symSizes, other.symSizes) && allclose(self, other, { rtol: 0, atol: 0 })
}

function checkTensors(where: string, self: Tensor, other: Tensor): void {
  checkArgument(self instanceof Tensor, where, 'self', 'a Tensor', self)
  checkArgument(other instanceof Tensor, where, 'other', 'a Tensor', other)
}

/** The methods of Tensor that compare. */
export const compareMethods = {
  allclose(this: Tensor, other: Tensor, options?: AllcloseOptions): boolean {
    return allclose(this, other, options)
  },
  equal(this: Tensor, other: Tensor): boolean {
    return equal(this, other)
  },
}

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    /** {@link allclose} */
    allclose(other: Tensor, options?: AllcloseOptions): boolean
    /** {@link equal} */
    equal(other: Tensor): boolean
  }
}
