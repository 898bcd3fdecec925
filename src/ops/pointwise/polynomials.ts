// Orthogonal polynomials of torch.special: Chebyshev's four kinds and their shifted forms, Hermite's two, Laguerre's and Legendre's.
import { call } from '../../kernels/index.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'

/**
 * The Chebyshev polynomial of the first kind T of degree `n` at `self`, elementwise: T_0 = 1, T_1 = x, T_(n+1) = 2x T_n - T_(n-1). It is 0 for negative `n`;
 * PyTorch's `torch.special.chebyshev_polynomial_t`, which has no gradient either.
 *
 * Shape: that to which `self` and `n` broadcast; integers become floats of the default dtype. `n` is truncated.
 *
 * @throws ArgumentError if both are numbers.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.special.chebyshevPolynomialT(torch.tensor([0.5, 2]), torch.tensor([2, 3])).toArray() // [-0.5, 26]
 */
export const chebyshevPolynomialT: Op['chebyshevPolynomialT'] = defineOp({
  schema: 'chebyshev_polynomial_t(Tensor self, Tensor n) -> Tensor',
  namespace: 'torch.special',
  tags: ['numberFirst'],
  pointwise: { promotion: 'float', compute: (x, n) => call('chebyshevT', x, n) },
})

/**
 * The Chebyshev polynomial of the second kind U of degree `n` at `self`, elementwise: U_0 = 1, U_1 = 2x, U_(n+1) = 2x U_n - U_(n-1). It is 0 for negative `n`;
 * PyTorch's `torch.special.chebyshev_polynomial_u`, which has no gradient either.
 *
 * Shape: that to which `self` and `n` broadcast; integers become floats of the default dtype. `n` is truncated.
 *
 * @throws ArgumentError if both are numbers.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.special.chebyshevPolynomialU(torch.tensor([0.5, 2]), torch.tensor([2, 3])).toArray() // [0, 56]
 */
export const chebyshevPolynomialU: Op['chebyshevPolynomialU'] = defineOp({
  schema: 'chebyshev_polynomial_u(Tensor self, Tensor n) -> Tensor',
  namespace: 'torch.special',
  tags: ['numberFirst'],
  pointwise: { promotion: 'float', compute: (x, n) => call('chebyshevU', x, n) },
})

/**
 * The Chebyshev polynomial of the third kind V of degree `n` at `self`, elementwise: V_0 = 1, V_1 = 2x - 1, V_(n+1) = 2x V_n - V_(n-1). It is 0 for negative
 * `n`; PyTorch's `torch.special.chebyshev_polynomial_v`, which has no gradient either.
 *
 * Shape: that to which `self` and `n` broadcast; integers become floats of the default dtype. `n` is truncated.
 *
 * @throws ArgumentError if both are numbers.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.special.chebyshevPolynomialV(torch.tensor([0.5, 2]), torch.tensor([2, 3])).toArray() // [-1, 41]
 */
export const chebyshevPolynomialV: Op['chebyshevPolynomialV'] = defineOp({
  schema: 'chebyshev_polynomial_v(Tensor self, Tensor n) -> Tensor',
  namespace: 'torch.special',
  tags: ['numberFirst'],
  pointwise: { promotion: 'float', compute: (x, n) => call('chebyshevV', x, n) },
})

/**
 * The Chebyshev polynomial of the fourth kind W of degree `n` at `self`, elementwise: W_0 = 1, W_1 = 2x + 1, W_(n+1) = 2x W_n - W_(n-1). It is 0 for negative
 * `n`; PyTorch's `torch.special.chebyshev_polynomial_w`, which has no gradient either.
 *
 * Shape: that to which `self` and `n` broadcast; integers become floats of the default dtype. `n` is truncated.
 *
 * @throws ArgumentError if both are numbers.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.special.chebyshevPolynomialW(torch.tensor([0.5, 2]), torch.tensor([2, 3])).toArray() // [1, 71]
 */
export const chebyshevPolynomialW: Op['chebyshevPolynomialW'] = defineOp({
  schema: 'chebyshev_polynomial_w(Tensor self, Tensor n) -> Tensor',
  namespace: 'torch.special',
  tags: ['numberFirst'],
  pointwise: { promotion: 'float', compute: (x, n) => call('chebyshevW', x, n) },
})

