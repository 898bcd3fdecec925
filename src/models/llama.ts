// Llama, Qwen2 (biases in q, k and v) and Mixtral (a router and experts): rotary positions, RMS norm, grouped keys and values. Names of Hugging Face's checkpoints.
import { UnsupportedError } from '../errors/index.ts'
import { Module } from '../module/index.ts'
import { silu } from '../nn/functional.ts'
import { Embedding, Linear, ModuleList, RMSNorm } from '../nn/index.ts'
import { arange, cat, tensor, where, zerosLike } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { causalAttention, joinHeads, placesBefore, splitHeads } from './attention.ts'
import type { DecodingCache } from './cache.ts'
import type { ConfigReader } from './config.ts'
import type { Configured, Family } from './family.ts'
import { initialise } from './initialise.ts'

/** How Llama 3.1 stretches its positions beyond the length that it was first trained with. */
export interface RopeScaling {
  readonly ropeType: 'llama3'
  readonly factor: number
  readonly lowFreqFactor: number
  readonly highFreqFactor: number
  readonly originalMaxPositionEmbeddings: number
}

/** Sizes of {@link Llama}, {@link Qwen2} and {@link Mixtral}: the keys of config.json in camel case. */
export interface LlamaConfig {
  readonly vocabSize: number
  /** The width. */
  readonly hiddenSize: number
  /** The width within the layers between attention. */
  readonly intermediateSize: number
  readonly numHiddenLayers: number
  readonly numAttentionHeads: number
  /** Heads of keys and values, which several heads of queries share; default as many as those. */
  readonly numKeyValueHeads?: number
  /** The size of a head; default the width by the number of heads. */
  readonly headDim?: number
  readonly rmsNormEps?: number
  /** The base of the angles; default 10000. */
  readonly ropeTheta?: number
  readonly ropeScaling?: RopeScaling
  /** Whether the head is the embedding of tokens. */
  readonly tieWordEmbeddings?: boolean
}

/** Sizes of {@link Mixtral}. */
export interface MixtralConfig extends LlamaConfig {
  /** How many experts there are in a layer. */
  readonly numLocalExperts: number
  /** How many of them see a token; default 2. */
  readonly numExpertsPerTok?: number
}

/** What the variants differ in. */
interface Variant {
  /** Whether queries, keys and values have biases. */
  readonly attentionBias: boolean
  readonly experts: { readonly count: number; readonly perToken: number } | null
}

interface Rotation {
  readonly cos: Tensor
  readonly sin: Tensor
}

const headSize = ({ headDim, hiddenSize, numAttentionHeads }: LlamaConfig): number => headDim ?? hiddenSize / numAttentionHeads

/** The angle by which each pair of a head turns from one position to the next. */
function frequencies(config: LlamaConfig): number[] {
  const size = headSize(config)
  const { ropeTheta = 10000, ropeScaling: scaling } = config
  const plain = Array.from({ length: size / 2 }, (_, i) => ropeTheta ** ((-2 * i) / size))
  if (scaling === undefined) return plain
  const { factor, lowFreqFactor, highFreqFactor, originalMaxPositionEmbeddings: length } = scaling
  return plain.map((rate) => {
    const turns = (length * rate) / (2 * Math.PI)
    if (turns > highFreqFactor) return rate
    if (turns < lowFreqFactor) return rate / factor
    const share = (turns - lowFreqFactor) / (highFreqFactor - lowFreqFactor)
    return (1 - share) * (rate / factor) + share * rate
  })
}

/** Turns the halves of the last dimension of x, [batch, heads, time, size]. */
function rotate(x: Tensor, { cos, sin }: Rotation): Tensor {
  const half = x.size(-1) / 2
  const turned = cat([x.narrow(-1, half, half).neg(), x.narrow(-1, 0, half)], -1)
  return x.mul(cos).add(turned.mul(sin))
}

class LlamaAttention extends Module {
  readonly heads: number
  readonly kvHeads: number
  readonly q_proj: Linear
  readonly k_proj: Linear
  readonly v_proj: Linear
  readonly o_proj: Linear

  constructor(config: LlamaConfig, bias: boolean) {
    super()
    const { hiddenSize: width, numAttentionHeads: heads, numKeyValueHeads: kvHeads = heads } = config
    const size = headSize(config)
    this.heads = heads
    this.kvHeads = kvHeads
    this.q_proj = new Linear(width, heads * size, { bias })
    this.k_proj = new Linear(width, kvHeads * size, { bias })
    this.v_proj = new Linear(width, kvHeads * size, { bias })
    this.o_proj = new Linear(heads * size, width, { bias: false })
  }

  override forward(x: Tensor, rotation: Rotation, cache: DecodingCache | null): Tensor {
    const q = rotate(splitHeads(this.q_proj(x), this.heads), rotation)
    let k = rotate(splitHeads(this.k_proj(x), this.kvHeads), rotation)
    let v = splitHeads(this.v_proj(x), this.kvHeads)
    if (cache !== null) [k, v] = [cache.extend(this, 'key', k), cache.extend(this, 'value', v)]
    return this.o_proj(joinHeads(causalAttention(q, k, v, this.heads !== this.kvHeads)))
  }
}

