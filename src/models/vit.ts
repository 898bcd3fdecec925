// The vision transformer as torchvision writes it, with nn.MultiheadAttention. Hugging Face's checkpoints keep queries, keys and values apart; they are read too.
import { Module } from '../module/index.ts'
import { normal_ } from '../nn/init.ts'
import { Conv2d, Dropout, GELU, LayerNorm, Linear, MultiheadAttention, Parameter, Sequential } from '../nn/index.ts'
import { cat, zeros } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import type { Configured, Destination, Family } from './family.ts'
import { initialise } from './initialise.ts'

/** Sizes of {@link ViT}: the keys of Hugging Face's config.json in camel case. */
export interface ViTConfig {
  /** Height and width of an image. */
  readonly imageSize: number
  readonly patchSize: number
  /** Default 3. */
  readonly numChannels?: number
  /** The width. */
  readonly hiddenSize: number
  /** The width within the layers between attention. */
  readonly intermediateSize: number
  readonly numHiddenLayers: number
  readonly numAttentionHeads: number
  readonly numLabels: number
  /** The names of the classes by their numbers, for the program that shows them; a checkpoint keeps them. */
  readonly id2label?: Readonly<Record<string, string>>
  /** Default 1e-6. */
  readonly layerNormEps?: number
  /** Default 0. */
  readonly dropout?: number
}

class EncoderBlock extends Module {
  readonly ln_1: LayerNorm
  readonly self_attention: MultiheadAttention
  readonly ln_2: LayerNorm
  readonly mlp: Sequential

  constructor({ hiddenSize: width, numAttentionHeads, intermediateSize: inner, layerNormEps: eps = 1e-6, dropout = 0 }: ViTConfig) {
    super()
    this.ln_1 = new LayerNorm(width, { eps })
    this.self_attention = new MultiheadAttention(width, numAttentionHeads, { batchFirst: true, dropout })
    this.ln_2 = new LayerNorm(width, { eps })
    this.mlp = new Sequential(new Linear(width, inner), new GELU(), new Dropout(dropout), new Linear(inner, width), new Dropout(dropout))
  }

  override forward(x: Tensor): Tensor {
    const normed = this.ln_1(x)
    const [y] = this.self_attention(normed, normed, normed, { needWeights: false })
    const attended = x.add(y)
    return attended.add(this.mlp(this.ln_2(attended)))
  }
}

class Encoder extends Module {
  readonly pos_embedding: Parameter
  readonly dropout: Dropout
  readonly layers: Sequential
  readonly ln: LayerNorm

  constructor(config: ViTConfig) {
    super()
    const { imageSize, patchSize, hiddenSize: width, numHiddenLayers, layerNormEps: eps = 1e-6, dropout = 0 } = config
    this.pos_embedding = new Parameter(zeros([1, (imageSize / patchSize) ** 2 + 1, width]))
    normal_(this.pos_embedding, 0, 0.02)
    this.dropout = new Dropout(dropout)
    this.layers = new Sequential(
      Object.fromEntries(Array.from({ length: numHiddenLayers }, (_, i) => [`encoder_layer_${i}`, new EncoderBlock(config)])),
    )
    this.ln = new LayerNorm(width, { eps })
  }

  override forward(x: Tensor): Tensor {
    return this.ln(this.layers(this.dropout(x.add(this.pos_embedding))))
  }
}

/**
 * The vision transformer: images to scores of classes. Parameters have the names of torchvision's `VisionTransformer`.
 *
 * @example new ViT({ imageSize: 16, patchSize: 8, hiddenSize: 8, intermediateSize: 16, numHiddenLayers: 1, numAttentionHeads: 2, numLabels: 3 }).call(torch.ones([2, 3, 16, 16])).shape // [2, 3]
 */
export class ViT extends Module implements Configured {
  readonly modelType = 'vit'
  readonly config: ViTConfig
  readonly class_token: Parameter
  readonly conv_proj: Conv2d
  readonly encoder: Encoder
  readonly heads: Sequential

  constructor(config: ViTConfig) {
    super()
    const { patchSize, numChannels = 3, hiddenSize: width, numLabels } = config
    this.config = config
    this.conv_proj = new Conv2d(numChannels, width, patchSize, { stride: patchSize })
    this.class_token = new Parameter(zeros([1, 1, width]))
    this.encoder = new Encoder(config)
    this.heads = new Sequential({ head: new Linear(width, numLabels) })
    initialise(this, 0.02)
  }

  /** Images [batch, channels, height, width] to the state of the class token, [batch, width]: what a new head can learn from. */
  features(images: Tensor): Tensor {
    const patches = this.conv_proj(images).flatten(2).permute(0, 2, 1)
    const x = cat([this.class_token.expand(images.size(0), -1, -1), patches], 1)
    return this.encoder(x).select(1, 0)
  }

  /** Images [batch, channels, height, width] to scores [batch, classes]. */
  override forward(images: Tensor): Tensor {
    return this.heads(this.features(images))
  }
}

/** Names of Hugging Face's files, and ours. */
const PARTS: readonly (readonly [theirs: RegExp, ours: string])[] = [
  [/^embeddings\.cls_token$/, 'class_token'],
  [/^embeddings\.position_embeddings$/, 'encoder.pos_embedding'],
  [/^embeddings\.patch_embeddings\.projection\./, 'conv_proj.'],
  [/^layernorm\./, 'encoder.ln.'],
  [/^classifier\./, 'heads.head.'],
]

const LAYER: readonly (readonly [theirs: string, ours: string])[] = [
  ['layernorm_before.', 'ln_1.'],
  ['layernorm_after.', 'ln_2.'],
  ['attention.output.dense.', 'self_attention.out_proj.'],
  ['intermediate.dense.', 'mlp.0.'],
  ['output.dense.', 'mlp.3.'],
]

function destination(given: string): Destination | null {
  const name = given.replace(/^vit\./, '')
  if (name.startsWith('pooler.')) return null
  for (const [theirs, ours] of PARTS) if (theirs.test(name)) return { name: name.replace(theirs, ours) }
  const [, layer, rest] = /^encoder\.layer\.(\d+)\.(.+)$/.exec(name) ?? []
  if (layer === undefined || rest === undefined) return { name }
  const path = `encoder.layers.encoder_layer_${layer}.`
  const [, which, kind] = /^attention\.attention\.(query|key|value)\.(weight|bias)$/.exec(rest) ?? []
  if (which !== undefined)
    return { name: `${path}self_attention.in_proj_${kind}`, part: { index: ['query', 'key', 'value'].indexOf(which), count: 3 } }
  for (const [theirs, ours] of LAYER) if (rest.startsWith(theirs)) return { name: path + rest.replace(theirs, ours) }
  return { name }
}

export const vit: Family = {
  only: { hidden_act: ['gelu'] },
  make(config) {
    const id2label = config.labels()
    return new ViT({
      imageSize: config.count('image_size', 224),
      patchSize: config.count('patch_size', 16),
      numChannels: config.count('num_channels', 3),
      hiddenSize: config.count('hidden_size'),
      intermediateSize: config.count('intermediate_size'),
      numHiddenLayers: config.count('num_hidden_layers'),
      numAttentionHeads: config.count('num_attention_heads'),
      numLabels: config.classes(),
      layerNormEps: config.number('layer_norm_eps', 1e-6),
      dropout: config.number('dropout', config.number('hidden_dropout_prob', 0)),
      ...(id2label === null ? {} : { id2label }),
    })
  },
  destination,
}
