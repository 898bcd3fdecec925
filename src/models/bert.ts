// BERT, with the names of Hugging Face's checkpoints: modules whose names are capitalised, and a buffer of positions that is saved.
import { Module } from '../module/index.ts'
import { gelu, scaledDotProductAttention } from '../nn/functional.ts'
import { Dropout, Embedding, LayerNorm, Linear, ModuleList } from '../nn/index.ts'
import { arange, ones } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { joinHeads, splitHeads } from './attention.ts'
import type { Configured, Family } from './family.ts'
import { initialise } from './initialise.ts'

/** Sizes of {@link Bert}: the keys of its config.json in camel case. */
export interface BertConfig {
  readonly vocabSize: number
  /** The width. */
  readonly hiddenSize: number
  /** The width within the layers between attention. */
  readonly intermediateSize: number
  readonly numHiddenLayers: number
  readonly numAttentionHeads: number
  /** How many tokens it can read. */
  readonly maxPositionEmbeddings: number
  /** How many parts a text may have; default 2. */
  readonly typeVocabSize?: number
  readonly layerNormEps?: number
  readonly padTokenId?: number
  /** Default 0. */
  readonly hiddenDropoutProb?: number
}

const epsOf = ({ layerNormEps = 1e-12 }: BertConfig): { eps: number } => ({ eps: layerNormEps })

class BertEmbeddings extends Module {
  readonly word_embeddings: Embedding
  readonly position_embeddings: Embedding
  readonly token_type_embeddings: Embedding
  readonly LayerNorm: LayerNorm
  readonly dropout: Dropout
  declare readonly position_ids: Tensor

  constructor(config: BertConfig) {
    super()
    const { vocabSize, maxPositionEmbeddings, typeVocabSize = 2, hiddenSize: width, padTokenId = 0, hiddenDropoutProb = 0 } = config
    this.word_embeddings = new Embedding(vocabSize, width, { paddingIdx: padTokenId })
    this.position_embeddings = new Embedding(maxPositionEmbeddings, width)
    this.token_type_embeddings = new Embedding(typeVocabSize, width)
    this.LayerNorm = new LayerNorm(width, epsOf(config))
    this.dropout = new Dropout(hiddenDropoutProb)
    this.registerBuffer('position_ids', arange(maxPositionEmbeddings, { dtype: 'int64' }).unsqueeze(0))
  }

  override forward(tokens: Tensor, types: Tensor): Tensor {
    const places = this.position_ids.narrow(1, 0, tokens.size(1))
    const sum = this.word_embeddings(tokens).add(this.position_embeddings(places)).add(this.token_type_embeddings(types))
    return this.dropout(this.LayerNorm(sum))
  }
}

class BertSelf extends Module {
  readonly heads: number
  readonly query: Linear
  readonly key: Linear
  readonly value: Linear

  constructor({ hiddenSize: width, numAttentionHeads }: BertConfig) {
    super()
    this.heads = numAttentionHeads
    this.query = new Linear(width, width)
    this.key = new Linear(width, width)
    this.value = new Linear(width, width)
  }

  override forward(x: Tensor, mask: Tensor): Tensor {
    const [q, k, v] = [this.query(x), this.key(x), this.value(x)]
    const split = (t: Tensor): Tensor => splitHeads(t, this.heads)
    return joinHeads(scaledDotProductAttention(split(q), split(k), split(v), { attnMask: mask }))
  }
}

class BertOutput extends Module {
  readonly dense: Linear
  readonly LayerNorm: LayerNorm
  readonly dropout: Dropout

  constructor(from: number, config: BertConfig) {
    super()
    this.dense = new Linear(from, config.hiddenSize)
    this.LayerNorm = new LayerNorm(config.hiddenSize, epsOf(config))
    this.dropout = new Dropout(config.hiddenDropoutProb ?? 0)
  }

  override forward(x: Tensor, residual: Tensor): Tensor {
    return this.LayerNorm(this.dropout(this.dense(x)).add(residual))
  }
}

class BertAttention extends Module {
  readonly self: BertSelf
  readonly output: BertOutput

