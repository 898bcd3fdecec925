// GPT-2, with the names of Hugging Face's checkpoints: Conv1D keeps its weight transposed, and the head shares the weight of the token embedding.
import { Module } from '../module/index.ts'
import { gelu } from '../nn/functional.ts'
import { normal_ } from '../nn/init.ts'
import { Dropout, Embedding, LayerNorm, Linear, ModuleList, Parameter } from '../nn/index.ts'
import { arange, zeros } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { causalAttention, joinHeads, placesBefore, splitHeads } from './attention.ts'
import type { DecodingCache } from './cache.ts'
import type { Configured, Family } from './family.ts'
import { initialise } from './initialise.ts'

/** Sizes of {@link GPT2}: the keys of its config.json in camel case. */
export interface GPT2Config {
  readonly vocabSize: number
  /** How many tokens it can read. */
  readonly nPositions: number
  /** The width. */
  readonly nEmbd: number
  readonly nLayer: number
  readonly nHead: number
  /** The width within the layers between attention; default four times the width. */
  readonly nInner?: number
  readonly layerNormEpsilon?: number
  /** Dropout of the embeddings and of each residual; default 0. */
  readonly dropout?: number
}

/** A linear layer whose weight is [from, to]. */
class Conv1D extends Module {
  readonly weight: Parameter
  readonly bias: Parameter

  constructor(to: number, from: number) {
    super()
    this.weight = new Parameter(zeros([from, to]))
    this.bias = new Parameter(zeros([to]))
    normal_(this.weight, 0, 0.02)
  }

  override forward(x: Tensor): Tensor {
    return x.matmul(this.weight).add(this.bias)
  }
}

class GPT2Attention extends Module {
  readonly heads: number
  readonly c_attn: Conv1D
  readonly c_proj: Conv1D

  constructor(width: number, heads: number) {
    super()
    this.heads = heads
    this.c_attn = new Conv1D(3 * width, width)
    this.c_proj = new Conv1D(width, width)
  }

  override forward(x: Tensor, cache: DecodingCache | null = null): Tensor {
    const width = x.size(-1)
    const all = this.c_attn(x)
    const part = (i: number): Tensor => splitHeads(all.narrow(-1, i * width, width), this.heads)
    const q = part(0)
    let [k, v] = [part(1), part(2)]
    if (cache !== null) [k, v] = [cache.extend(this, 'key', k), cache.extend(this, 'value', v)]
    return this.c_proj(joinHeads(causalAttention(q, k, v)))
  }
}

class GPT2MLP extends Module {
  readonly c_fc: Conv1D
  readonly c_proj: Conv1D

  constructor(width: number, inner: number) {
    super()
    this.c_fc = new Conv1D(inner, width)
    this.c_proj = new Conv1D(width, inner)
  }

  override forward(x: Tensor): Tensor {
    return this.c_proj(gelu(this.c_fc(x), { approximate: 'tanh' }))
  }
}

class GPT2Block extends Module {
  readonly ln_1: LayerNorm
  readonly attn: GPT2Attention
  readonly ln_2: LayerNorm
  readonly mlp: GPT2MLP
  readonly drop: Dropout

  constructor({ nEmbd, nHead, nInner = 4 * nEmbd, layerNormEpsilon: eps = 1e-5, dropout = 0 }: GPT2Config) {
    super()
    this.ln_1 = new LayerNorm(nEmbd, { eps })
    this.attn = new GPT2Attention(nEmbd, nHead)
    this.ln_2 = new LayerNorm(nEmbd, { eps })
    this.mlp = new GPT2MLP(nEmbd, nInner)
    this.drop = new Dropout(dropout)
  }

  override forward(x: Tensor, cache: DecodingCache | null = null): Tensor {
    const attended = x.add(this.drop(this.attn(this.ln_1(x), cache)))
    return attended.add(this.drop(this.mlp(this.ln_2(attended))))
  }
}

class GPT2Model extends Module {
  readonly wte: Embedding
  readonly wpe: Embedding
  readonly drop: Dropout
  readonly h: ModuleList<GPT2Block>
  readonly ln_f: LayerNorm

  constructor(config: GPT2Config) {
    super()
    const { vocabSize, nPositions, nEmbd, nLayer, layerNormEpsilon: eps = 1e-5, dropout = 0 } = config
    this.wte = new Embedding(vocabSize, nEmbd)
    this.wpe = new Embedding(nPositions, nEmbd)
    this.drop = new Dropout(dropout)
    this.h = new ModuleList(Array.from({ length: nLayer }, () => new GPT2Block(config)))
    this.ln_f = new LayerNorm(nEmbd, { eps })
  }

  override forward(tokens: Tensor, cache: DecodingCache | null = null): Tensor {
    const [before, time] = [placesBefore(cache), tokens.size(1)]
    const places = arange(before, before + time, { dtype: 'int64' })
    let x = this.drop(this.wte(tokens).add(this.wpe(places)))
    for (const block of this.h) x = block(x, cache)
    if (cache !== null) cache.length += time
    return this.ln_f(x)
  }
}

/**
 * GPT-2: predicts the next token of a text. Parameters have the names of Hugging Face's checkpoints.
 *
 * @example new GPT2({ vocabSize: 64, nPositions: 16, nEmbd: 16, nLayer: 1, nHead: 2 }).call(torch.zeros([1, 4]).long()).shape // [1, 4, 64]
 */
export class GPT2 extends Module implements Configured {
  readonly modelType = 'gpt2'
  readonly config: GPT2Config
  readonly transformer: GPT2Model
  readonly lm_head: Linear

  constructor(config: GPT2Config) {
    super()
    this.config = config
    this.transformer = new GPT2Model(config)
    this.lm_head = new Linear(config.nEmbd, config.vocabSize, { bias: false })
    this.lm_head.weight = this.transformer.wte.weight
    initialise(this, 0.02)
  }

  /** Tokens [batch, time] to scores of the next ones, [batch, time, vocabulary]. With a cache, `tokens` follow those of the calls before. */
  override forward(tokens: Tensor, cache: DecodingCache | null = null): Tensor {
    return this.lm_head(this.transformer(tokens, cache))
  }
}

export const gpt2: Family = {
  only: { activation_function: ['gelu_new', 'gelu_pytorch_tanh'] },
  make: (config) =>
    new GPT2({
      vocabSize: config.count('vocab_size'),
      nPositions: config.count('n_positions', config.count('n_ctx', 1024)),
      nEmbd: config.count('n_embd'),
      nLayer: config.count('n_layer'),
      nHead: config.count('n_head'),
      nInner: config.count('n_inner', 4 * config.count('n_embd')),
      layerNormEpsilon: config.number('layer_norm_epsilon', 1e-5),
      dropout: config.number('dropout', config.number('resid_pdrop', 0)),
    }),
  destination(name) {
    // Masks are kept in older files.
    if (/\.attn\.(masked_)?bias$/.test(name)) return null
    return { name: /^(transformer|lm_head)\./.test(name) ? name : `transformer.${name}` }
  },
}
