// Whisper, with the names of Hugging Face's checkpoints: convolutions over a spectrogram, positions of the encoder without gradient, no bias in k_proj.
import { Module } from '../module/index.ts'
import { gelu, scaledDotProductAttention } from '../nn/functional.ts'
import { Conv1d, Embedding, LayerNorm, Linear, ModuleList } from '../nn/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { causalAttention, joinHeads, placesBefore, splitHeads } from './attention.ts'
import type { DecodingCache } from './cache.ts'
import type { Configured, Family } from './family.ts'
import { initialise } from './initialise.ts'

/** Sizes of {@link Whisper}: the keys of its config.json in camel case. */
export interface WhisperConfig {
  readonly vocabSize: number
  /** Frequencies of the spectrogram. */
  readonly numMelBins: number
  /** The width. */
  readonly dModel: number
  readonly encoderLayers: number
  readonly encoderAttentionHeads: number
  readonly encoderFfnDim?: number
  readonly decoderLayers: number
  readonly decoderAttentionHeads: number
  readonly decoderFfnDim?: number
  /** Positions of the encoder: half as many as the spectrogram has frames. */
  readonly maxSourcePositions: number
  /** How many tokens it can write. */
  readonly maxTargetPositions: number
  readonly padTokenId?: number
}

class WhisperAttention extends Module {
  readonly heads: number
  readonly k_proj: Linear
  readonly v_proj: Linear
  readonly q_proj: Linear
  readonly out_proj: Linear

  constructor(width: number, heads: number) {
    super()
    this.heads = heads
    this.k_proj = new Linear(width, width, { bias: false })
    this.v_proj = new Linear(width, width)
    this.q_proj = new Linear(width, width)
    this.out_proj = new Linear(width, width)
  }

