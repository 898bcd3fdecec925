// generate: writes text token by token, with what the model keeps of the tokens so far.
import { noGrad } from '../autograd/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { Module } from '../module/index.ts'
import { cat, full, multinomial, tensor, where, zeros } from '../ops/index.ts'
import { checkCallable, checkCount, checkModule, checkOptions, valueText } from '../protocol/index.ts'
import type { OptionNames } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { Generator } from '../tensor/index.ts'
import { searchBeams } from './beams.ts'
import { DecodingCache } from './cache.ts'
import { filteredScores } from './scores.ts'
import type { Sampling } from './scores.ts'

/** A model that predicts the next token: {@link GPT2}, {@link Llama}, {@link Mamba} and others. */
export interface CausalModel extends Module {
  /** Tokens [batch, time] to scores [batch, time, vocabulary]; with a cache, the tokens follow those before. */
  forward(tokens: Tensor, cache?: DecodingCache | null): Tensor
}

/** A model that reads something and writes a text: {@link T5}, {@link Whisper}. */
export interface Seq2SeqModel extends Module {
  /** What it reads to states [batch, length, width]. */
  encode(inputs: Tensor): Tensor
  /** Tokens so far [batch, time] and the states to scores [batch, time, vocabulary]. */
  decode(tokens: Tensor, states: Tensor, cache?: DecodingCache | null): Tensor
}

/** Options of {@link generate}. Tokens are drawn if one of `temperature`, `topK` and `topP` is given; otherwise the most likely one is taken. */
export interface GenerateOptions {
  /** How many tokens to write at most. */
  readonly maxNewTokens: number
  /** What a model with an encoder reads: tokens for T5, a spectrogram for Whisper. `tokens` is then what the answer begins with. */
  readonly inputs?: Tensor
  /** Below 1, likely tokens become more likely; above 1, less. */
  readonly temperature?: number
  /** Only this number of the most likely tokens are drawn from. */
  readonly topK?: number
  /** Only the most likely tokens are drawn that together have this probability. */
  readonly topP?: number
  /** How many texts the search for the most likely one follows. Default 1. */
  readonly numBeams?: number
  /** With beams: texts are compared by the logarithm of their probability divided by their length to this power. Default 1. */
  readonly lengthPenalty?: number
  /** The token that ends a text. */
  readonly eosTokenId?: number
  /** The token after the end of a text in a batch; default the one that ends texts. */
  readonly padTokenId?: number
  /** What draws are taken from; default the default generator. */
  readonly generator?: Generator
  /** Whether keys and values are kept. Default true; otherwise each step reads the whole text again. */
  readonly useCache?: boolean
  /** Gets each token as it is written, int64 [batch]. Not with beams, which change their minds. */
  readonly onToken?: (tokens: Tensor) => void
}

const OPTIONS: OptionNames<GenerateOptions> = {
  maxNewTokens: 'number',
  inputs: true,
  temperature: 'number',
  topK: 'number',
  topP: 'number',
  numBeams: 'number',
  lengthPenalty: 'number',
  eosTokenId: 'number',
  padTokenId: 'number',
  generator: true,
  useCache: 'boolean',
  onToken: true,
}

function checkGenerateOptions(options: GenerateOptions): void {
  checkOptions<object>('generate', options, OPTIONS)
  const { maxNewTokens, inputs, temperature, topK, topP, numBeams = 1, onToken } = options
  const check = (fits: boolean, name: string, expected: string, value: unknown): void => {
    if (!fits) throw new ArgumentError(`generate: option '${name}' must be ${expected}, got ${valueText(value)}.`)
  }
  const whole = (value: unknown): boolean => typeof value === 'number' && Number.isSafeInteger(value) && value > 0
  check(whole(maxNewTokens), 'maxNewTokens', 'an integer from 1 on', maxNewTokens)
  check(inputs === undefined || inputs instanceof Tensor, 'inputs', 'a Tensor', inputs)
  check(temperature === undefined || temperature > 0, 'temperature', 'above 0 (leave it out for the most likely tokens)', temperature)
  check(topK === undefined || whole(topK), 'topK', 'an integer from 1 on', topK)
  check(topP === undefined || (topP > 0 && topP <= 1), 'topP', 'above 0 and at most 1', topP)
  check(whole(numBeams), 'numBeams', 'an integer from 1 on', numBeams)
  if (onToken !== undefined) checkCallable('generate', 'onToken', onToken)
  if (numBeams === 1) return
  const drawn = ['temperature', 'topK', 'topP'].find((name) => Reflect.get(options, name) !== undefined)
  if (drawn !== undefined)
    throw new ArgumentError(
      `generate: option '${drawn}' draws tokens, but numBeams: ${numBeams} searches for the most likely text; leave one of them out.`,
    )
  if (onToken !== undefined)
    throw new ArgumentError(
      "generate: option 'onToken' cannot be used with numBeams, since beams change what they have written; leave one of them out.",
    )
}

