// Mamba, with the names of Hugging Face's and the original checkpoints: a selective scan, and the parameters A_log and D beside the layers of a mixer.
import { Module } from '../module/index.ts'
import { silu, softplus } from '../nn/functional.ts'
import { Conv1d, Embedding, Linear, ModuleList, Parameter, RMSNorm } from '../nn/index.ts'
import { arange, cat, ones, stack, zeros } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import type { DecodingCache } from './cache.ts'
import type { Configured, Family } from './family.ts'
import { initialise } from './initialise.ts'

/** Sizes of {@link Mamba}: the keys of its config.json in camel case. */
export interface MambaConfig {
  readonly vocabSize: number
  /** The width. */
  readonly hiddenSize: number
  readonly numHiddenLayers: number
  /** Numbers that each channel remembers; default 16. */
  readonly stateSize?: number
  /** Channels of a mixer by the width; default 2. */
  readonly expand?: number
  /** Taps of the convolution; default 4. */
  readonly convKernel?: number
  /** The rank of the step sizes; default a sixteenth of the width. */
  readonly timeStepRank?: number
  readonly layerNormEpsilon?: number
}

const rankOf = ({ hiddenSize, timeStepRank = Math.ceil(hiddenSize / 16) }: MambaConfig): number => timeStepRank

class MambaMixer extends Module {
  readonly inner: number
  readonly state: number
  readonly rank: number
  readonly taps: number
  readonly A_log: Parameter
  readonly D: Parameter
  readonly in_proj: Linear
  readonly conv1d: Conv1d
  readonly x_proj: Linear
  readonly dt_proj: Linear
  readonly out_proj: Linear

  constructor(config: MambaConfig) {
    super()
    const { hiddenSize: width, stateSize: state = 16, expand = 2, convKernel: taps = 4 } = config
    const [inner, rank] = [expand * width, rankOf(config)]
    this.inner = inner
    this.state = state
    this.rank = rank
    this.taps = taps
    const rates = arange(1, state + 1).log()
    this.A_log = new Parameter(rates.repeat(inner, 1))
    this.D = new Parameter(ones([inner]))
    this.in_proj = new Linear(width, 2 * inner, { bias: false })
    this.conv1d = new Conv1d(inner, inner, taps, { groups: inner, padding: taps - 1 })
    this.x_proj = new Linear(inner, rank + 2 * state, { bias: false })
    this.dt_proj = new Linear(rank, inner)
    this.out_proj = new Linear(inner, width, { bias: false })
  }

  /** The convolution over `wide`, [batch, inner, time], and the inputs before it that a cache has. */
  #convolved(wide: Tensor, cache: DecodingCache | null): Tensor {
    const before = cache?.get(this, 'inputs') ?? null
    const all = before === null ? wide : cat([before, wide], 2)
    const kept = Math.min(all.size(2), this.taps - 1)
    cache?.set(this, 'inputs', all.narrow(2, all.size(2) - kept, kept))
    return this.conv1d(all).narrow(2, all.size(2) - wide.size(2), wide.size(2))
  }

  override forward(input: Tensor, cache: DecodingCache | null = null): Tensor {
    const [batch, time] = [input.size(0), input.size(1)]
    const projected = this.in_proj(input).transpose(1, 2)
    const x = silu(this.#convolved(projected.narrow(1, 0, this.inner), cache))
    const chosen = this.x_proj(x.transpose(1, 2))
    const step = softplus(this.dt_proj(chosen.narrow(-1, 0, this.rank)))
    const [B, C] = [chosen.narrow(-1, this.rank, this.state), chosen.narrow(-1, this.rank + this.state, this.state)]
    const A = this.A_log.exp().neg()
    let h = cache?.get(this, 'state') ?? zeros([batch, this.inner, this.state], { dtype: x.dtype })
    const out: Tensor[] = []
    for (let t = 0; t < time; t++) {
      const dt = step.select(1, t).unsqueeze(-1)
      const added = dt.mul(B.select(1, t).unsqueeze(1)).mul(x.select(2, t).unsqueeze(-1))
      h = dt.mul(A).exp().mul(h).add(added)
      out.push(h.mul(C.select(1, t).unsqueeze(1)).sum(-1))
    }
    cache?.set(this, 'state', h)
    const y = stack(out, 2).add(x.mul(this.D.unsqueeze(1)))
    const gate = projected.narrow(1, this.inner, this.inner)
    return this.out_proj(y.mul(silu(gate)).transpose(1, 2))
  }
}

class MambaBlock extends Module {
  readonly mixer: MambaMixer
  readonly norm: RMSNorm

  constructor(config: MambaConfig) {
    super()
    this.mixer = new MambaMixer(config)
    this.norm = new RMSNorm(config.hiddenSize, { eps: config.layerNormEpsilon ?? 1e-5 })
  }

  override forward(x: Tensor, cache: DecodingCache | null = null): Tensor {
    return x.add(this.mixer(this.norm(x), cache))
  }
}

class MambaBackbone extends Module {
  /** Hugging Face's files call it `embeddings`. */
  readonly embedding: Embedding
  readonly layers: ModuleList<MambaBlock>
  readonly norm_f: RMSNorm

  constructor(config: MambaConfig) {
    super()
    this.embedding = new Embedding(config.vocabSize, config.hiddenSize)
    this.layers = new ModuleList(Array.from({ length: config.numHiddenLayers }, () => new MambaBlock(config)))
    this.norm_f = new RMSNorm(config.hiddenSize, { eps: config.layerNormEpsilon ?? 1e-5 })
  }

  override forward(tokens: Tensor, cache: DecodingCache | null = null): Tensor {
    let x = this.embedding(tokens)
    for (const layer of this.layers) x = layer(x, cache)
    if (cache !== null) cache.length += tokens.size(1)
    return this.norm_f(x)
  }
}

/** Mamba: predicts the next token of a text, from a state of fixed size. Parameters have the names of the original checkpoints. */
export class Mamba extends Module implements Configured {
  readonly modelType = 'mamba'
  readonly config: MambaConfig
  readonly backbone: MambaBackbone
  readonly lm_head: Linear

  constructor(config: MambaConfig) {
    super()
    this.config = config
    this.backbone = new MambaBackbone(config)
    this.lm_head = new Linear(config.hiddenSize, config.vocabSize, { bias: false })
    this.lm_head.weight = this.backbone.embedding.weight
    initialise(this, 0.02)
  }

  /** Tokens [batch, time] to scores of the next ones, [batch, time, vocabulary]. With a cache, `tokens` follow those of the calls before. */
  override forward(tokens: Tensor, cache: DecodingCache | null = null): Tensor {
    return this.lm_head(this.backbone(tokens, cache))
  }
}

export const mamba: Family = {
  only: { hidden_act: ['silu'] },
  make: (config) =>
    new Mamba({
      vocabSize: config.count('vocab_size'),
      hiddenSize: config.count('hidden_size'),
      numHiddenLayers: config.count('num_hidden_layers'),
      stateSize: config.count('state_size', 16),
      expand: config.count('expand', 2),
      convKernel: config.count('conv_kernel', 4),
      timeStepRank: config.count('time_step_rank', Math.ceil(config.count('hidden_size') / 16)),
      layerNormEpsilon: config.number('layer_norm_epsilon', 1e-5),
    }),
  destination: (name) => ({ name: name.replace(/^backbone\.embeddings\./, 'backbone.embedding.') }),
}