  #split(x: Tensor): Tensor {
    return splitHeads(x, this.heads)
  }

  /** Attention to `x` itself, of each token to those before it in a decoder. */
  override forward(x: Tensor, isCausal: boolean, cache: DecodingCache | null = null): Tensor {
    const q = this.#split(this.q_proj(x))
    let [k, v] = [this.#split(this.k_proj(x)), this.#split(this.v_proj(x))]
    if (cache !== null) [k, v] = [cache.extend(this, 'key', k), cache.extend(this, 'value', v)]
    return this.out_proj(joinHeads(isCausal ? causalAttention(q, k, v) : scaledDotProductAttention(q, k, v)))
  }

  /** Attention to the states of the encoder, whose keys and values stay the same. */
  cross(x: Tensor, source: Tensor, cache: DecodingCache | null): Tensor {
    const keys = (): Tensor => this.#split(this.k_proj(source))
    const values = (): Tensor => this.#split(this.v_proj(source))
    const k = cache === null ? keys() : cache.once(this, 'key', keys)
    const v = cache === null ? values() : cache.once(this, 'value', values)
    return this.out_proj(joinHeads(scaledDotProductAttention(this.#split(this.q_proj(x)), k, v)))
  }
}

class WhisperLayer extends Module {
  readonly self_attn: WhisperAttention
  readonly self_attn_layer_norm: LayerNorm
  readonly encoder_attn?: WhisperAttention
  readonly encoder_attn_layer_norm?: LayerNorm
  readonly fc1: Linear
  readonly fc2: Linear
  readonly final_layer_norm: LayerNorm

  constructor(width: number, heads: number, inner: number, isDecoder: boolean) {
    super()
    this.self_attn = new WhisperAttention(width, heads)
    this.self_attn_layer_norm = new LayerNorm(width)
    if (isDecoder) {
      this.encoder_attn = new WhisperAttention(width, heads)
      this.encoder_attn_layer_norm = new LayerNorm(width)
    }
    this.fc1 = new Linear(width, inner)
    this.fc2 = new Linear(inner, width)
    this.final_layer_norm = new LayerNorm(width)
  }

  override forward(x: Tensor, source: Tensor | null = null, cache: DecodingCache | null = null): Tensor {
    let state = x.add(this.self_attn(this.self_attn_layer_norm(x), source !== null, cache))
    const { encoder_attn: attention, encoder_attn_layer_norm: norm } = this
    if (source !== null && attention !== undefined && norm !== undefined) state = state.add(attention.cross(norm(state), source, cache))
    return state.add(this.fc2(gelu(this.fc1(this.final_layer_norm(state)))))
  }
}

class WhisperEncoder extends Module {
  readonly conv1: Conv1d
  readonly conv2: Conv1d
  readonly embed_positions: Embedding
  readonly layers: ModuleList<WhisperLayer>
  readonly layer_norm: LayerNorm

  constructor(config: WhisperConfig) {
    super()
    const { numMelBins, maxSourcePositions, dModel: width, encoderLayers, encoderAttentionHeads: heads, encoderFfnDim: inner = 4 * width } = config
    this.conv1 = new Conv1d(numMelBins, width, 3, { padding: 1 })
    this.conv2 = new Conv1d(width, width, 3, { stride: 2, padding: 1 })
    this.embed_positions = new Embedding(maxSourcePositions, width)
    this.embed_positions.requiresGrad_(false)
    this.layers = new ModuleList(Array.from({ length: encoderLayers }, () => new WhisperLayer(width, heads, inner, false)))
    this.layer_norm = new LayerNorm(width)
  }

  override forward(features: Tensor): Tensor {
    let x = gelu(this.conv2(gelu(this.conv1(features)))).permute(0, 2, 1)
    x = x.add(this.embed_positions.weight)
    for (const layer of this.layers) x = layer(x)
    return this.layer_norm(x)
  }
}

class WhisperDecoder extends Module {
  readonly embed_tokens: Embedding
  readonly embed_positions: Embedding
  readonly layers: ModuleList<WhisperLayer>
  readonly layer_norm: LayerNorm

  constructor(config: WhisperConfig) {
    super()
    const { vocabSize, maxTargetPositions, dModel: width, decoderLayers, decoderAttentionHeads: heads, decoderFfnDim: inner = 4 * width } = config
    this.embed_tokens = new Embedding(vocabSize, width, { paddingIdx: config.padTokenId ?? 1 })
    this.embed_positions = new Embedding(maxTargetPositions, width)
    this.layers = new ModuleList(Array.from({ length: decoderLayers }, () => new WhisperLayer(width, heads, inner, true)))
    this.layer_norm = new LayerNorm(width)
  }

  override forward(tokens: Tensor, source: Tensor, cache: DecodingCache | null = null): Tensor {
    const [before, time] = [placesBefore(cache), tokens.size(1)]
    let x = this.embed_tokens(tokens).add(this.embed_positions.weight.narrow(0, before, time))
    for (const layer of this.layers) x = layer(x, source, cache)
    if (cache !== null) cache.length += time
    return this.layer_norm(x)
  }
}

class WhisperModel extends Module {
  readonly encoder: WhisperEncoder
  readonly decoder: WhisperDecoder

  constructor(config: WhisperConfig) {
    super()
    this.encoder = new WhisperEncoder(config)
    this.decoder = new WhisperDecoder(config)
  }

  override forward(features: Tensor, tokens: Tensor): Tensor {
    return this.decoder(tokens, this.encoder(features))
  }
}

/** Whisper: writes down what a recording says. Parameters have the names of Hugging Face's checkpoints. */
export class Whisper extends Module implements Configured {
  readonly modelType = 'whisper'
  readonly config: WhisperConfig
  readonly model: WhisperModel
  readonly proj_out: Linear

  constructor(config: WhisperConfig) {
    super()
    this.config = config
    this.model = new WhisperModel(config)
    this.proj_out = new Linear(config.dModel, config.vocabSize, { bias: false })
    this.proj_out.weight = this.model.decoder.embed_tokens.weight
    initialise(this, 0.02)
  }

  /** A spectrogram [batch, mels, frames] to states [batch, frames / 2, width]. */
  encode(features: Tensor): Tensor {
    return this.model.encoder(features)
  }

  /** Tokens so far, [batch, time], and the states of the recording to scores of the next tokens, [batch, time, vocabulary]. */
  decode(tokens: Tensor, states: Tensor, cache: DecodingCache | null = null): Tensor {
    return this.proj_out(this.model.decoder(tokens, states, cache))
  }

  /** A spectrogram [batch, mels, frames] and tokens [batch, time] to scores [batch, time, vocabulary]. */
  override forward(features: Tensor, tokens: Tensor): Tensor {
    return this.decode(tokens, this.encode(features))
  }
}

export const whisper: Family = {
  only: { activation_function: ['gelu'] },
  make: (config) =>
    new Whisper({
      vocabSize: config.count('vocab_size'),
      numMelBins: config.count('num_mel_bins'),
      dModel: config.count('d_model'),
      encoderLayers: config.count('encoder_layers'),
      encoderAttentionHeads: config.count('encoder_attention_heads'),
      encoderFfnDim: config.count('encoder_ffn_dim', 4 * config.count('d_model')),
      decoderLayers: config.count('decoder_layers'),
      decoderAttentionHeads: config.count('decoder_attention_heads'),
      decoderFfnDim: config.count('decoder_ffn_dim', 4 * config.count('d_model')),
      maxSourcePositions: config.count('max_source_positions'),
      maxTargetPositions: config.count('max_target_positions'),
      padTokenId: config.number('pad_token_id', 1),
    }),
  destination: (name) => ({ name: /^(model|proj_out)\./.test(name) ? name : `model.${name}` }),
}