function samplingOf({ temperature, topK, topP }: GenerateOptions): Sampling | null {
  if (temperature === undefined && topK === undefined && topP === undefined) return null
  return { temperature: temperature ?? 1, topK: topK ?? 0, topP: topP ?? 1 }
}

/** The model as a function from tokens and a cache to scores. Rows: how often each row of the inputs is there. */
function stepOf(
  model: CausalModel | Seq2SeqModel,
  inputs: Tensor | undefined,
  copies: number,
): (tokens: Tensor, cache: DecodingCache | null) => Tensor {
  if ('decode' in model) {
    if (inputs === undefined)
      throw new ArgumentError(
        `generate: ${model.getName()} reads something before it writes; give it in option 'inputs', and in 'tokens' what the answer begins with.`,
      )
    const states = model.encode(inputs).repeatInterleave(copies, 0)
    return (tokens, cache) => model.decode(tokens, states, cache)
  }
  if (inputs !== undefined)
    throw new ArgumentError(`generate: option 'inputs' is for models with an encoder, such as T5; ${model.getName()} reads 'tokens'.`)
  return (tokens, cache) => model.call(tokens, cache)
}

/**
 * Writes after `tokens`, int64 [batch, time], up to `maxNewTokens` tokens, and returns both, [batch, time + new]. By default the most likely tokens, or drawn ones with `temperature`, `topK`
 * or `topP`, or the most likely text that `numBeams` beams find. The model computes in evaluation mode and without gradients; afterwards it is in the mode that it was in. Hugging Face's `generate`.
 *
 * All texts of a batch have the same length: texts of different lengths are written one by one.
 *
 * @throws ArgumentError for tokens that are not int64 [batch, time], and for options that do not go together.
 * @example generate(model, tokens, { maxNewTokens: 20, temperature: 0.8, topK: 40 })
 */
export function generate(model: CausalModel | Seq2SeqModel, tokens: Tensor, options: GenerateOptions): Tensor {
  checkCount('generate', arguments, 3)
  checkModule('generate', 'model', model)
  if (!(tokens instanceof Tensor) || tokens.dtype !== 'int64' || tokens.ndim !== 2 || tokens.size(1) === 0)
    throw new ArgumentError(
      `generate: argument 'tokens' must be an int64 tensor [batch, time] with at least one token, got ${valueText(tokens)}. Write torch.tensor([[…]]).long().`,
    )
  checkGenerateOptions(options)
  const training = [...model.modules()].filter((layer) => layer.training)
  model.train(false)
  try {
    return noGrad(() => ((options.numBeams ?? 1) > 1 ? byBeams(model, tokens, options) : byTokens(model, tokens, options)))
  } finally {
    for (const layer of training) layer.training = true
  }
}

/** The scores of the last position. */
const lastOf = (scores: Tensor): Tensor => scores.select(1, scores.size(1) - 1)

function byTokens(model: CausalModel | Seq2SeqModel, given: Tensor, options: GenerateOptions): Tensor {
  const { maxNewTokens, eosTokenId, padTokenId = eosTokenId ?? 0, generator, useCache = true, onToken } = options
  const sampling = samplingOf(options)
  const step = stepOf(model, options.inputs, 1)
  const cache = useCache ? new DecodingCache() : null
  let tokens = given
  let read = given
  let isOver = zeros([given.size(0)], { dtype: 'bool' })
  for (let i = 0; i < maxNewTokens; i++) {
    const scores = lastOf(step(read, cache))
    const drawn =
      sampling === null
        ? scores.argmax(-1)
        : multinomial(filteredScores(scores, sampling).softmax(-1), 1, generator === undefined ? {} : { generator }).select(1, 0)
    const token = where(isOver, full([], padTokenId, { dtype: 'int64' }), drawn)
    onToken?.(token)
    tokens = cat([tokens, token.unsqueeze(1)], 1)
    if (eosTokenId !== undefined) {
      isOver = isOver.logicalOr(token.eq(eosTokenId))
      if (isOver.all().item()) break
    }
    read = cache === null ? tokens : token.unsqueeze(1)
  }
  return tokens
}

function byBeams(model: CausalModel | Seq2SeqModel, given: Tensor, options: GenerateOptions): Tensor {
  const { maxNewTokens, numBeams = 1, lengthPenalty = 1, eosTokenId = null, padTokenId = eosTokenId ?? 0, useCache = true } = options
  const texts = given.size(0)
  const step = stepOf(model, options.inputs, numBeams)
  const cache = useCache ? new DecodingCache() : null
  let all = given.repeatInterleave(numBeams, 0)
  const found = searchBeams(texts, { numBeams, maxNewTokens, lengthPenalty, eosTokenId }, (tokens, rows) => {
    if (tokens === null || rows === null) return lastOf(step(all, cache))
    cache?.reorder(rows)
    all = cat([all.indexSelect(0, rows), tokens], 1)
    return lastOf(step(cache === null ? all : tokens, cache))
  })
  const longest = Math.max(...found.map((one) => one.length))
  const padded = found.map((one) => [...one, ...Array.from({ length: longest - one.length }, () => padTokenId)])
  return cat([given, tensor(padded, { dtype: 'int64' })], 1)
}