/**
 * The shifted Chebyshev polynomial of the first kind of degree `n` at `self`, elementwise: T_n(2x - 1). It is 0 for negative `n`; PyTorch's
 * `torch.special.shifted_chebyshev_polynomial_t`, which has no gradient either.
 *
 * Shape: that to which `self` and `n` broadcast; integers become floats of the default dtype. `n` is truncated.
 *
 * @throws ArgumentError if both are numbers.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.special.shiftedChebyshevPolynomialT(torch.tensor([0.75, 2]), torch.tensor([2, 2])).toArray() // [-0.5, 17]
 */
export const shiftedChebyshevPolynomialT: Op['shiftedChebyshevPolynomialT'] = defineOp({
  schema: 'shifted_chebyshev_polynomial_t(Tensor self, Tensor n) -> Tensor',
  namespace: 'torch.special',
  tags: ['numberFirst'],
  pointwise: { promotion: 'float', compute: (x, n) => call('shiftedChebyshevT', x, n) },
})

/**
 * The shifted Chebyshev polynomial of the second kind of degree `n` at `self`, elementwise: U_n(2x - 1). It is 0 for negative `n`; PyTorch's
 * `torch.special.shifted_chebyshev_polynomial_u`, which has no gradient either.
 *
 * Shape: that to which `self` and `n` broadcast; integers become floats of the default dtype. `n` is truncated.
 *
 * @throws ArgumentError if both are numbers.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.special.shiftedChebyshevPolynomialU(torch.tensor([0.75, 2]), torch.tensor([2, 2])).toArray() // [0, 35]
 */
export const shiftedChebyshevPolynomialU: Op['shiftedChebyshevPolynomialU'] = defineOp({
  schema: 'shifted_chebyshev_polynomial_u(Tensor self, Tensor n) -> Tensor',
  namespace: 'torch.special',
  tags: ['numberFirst'],
  pointwise: { promotion: 'float', compute: (x, n) => call('shiftedChebyshevU', x, n) },
})

/**
 * The shifted Chebyshev polynomial of the third kind of degree `n` at `self`, elementwise: V_n(2x - 1). It is 0 for negative `n`; PyTorch's
 * `torch.special.shifted_chebyshev_polynomial_v`, which has no gradient either.
 *
 * Shape: that to which `self` and `n` broadcast; integers become floats of the default dtype. `n` is truncated.
 *
 * @throws ArgumentError if both are numbers.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.special.shiftedChebyshevPolynomialV(torch.tensor([0.75, 2]), torch.tensor([2, 2])).toArray() // [-1, 29]
 */
export const shiftedChebyshevPolynomialV: Op['shiftedChebyshevPolynomialV'] = defineOp({
  schema: 'shifted_chebyshev_polynomial_v(Tensor self, Tensor n) -> Tensor',
  namespace: 'torch.special',
  tags: ['numberFirst'],
  pointwise: { promotion: 'float', compute: (x, n) => call('shiftedChebyshevV', x, n) },
})

/**
 * The shifted Chebyshev polynomial of the fourth kind of degree `n` at `self`, elementwise: W_n(2x - 1). It is 0 for negative `n`; PyTorch's
 * `torch.special.shifted_chebyshev_polynomial_w`, which has no gradient either.
 *
 * Shape: that to which `self` and `n` broadcast; integers become floats of the default dtype. `n` is truncated.
 *
 * @throws ArgumentError if both are numbers.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.special.shiftedChebyshevPolynomialW(torch.tensor([0.75, 2]), torch.tensor([2, 2])).toArray() // [1, 41]
 */
export const shiftedChebyshevPolynomialW: Op['shiftedChebyshevPolynomialW'] = defineOp({
  schema: 'shifted_chebyshev_polynomial_w(Tensor self, Tensor n) -> Tensor',
  namespace: 'torch.special',
  tags: ['numberFirst'],
  pointwise: { promotion: 'float', compute: (x, n) => call('shiftedChebyshevW', x, n) },
})

