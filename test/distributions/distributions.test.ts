// What holds for all distributions: moments of samples, inverse functions, densities, gradients of samples, refusals.
import { afterEach, describe, expect, it } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import * as d from 'tensorfx/distributions'
import { isFull } from '../helpers/rotation.ts'
import { read } from './stored.ts'

afterEach(() => {
  d.setDefaultValidateArgs(true)
})

const t = (data: number[] | number[][]): Tensor => torch.tensor(data, { dtype: 'float64' })

const ALL: Readonly<Record<string, () => d.Distribution>> = {
  Normal: () => new d.Normal(t([1, -2]), t([0.5, 3])),
  Laplace: () => new d.Laplace(t([1, -2]), t([0.5, 3])),
  Gumbel: () => new d.Gumbel(t([1, -2]), t([0.5, 3])),
  Uniform: () => new d.Uniform(t([1, -2]), t([3, 7])),
  Exponential: () => new d.Exponential(t([0.5, 4])),
  HalfNormal: () => new d.HalfNormal(t([0.5, 2])),
  LogNormal: () => new d.LogNormal(t([0, 1]), t([0.5, 0.3])),
  Gamma: () => new d.Gamma(t([0.3, 1, 9]), t([2, 0.5, 1])),
  Chi2: () => new d.Chi2(t([1, 5])),
  StudentT: () => new d.StudentT(t([9, 30]), 1, 2),
  Beta: () => new d.Beta(t([0.5, 2]), t([0.7, 8])),
  Dirichlet: () => new d.Dirichlet(t([[0.3, 1, 2]])),
  Bernoulli: () => new d.Bernoulli(t([0.1, 0.8])),
  Binomial: () => new d.Binomial(t([3, 20]), t([0.1, 0.8])),
  Geometric: () => new d.Geometric({ logits: t([-1, 1]) }),
  Poisson: () => new d.Poisson(t([0.2, 12])),
  OneHotCategorical: () => new d.OneHotCategorical(t([[1, 2, 5]])),
  MultivariateNormal: () =>
    new d.MultivariateNormal(t([1, 2]), {
      scaleTril: t([
        [2, 0],
        [-1, 0.5],
      ]),
    }),
  Independent: () => new d.Independent(new d.Gamma(t([2, 3]), 1), 1),
}

const COUNT = isFull ? 1_000_000 : 20_000

describe.each(Object.entries(ALL))('%s', (name, make) => {
  it('has samples with its mean and variance, in its support', () => {
    const one = make()
    const x = one.sample([COUNT], { generator: new torch.Generator(7) })
    expect(x.shape).toEqual([COUNT, ...one.batchShape, ...one.eventShape])
    expect(x.requiresGrad).toBe(false)
    expect(one.support.check(x).all().item()).toBeTruthy()
    const [mean, variance] = [x.mean(0), x.var(0)]
    // Five standard errors; that of the variance from the fourth moment.
    const fourth = x.sub(mean).pow(4).mean(0)
    const meanError = one.mean.sub(mean).abs().div(one.variance.div(COUNT).sqrt())
    const varianceError = one.variance.sub(variance).abs().div(fourth.sub(variance.square()).clamp(1e-12).div(COUNT).sqrt())
    expect(meanError.max().item()).toBeLessThan(5)
    expect(varianceError.max().item()).toBeLessThan(5)
  })

  it('repeats its samples with the same seed, and has other shapes on request', () => {
    const one = make()
    const draw = (): unknown => one.sample([2, 3], { generator: new torch.Generator(3) }).toArray()
    expect(draw()).toEqual(draw())
    const wide = one.expand([4, ...one.batchShape])
    expect(wide.constructor).toBe(one.constructor)
    expect(wide.sample().shape).toEqual([4, ...one.batchShape, ...one.eventShape])
    expect(wide.mean.shape).toEqual([4, ...one.batchShape, ...one.eventShape])
  })

  it('says its parameters (difference: distribution-texts)', () => {
    const text = String(make())
    expect(text.startsWith(`${name}(`)).toBe(true)
    expect(text).not.toBe(`${name}()`)
  })

  it('has the inverse of its distribution function, and a density that adds up to 1', () => {
    const one = make()
    const probability = t([0.05, 0.3, 0.75, 0.99])
      .view(4, ...one.batchShape.map(() => 1))
      .expand([4, ...one.batchShape])
    const values = orNull(() => one.icdf(probability))
    if (values !== null) expect(one.cdf(values).sub(probability).abs().max().item()).toBeLessThan(1e-9)
    if (one.hasEnumerateSupport && name !== 'Binomial')
      expect(one.logProb(one.enumerateSupport()).exp().sum(0).sub(1).abs().max().item()).toBeLessThan(1e-9)
    if (one.eventShape.length > 0 || one.support.isDiscrete) return
    // The density is the slope of the distribution function, where there is one.
    const x = one.sample([5], { generator: new torch.Generator(1) })
    const step = x.abs().mul(1e-6)
    const slope = orNull(() =>
      one
        .cdf(x.add(step))
        .sub(one.cdf(x.sub(step)))
        .div(step.mul(2)),
    )
    if (slope !== null) expect(one.logProb(x).exp().sub(slope).abs().div(slope.add(1e-3)).max().item()).toBeLessThan(1e-3)
  })
})

