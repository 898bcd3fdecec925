// T5, with the names of Hugging Face's checkpoints: one embedding under four names, relative positions that the first block of each stack owns, attention without a scale.
import { UnsupportedError } from '../errors/index.ts'
import { Module } from '../module/index.ts'
import { gelu, relu, scaledDotProductAttention } from '../nn/functional.ts'
import { Embedding, Linear, ModuleList, RMSNorm } from '../nn/index.ts'
import { arange, where, zerosLike } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { joinHeads, placesBefore, splitHeads } from './attention.ts'
import type { DecodingCache } from './cache.ts'
import type { Configured, Family } from './family.ts'
import { initialise } from './initialise.ts'

/** Sizes of {@link T5}: the keys of its config.json in camel case. */
export interface T5Config {
  readonly vocabSize: number
  /** The width. */
  readonly dModel: number
  /** The size of a head. */
  readonly dKv: number
  /** The width within the layers between attention. */
  readonly dFf: number
  readonly numLayers: number
  /** Layers of the decoder; default as many. */
  readonly numDecoderLayers?: number
  readonly numHeads: number
  readonly relativeAttentionNumBuckets?: number
  readonly relativeAttentionMaxDistance?: number
  readonly layerNormEpsilon?: number
  /** 'relu' for T5, 'gated-gelu' for T5 1.1 and Flan-T5. */
  readonly feedForwardProj?: 'relu' | 'gated-gelu'
  /** Whether the head is the embedding of tokens; default true. */
  readonly tieWordEmbeddings?: boolean
}

/** The bucket of each distance between two positions: exact for short ones, logarithmic for long ones. */
function relativeBucket(distance: Tensor, both: boolean, allBuckets: number, furthest: number): Tensor {
  const buckets = both ? allBuckets / 2 : allBuckets
  const offset = both ? distance.gt(0).long().mul(buckets) : zerosLike(distance)
  const length = both ? distance.abs() : distance.clamp({ max: 0 }).neg()
  const exact = buckets / 2
  const steps = length
    .clamp({ min: 1 })
    .float()
    .div(exact)
    .log()
    .div(Math.log(furthest / exact))
    .mul(buckets - exact)
  const far = steps
    .long()
    .add(exact)
    .clamp({ max: buckets - 1 })
  return offset.add(where(length.lt(exact), length, far))
}

class T5Attention extends Module {
  readonly heads: number
  readonly q: Linear
  readonly k: Linear
  readonly v: Linear
  readonly o: Linear
  readonly relative_attention_bias?: Embedding

  constructor({ dModel, numHeads, dKv, relativeAttentionNumBuckets: buckets = 32 }: T5Config, positions = false) {
    super()
    const inner = numHeads * dKv
    this.heads = numHeads
    this.q = new Linear(dModel, inner, { bias: false })
    this.k = new Linear(dModel, inner, { bias: false })
    this.v = new Linear(dModel, inner, { bias: false })
    this.o = new Linear(inner, dModel, { bias: false })
    if (positions) this.relative_attention_bias = new Embedding(buckets, numHeads)
  }

  #attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | null): Tensor {
    return this.o(joinHeads(scaledDotProductAttention(q, k, v, { attnMask: bias, scale: 1 })))
  }

  #split(x: Tensor): Tensor {
    return splitHeads(x, this.heads)
  }

  /** Attention of a text to itself. */
  override forward(x: Tensor, bias: Tensor, cache: DecodingCache | null): Tensor {
    let [k, v] = [this.#split(this.k(x)), this.#split(this.v(x))]
    if (cache !== null) [k, v] = [cache.extend(this, 'key', k), cache.extend(this, 'value', v)]
    return this.#attend(this.#split(this.q(x)), k, v, bias)
  }

  /** Attention of a text to another one, whose keys and values stay the same. */
  cross(x: Tensor, source: Tensor, cache: DecodingCache | null): Tensor {
    const keys = (): Tensor => this.#split(this.k(source))
    const values = (): Tensor => this.#split(this.v(source))
    const k = cache === null ? keys() : cache.once(this, 'key', keys)
    const v = cache === null ? values() : cache.once(this, 'value', values)
    return this.#attend(this.#split(this.q(x)), k, v, null)
  }
}

