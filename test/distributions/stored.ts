// What PyTorch computes for distributions, as test/goldens/around has it, and how its parameters become ours.
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import * as distributions from 'tensorfx/distributions'

/** A tensor as stored: its elements row by row. */
export interface StoredTensor {
  readonly dtype: DType
  readonly shape: readonly number[]
  readonly data: readonly (number | string | boolean)[]
}

export interface StoredError {
  readonly error: string
  readonly message?: string
}

/** A distribution as stored, with what makes it. */
export interface StoredDistribution {
  readonly params: Readonly<Record<string, StoredTensor>>
  readonly base?: string
  readonly transforms?: string
  readonly reinterpreted_batch_ndims?: number
}

export const read = (name: string): unknown =>
  JSON.parse(gunzipSync(readFileSync(new URL(`../goldens/around/${name}.json.gz`, import.meta.url))).toString('utf8'))

const numberOf = (value: number | string | boolean): number | boolean =>
  typeof value === 'string' ? Number(value === '-0' ? '-0' : value.replace('inf', 'Infinity').replace('nan', 'NaN')) : value

export const tensorOf = ({ dtype, shape, data }: StoredTensor): Tensor => torch.tensor(data.map(numberOf), { dtype }).reshape([...shape])

export const camel = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

const { AffineTransform, ExpTransform, PowerTransform, SigmoidTransform, SoftplusTransform, TanhTransform } = distributions

/** The transforms of the recorded distributions. */
const TRANSFORMS = {
  affine: () => [new AffineTransform(1.5, -2)],
  exp: () => [new ExpTransform()],
  sigmoid: () => [new SigmoidTransform()],
  tanh: () => [new TanhTransform()],
  softplus: () => [new SoftplusTransform()],
  affine_exp: () => [new AffineTransform(0.5, 2), new ExpTransform()],
  exp_power: () => [new ExpTransform(), new PowerTransform(0.5)],
}

/** Makes a distribution with these parameters. */
export function make(
  name: string,
  { base, transforms, reinterpreted_batch_ndims: count }: StoredDistribution,
  p: Readonly<Record<string, Tensor>>,
): distributions.Distribution {
  const { loc, scale, rate, low, high, df, concentration, concentration0, concentration1, probs, logits, total_count: counts } = p
  const odds = probs === undefined ? { logits: logits ?? NaN } : { probs }
  const need = (value: Tensor | undefined): Tensor => value ?? torch.tensor(NaN)
  const d = distributions
  switch (name) {
    case 'Normal':
    case 'Laplace':
    case 'Cauchy':
    case 'Gumbel':
    case 'LogNormal':
      return new d[name](need(loc), need(scale))
    case 'Independent':
      return new d.Independent(make(base ?? '', { params: {} }, p), count ?? 0)
    case 'TransformedDistribution':
      return new d.TransformedDistribution(make(base ?? '', { params: {} }, p), transformsOf(transforms ?? ''))
    case 'HalfNormal':
      return new d.HalfNormal(need(scale))
    case 'Uniform':
      return new d.Uniform(need(low), need(high))
    case 'Exponential':
    case 'Poisson':
      return new d[name](need(rate))
    case 'Gamma':
      return new d.Gamma(need(concentration), need(rate))
    case 'Beta':
      return new d.Beta(need(concentration1), need(concentration0))
    case 'Dirichlet':
      return new d.Dirichlet(need(concentration))
    case 'StudentT':
      return new d.StudentT(need(df), need(loc), need(scale))
    case 'Bernoulli':
    case 'Geometric':
    case 'Categorical':
    case 'OneHotCategorical':
      return new d[name](odds)
    case 'Binomial':
      return new d.Binomial(need(counts), odds)
    case 'MultivariateNormal': {
      const [key, matrix] = Object.entries(p).find(([one]) => one !== 'loc') ?? ['', torch.tensor(NaN)]
      return new d.MultivariateNormal(need(loc), { [camel(key)]: matrix })
    }
    default:
      throw new Error(`${name} is not known`)
  }
}

function transformsOf(name: string): readonly distributions.Transform[] {
  const found = Object.entries(TRANSFORMS).find(([one]) => one === name)
  if (found === undefined) throw new Error(`the transforms ${name} are not known`)
  return found[1]()
}

/** Where two tensors differ by more than PyTorch's trigamma errs in float64; null if they do not. */
export function differs(actual: Tensor, stored: StoredTensor, tolerance = 1e-8): string | null {
  const expected = tensorOf(stored)
  if (String(actual.shape) !== String(expected.shape)) return `shape [${actual.shape.join()}] instead of [${expected.shape.join()}]`
  const [a, b] = [Array.from(actual.contiguous().toTypedArray(), Number), Array.from(expected.toTypedArray(), Number)]
  const at = a.findIndex((x, i) => {
    const y = b[i] ?? NaN
    return !(Object.is(x, y) || x === y || Math.abs(x - y) <= tolerance * Math.max(1, Math.abs(y)))
  })
  return at === -1 ? null : `element ${at} is ${a[at]} instead of ${b[at]}`
}

/** The gradients of the sum of all elements, element i with the weight cos(0.7 i + 1). */
export function weighted(y: Tensor): Tensor {
  const weights = Array.from({ length: y.numel }, (_, i) => Math.cos(0.7 * i + 1))
  return y
    .flatten()
    .mul(torch.tensor(weights, { dtype: y.dtype }))
    .sum()
}