/** The result; null if the distribution has no such method. */
function orNull(run: () => Tensor): Tensor | null {
  try {
    return run()
  } catch (error) {
    expect(error).toHaveProperty('code', 'TFX_UNSUPPORTED')
    return null
  }
}

describe('gradients of samples', () => {
  it('of gamma distributions are those of the inverse of the distribution function', () => {
    // F(a, x) stays the same: dx/da = -(dF/da) / (dF/dx).
    const a = t([0.1, 0.4, 1, 2.5, 6, 12, 80])
    const x = new d.Gamma(a, 1).sample([40], { generator: new torch.Generator(2) }).clamp(1e-3)
    const shapes = a.expand(x.shape)
    const slope = torch.ops.tensorfx.gammaSlope(shapes, x)
    const step = shapes.mul(1e-4)
    const change = shapes.add(step).igamma(x).sub(shapes.sub(step).igamma(x)).div(step.mul(2))
    const density = new d.Gamma(shapes, 1).logProb(x).exp()
    expect(slope.add(change.div(density)).abs().div(slope.abs().add(1e-3)).max().item()).toBeLessThan(2e-3)
  })

  it('of beta and Dirichlet distributions move the means as the parameters do', () => {
    const count = 20_000
    for (const make of [
      (c: Tensor) => new d.Dirichlet(c),
      (c: Tensor) => new d.Beta(c.select(0, 0), c.narrow(0, 1, 2).sum()),
      (c: Tensor) => new d.Gamma(c, c.sum()),
    ]) {
      const sampled = t([0.6, 2, 3]).requiresGrad_()
      const exact = t([0.6, 2, 3]).requiresGrad_()
      const weights = t([1, -2, 0.5])
      const value = (x: Tensor): Tensor => (x.ndim > 0 && x.shape.at(-1) === 3 ? x.mul(weights).sum(-1) : x).mean()
      value(make(sampled).rsample([count], { generator: new torch.Generator(4) })).backward()
      value(make(exact).mean).backward()
      expect(
        sampled.grad
          ?.sub(exact.grad ?? NaN)
          .abs()
          .max()
          .item(),
      ).toBeLessThan(0.02)
    }
  })

  it('have no gradients of their own, which is refused', () => {
    const a = t([2]).requiresGrad_()
    const [first] = torch.autograd.grad(new d.Gamma(a, 1).rsample().sum(), [a], { createGraph: true })
    expect(() => first?.sum().backward()).toThrow('there is no gradient of the gradient of a sample')
  })
})

it('divergences are the mean of the difference of the logarithms', () => {
  const generator = new torch.Generator(5)
  const pairs: (readonly [d.Distribution, d.Distribution])[] = [
    [new d.Gamma(3, 2), new d.Normal(1, 1)],
    [new d.Gumbel(0, 1), new d.Normal(1, 2)],
    [new d.Uniform(0.2, 0.9), new d.Beta(2, 3)],
    [new d.Normal(0, 0.5), new d.Gumbel(0.3, 1.5)],
    [new d.Exponential(2), new d.Gumbel(0.3, 1.5)],
    [new d.Bernoulli(0.3), new d.Poisson(0.7)],
  ]
  for (const [p, q] of pairs) {
    const x = p.sample([100_000], { generator })
    const estimate = p.logProb(x).sub(q.logProb(x)).mean().item()
    expect(d.klDivergence(p, q).item(), `${String(p)} ${String(q)}`).toBeCloseTo(estimate, 1)
  }
})

