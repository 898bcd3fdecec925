// Other names and small variations of pointwise operators: sgn, fix, clip, rsub, degrees and radians.
import { call } from '../../kernels/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { valueText } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { div, mul, neg, pow, sign, sub } from './arithmetic.ts'
import { to } from './cast.ts'
import { clamp } from './select.ts'
import type { ClampOptions } from './select.ts'
import { trunc } from './unary.ts'

/**
 * The sign, elementwise: -1, 0 or 1. PyTorch's `torch.sgn`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.sgn(torch.tensor([3, 0, -0.5])).toArray() // [1, 0, -1]
 */
export const sgn: Op['sgn'] = defineOp({
  schema: 'sgn(Tensor self) -> Tensor',
  method: true,
  inPlace: 'method',
  decompose: (self) => sign(self),
})

/**
 * `self`, as +x says. PyTorch's `torch.positive`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.positive(torch.tensor([1, -2])).toArray() // [1, -2]
 */
export const positive: Op['positive'] = defineOp({
  schema: 'positive(Tensor self) -> Tensor',
  method: true,
  decompose: (self) => self,
})

/**
 * Rounds toward zero, elementwise: trunc. PyTorch's `torch.fix`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws DTypeError for bools.
 * @example torch.fix(torch.tensor([1.7, -1.7])).toArray() // [1, -1]
 */
export const fix: Op['fix'] = defineOp({
  schema: 'fix(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  decompose: (self) => trunc(self),
})

/**
 * The fractional part, with the sign of the number, elementwise. PyTorch's `torch.frac`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws DTypeError for bools.
 * @example torch.frac(torch.tensor([1.5, -1.25])).toArray() // [0.5, -0.25]
 */
export const frac: Op['frac'] = defineOp({
  schema: 'frac(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  decompose: (self) => sub(self, trunc(self)),
})

/**
 * Degrees as radians, elementwise. PyTorch's `torch.deg2rad`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.deg2rad(torch.tensor([180])).toArray() // [3.141593]
 */
export const deg2rad: Op['deg2rad'] = defineOp({
  schema: 'deg2rad(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  decompose: (self) => mul(self, Math.PI / 180),
})

/**
 * Radians as degrees, elementwise. PyTorch's `torch.rad2deg`.
 *
 * Shape: that of `self`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.rad2deg(torch.tensor([Math.PI])).toArray() // [180]
 */
export const rad2deg: Op['rad2deg'] = defineOp({
  schema: 'rad2deg(Tensor self) -> Tensor',
  method: true,
  inPlace: 'function',
  decompose: (self) => mul(self, 180 / Math.PI),
})

/**
 * The elementwise quotient, as {@link div} without rounding. PyTorch's `torch.true_divide`.
 *
 * Shapes: `self` and `other` broadcast; integers become floats of the default dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.trueDivide(torch.tensor([1, 2]), 2).toArray() // [0.5, 1]
 */
export const trueDivide: Op['trueDivide'] = defineOp({
  schema: 'true_divide(Tensor self, Tensor other) -> Tensor',
  tags: ['quotient'],
  method: true,
  inPlace: 'method',
  pointwise: { promotion: 'float', compute: (a, b) => call('div', a, b) },
  derivative: ([g], { args: [a, b], needs }) => [
    needs[0] ? div(g, b) : null,
    needs[1] && typeof b !== 'number' ? neg(div(mul(g, a), mul(b, b))) : null,
  ],
})

/**
 * `other - alpha * self`, elementwise. PyTorch's `torch.rsub`.
 *
 * Shapes: `self` and `other` broadcast; the result has the broadcast shape and the promoted dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.rsub(torch.tensor([1, 2]), 10).toArray() // [9, 8]
 */
export const rsub: Op['rsub'] = defineOp({
  schema: 'rsub(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor',
  pointwise: { promotion: 'promote', dtypes: 'numeric', compute: (a, b, alpha) => call('sub', b, call('mul', a, alpha)) },
  derivative: ([g], { args: [, , alpha] }) => [mul(g, -alpha), g, null],
})

/**
 * `self * 2^other`, elementwise. PyTorch's `torch.ldexp`.
 *
 * Shapes: `self` and `other` broadcast; integers become floats of the default dtype.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.ldexp(torch.tensor([1, 3]), torch.tensor([2, -1])).toArray() // [4, 1.5]
 */
export const ldexp: Op['ldexp'] = defineOp({
  schema: 'ldexp(Tensor self, Tensor other) -> Tensor',
  method: true,
  inPlace: 'function',
  decompose: (self, other) => mul(self, pow(2, other.isFloatingPoint() ? other : to(other, self.dtype === 'float64' ? 'float64' : 'float32'))),
})

/** A limit of clamp as it was given. */
function limitOf(op: string, argument: string, value: unknown): Tensor | number | null {
  if (value === null || value instanceof Tensor || typeof value === 'number') return value
  throw new ArgumentError(`${op}: argument '${argument}' must be a Tensor or a number, got ${valueText(value)}.`)
}

/**
 * The elements, but at least `min`. PyTorch's `torch.clamp_min`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws ArgumentError if `min` is neither a number nor a Tensor.
 * @example torch.clampMin(torch.tensor([-1, 2]), 0).toArray() // [0, 2]
 */
export const clampMin: OpFunction<(self: Tensor, min: Tensor | number) => Tensor> = defineOp({
  schema: 'clamp_min(Tensor self, any min) -> Tensor',
  method: true,
  inPlace: 'function',
  decompose: (self, min) => clamp(self, limitOf('torch.clamp_min', 'min', min)),
})

/**
 * The elements, but at most `max`. PyTorch's `torch.clamp_max`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws ArgumentError if `max` is neither a number nor a Tensor.
 * @example torch.clampMax(torch.tensor([-1, 2]), 0).toArray() // [-1, 0]
 */
export const clampMax: OpFunction<(self: Tensor, max: Tensor | number) => Tensor> = defineOp({
  schema: 'clamp_max(Tensor self, any max) -> Tensor',
  method: true,
  inPlace: 'function',
  decompose: (self, max) => clamp(self, null, limitOf('torch.clamp_max', 'max', max)),
})

/**
 * Limits values to `min` and `max`, elementwise: {@link clamp}. PyTorch's `torch.clip`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws ArgumentError if a limit is neither a number, nor a Tensor, nor null.
 * @example torch.clip(torch.tensor([-1, 2, 5]), 0, 3).toArray() // [0, 2, 3]
 */
export const clip: OpFunction<(self: Tensor, min?: Tensor | number | null | ClampOptions, max?: Tensor | number | null) => Tensor> = defineOp({
  schema: 'clip(Tensor self, any min=None, any max=None) -> Tensor',
  method: true,
  inPlace: 'function',
  decompose: (self, min, max) => clamp(self, limitOf('torch.clip', 'min', min), limitOf('torch.clip', 'max', max)),
})
