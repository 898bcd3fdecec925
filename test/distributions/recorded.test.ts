// tensorfx/distributions against what PyTorch 2.13 computes: 21 distributions, their divergences, transforms and refusals.
import { afterEach, expect, it, vi } from 'vitest'
import { TensorfxError, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import type { Distribution } from 'tensorfx/distributions'
import { klDivergence } from 'tensorfx/distributions'
import { draws } from '../../src/distributions/draws.ts'
import { camel, differs, make, read, tensorOf, weighted } from './stored.ts'
import type { StoredDistribution, StoredError, StoredTensor } from './stored.ts'

type Field = StoredTensor | StoredError
type Gradients = Readonly<Record<string, StoredTensor | null>>
interface Recorded extends StoredDistribution, Readonly<Record<string, unknown>> {
  readonly name: string
  readonly index: number
  readonly batch_shape: readonly number[]
  readonly event_shape: readonly number[]
  readonly has_rsample: boolean
  readonly has_enumerate_support: boolean
  readonly support: string
  readonly arg_constraints: Readonly<Record<string, string>>
  readonly value: StoredTensor
  readonly quantile: StoredTensor
  readonly grad_log_prob: Gradients | StoredError
  readonly grad_entropy: Gradients | StoredError
  readonly grad_log_prob_value?: Field
  readonly rsample?: { readonly noise_kind: string; readonly noise: StoredTensor; readonly sample: StoredTensor; readonly grads: Gradients }
}

afterEach(() => {
  vi.restoreAllMocks()
})

const isError = (field: unknown): field is StoredError => typeof field === 'object' && field !== null && 'error' in field

const parametersOf = ({ params }: StoredDistribution): Record<string, Tensor> =>
  Object.fromEntries(Object.entries(params).map(([name, stored]) => [name, tensorOf(stored)]))
const leavesOf = (one: StoredDistribution): Record<string, Tensor> =>
  Object.fromEntries(Object.entries(parametersOf(one)).map(([name, tensor]) => [name, tensor.requiresGrad_()]))

/** PyTorch's text of a constraint in our words; bounds that are tensors are left out. */
const constraintText = (text: string): string =>
  text
    .replaceAll(/(lower|upper)_bound/g, '$1Bound')
    .replaceAll(/(\d)\.0\b/g, '$1')
    .replaceAll(/tensor\(.*?\]+\)/gs, 'tensor')
const ownText = (text: string): string => text.replaceAll(/tensor of shape \[[^\]]*\]/g, 'tensor')

/** What is wrong with the result of a call, against a stored one or a refusal. */
function judge(run: () => Tensor, field: Field, tolerance?: number): string | null {
  if (isError(field)) {
    try {
      run()
    } catch (error) {
      return error instanceof TensorfxError ? null : `threw ${String(error)}`
    }
    return `is not refused: ${field.error}`
  }
  try {
    return differs(run(), field, tolerance)
  } catch (error) {
    return `threw ${String(error)}`
  }
}

function judgeGradients(compute: (d: Distribution) => Tensor, one: Recorded, stored: Gradients | StoredError, tolerance?: number): string | null {
  const leaves = leavesOf(one)
  const run = (): Tensor => compute(make(one.name, one, leaves))
  if (isError(stored)) return judge(run, stored)
  weighted(run()).backward()
  for (const [name, gradient] of Object.entries(stored)) {
    const actual = leaves[name]?.grad ?? null
    const wrong =
      gradient === null ? (actual === null ? null : 'there is one') : actual === null ? 'there is none' : differs(actual, gradient, tolerance)
    if (wrong !== null) return `${name}: ${wrong}`
  }
  return null
}

/** Puts the recorded random numbers in the place of drawn ones. */
function replaceNoise({ noise_kind: kind, noise }: NonNullable<Recorded['rsample']>): void {
  const given = tensorOf(noise)
  if (kind === 'standard normal') vi.spyOn(draws, 'normal').mockReturnValue(given)
  else if (kind === 'standard exponential') vi.spyOn(draws, 'exponential').mockReturnValue(given)
  else if (kind === 'uniform (0,1)') vi.spyOn(draws, 'uniform').mockReturnValue(given)
  else if (kind.startsWith('uniform (-1,1)')) vi.spyOn(draws, 'symmetric').mockReturnValue(given)
  else if (kind.startsWith('standard gamma')) vi.spyOn(draws, 'gamma').mockImplementation((a) => gammaSample(a, given))
  else vi.spyOn(draws, 'dirichlet').mockImplementation((a) => dirichletSample(a, given))
}

/** Operators whose samples are these, with their gradients. */
const gammaSample = (concentration: Tensor, sample: Tensor): Tensor =>
  sample.add(torch.ops.tensorfx.gammaSlope(concentration.detach(), sample).mul(concentration.sub(concentration.detach())))
const dirichletSample = (concentration: Tensor, sample: Tensor): Tensor => torch.ops.tensorfx.dirichletSamples(concentration, sample)

