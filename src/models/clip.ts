// CLIP, with the names of Hugging Face's checkpoints: two towers, a class token, and a temperature that is a parameter without dimensions.
import { Module } from '../module/index.ts'
import { gelu, normalize, scaledDotProductAttention } from '../nn/functional.ts'
import { Conv2d, Embedding, LayerNorm, Linear, ModuleList, Parameter } from '../nn/index.ts'
import { arange, cat, tensor, zeros } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { joinHeads, splitHeads } from './attention.ts'
import type { ConfigReader } from './config.ts'
import type { Configured, Family } from './family.ts'
import { initialise } from './initialise.ts'

/** Sizes of a tower of {@link Clip}. */
export interface ClipTowerConfig {
  /** The width. */
  readonly hiddenSize: number
  /** The width within the layers between attention; default four times the width. */
  readonly intermediateSize?: number
  readonly numHiddenLayers: number
  readonly numAttentionHeads: number
  readonly layerNormEps?: number
  /** Default 'quick_gelu'. */
  readonly hiddenAct?: 'quick_gelu' | 'gelu'
}

/** Sizes of {@link Clip}: the keys of its config.json in camel case. */
export interface ClipConfig {
  readonly projectionDim: number
  readonly textConfig: ClipTowerConfig & { readonly vocabSize: number; readonly maxPositionEmbeddings: number }
  readonly visionConfig: ClipTowerConfig & { readonly imageSize: number; readonly patchSize: number }
}

const normOf = ({ hiddenSize, layerNormEps: eps = 1e-5 }: ClipTowerConfig): LayerNorm => new LayerNorm(hiddenSize, { eps })

class ClipAttention extends Module {
  readonly heads: number
  readonly k_proj: Linear
  readonly v_proj: Linear
  readonly q_proj: Linear
  readonly out_proj: Linear

  constructor({ hiddenSize: width, numAttentionHeads: heads }: ClipTowerConfig) {
    super()
    this.heads = heads
    this.k_proj = new Linear(width, width)
    this.v_proj = new Linear(width, width)
    this.q_proj = new Linear(width, width)
    this.out_proj = new Linear(width, width)
  }

  override forward(x: Tensor, isCausal: boolean): Tensor {
    const [q, k, v] = [this.q_proj(x), this.k_proj(x), this.v_proj(x)]
    const split = (t: Tensor): Tensor => splitHeads(t, this.heads)
    return this.out_proj(joinHeads(scaledDotProductAttention(split(q), split(k), split(v), { isCausal })))
  }
}

class ClipMLP extends Module {
  readonly quick: boolean
  readonly fc1: Linear
  readonly fc2: Linear

  constructor({ hiddenSize: width, intermediateSize: inner = 4 * width, hiddenAct = 'quick_gelu' }: ClipTowerConfig) {
    super()
    this.quick = hiddenAct === 'quick_gelu'
    this.fc1 = new Linear(width, inner)
    this.fc2 = new Linear(inner, width)
  }

  override forward(x: Tensor): Tensor {
    const hidden = this.fc1(x)
    return this.fc2(this.quick ? hidden.mul(hidden.mul(1.702).sigmoid()) : gelu(hidden))
  }
}

class ClipLayer extends Module {
  readonly self_attn: ClipAttention
  readonly layer_norm1: LayerNorm
  readonly mlp: ClipMLP
  readonly layer_norm2: LayerNorm

  constructor(config: ClipTowerConfig) {
    super()
    this.self_attn = new ClipAttention(config)
    this.layer_norm1 = normOf(config)
    this.mlp = new ClipMLP(config)
    this.layer_norm2 = normOf(config)
  }

  override forward(x: Tensor, isCausal: boolean): Tensor {
    const attended = x.add(this.self_attn(this.layer_norm1(x), isCausal))
    return attended.add(this.mlp(this.layer_norm2(attended)))
  }
}

class ClipEncoder extends Module {
  readonly layers: ModuleList<ClipLayer>

  constructor(config: ClipTowerConfig) {
    super()
    this.layers = new ModuleList(Array.from({ length: config.numHiddenLayers }, () => new ClipLayer(config)))
  }

  override forward(x: Tensor, isCausal = false): Tensor {
    let state = x
    for (const layer of this.layers) state = layer(state, isCausal)
    return state
  }
}

class ClipTextEmbeddings extends Module {
  readonly token_embedding: Embedding
  readonly position_embedding: Embedding

  constructor({ vocabSize, maxPositionEmbeddings, hiddenSize }: ClipConfig['textConfig']) {
    super()
    this.token_embedding = new Embedding(vocabSize, hiddenSize)
    this.position_embedding = new Embedding(maxPositionEmbeddings, hiddenSize)
  }

  override forward(tokens: Tensor): Tensor {
    return this.token_embedding(tokens).add(this.position_embedding.weight.narrow(0, 0, tokens.size(1)))
  }
}

class ClipText extends Module {
  readonly embeddings: ClipTextEmbeddings
  readonly encoder: ClipEncoder
  readonly final_layer_norm: LayerNorm