const normOf = ({ dModel, layerNormEpsilon: eps = 1e-6 }: T5Config): RMSNorm => new RMSNorm(dModel, { eps })

class T5LayerSelf extends Module {
  readonly SelfAttention: T5Attention
  readonly layer_norm: RMSNorm

  constructor(config: T5Config, positions: boolean) {
    super()
    this.SelfAttention = new T5Attention(config, positions)
    this.layer_norm = normOf(config)
  }

  override forward(x: Tensor, bias: Tensor, cache: DecodingCache | null): Tensor {
    return x.add(this.SelfAttention(this.layer_norm(x), bias, cache))
  }
}

class T5LayerCross extends Module {
  readonly EncDecAttention: T5Attention
  readonly layer_norm: RMSNorm

  constructor(config: T5Config) {
    super()
    this.EncDecAttention = new T5Attention(config)
    this.layer_norm = normOf(config)
  }

  override forward(x: Tensor, source: Tensor, cache: DecodingCache | null): Tensor {
    return x.add(this.EncDecAttention.cross(this.layer_norm(x), source, cache))
  }
}

class T5Dense extends Module {
  readonly wi?: Linear
  readonly wi_0?: Linear
  readonly wi_1?: Linear
  readonly wo: Linear

  constructor({ dModel, dFf, feedForwardProj = 'relu' }: T5Config) {
    super()
    if (feedForwardProj === 'relu') this.wi = new Linear(dModel, dFf, { bias: false })
    else {
      this.wi_0 = new Linear(dModel, dFf, { bias: false })
      this.wi_1 = new Linear(dModel, dFf, { bias: false })
    }
    this.wo = new Linear(dFf, dModel, { bias: false })
  }

  override forward(x: Tensor): Tensor {
    const { wi, wi_0: gate, wi_1: linear } = this
    if (gate !== undefined && linear !== undefined) return this.wo(gelu(gate(x), { approximate: 'tanh' }).mul(linear(x)))
    return this.wo(relu(wi === undefined ? x : wi(x)))
  }
}

class T5LayerFF extends Module {
  readonly DenseReluDense: T5Dense
  readonly layer_norm: RMSNorm

  constructor(config: T5Config) {
    super()
    this.DenseReluDense = new T5Dense(config)
    this.layer_norm = normOf(config)
  }

  override forward(x: Tensor): Tensor {
    return x.add(this.DenseReluDense(this.layer_norm(x)))
  }
}

class T5Block extends Module {
  readonly layer: ModuleList

  constructor(config: T5Config, isDecoder: boolean, positions: boolean) {
    super()
    const cross = isDecoder ? [new T5LayerCross(config)] : []
    this.layer = new ModuleList<Module>([new T5LayerSelf(config, positions), ...cross, new T5LayerFF(config)])
  }

  /** Its layer that knows relative positions. */
  get self(): T5LayerSelf {
    const first = this.layer.at(0)
    if (first instanceof T5LayerSelf) return first
    throw new UnsupportedError('T5: the first layer of a block must be attention to the text itself.')
  }

  override forward(x: Tensor, bias: Tensor, source: Tensor | null, cache: DecodingCache | null): Tensor {
    let state = x
    for (const layer of this.layer) {
      if (layer instanceof T5LayerSelf) state = layer(state, bias, cache)
      else if (layer instanceof T5LayerFF) state = layer(state)
      else if (layer instanceof T5LayerCross && source !== null) state = layer(state, source, cache)
    }
    return state
  }
}

class T5Stack extends Module {
  readonly isDecoder: boolean
  readonly buckets: number
  readonly furthest: number
  readonly embed_tokens: Embedding
  readonly block: ModuleList<T5Block>
  readonly final_layer_norm: RMSNorm

