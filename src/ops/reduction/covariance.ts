// Covariances and correlations.
import { ArgumentError, DTypeError, ShapeError } from '../../errors/index.ts'
import { realDType } from '../../kernels/index.ts'
import { formatShape, sizeEq, sizeMax, sizeSub, scalarOf } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { admits } from '../eager/admittedTypes.ts'
import { asFloating } from '../eager/promotion.ts'
import { matmul } from '../linalg/matmul.ts'
import { div, mul, sub } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { clamp } from '../pointwise/select.ts'
import { sqrt } from '../pointwise/unary.ts'
import { adjoint } from '../view/arrange.ts'
import { diagonal } from '../view/diagonal.ts'
import { reshape, unsqueeze } from '../view/reshape.ts'
import { sizeAt } from '../shared/shapes.ts'
import { amin } from './extremes.ts'
import { mean } from './mean.ts'
import { sum } from './sum.ts'

export interface CovOptions {
  /** What is subtracted from the number of observations in the divisor. Default 1. */
  readonly correction?: number
  /** How often each observation counts: integers. */
  readonly fweights?: Tensor | null
  /** The importance of each observation. */
  readonly aweights?: Tensor | null
}

/**
 * Covariances of variables, the rows of a matrix whose columns are observations. PyTorch's `torch.cov`.
 *
 * Shape: [variables, observations] gives [variables, variables]; [observations] and a single variable give [].
 *
 * @throws ShapeError if `self` has more than 2 dimensions, or weights do not fit it.
 * @throws ArgumentError if weights are negative.
 * @example torch.cov(torch.tensor([[0, 2], [3, 1]])).toArray() // [[2, -2], [-2, 2]]
 */
export const cov: OpFunction<(self: Tensor, options?: CovOptions) => Tensor> = defineOp({
  schema: 'cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor',
  method: true,
  decompose: (self, correction, fweights, aweights) => {
    if (self.ndim > 2) throw new ShapeError(`torch.cov: expected at most 2 dimensions, got shape ${formatShape(self.symSizes)}.`)
    const matrix = self.ndim === 2 ? self : reshape(self, [1, -1])
    const x = to(matrix, asFloating(matrix.dtype))
    checkWeights('fweights', fweights, x, 'integer')
    checkWeights('aweights', aweights, x, 'floating')
    const f = fweights === null ? null : to(fweights, realDType(x.dtype))
    const weights = f === null ? aweights : aweights === null ? f : mul(f, aweights)
    const products = (centered: Tensor, right: Tensor): Tensor => matmul(centered, adjoint(right))
    if (weights === null) {
      const centered = sub(x, mean(x, [1], true))
      return shaped(self, div(products(centered, centered), scalarOf(sizeMax(0, sizeSub(x.symSizes[1] ?? 0, correction)))))
    }
    const all = sum(weights)
    const centered = sub(x, div(sum(mul(x, weights), [1], true), all))
    const lost = aweights === null ? correction : div(mul(sum(mul(weights, aweights)), correction), all)
    return shaped(self, div(products(mul(centered, weights), centered), clamp(sub(all, lost), 0)))
  },
})

/** The covariance of a single variable is a number. */
const shaped = (self: Tensor, matrix: Tensor): Tensor => (self.ndim === 2 && !sizeEq(self.symSizes[0], 1) ? matrix : reshape(matrix, []))

/** Throws unless the weights fit the observations, the columns of `x`. */
function checkWeights(name: string, weights: Tensor | null, x: Tensor, kind: 'integer' | 'floating'): void {
  if (weights === null) return
  if (weights.ndim > 1 || !sizeEq(weights.symNumel, sizeAt(x.symSizes, 1)))
    throw new ShapeError(
      `torch.cov: argument '${name}' must have one dimension with a number for each of the ${sizeAt(x.symSizes, 1).toString()} observations, got shape ${formatShape(weights.symSizes)}.`,
    )
  if (!admits(kind, weights.dtype))
    throw new DTypeError(
      `torch.cov: argument '${name}' must hold ${kind === 'integer' ? 'integers' : 'floating-point numbers'}, got ${weights.dtype}.`,
    )
  if (!weights.isFake && weights.numel > 0 && amin(weights.detach()).item() < 0)
    throw new ArgumentError(`torch.cov: argument '${name}' must not be negative.`)
}

/**
 * Pearson's correlation coefficients of variables, the rows of a matrix whose columns are observations. PyTorch's `torch.corrcoef`.
 *
 * Shape: [variables, observations] gives [variables, variables]; [observations] gives [].
 *
 * @throws ShapeError if `self` has more than 2 dimensions.
 * @example torch.corrcoef(torch.tensor([[0, 2], [3, 1]])).toArray() // [[1, -1], [-1, 1]]
 */
export const corrcoef: Op['corrcoef'] = defineOp({
  schema: 'corrcoef(Tensor self) -> Tensor',
  method: true,
  decompose: (self) => {
    const c = cov(self)
    if (c.ndim === 0) return div(c, c)
    const deviation = sqrt(diagonal(c))
    return clamp(div(div(c, unsqueeze(deviation, 1)), unsqueeze(deviation, 0)), -1, 1)
  },
})
