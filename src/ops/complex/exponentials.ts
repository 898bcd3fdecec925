// Rules of logarithms of sums of exponentials, and of what else is computed over dimensions of complex numbers.
import { dispatch, tensorAt } from '../../dispatch/index.ts'
import { DTypeError } from '../../errors/index.ts'
import { isDType } from '../../kernels/index.ts'
import { sizeEq, wrapDim } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { cat } from '../join/join.ts'
import { abs, add, div, sub } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { eq, ge } from '../pointwise/comparison.ts'
import { clamp, where } from '../pointwise/select.ts'
import { exp, log, log1p, sqrt } from '../pointwise/unary.ts'
import { cov } from '../reduction/covariance.ts'
import { amax } from '../reduction/extremes.ts'
import { sum } from '../reduction/sum.ts'
import { sizeAt } from '../shared/shapes.ts'
import { diagonal } from '../view/diagonal.ts'
import { clone, reshape, unsqueeze } from '../view/reshape.ts'
import { narrow } from '../view/slicing.ts'
import { detach } from '../view/windows.ts'
import { fromParts, im, isComplex, re, toComplex } from './parts.ts'
import { argument, commonDType, forAll } from './rule.ts'
import type { ComplexRule, ComplexRules } from './rule.ts'

/** log(e^a + e^b): the exponential of the number with the smaller real part is taken relative to the other one. */
function logOfSum(a: Tensor, b: Tensor): Tensor {
  const first = ge(re(a), re(b))
  const [greater, lesser] = [where(first, a, b), where(first, b, a)]
  return add(greater, log1p(exp(sub(lesser, greater))))
}

const logAddExp: ComplexRule = (args) => {
  const dtype = commonDType(args.slice(0, 2))
  return logOfSum(toComplex(tensorAt(args, 0), dtype), toComplex(tensorAt(args, 1), dtype))
}

const logSumExp: ComplexRule = (args, op) => {
  const self = tensorAt(args, 0)
  const dims = [argument(op, args, 'dim')].flat().map((dim) => wrapDim(op.qualname, Number(dim), self.ndim))
  const keepdim = argument(op, args, 'keepdim') === true
  if (sizeEq(self.symNumel, 0)) return log(sum(exp(self), dims, keepdim))
  const peak = detach(amax(re(self), dims, true))
  // Subtracting an infinite peak from infinite values would give NaN.
  const top = where(eq(abs(peak), Infinity), 0, peak)
  const total = log(sum(exp(sub(self, top)), dims, keepdim))
  return add(total, keepdim ? top : reshape(top, total.symSizes))
}

/** One element after another: which of two numbers is the greater decides of which angle, up to turns, the logarithm has. */
const logRunningSumExp: ComplexRule = (args, op) => {
  const self = tensorAt(args, 0)
  if (self.ndim === 0) return clone(self)
  const dim = wrapDim(op.qualname, Number(argument(op, args, 'dim')), self.ndim)
  const sums: Tensor[] = []
  for (let i = 0; i < sizeAt(self.sizes, dim); i++) {
    const [one, before] = [narrow(self, dim, i, 1), sums.at(-1)]
    sums.push(before === undefined ? one : logOfSum(one, before))
  }
  return sums.length === 0 ? clone(self) : cat(sums, dim)
}

/** Operators on real numbers take complex ones if they cast them to a real dtype. */
const ofNamedDType: ComplexRule = (args, op) => {
  const self = tensorAt(args, 0)
  const dtype = argument(op, args, 'dtype')
  const real = isDType(dtype) ? to(self, dtype) : self
  if (isComplex(real))
    throw new DTypeError(
      `${op.qualname}: not implemented for ${real.dtype}, as complex numbers have no order; take torch.abs(x), or name a real dtype.`,
    )
  return dispatch(op, [real, ...args.slice(1)])
}

const correlations: ComplexRule = (args) => {
  const c = cov(tensorAt(args, 0))
  if (c.ndim === 0) return div(c, c)
  const deviation = sqrt(re(diagonal(c)))
  const scaled = div(div(c, unsqueeze(deviation, 1)), unsqueeze(deviation, 0))
  return fromParts(clamp(re(scaled), -1, 1), clamp(im(scaled), -1, 1))
}

export const exponentialRules: ComplexRules = {
  'torch.logaddexp': logAddExp,
  'torch.logsumexp': logSumExp,
  'torch.logcumsumexp': logRunningSumExp,
  'torch.corrcoef': correlations,
  'torch.cov': 'decomposed',
  ...forAll('softmax log_softmax', ofNamedDType),
  ...forAll('softmax log_softmax softmin', ofNamedDType, 'torch.nn.functional'),
}