class LlamaMLP extends Module {
  readonly gate_proj: Linear
  readonly up_proj: Linear
  readonly down_proj: Linear

  constructor({ hiddenSize, intermediateSize }: LlamaConfig) {
    super()
    this.gate_proj = new Linear(hiddenSize, intermediateSize, { bias: false })
    this.up_proj = new Linear(hiddenSize, intermediateSize, { bias: false })
    this.down_proj = new Linear(intermediateSize, hiddenSize, { bias: false })
  }

  override forward(x: Tensor): Tensor {
    return this.down_proj(silu(this.gate_proj(x)).mul(this.up_proj(x)))
  }
}

class MixtralExpert extends Module {
  readonly w1: Linear
  readonly w2: Linear
  readonly w3: Linear

  constructor({ hiddenSize, intermediateSize }: LlamaConfig) {
    super()
    this.w1 = new Linear(hiddenSize, intermediateSize, { bias: false })
    this.w2 = new Linear(intermediateSize, hiddenSize, { bias: false })
    this.w3 = new Linear(hiddenSize, intermediateSize, { bias: false })
  }

  override forward(x: Tensor): Tensor {
    return this.w2(silu(this.w1(x)).mul(this.w3(x)))
  }
}

/** Each token goes to its best experts; an expert computes its own tokens only. */
class MixtralSparseMoe extends Module {
  readonly perToken: number
  readonly gate: Linear
  readonly experts: ModuleList<MixtralExpert>

  constructor(config: LlamaConfig, count: number, perToken: number) {
    super()
    this.perToken = perToken
    this.gate = new Linear(config.hiddenSize, count, { bias: false })
    this.experts = new ModuleList(Array.from({ length: count }, () => new MixtralExpert(config)))
  }

  override forward(x: Tensor): Tensor {
    const flat = x.reshape(-1, x.size(-1))
    const [best, chosen] = this.gate(flat).softmax(-1).topk(this.perToken, -1)
    const weights = best.div(best.sum(-1, { keepdim: true }))
    let out = zerosLike(flat)
    for (const [i, expert] of [...this.experts].entries()) {
      const [rows, slots] = where(chosen.eq(i))
      if (rows === undefined || slots === undefined || rows.numel === 0) continue
      const share = weights.index([rows, slots]).unsqueeze(1)
      out = out.indexAdd(0, rows, expert(flat.indexSelect(0, rows)).mul(share))
    }
    return out.view(x.shape)
  }
}

class LlamaLayer extends Module {
  readonly self_attn: LlamaAttention
  readonly mlp?: LlamaMLP
  readonly block_sparse_moe?: MixtralSparseMoe
  readonly input_layernorm: RMSNorm
  readonly post_attention_layernorm: RMSNorm

  constructor(config: LlamaConfig, { attentionBias, experts }: Variant) {
    super()
    const eps = config.rmsNormEps ?? 1e-6
    this.self_attn = new LlamaAttention(config, attentionBias)
    if (experts === null) this.mlp = new LlamaMLP(config)
    else this.block_sparse_moe = new MixtralSparseMoe(config, experts.count, experts.perToken)
    this.input_layernorm = new RMSNorm(config.hiddenSize, { eps })
    this.post_attention_layernorm = new RMSNorm(config.hiddenSize, { eps })
  }

  override forward(x: Tensor, rotation: Rotation, cache: DecodingCache | null): Tensor {
    const attended = x.add(this.self_attn(this.input_layernorm(x), rotation, cache))
    const normed = this.post_attention_layernorm(attended)
    return attended.add(this.block_sparse_moe?.call(normed) ?? this.mlp?.call(normed) ?? normed)
  }
}

class LlamaModel extends Module {
  readonly embed_tokens: Embedding
  readonly layers: ModuleList<LlamaLayer>
  readonly norm: RMSNorm
  readonly frequencies: readonly number[]

  constructor(config: LlamaConfig, variant: Variant) {
    super()
    this.embed_tokens = new Embedding(config.vocabSize, config.hiddenSize)
    this.layers = new ModuleList(Array.from({ length: config.numHiddenLayers }, () => new LlamaLayer(config, variant)))
    this.norm = new RMSNorm(config.hiddenSize, { eps: config.rmsNormEps ?? 1e-6 })
    this.frequencies = frequencies(config)
  }

  override forward(tokens: Tensor, cache: DecodingCache | null = null): Tensor {
    const [before, time] = [placesBefore(cache), tokens.size(1)]
    let x = this.embed_tokens(tokens)
    const angles = arange(before, before + time)
      .unsqueeze(1)
      .mul(tensor([...this.frequencies, ...this.frequencies]))
    const rotation = { cos: angles.cos().to(x.dtype), sin: angles.sin().to(x.dtype) }
    for (const layer of this.layers) x = layer(x, rotation, cache)
    if (cache !== null) cache.length += time
    return this.norm(x)
  }
}