it("parameters, moments, densities, gradients and samples are PyTorch's", () => {
  const wrong: string[] = []
  for (const one of read('distributions') as readonly Recorded[]) {
    const note = (field: string, problem: string | null): void =>
      void (problem !== null && wrong.push(`${one.name} ${one.index} ${field}: ${problem}`))
    const d = make(one.name, one, parametersOf(one))
    const same = (field: string, actual: unknown, expected: unknown): void =>
      note(field, String(actual) === String(expected) ? null : `${String(actual)} instead of ${String(expected)}`)
    same('batchShape', d.batchShape, one.batch_shape)
    same('eventShape', d.eventShape, one.event_shape)
    same('hasRsample', d.hasRsample, one.has_rsample)
    same('hasEnumerateSupport', d.hasEnumerateSupport, one.has_enumerate_support)
    same('support', ownText(String(d.support)), constraintText(one.support))
    const texts = (entries: readonly (readonly [string, string])[]): string =>
      entries
        .map(([name, text]) => `${name} ${text}`)
        .sort()
        .join()
    same(
      'argConstraints',
      texts(Object.entries(d.argConstraints).map(([name, constraint]) => [name, ownText(String(constraint))])),
      texts(Object.entries(one.arg_constraints).map(([name, text]) => [camel(name), constraintText(text)])),
    )
    const [value, quantile] = [tensorOf(one.value), tensorOf(one.quantile)]
    const fields: Record<string, () => Tensor> = {
      mean: () => d.mean,
      variance: () => d.variance,
      stddev: () => d.stddev,
      mode: () => d.mode,
      entropy: () => d.entropy(),
      perplexity: () => d.perplexity(),
      log_prob: () => d.logProb(value),
      cdf: () => d.cdf(value),
      icdf: () => d.icdf(quantile),
      enumerate_support: () => d.enumerateSupport(false),
    }
    for (const name of ['probs', 'logits', 'covariance_matrix', 'precision_matrix', 'scale_tril'])
      if (one[name] !== undefined) fields[name] = () => Reflect.get(d, camel(name)) as Tensor
    for (const [name, compute] of Object.entries(fields)) {
      const stored = one[name] as Field | undefined
      // PyTorch's distribution function of Gumbel's distribution refuses values far out, whose probability rounds to 0 or 1.
      if (stored === undefined || (one.name === 'Gumbel' && name === 'cdf' && isError(stored))) continue
      note(name, judge(compute, stored))
    }
    same('expand', d.expand([2, ...d.batchShape]).batchShape, [2, ...one.batch_shape])
    note(
      'expand',
      judge(() => d.expand([2, ...d.batchShape]).logProb(value), one['log_prob'] as Field),
    )
    note(
      'grad_log_prob',
      judgeGradients((made) => made.logProb(value), one, one.grad_log_prob),
    )
    note(
      'grad_entropy',
      judgeGradients((made) => made.entropy(), one, one.grad_entropy),
    )
    if (one.grad_log_prob_value !== undefined && !isError(one.grad_log_prob_value) && value.isFloatingPoint()) {
      const leaf = tensorOf(one.value).requiresGrad_()
      weighted(d.logProb(leaf)).backward()
      note('grad_log_prob_value', leaf.grad === null ? 'there is none' : differs(leaf.grad, one.grad_log_prob_value))
    }
    if (one.rsample !== undefined) {
      const { sample, grads } = one.rsample
      replaceNoise(one.rsample)
      const shape = sample.shape.slice(0, sample.shape.length - d.batchShape.length - d.eventShape.length)
      note(
        'rsample',
        judge(() => d.rsample(shape), sample),
      )
      note(
        'rsample gradients',
        judgeGradients((made) => made.rsample(shape), one, grads),
      )
      vi.restoreAllMocks()
    }
  }
  expect(wrong).toEqual([])
})

type Side = StoredDistribution & { readonly type: string }
interface Pair {
  readonly name: string
  readonly index: number
  readonly p?: Side
  readonly q?: Side
  readonly kl: StoredTensor
  readonly grads: Gradients | null
}

function judgeDivergence({ kl, grads }: Pair, p: Side, q: Side): string | null {
  const [pLeaves, qLeaves] = [leavesOf(p), leavesOf(q)]
  const result = klDivergence(make(p.type, p, pLeaves), make(q.type, q, qLeaves))
  const wrong = differs(result, kl)
  if (wrong !== null || grads === null) return wrong
  if (result.requiresGrad) weighted(result).backward()
  for (const [name, gradient] of Object.entries(grads)) {
    const [side = '', parameter = ''] = name.split('.')
    const actual = (side === 'p' ? pLeaves : qLeaves)[parameter]?.grad ?? null
    if (gradient === null) continue
    const problem = actual === null ? (gradient.data.every((x) => x === 0) ? null : 'there is none') : differs(actual, gradient)
    if (problem !== null) return `${name}: ${problem}`
  }
  return null
}

it("divergences are PyTorch's, or refused as there", () => {
  const examples = new Map((read('distributions') as readonly Recorded[]).map((one) => [one.name, make(one.name, one, parametersOf(one))]))
  const wrong: string[] = []
  const counts = { equal: 0, refused: 0 }
  for (const one of read('kl') as readonly Pair[]) {
    const note = (problem: string | null): void => void (problem !== null && wrong.push(`${one.name} ${one.index}: ${problem}`))
    if (one.p !== undefined && one.q !== undefined) {
      counts.equal++
      note(judgeDivergence(one, one.p, one.q))
      continue
    }
    const [p, q] = one.name.split(' || ').map((name) => examples.get(name))
    if (p === undefined || q === undefined) throw new Error(`${one.name} is not known`)
    counts.refused++
    try {
      klDivergence(p, q)
      note('is not refused')
    } catch (error) {
      note(String(error).startsWith('UnsupportedError: klDivergence: ') ? null : String(error))
    }
  }
  expect(wrong).toEqual([])
  expect(counts).toEqual({ equal: 99, refused: 268 })
})