it('a program gives divergences for its own classes, and the nearest rule counts', () => {
  class Mine extends d.Normal {}
  expect(d.klDivergence(new Mine(0, 1), new d.Normal(1, 1)).item()).toBe(0.5)
  d.registerKl(Mine, d.Normal, () => torch.tensor(7))
  expect(d.klDivergence(new Mine(0, 1), new Mine(1, 1)).item()).toBe(7)
  expect(d.klDivergence(new d.Normal(0, 1), new Mine(1, 1)).item()).toBe(0.5)
  expect(() => d.registerKl(3 as never, d.Normal, () => torch.tensor(1))).toThrow("registerKl: argument 'p' must be a class of distributions")
  expect(() => d.klDivergence(3 as never, new d.Normal(0, 1))).toThrow("klDivergence: argument 'p' must be a Distribution, got 3")
})

describe('refusals', () => {
  const SAME: Readonly<Record<string, readonly [() => unknown, string]>> = {
    'Normal scale<0': [() => new d.Normal(0, -1), "Normal: parameter 'scale' must satisfy GreaterThan(lowerBound=0), got"],
    'Normal nan': [() => new d.Normal(torch.tensor([0, NaN]), 1), "Normal: parameter 'loc' must satisfy Real(), got"],
    'Normal shapes': [() => new d.Normal(torch.ones([2]), torch.ones([3])), 'Normal: '],
    'Uniform order': [() => new d.Uniform(2, 1), "Uniform: parameter 'low' must satisfy LessThan(upperBound=1), got"],
    'Bernoulli none': [() => new d.Bernoulli({}), "Bernoulli: give either 'probs' or 'logits', got none."],
    'Bernoulli probs': [() => new d.Bernoulli(1.5), "Bernoulli: parameter 'probs' must satisfy Interval(lowerBound=0, upperBound=1), got"],
    'Bernoulli value': [
      () => new d.Bernoulli(0.5).logProb(torch.tensor(0.5)),
      "Bernoulli.logProb: argument 'value' must be within the support, Boolean(), got",
    ],
    'Categorical 0d': [() => new d.Categorical(0.5), "Categorical: parameter 'probs' must have at least one dimension"],
    'Categorical negative': [() => new d.Categorical(torch.tensor([1.25, -0.25])), "Categorical: parameter 'probs' must satisfy Simplex(), got"],
    'Categorical value': [
      () => new d.Categorical(torch.ones([2])).logProb(torch.tensor(2)),
      'must be within the support, IntegerInterval(lowerBound=0, upperBound=1)',
    ],
    'Beta zero': [() => new d.Beta(0, 1), "Beta: parameter 'concentration1' must satisfy GreaterThan(lowerBound=0)"],
    'Gamma value': [() => new d.Gamma(1, 1).logProb(torch.tensor(-1)), 'must be within the support, GreaterThanEq(lowerBound=0)'],
    'Dirichlet value': [() => new d.Dirichlet(torch.ones([2])).logProb(torch.tensor([0.5, 0.6])), 'must be within the support, Simplex()'],
    'Poisson half': [() => new d.Poisson(1).logProb(torch.tensor(0.5)), 'must be within the support, IntegerGreaterThan(lowerBound=0)'],
    'Poisson rsample': [
      () => new d.Poisson(1).rsample(),
      'Poisson.rsample: there is no rsample for this distribution; its samples have no gradients',
    ],
    'Bernoulli rsample': [() => new d.Bernoulli(0.5).rsample(), 'Bernoulli.rsample: there is no rsample'],
    'Poisson entropy': [() => new d.Poisson(1).entropy(), 'Poisson.entropy: there is no entropy'],
    'Beta cdf': [() => new d.Beta(1, 1).cdf(torch.tensor(0.5)), 'Beta.cdf: there is no cdf'],
    'MVN not PD': [
      () => new d.MultivariateNormal(torch.zeros([2]), torch.eye(2).neg()),
      "parameter 'covarianceMatrix' must satisfy PositiveDefinite()",
    ],
    'MVN 0d': [
      () => new d.MultivariateNormal(torch.tensor(0), torch.eye(2)),
      "parameter 'loc' must be a tensor of at least 1 dimension, got shape []",
    ],
    'log_prob shape': [() => new d.Normal(torch.zeros([3]), 1).logProb(torch.zeros([2])), 'must broadcast with the batch shape [3]'],
    'log_prob type': [() => new d.Normal(0, 1).logProb(1 as never), "Normal.logProb: argument 'value' must be a Tensor, got 1"],
    'KL none': [() => d.klDivergence(new d.Categorical(torch.ones([2])), new d.Normal(0, 1)), 'there is no formula for Categorical and Normal'],
    'Exponential zero': [() => new d.Exponential(torch.tensor([1, 0])), "Exponential: parameter 'rate' must satisfy GreaterThan(lowerBound=0)"],
  }
  const ACCEPTED: Readonly<Record<string, () => unknown>> = {
    'Categorical mean': () => [new d.Categorical(torch.ones([2])).mean.item()],
    'Normal sample shape': () => new d.Normal(torch.zeros([3]), 1).sample([2, 4]).shape,
    'TransformedDistribution event': () =>
      new d.TransformedDistribution(new d.Normal(torch.zeros([3]), 1), new d.StickBreakingTransform()).eventShape,
  }
  interface Recorded {
    readonly name: string
    readonly ok: boolean
    readonly value?: readonly number[] | { readonly data: readonly unknown[] }
  }
  it.each(read('distributions-errors') as readonly Recorded[])('$name as PyTorch', ({ name, ok, value }) => {
    if (!ok) {
      const [run, message] = SAME[name] ?? [() => null, `${name} is not known`]
      expect(run).toThrow(message)
      return
    }
    expect(ACCEPTED[name]?.()).toEqual(Array.isArray(value) ? value : [NaN])
  })

  it('are of our classes, and switched off by validateArgs', () => {
    expect(() => new d.Normal('x' as never, 1)).toThrow("Normal: argument 'loc' must be a Tensor or a number, got 'x'")
    expect(() => new d.Normal(0, 1, { validate_args: false } as never)).toThrow("did you mean 'validateArgs'?")
    expect(() => new d.Normal(0, 1).sample(3 as never)).toThrow("argument 'sampleShape' must be an array of sizes, such as [2, 3], got 3")
    expect(() => new d.Normal(0, 1).sample([], { seed: 1 } as never)).toThrow("Normal.sample: unknown option 'seed'")
    expect(() => new d.Independent(new d.Normal(0, 1), 1)).toThrow("argument 'reinterpretedBatchNdims' must be an integer from 0 to 0")
    expect(() => new d.MultivariateNormal(torch.zeros([2]), {})).toThrow('give one of covarianceMatrix, precisionMatrix and scaleTril, got none')
    expect(new d.Normal(0, -1, { validateArgs: false }).mean.item()).toBe(0)
    d.setDefaultValidateArgs(false)
    expect(new d.Normal(0, -1).scale.item()).toBe(-1)
  })
})