const PLAIN: Variant = { attentionBias: false, experts: null }

/**
 * Llama: predicts the next token of a text. Parameters have the names of Hugging Face's checkpoints.
 *
 * @example new Llama({ vocabSize: 64, hiddenSize: 16, intermediateSize: 24, numHiddenLayers: 1, numAttentionHeads: 2 }).call(torch.zeros([1, 4]).long()).shape // [1, 4, 64]
 */
export class Llama extends Module implements Configured {
  readonly modelType: string = 'llama'
  readonly config: LlamaConfig
  readonly model: LlamaModel
  readonly lm_head: Linear

  constructor(config: LlamaConfig) {
    super()
    this.config = config
    this.model = new LlamaModel(config, this.variant(config))
    this.lm_head = new Linear(config.hiddenSize, config.vocabSize, { bias: false })
    if (config.tieWordEmbeddings === true) this.lm_head.weight = this.model.embed_tokens.weight
    initialise(this, 0.02)
  }

  /** What a model of this class has besides its sizes. */
  protected variant(_config: LlamaConfig): Variant {
    return PLAIN
  }

  /** Tokens [batch, time] to scores of the next ones, [batch, time, vocabulary]. With a cache, `tokens` follow those of the calls before. */
  override forward(tokens: Tensor, cache: DecodingCache | null = null): Tensor {
    return this.lm_head(this.model(tokens, cache))
  }
}

/** Qwen2: {@link Llama} with biases in queries, keys and values. */
export class Qwen2 extends Llama {
  override readonly modelType = 'qwen2'

  protected override variant(): Variant {
    return { attentionBias: true, experts: null }
  }
}

/** Mixtral: {@link Llama} whose layers have several experts, of which a router chooses some for each token. */
export class Mixtral extends Llama {
  override readonly modelType = 'mixtral'
  declare readonly config: MixtralConfig

  // The constructor says which sizes it takes.
  // eslint-disable-next-line no-useless-constructor
  constructor(config: MixtralConfig) {
    super(config)
  }

  protected override variant({ numLocalExperts: count, numExpertsPerTok: perToken = 2 }: MixtralConfig): Variant {
    return { attentionBias: false, experts: { count, perToken } }
  }
}

/** The scaling of `rope_scaling`, or of `rope_parameters`, which later files have in its place, with the base; null if there is none. */
function readScaling(config: ConfigReader): RopeScaling | null {
  const later = config.part('rope_parameters')
  const part = later ?? config.part('rope_scaling')
  if (part === null || later?.choice('rope_type', ['default', 'llama3'], 'default') === 'default') return null
  return {
    ropeType: part.choice('rope_type', ['llama3'], part.choice('type', ['llama3'], 'llama3')),
    factor: part.number('factor'),
    lowFreqFactor: part.number('low_freq_factor'),
    highFreqFactor: part.number('high_freq_factor'),
    originalMaxPositionEmbeddings: part.count('original_max_position_embeddings'),
  }
}

function readConfig(config: ConfigReader, windows: boolean): LlamaConfig {
  const [width, heads] = [config.count('hidden_size'), config.count('num_attention_heads')]
  const scaling = readScaling(config)
  if (windows && config.number('sliding_window', 0) > 0)
    throw new UnsupportedError("config.json: attention with a 'sliding_window' is not implemented; set it to null for texts shorter than the window.")
  return {
    vocabSize: config.count('vocab_size'),
    hiddenSize: width,
    intermediateSize: config.count('intermediate_size'),
    numHiddenLayers: config.count('num_hidden_layers'),
    numAttentionHeads: heads,
    numKeyValueHeads: config.count('num_key_value_heads', heads),
    headDim: config.count('head_dim', width / heads),
    rmsNormEps: config.number('rms_norm_eps', 1e-6),
    ropeTheta: (config.part('rope_parameters') ?? config).number('rope_theta', 10000),
    ...(scaling === null ? {} : { ropeScaling: scaling }),
    tieWordEmbeddings: config.flag('tie_word_embeddings', false),
  }
}

// Older files keep what positions are computed from.
const shared: Pick<Family, 'destination' | 'only'> = {
  destination: (name) => (name.endsWith('.rotary_emb.inv_freq') ? null : { name }),
  only: { hidden_act: ['silu'] },
}

export const llama: Family = { make: (config) => new Llama(readConfig(config, false)), ...shared }
export const qwen2: Family = { make: (config) => new Qwen2(readConfig(config, config.flag('use_sliding_window', false))), ...shared }
export const mixtral: Family = {
  make: (config) =>
    new Mixtral({
      ...readConfig(config, true),
      numLocalExperts: config.count('num_local_experts'),
      numExpertsPerTok: config.count('num_experts_per_tok', 2),
    }),
  ...shared,
}
