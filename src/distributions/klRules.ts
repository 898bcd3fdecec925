// The divergences that have a formula. Pairs without one, and their reasons to be infinite, are PyTorch's.
import { UnsupportedError } from '../errors/index.ts'
import { any, solveTriangular, softplus, full } from '../ops/index.ts'
import { checkCount } from '../protocol/index.ts'
import { broadcastShapes, sameShape } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { Categorical, OneHotCategorical } from './categorical.ts'
import { Bernoulli, Binomial, Geometric, Poisson } from './discrete.ts'
import { sumOfLast } from './distribution.ts'
import type { Distribution } from './distribution.ts'
import { Beta, Dirichlet, Gamma } from './gamma.ts'
import { KlTable, checkDistributions, checkRule } from './kl.ts'
import type { DistributionClass } from './kl.ts'
import { MultivariateNormal, halfLogDet, mahalanobis } from './multivariateNormal.ts'
import { Cauchy, EULER, Exponential, Gumbel, HalfNormal, Laplace, Normal, Uniform } from './normal.ts'
import { sameTransforms } from './transform.ts'
import { Independent, TransformedDistribution } from './transformed.ts'

const table = new KlTable()

/**
 * KL(p || q), the mean of log p(x) - log q(x) over samples x of `p`. Shape: the batch shapes, broadcast. PyTorch's `kl_divergence`.
 *
 * @throws UnsupportedError for pairs without a formula, see {@link registerKl}.
 * @example klDivergence(new Normal(0, 1), new Normal(1, 1)).item() // 0.5
 */
export function klDivergence(p: Distribution, q: Distribution): Tensor {
  checkCount('klDivergence', arguments, 2)
  checkDistributions('klDivergence', { p, q })
  return table.compute(p, q)
}

/**
 * Gives the formula of {@link klDivergence} for two classes of distributions and their subclasses; the nearest classes count. PyTorch's `register_kl`.
 *
 * @example registerKl(MyNormal, Normal, (p, q) => klDivergence(p.normal, q))
 */
export function registerKl<P extends Distribution, Q extends Distribution>(
  p: DistributionClass<P>,
  q: DistributionClass<Q>,
  rule: (p: P, q: Q) => Tensor,
): void {
  checkCount('registerKl', arguments, 3)
  checkRule(p, q, rule)
  table.add(p, q, rule)
}

const orInfinity = (x: Tensor, isInfinite: Tensor): Tensor => x.maskedFill(isInfinite, Infinity)
/** x log x, 0 at 0. */
const xlogx = (x: Tensor): Tensor => x.xlogy(x)
/** 1 - x */
const rest = (x: Tensor): Tensor => x.neg().add(1)
const HALF_LOG_TAU = Math.log(2 * Math.PI) / 2

// ---- two of one kind

table.add(Bernoulli, Bernoulli, (p, q) => {
  const [pl, ql] = [p.logits, q.logits]
  const yes = p.probs.mul(softplus(ql.neg()).sub(softplus(pl.neg())))
  const no = rest(p.probs).mul(softplus(ql).sub(softplus(pl)))
  const yesLimited = orInfinity(yes, q.probs.eq(0)).maskedFill(p.probs.eq(0), 0)
  return yesLimited.add(orInfinity(no, q.probs.eq(1)).maskedFill(p.probs.eq(1), 0))
})

table.add(Binomial, Binomial, (p, q) => {
  if (any(p.totalCount.lt(q.totalCount)).item())
    throw new UnsupportedError('klDivergence: there is no formula for binomial distributions where q has more trials than p.')
  const one = p.probs.mul(p.logits.sub(q.logits)).add(p.probs.neg().log1p()).sub(q.probs.neg().log1p())
  return orInfinity(p.totalCount.mul(one), p.totalCount.gt(q.totalCount))
})

table.add(Categorical, Categorical, (p, q) => {
  const terms = p.probs.mul(p.logits.sub(q.logits))
  return orInfinity(terms, q.probs.eq(0)).maskedFill(p.probs.eq(0), 0).sum(-1)
})

table.add(OneHotCategorical, OneHotCategorical, (p, q) => klDivergence(p.categorical, q.categorical))

table.add(Geometric, Geometric, (p, q) => p.entropy().neg().sub(q.probs.neg().log1p().div(p.probs)).sub(q.logits))

table.add(Poisson, Poisson, (p, q) => p.rate.mul(p.rate.log().sub(q.rate.log())).sub(p.rate.sub(q.rate)))

table.add(Beta, Beta, (p, q) => {
  const [pSum, qSum] = [p.concentration1.add(p.concentration0), q.concentration1.add(q.concentration0)]
  const norm = (d: Beta, sum: Tensor): Tensor => d.concentration1.lgamma().add(d.concentration0.lgamma()).sub(sum.lgamma())
  return norm(q, qSum)
    .sub(norm(p, pSum))
    .add(p.concentration1.sub(q.concentration1).mul(p.concentration1.digamma()))
    .add(p.concentration0.sub(q.concentration0).mul(p.concentration0.digamma()))
    .add(qSum.sub(pSum).mul(pSum.digamma()))
})

