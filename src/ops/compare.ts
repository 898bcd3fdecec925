// Whether two tensors hold the same values. These read data and return booleans.
import { ArgumentError } from '../errors/index.ts'
import { nameTarget } from '../protocol/index.ts'
import { Tensor, sameShape } from '../tensor/index.ts'

export interface AllcloseOptions {
  /** Relative tolerance, default 1e-5. */
  readonly rtol?: number
  /** Absolute tolerance, default 1e-8. */
  readonly atol?: number
  readonly equalNan?: boolean
}

/** |self - other| <= atol + rtol * |other| everywhere. PyTorch's `torch.allclose`. */
export function allclose(self: Tensor, other: Tensor, options: AllcloseOptions = {}): boolean {
  for (const key of Object.keys(options))
    if (!['rtol', 'atol', 'equalNan'].includes(key))
      throw new ArgumentError(`torch.allclose: unknown option '${key}'; known are rtol, atol, equalNan.`)
  const { rtol = 1e-5, atol = 1e-8, equalNan = false } = options
  if (!sameShape(self.shape, other.shape)) return false
  const a = self.toTypedArray()
  const b = other.toTypedArray()
  for (let i = 0; i < a.length; i++) {
    const x = a[i] as number
    const y = b[i] as number
    if (x === y || (equalNan && Number.isNaN(x) && Number.isNaN(y))) continue
    if (!(Math.abs(x - y) <= atol + rtol * Math.abs(y))) return false
  }
  return true
}

/** Same shape and same values. PyTorch's `torch.equal`. */
export const equal = (self: Tensor, other: Tensor): boolean => sameShape(self.shape, other.shape) && allclose(self, other, { rtol: 0, atol: 0 })

nameTarget(allclose, { name: 'torch.allclose' })
nameTarget(equal, { name: 'torch.equal' })

Tensor.prototype.allclose = function (this: Tensor, other: Tensor, options?: AllcloseOptions): boolean {
  return allclose(this, other, options)
}
Tensor.prototype.equal = function (this: Tensor, other: Tensor): boolean {
  return equal(this, other)
}

declare module '../tensor/tensor.ts' {
  interface Tensor {
    /** {@link allclose} */
    allclose(other: Tensor, options?: AllcloseOptions): boolean
    /** {@link equal} */
    equal(other: Tensor): boolean
  }
}