/**
 * The physicist's Hermite polynomial H of degree `n` at `self`, elementwise: H_0 = 1, H_1 = 2x, H_(n+1) = 2x H_n - 2n H_(n-1); NaN for degrees above 512. It is
 * 0 for negative `n`; PyTorch's `torch.special.hermite_polynomial_h`, which has no gradient either.
 *
 * Shape: that to which `self` and `n` broadcast; integers become floats of the default dtype. `n` is truncated.
 *
 * @throws ArgumentError if both are numbers.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.special.hermitePolynomialH(torch.tensor([0.5, 2]), torch.tensor([2, 3])).toArray() // [-1, 40]
 */
export const hermitePolynomialH: Op['hermitePolynomialH'] = defineOp({
  schema: 'hermite_polynomial_h(Tensor self, Tensor n) -> Tensor',
  namespace: 'torch.special',
  tags: ['numberFirst'],
  pointwise: { promotion: 'float', compute: (x, n) => call('hermiteH', x, n) },
})

/**
 * The probabilist's Hermite polynomial He of degree `n` at `self`, elementwise: He_0 = 1, He_1 = x, He_(n+1) = x He_n - n He_(n-1); NaN for degrees above 512.
 * It is 0 for negative `n`; PyTorch's `torch.special.hermite_polynomial_he`, which has no gradient either.
 *
 * Shape: that to which `self` and `n` broadcast; integers become floats of the default dtype. `n` is truncated.
 *
 * @throws ArgumentError if both are numbers.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.special.hermitePolynomialHe(torch.tensor([0.5, 2]), torch.tensor([2, 3])).toArray() // [-0.75, 2]
 */
export const hermitePolynomialHe: Op['hermitePolynomialHe'] = defineOp({
  schema: 'hermite_polynomial_he(Tensor self, Tensor n) -> Tensor',
  namespace: 'torch.special',
  tags: ['numberFirst'],
  pointwise: { promotion: 'float', compute: (x, n) => call('hermiteHe', x, n) },
})

/**
 * The Laguerre polynomial L of degree `n` at `self`, elementwise: L_0 = 1, L_1 = 1 - x, (n + 1) L_(n+1) = (2n + 1 - x) L_n - n L_(n-1). It is 0 for negative
 * `n`; PyTorch's `torch.special.laguerre_polynomial_l`, which has no gradient either. Degrees above 2^20 give NaN.
 *
 * Shape: that to which `self` and `n` broadcast; integers become floats of the default dtype. `n` is truncated.
 *
 * @throws ArgumentError if both are numbers.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.special.laguerrePolynomialL(torch.tensor([2, 1]), torch.tensor([2, 3])).toArray() // [-1, -0.666667]
 */
export const laguerrePolynomialL: Op['laguerrePolynomialL'] = defineOp({
  schema: 'laguerre_polynomial_l(Tensor self, Tensor n) -> Tensor',
  namespace: 'torch.special',
  tags: ['numberFirst'],
  pointwise: { promotion: 'float', compute: (x, n) => call('laguerre', x, n) },
})

/**
 * The Legendre polynomial P of degree `n` at `self`, elementwise: P_0 = 1, P_1 = x, (n + 1) P_(n+1) = (2n + 1) x P_n - n P_(n-1). It is 0 for negative `n`;
 * PyTorch's `torch.special.legendre_polynomial_p`, which has no gradient either. Degrees above 2^20 give NaN.
 *
 * Shape: that to which `self` and `n` broadcast; integers become floats of the default dtype. `n` is truncated.
 *
 * @throws ArgumentError if both are numbers.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.special.legendrePolynomialP(torch.tensor([0.5, 2]), torch.tensor([2, 3])).toArray() // [-0.125, 17]
 */
export const legendrePolynomialP: Op['legendrePolynomialP'] = defineOp({
  schema: 'legendre_polynomial_p(Tensor self, Tensor n) -> Tensor',
  namespace: 'torch.special',
  tags: ['numberFirst'],
  pointwise: { promotion: 'float', compute: (x, n) => call('legendre', x, n) },
})