table.add(Dirichlet, Dirichlet, (p, q) => {
  const [a, b] = [p.concentration, q.concentration]
  const total = a.sum(-1)
  return total
    .lgamma()
    .sub(b.sum(-1).lgamma())
    .add(b.lgamma().sub(a.lgamma()).sum(-1))
    .add(
      a
        .sub(b)
        .mul(a.digamma().sub(total.digamma().unsqueeze(-1)))
        .sum(-1),
    )
})

table.add(Gamma, Gamma, (p, q) =>
  q.concentration
    .mul(p.rate.div(q.rate).log())
    .add(q.concentration.lgamma().sub(p.concentration.lgamma()))
    .add(p.concentration.sub(q.concentration).mul(p.concentration.digamma()))
    .add(q.rate.sub(p.rate).mul(p.concentration.div(p.rate))),
)

table.add(Exponential, Exponential, (p, q) => {
  const ratio = q.rate.div(p.rate)
  return ratio.sub(ratio.log()).sub(1)
})

table.add(Normal, Normal, (p, q) => {
  const ratio = p.scale.div(q.scale).square()
  return ratio.add(p.loc.sub(q.loc).div(q.scale).square()).sub(1).sub(ratio.log()).div(2)
})

table.add(HalfNormal, HalfNormal, (p, q) => klDivergence(p.base, q.base))

table.add(Laplace, Laplace, (p, q) => {
  const ratio = p.scale.div(q.scale)
  const distance = p.loc.sub(q.loc).abs()
  return distance
    .div(q.scale)
    .sub(ratio.log())
    .add(ratio.mul(distance.neg().div(p.scale).exp()))
    .sub(1)
})

table.add(Cauchy, Cauchy, (p, q) => p.scale.add(q.scale).square().add(p.loc.sub(q.loc).square()).log().sub(p.scale.mul(q.scale).mul(4).log()))

table.add(Gumbel, Gumbel, (p, q) => {
  const [ratio, from, to] = [p.scale.div(q.scale), p.loc.div(q.scale), q.loc.div(q.scale)]
  return from
    .sub(to)
    .sub(ratio.log())
    .add(ratio.mul(EULER))
    .add(to.add(ratio.add(1).lgamma()).sub(from).exp())
    .sub(1 + EULER)
})

table.add(Uniform, Uniform, (p, q) => orInfinity(q.high.sub(q.low).div(p.high.sub(p.low)).log(), q.low.gt(p.low).logicalOr(q.high.lt(p.high))))

table.add(MultivariateNormal, MultivariateNormal, (p, q) => {
  const [n] = p.eventShape
  if (n === undefined || n !== q.eventShape[0])
    throw new UnsupportedError(`klDivergence: the vectors of both distributions must have as many components, got ${n} and ${q.eventShape[0]}.`)
  const batch = broadcastShapes('klDivergence', p.batchShape, q.batchShape)
  const [pTril, qTril] = [p.scaleTril.expand([...batch, n, n]), q.scaleTril.expand([...batch, n, n])]
  const trace = solveTriangular(qTril, pTril, { upper: false }).square().sum([-2, -1])
  const distance = mahalanobis(qTril, q.loc.sub(p.loc))
  return halfLogDet(qTril).sub(halfLogDet(pTril)).add(trace.add(distance).sub(n).div(2))
})

table.add(Independent, Independent, (p, q) => {
  if (p.reinterpretedBatchNdims !== q.reinterpretedBatchNdims)
    throw new UnsupportedError('klDivergence: both Independent distributions must have the same reinterpretedBatchNdims.')
  return sumOfLast(klDivergence(p.base, q.base), p.reinterpretedBatchNdims)
})

table.add(TransformedDistribution, TransformedDistribution, (p, q) => {
  if (!sameTransforms(p.transforms, q.transforms) || !sameShape(p.eventShape, q.eventShape))
    throw new UnsupportedError('klDivergence: two transformed distributions must have the same transforms and event shapes.')
  return sumOfLast(klDivergence(p.base, q.base), p.eventShape.length - p.base.eventShape.length)
})

// ---- two kinds. Where q has no density for some samples of p, the divergence is infinite.

table.add(Bernoulli, Poisson, (p, q) => p.entropy().neg().sub(p.probs.mul(q.rate.log()).sub(q.rate)))

/** -H(p) - the mean of log q, for a gamma distribution q, from the means of x and of log x. */
const toGamma = (entropy: Tensor, mean: Tensor, logMean: Tensor, q: Gamma): Tensor =>
  entropy.neg().add(q.concentration.lgamma()).sub(q.concentration.mul(q.rate.log())).sub(q.concentration.sub(1).mul(logMean)).add(q.rate.mul(mean))