  constructor(config: BertConfig) {
    super()
    this.self = new BertSelf(config)
    this.output = new BertOutput(config.hiddenSize, config)
  }

  override forward(x: Tensor, mask: Tensor): Tensor {
    return this.output(this.self(x, mask), x)
  }
}

/** A linear layer under the name `dense`, and what follows it. */
class Dense extends Module {
  readonly dense: Linear
  readonly activation: (x: Tensor) => Tensor

  constructor(from: number, to: number, activation: (x: Tensor) => Tensor) {
    super()
    this.dense = new Linear(from, to)
    this.activation = activation
  }

  override forward(x: Tensor): Tensor {
    return this.activation(this.dense(x))
  }
}

class BertLayer extends Module {
  readonly attention: BertAttention
  readonly intermediate: Dense
  readonly output: BertOutput

  constructor(config: BertConfig) {
    super()
    this.attention = new BertAttention(config)
    this.intermediate = new Dense(config.hiddenSize, config.intermediateSize, (x) => gelu(x))
    this.output = new BertOutput(config.intermediateSize, config)
  }

  override forward(x: Tensor, mask: Tensor): Tensor {
    const attended = this.attention(x, mask)
    return this.output(this.intermediate(attended), attended)
  }
}

class BertEncoder extends Module {
  readonly layer: ModuleList<BertLayer>

  constructor(config: BertConfig) {
    super()
    this.layer = new ModuleList(Array.from({ length: config.numHiddenLayers }, () => new BertLayer(config)))
  }

  override forward(x: Tensor, mask: Tensor): Tensor {
    let state = x
    for (const layer of this.layer) state = layer(state, mask)
    return state
  }
}

/** BERT without a head: states of a text's tokens. Parameters have the names of Hugging Face's checkpoints. */
export class Bert extends Module implements Configured {
  readonly modelType = 'bert'
  readonly config: BertConfig
  readonly embeddings: BertEmbeddings
  readonly encoder: BertEncoder
  readonly pooler: Dense

  constructor(config: BertConfig) {
    super()
    this.config = config
    this.embeddings = new BertEmbeddings(config)
    this.encoder = new BertEncoder(config)
    this.pooler = new Dense(config.hiddenSize, config.hiddenSize, (x) => x.tanh())
    initialise(this, 0.02)
  }

  /**
   * Tokens, the parts they belong to and the mask, 1 where there is a token, each int64 [batch, time], to the states [batch, time, width] and what the first of them says about the whole
   * text, [batch, width].
   */
  override forward(tokens: Tensor, types: Tensor = tokens.mul(0), attentionMask: Tensor = ones(tokens.shape)): [states: Tensor, pooled: Tensor] {
    const x = this.embeddings(tokens, types)
    const mask = ones([]).sub(attentionMask.unsqueeze(1).unsqueeze(1).to(x.dtype)).mul(-10000)
    const states = this.encoder(x, mask)
    return [states, this.pooler(states.select(1, 0))]
  }
}

export const bert: Family = {
  only: { hidden_act: ['gelu'] },
  make: (config) =>
    new Bert({
      vocabSize: config.count('vocab_size'),
      hiddenSize: config.count('hidden_size'),
      intermediateSize: config.count('intermediate_size'),
      numHiddenLayers: config.count('num_hidden_layers'),
      numAttentionHeads: config.count('num_attention_heads'),
      maxPositionEmbeddings: config.count('max_position_embeddings'),
      typeVocabSize: config.count('type_vocab_size', 2),
      layerNormEps: config.number('layer_norm_eps', 1e-12),
      padTokenId: config.number('pad_token_id', 0),
      hiddenDropoutProb: config.number('hidden_dropout_prob', 0),
    }),
  destination(name) {
    // Heads of other tasks; and what the oldest files call weight and bias.
    if (/^(cls|classifier|qa_outputs)\./.test(name)) return null
    return {
      name: name
        .replace(/^bert\./, '')
        .replace(/\.gamma$/, '.weight')
        .replace(/\.beta$/, '.bias'),
    }
  },
}
