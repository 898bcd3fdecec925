// Logarithmic ranges, and windows of signal processing. A periodic window is the symmetric window of length n + 1 without its last value.
import { ArgumentError } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { getDefaultDtype } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { arange, asLeaf, linspace, ones } from './creation.ts'
import type { CreationOptions } from './creation.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import { accumulatedIn } from '../eager/promotion.ts'
import { abs, add, mul, neg, pow, sub } from '../pointwise/arithmetic.ts'
import { i0 } from '../pointwise/bessel.ts'
import { to } from '../pointwise/cast.ts'
import { clamp } from '../pointwise/select.ts'
import { cos, sqrt, square } from '../pointwise/unary.ts'

/**
 * Powers of `base` whose exponents are at equal distances from `start` to `end`, both included. PyTorch's `torch.logspace`.
 *
 * Shape: [steps].
 *
 * @throws ArgumentError if `steps` is negative.
 * @example torch.logspace(0, 2, 3).toArray() // [1, 10, 100]
 */
export const logspace: OpFunction<
  (start: number, end: number, steps: number, base?: number | (CreationOptions & { readonly base?: number }), options?: CreationOptions) => Tensor
> = defineOp({
  schema: 'logspace(Scalar start, Scalar end, int steps, float base=10.0, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (start, end, steps, base, dtype, requiresGrad) => {
    if (steps < 0) throw new ArgumentError(`torch.logspace: argument 'steps' must be at least 0, got ${steps}.`)
    const out = dtype ?? getDefaultDtype()
    const exact = linspace(Number(start), Number(end), steps, { dtype: 'float64' })
    return asLeaf('torch.logspace', to(pow(base, exact), out), requiresGrad)
  },
})

/** The window whose values are `fn` of the positions, 0 to `last`. */
function windowOf(
  op: string,
  length: number,
  periodic: boolean,
  dtype: DType | null,
  requiresGrad: boolean,
  fn: (positions: Tensor, last: number) => Tensor,
): Tensor {
  const out = dtype ?? getDefaultDtype()
  if (length < 0) throw new ArgumentError(`${op}: window_length must be at least 0, got ${length}.`)
  if (!dtypeInfo[out].floating) throw new ArgumentError(`${op}: dtype must be a floating-point one, got ${out}.`)
  if (length <= 1) return ones([length], { dtype: out, requiresGrad })
  const values = fn(arange(length, { dtype: accumulatedIn(out) }), periodic ? length : length - 1)
  return asLeaf(op, to(values, out), requiresGrad)
}

/** a0 - a1 cos(2 pi n / last) + a2 cos(4 pi n / last) */
function cosines(positions: Tensor, last: number, [a0, a1, a2]: readonly [number, number, number]): Tensor {
  const sum = add(mul(cos(mul(positions, (2 * Math.PI) / last)), -a1), a0)
  return a2 === 0 ? sum : add(sum, mul(cos(mul(positions, (4 * Math.PI) / last)), a2))
}

export interface WindowOptions extends CreationOptions {
  /** Default true. */
  readonly periodic?: boolean
}

type Window = (windowLength: number, periodic?: boolean | WindowOptions, options?: CreationOptions) => Tensor

/**
 * Hann's window: sin^2 of half a turn. PyTorch's `torch.hann_window`.
 *
 * Shape: [windowLength].
 *
 * @throws ArgumentError if `windowLength` is negative, or `dtype` is not floating.
 * @example torch.hannWindow(4).toArray() // [0, 0.5, 1, 0.5]
 */
export const hannWindow: OpFunction<Window> = defineOp({
  schema: 'hann_window(int window_length, bool periodic=True, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (length, periodic, dtype, requiresGrad) =>
    windowOf('torch.hann_window', length, periodic, dtype, requiresGrad, (n, last) => cosines(n, last, [0.5, 0.5, 0])),
})

/**
 * Hamming's window: alpha - beta cos of a turn. PyTorch's `torch.hamming_window`.
 *
 * Shape: [windowLength].
 *
 * @throws ArgumentError if `windowLength` is negative, or `dtype` is not floating.
 * @example torch.hammingWindow(3, false).toArray() // [0.08, 1, 0.08]
 */
export const hammingWindow: OpFunction<
  (
    windowLength: number,
    periodic?: boolean | (WindowOptions & { readonly alpha?: number; readonly beta?: number }),
    alpha?: number,
    beta?: number,
    options?: CreationOptions,
  ) => Tensor
> = defineOp({
  schema:
    'hamming_window(int window_length, bool periodic=True, float alpha=0.54, float beta=0.46, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (length, periodic, alpha, beta, dtype, requiresGrad) =>
    windowOf('torch.hamming_window', length, periodic, dtype, requiresGrad, (n, last) => cosines(n, last, [alpha, beta, 0])),
})

/**
 * Blackman's window: 0.42 - 0.5 cos of a turn + 0.08 cos of two. PyTorch's `torch.blackman_window`.
 *
 * Shape: [windowLength].
 *
 * @throws ArgumentError if `windowLength` is negative, or `dtype` is not floating.
 * @example torch.blackmanWindow(5, false).toArray() // [0, 0.34, 1, 0.34, 0]
 */
export const blackmanWindow: OpFunction<Window> = defineOp({
  schema: 'blackman_window(int window_length, bool periodic=True, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (length, periodic, dtype, requiresGrad) =>
    windowOf('torch.blackman_window', length, periodic, dtype, requiresGrad, (n, last) => cosines(n, last, [0.42, 0.5, 0.08])),
})

/**
 * Bartlett's window: a triangle from 0 to 1 and back. PyTorch's `torch.bartlett_window`.
 *
 * Shape: [windowLength].
 *
 * @throws ArgumentError if `windowLength` is negative, or `dtype` is not floating.
 * @example torch.bartlettWindow(4).toArray() // [0, 0.5, 1, 0.5]
 */
export const bartlettWindow: OpFunction<Window> = defineOp({
  schema: 'bartlett_window(int window_length, bool periodic=True, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (length, periodic, dtype, requiresGrad) =>
    windowOf('torch.bartlett_window', length, periodic, dtype, requiresGrad, (n, last) => add(neg(abs(sub(mul(n, 2 / last), 1))), 1)),
})

/**
 * Kaiser's window: I0(beta sqrt(1 - x^2)) / I0(beta), for x from -1 to 1. PyTorch's `torch.kaiser_window`.
 *
 * Shape: [windowLength].
 *
 * @throws ArgumentError if `windowLength` is negative, or `dtype` is not floating.
 * @example torch.kaiserWindow(3, false, 2).toArray() // [0.438676, 1, 0.438676]
 */
export const kaiserWindow: OpFunction<
  (windowLength: number, periodic?: boolean | (WindowOptions & { readonly beta?: number }), beta?: number, options?: CreationOptions) => Tensor
> = defineOp({
  schema: 'kaiser_window(int window_length, bool periodic=True, float beta=12.0, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (length, periodic, beta, dtype, requiresGrad) =>
    windowOf('torch.kaiser_window', length, periodic, dtype, requiresGrad, (n, last) => {
      const x = sub(mul(n, 2 / last), 1)
      const inside = i0(mul(sqrt(clamp(add(neg(square(x)), 1), 0)), beta))
      return inside.div(i0(mul(ones([], { dtype: n.dtype }), beta)))
    }),
})
