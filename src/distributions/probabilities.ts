// Probabilities and their logarithms: distributions that can be given by either.
import { ArgumentError } from '../errors/index.ts'
import { checkOptions } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { DistributionOptions, Parameter } from './distribution.ts'
import { clampProbs } from './draws.ts'

/** How a distribution over few values is given: by probabilities, or by logits, one of both. */
export interface ProbabilityOptions extends DistributionOptions {
  /** The probabilities. */
  readonly probs?: Parameter
  /** The logarithms of the odds, or of unnormalized probabilities. */
  readonly logits?: Parameter
}

/** What was given. */
export interface Given {
  readonly name: 'probs' | 'logits'
  readonly value: Parameter
  readonly options: DistributionOptions
}

/** Reads the arguments of `new Bernoulli(probs)` and `new Bernoulli({ logits })`. Throws ArgumentError unless exactly one of both is given. */
export function givenOf(where: string, first: Parameter | ProbabilityOptions, options: DistributionOptions = {}): Given {
  if (typeof first === 'number' || first instanceof Tensor) return { name: 'probs', value: first, options }
  checkOptions<ProbabilityOptions>(where, first, { probs: true, logits: true, validateArgs: 'boolean' })
  const { probs, logits, ...rest } = first
  if ((probs === undefined) === (logits === undefined))
    throw new ArgumentError(`${where}: give either 'probs' or 'logits', got ${probs === undefined ? 'none' : 'both'}.`)
  return probs !== undefined ? { name: 'probs', value: probs, options: rest } : { name: 'logits', value: logits ?? NaN, options: rest }
}

/** log(p / (1 - p)), finite for all p. */
export function logitsOf(probs: Tensor): Tensor {
  const clamped = clampProbs(probs)
  return clamped.log().sub(clamped.neg().log1p())
}