it('values far out have the probability 0 or 1 (difference: gumbel-cdf)', () => {
  expect(new d.Gumbel(0, 1).cdf(t([-40, 60])).toArray()).toEqual([0, 1])
})

it('a transform keeps no values (difference: transform-cache)', () => {
  const one = new d.TransformedDistribution(new d.Normal(t([0, 1]), 1), [new d.TanhTransform()])
  const x = one.rsample()
  expect(x.clone().sub(x).abs().max().item()).toBe(0)
  expect(one.logProb(x.clone()).toArray()).toEqual(one.logProb(x).toArray())
})

it('densities are compiled, and samples are drawn anew at each call', () => {
  const loss = compile((x: Tensor, loc: Tensor, scale: Tensor) => new d.Normal(loc, scale, { validateArgs: false }).logProb(x).sum())
  const [x, loc, scale] = [t([1, 2]), t([0, 1]), t([2, 3])]
  expect(loss(x, loc, scale).item()).toBeCloseTo(new d.Normal(loc, scale).logProb(x).sum().item(), 12)
  // Bounds are read for a text or a check alone, so that nothing ends the graph.
  const spread = compile((low: Tensor, high: Tensor) => new d.Uniform(low.add(1), high.add(1), { validateArgs: false }).entropy().mul(2))
  expect(spread(torch.tensor(1), torch.tensor(3)).item()).toBeCloseTo(2 * Math.LN2, 6)
  expect(spread.graphs().length).toBe(1)
  const draw = compile((shape: Tensor) => new d.Gamma(shape, 1, { validateArgs: false }).rsample())
  torch.manualSeed(1)
  const first = [draw(t([2, 3])), draw(t([2, 3]))]
  torch.manualSeed(1)
  const again = [draw(t([2, 3])), draw(t([2, 3]))]
  expect(again.map((y) => y.toArray())).toEqual(first.map((y) => y.toArray()))
  expect(first[0]?.toArray()).not.toEqual(first[1]?.toArray())
})