  constructor(embedding: Embedding, config: T5Config, isDecoder: boolean) {
    super()
    const { numLayers, numDecoderLayers = numLayers, relativeAttentionNumBuckets = 32, relativeAttentionMaxDistance = 128 } = config
    this.isDecoder = isDecoder
    this.buckets = relativeAttentionNumBuckets
    this.furthest = relativeAttentionMaxDistance
    this.embed_tokens = embedding
    const length = isDecoder ? numDecoderLayers : numLayers
    this.block = new ModuleList(Array.from({ length }, (_, i) => new T5Block(config, isDecoder, i === 0)))
    this.final_layer_norm = normOf(config)
  }

  override forward(tokens: Tensor, source: Tensor | null = null, cache: DecodingCache | null = null): Tensor {
    const [before, time] = [placesBefore(cache), tokens.size(1)]
    let x = this.embed_tokens(tokens)
    const keys = arange(before + time, { dtype: 'int64' })
    const distance = keys.unsqueeze(0).sub(keys.narrow(0, before, time).unsqueeze(1))
    const bucket = relativeBucket(distance, !this.isDecoder, this.buckets, this.furthest)
    const table = this.block.at(0).self.SelfAttention.relative_attention_bias
    if (table === undefined) throw new UnsupportedError('T5: the first block has no table of relative positions.')
    let bias = table(bucket).permute(2, 0, 1).unsqueeze(0)
    if (this.isDecoder) bias = bias.maskedFill(distance.gt(0), -Infinity)
    for (const block of this.block) x = block(x, bias, source, cache)
    if (cache !== null) cache.length += time
    return this.final_layer_norm(x)
  }
}

/** T5: reads a text and writes another. Parameters have the names of Hugging Face's checkpoints. */
export class T5 extends Module implements Configured {
  readonly modelType = 't5'
  readonly config: T5Config
  readonly shared: Embedding
  readonly encoder: T5Stack
  readonly decoder: T5Stack
  readonly lm_head: Linear

  constructor(config: T5Config) {
    super()
    this.config = config
    this.shared = new Embedding(config.vocabSize, config.dModel)
    this.encoder = new T5Stack(this.shared, config, false)
    this.decoder = new T5Stack(this.shared, config, true)
    this.lm_head = new Linear(config.dModel, config.vocabSize, { bias: false })
    initialise(this, config.dModel ** -0.5)
    if (config.tieWordEmbeddings !== false) this.lm_head.weight = this.shared.weight
  }

  /** Tokens [batch, time] to their states [batch, time, width]. */
  encode(tokens: Tensor): Tensor {
    return this.encoder(tokens)
  }

  /** Tokens of the answer so far, [batch, time], and the states of the text to scores of the next tokens, [batch, time, vocabulary]. */
  decode(answer: Tensor, states: Tensor, cache: DecodingCache | null = null): Tensor {
    const x = this.decoder(answer, states, cache)
    return this.lm_head(this.config.tieWordEmbeddings === false ? x : x.mul(this.config.dModel ** -0.5))
  }

  /** Tokens [batch, time] and those of the answer so far [batch, answer] to scores [batch, answer, vocabulary]. */
  override forward(tokens: Tensor, answer: Tensor): Tensor {
    return this.decode(answer, this.encode(tokens))
  }
}

export const t5: Family = {
  make: (config) =>
    new T5({
      vocabSize: config.count('vocab_size'),
      dModel: config.count('d_model'),
      dKv: config.count('d_kv'),
      dFf: config.count('d_ff'),
      numLayers: config.count('num_layers'),
      numDecoderLayers: config.count('num_decoder_layers', config.count('num_layers')),
      numHeads: config.count('num_heads'),
      relativeAttentionNumBuckets: config.count('relative_attention_num_buckets', 32),
      relativeAttentionMaxDistance: config.count('relative_attention_max_distance', 128),
      layerNormEpsilon: config.number('layer_norm_epsilon', 1e-6),
      feedForwardProj: config.choice('feed_forward_proj', ['relu', 'gated-gelu'], 'relu'),
      tieWordEmbeddings: config.flag('tie_word_embeddings', true),
    }),
  // The oldest files have a table that no layer uses.
  destination: (name) => (name.includes('EncDecAttention.relative_attention_bias') ? null : { name }),
}