/** The same for a normal distribution q, from the mean and the variance. */
const toNormal = (p: Distribution, q: Normal): Tensor =>
  p
    .entropy()
    .neg()
    .add(q.scale.log())
    .add(HALF_LOG_TAU)
    .add(p.variance.add(p.mean.sub(q.loc).square()).div(q.scale.square()).div(2))

/** The same for an exponential distribution q. */
const toExponential = (p: Distribution, q: Exponential): Tensor => p.entropy().neg().sub(q.rate.log()).add(q.rate.mul(p.mean))

/** The same for Gumbel's distribution q, from the mean of e^(-x / scale). */
const toGumbel = (p: Distribution, meanOfPower: Tensor, q: Gumbel): Tensor =>
  p.entropy().neg().add(q.scale.log()).add(p.mean.sub(q.loc).div(q.scale)).add(q.loc.div(q.scale).exp().mul(meanOfPower))

table.add(Beta, Normal, toNormal)
table.add(Gamma, Normal, toNormal)
table.add(Exponential, Normal, toNormal)
table.add(Laplace, Normal, toNormal)
table.add(Gumbel, Normal, toNormal)
table.add(Uniform, Normal, toNormal)

table.add(Beta, Exponential, toExponential)
table.add(Gamma, Exponential, toExponential)

const betaLogMean = ({ concentration1: a, concentration0: b }: Beta): Tensor => a.digamma().sub(a.add(b).digamma())
table.add(Beta, Gamma, (p, q) => toGamma(p.entropy(), p.mean, betaLogMean(p), q))
table.add(Exponential, Gamma, (p, q) => toGamma(p.entropy(), p.mean, p.rate.log().neg().sub(EULER), q))
table.add(Beta, Uniform, (p, q) => orInfinity(p.entropy().neg().add(q.entropy()), q.low.gt(0).logicalOr(q.high.lt(1))))

table.add(Exponential, Gumbel, (p, q) => toGumbel(p, p.rate.div(p.rate.add(q.scale.reciprocal())), q))
table.add(Gamma, Gumbel, (p, q) => toGumbel(p, p.rate.mul(q.scale).reciprocal().add(1).pow(p.concentration.neg()), q))
table.add(Normal, Gumbel, (p, q) => toGumbel(p, p.scale.div(q.scale).square().div(2).sub(p.loc.div(q.scale)).exp(), q))
table.add(Uniform, Gumbel, (p, q) => {
  const powers = p.low.neg().div(q.scale).exp().sub(p.high.neg().div(q.scale).exp())
  return toGumbel(p, powers.mul(q.scale).div(p.high.sub(p.low)), q)
})

table.add(Normal, Laplace, (p, q) => {
  const shift = p.loc.sub(q.loc)
  const z = shift.div(p.scale)
  const meanDistance = p.scale
    .mul(Math.sqrt(2 / Math.PI))
    .mul(z.square().div(-2).exp())
    .add(shift.mul(z.mul(Math.SQRT1_2).erf()))
  return p.entropy().neg().add(q.scale.mul(2).log()).add(meanDistance.div(q.scale))
})

/** The mean of log x of a uniform distribution over positive numbers. */
const uniformLogMean = (low: Tensor, high: Tensor): Tensor => xlogx(high).sub(xlogx(low)).div(high.sub(low)).sub(1)

table.add(Uniform, Exponential, (p, q) => orInfinity(toExponential(p, q), p.low.lt(0)))
table.add(Uniform, Gamma, (p, q) => orInfinity(toGamma(p.entropy(), p.mean, uniformLogMean(p.low, p.high), q), p.low.lt(0)))
table.add(Uniform, Beta, (p, q) => {
  const { concentration1: a, concentration0: b } = q
  const norm = a.lgamma().add(b.lgamma()).sub(a.add(b).lgamma())
  const logs = a
    .sub(1)
    .mul(uniformLogMean(p.low, p.high))
    .add(b.sub(1).mul(uniformLogMean(rest(p.high), rest(p.low))))
  return orInfinity(p.entropy().neg().add(norm).sub(logs), p.high.gt(1).logicalOr(p.low.lt(0)))
})

/** For samples of `p` outside of what the distributions `others` may give. */
function addInfinite<P extends Distribution>(
  p: DistributionClass<P>,
  others: readonly DistributionClass<Distribution>[],
  like: (p: P) => Tensor,
): void {
  for (const other of others) table.add(p, other, (one) => full(like(one).shape, Infinity, { dtype: like(one).dtype }))
}
addInfinite(Exponential, [Beta, Uniform], (p) => p.rate)
addInfinite(Gamma, [Beta, Uniform], (p) => p.rate)
for (const onReals of [Gumbel, Laplace, Normal]) addInfinite(onReals, [Beta, Exponential, Gamma, Uniform], (p) => p.loc)
addInfinite(Poisson, [Bernoulli, Binomial], (p) => p.rate)