  constructor(config: ClipConfig['textConfig']) {
    super()
    this.embeddings = new ClipTextEmbeddings(config)
    this.encoder = new ClipEncoder(config)
    this.final_layer_norm = normOf(config)
  }

  /** The state of the token with the largest number, which ends a text. */
  override forward(tokens: Tensor): Tensor {
    const x = this.final_layer_norm(this.encoder(this.embeddings(tokens), true))
    return x.index([arange(x.size(0), { dtype: 'int64' }), tokens.argmax(-1)])
  }
}

class ClipVisionEmbeddings extends Module {
  readonly class_embedding: Parameter
  readonly patch_embedding: Conv2d
  readonly position_embedding: Embedding

  constructor({ imageSize, patchSize, hiddenSize }: ClipConfig['visionConfig']) {
    super()
    this.class_embedding = new Parameter(zeros([hiddenSize]))
    this.patch_embedding = new Conv2d(3, hiddenSize, patchSize, { stride: patchSize, bias: false })
    this.position_embedding = new Embedding((imageSize / patchSize) ** 2 + 1, hiddenSize)
  }

  override forward(images: Tensor): Tensor {
    const patches = this.patch_embedding(images).flatten(2).transpose(1, 2)
    const first = this.class_embedding.expand(images.size(0), 1, -1)
    return cat([first, patches], 1).add(this.position_embedding.weight)
  }
}

class ClipVision extends Module {
  readonly embeddings: ClipVisionEmbeddings
  /** The checkpoints spell it like this. */
  readonly pre_layrnorm: LayerNorm
  readonly encoder: ClipEncoder
  readonly post_layernorm: LayerNorm

  constructor(config: ClipConfig['visionConfig']) {
    super()
    this.embeddings = new ClipVisionEmbeddings(config)
    this.pre_layrnorm = normOf(config)
    this.encoder = new ClipEncoder(config)
    this.post_layernorm = normOf(config)
  }

  override forward(images: Tensor): Tensor {
    return this.post_layernorm(this.encoder(this.pre_layrnorm(this.embeddings(images))).select(1, 0))
  }
}

/** CLIP: how well texts describe images. Parameters have the names of Hugging Face's checkpoints. */
export class Clip extends Module implements Configured {
  readonly modelType = 'clip'
  readonly config: ClipConfig
  readonly logit_scale: Parameter
  readonly text_model: ClipText
  readonly vision_model: ClipVision
  readonly visual_projection: Linear
  readonly text_projection: Linear

  constructor(config: ClipConfig) {
    super()
    const { textConfig, visionConfig, projectionDim } = config
    this.config = config
    // The logarithm of 1 / 0.07.
    this.logit_scale = new Parameter(tensor(2.6592))
    this.text_model = new ClipText(textConfig)
    this.vision_model = new ClipVision(visionConfig)
    this.visual_projection = new Linear(visionConfig.hiddenSize, projectionDim, { bias: false })
    this.text_projection = new Linear(textConfig.hiddenSize, projectionDim, { bias: false })
    initialise(this, 0.02)
  }

  /** Texts, int64 [texts, time], to features of length 1, [texts, projection]. */
  textFeatures(tokens: Tensor): Tensor {
    return normalize(this.text_projection(this.text_model(tokens)), { dim: -1 })
  }

  /** Images [images, 3, height, width] to features of length 1, [images, projection]. */
  imageFeatures(images: Tensor): Tensor {
    return normalize(this.visual_projection(this.vision_model(images)), { dim: -1 })
  }

  /** Texts [texts, time] and images [images, 3, height, width] to their similarities [texts, images]. */
  override forward(tokens: Tensor, images: Tensor): Tensor {
    const text = this.textFeatures(tokens)
    return this.logit_scale.exp().mul(text).matmul(this.imageFeatures(images).t())
  }
}

function readTower(config: ConfigReader): ClipTowerConfig {
  return {
    hiddenSize: config.count('hidden_size'),
    intermediateSize: config.count('intermediate_size', 4 * config.count('hidden_size')),
    numHiddenLayers: config.count('num_hidden_layers'),
    numAttentionHeads: config.count('num_attention_heads'),
    layerNormEps: config.number('layer_norm_eps', 1e-5),
    hiddenAct: config.choice('hidden_act', ['quick_gelu', 'gelu'], 'quick_gelu'),
  }
}

export const clip: Family = {
  make(config) {
    const [text, vision] = [config.part('text_config') ?? config, config.part('vision_config') ?? config]
    return new Clip({
      projectionDim: config.count('projection_dim'),
      textConfig: { ...readTower(text), vocabSize: text.count('vocab_size'), maxPositionEmbeddings: text.count('max_position_embeddings') },
      visionConfig: { ...readTower(vision), imageSize: vision.count('image_size'), patchSize: vision.count('patch_size') },
    })
  },
  destination: (name) => (name.endsWith('.position_ids') ? null : { name }),
}
