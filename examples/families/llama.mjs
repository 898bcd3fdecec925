// Llama, Qwen2 (biases in q, k and v, a tied head) and Mixtral (a router and experts): rotary positions, RMS norm, grouped keys and values. Names of Hugging Face's checkpoints.
import { nn, torch } from 'tensorfx'

const F = torch.nn.functional

/** Rotates the halves of the last dimension of x, [..., time, size], by an angle for each position and pair. */
function rotary(x, base = 10000) {
  const [time, size] = [x.size(-2), x.size(-1)]
  const rates = torch
    .arange(size / 2)
    .mul(-2 / size)
    .mul(Math.log(base))
    .exp()
  const angles = torch.arange(time).unsqueeze(1).mul(rates).repeat(1, 2)
  const [first, second] = x.chunk(2, -1)
  return x.mul(angles.cos()).add(torch.cat([second.neg(), first], -1).mul(angles.sin()))
}

class LlamaAttention extends nn.Module {
  constructor({ width, heads, kvHeads, bias }) {
    super()
    this.heads = heads
    this.kvHeads = kvHeads
    const size = width / heads
    this.q_proj = new nn.Linear(width, heads * size, { bias })
    this.k_proj = new nn.Linear(width, kvHeads * size, { bias })
    this.v_proj = new nn.Linear(width, kvHeads * size, { bias })
    this.o_proj = new nn.Linear(heads * size, width, { bias: false })
  }

  forward(x) {
    const [batch, time] = x.shape
    const split = (t, heads) => t.view(batch, time, heads, -1).transpose(1, 2)
    const shared = (t) => t.repeatInterleave(this.heads / this.kvHeads, 1)
    const q = rotary(split(this.q_proj(x), this.heads))
    const k = shared(rotary(split(this.k_proj(x), this.kvHeads)))
    const v = shared(split(this.v_proj(x), this.kvHeads))
    const y = F.scaledDotProductAttention(q, k, v, { isCausal: true })
    return this.o_proj(y.transpose(1, 2).reshape(batch, time, -1))
  }
}

class LlamaMLP extends nn.Module {
  constructor({ width, hidden }) {
    super()
    this.gate_proj = new nn.Linear(width, hidden, { bias: false })
    this.up_proj = new nn.Linear(width, hidden, { bias: false })
    this.down_proj = new nn.Linear(hidden, width, { bias: false })
  }

  forward(x) {
    return this.down_proj(F.silu(this.gate_proj(x)).mul(this.up_proj(x)))
  }
}

class Expert extends nn.Module {
  constructor({ width, hidden }) {
    super()
    this.w1 = new nn.Linear(width, hidden, { bias: false })
    this.w2 = new nn.Linear(hidden, width, { bias: false })
    this.w3 = new nn.Linear(width, hidden, { bias: false })
  }

  forward(x) {
    return this.w2(F.silu(this.w1(x)).mul(this.w3(x)))
  }
}

/** Each token goes to its best experts; an expert computes its own tokens only. */
class SparseMoe extends nn.Module {
  constructor(config) {
    super()
    this.chosen = config.chosen
    this.gate = new nn.Linear(config.width, config.experts, { bias: false })
    this.experts = new nn.ModuleList(Array.from({ length: config.experts }, () => new Expert(config)))
  }

  forward(x) {
    const flat = x.reshape(-1, x.size(-1))
    const [best, places] = this.gate(flat).softmax(-1).topk(this.chosen, -1)
    const weights = best.div(best.sum(-1, { keepdim: true }))
    let out = torch.zerosLike(flat)
    for (const [i, expert] of [...this.experts].entries()) {
      const [rows, slots] = torch.where(places.eq(i))
      if (rows.numel === 0) continue
      const share = weights.index([rows, slots]).unsqueeze(1)
      out = out.indexAdd(0, rows, expert(flat.indexSelect(0, rows)).mul(share))
    }
    return out.view(x.shape)
  }
}

class LlamaLayer extends nn.Module {
  constructor(config) {
    super()
    this.self_attn = new LlamaAttention(config)
    if (config.experts > 0) this.block_sparse_moe = new SparseMoe(config)
    else this.mlp = new LlamaMLP(config)
    this.input_layernorm = new nn.RMSNorm(config.width, { eps: 1e-6 })
    this.post_attention_layernorm = new nn.RMSNorm(config.width, { eps: 1e-6 })
  }

  forward(x) {
    x = x.add(this.self_attn(this.input_layernorm(x)))
    const feed = this.block_sparse_moe ?? this.mlp
    return x.add(feed(this.post_attention_layernorm(x)))
  }
}

class LlamaModel extends nn.Module {
  constructor(config) {
    super()
    this.embed_tokens = new nn.Embedding(config.vocabulary, config.width)
    this.layers = new nn.ModuleList(Array.from({ length: config.layers }, () => new LlamaLayer(config)))
    this.norm = new nn.RMSNorm(config.width, { eps: 1e-6 })
  }

  forward(tokens) {
    let x = this.embed_tokens(tokens)
    for (const layer of this.layers) x = layer(x)
    return this.norm(x)
  }
}

export class Llama extends nn.Module {
  constructor(config) {
    super()
    this.model = new LlamaModel(config)
    this.lm_head = new nn.Linear(config.width, config.vocabulary, { bias: false })
    if (config.tied) this.lm_head.weight = this.model.embed_tokens.weight
  }

  /** Tokens [batch, time] to scores [batch, time, vocabulary]. */
  forward(tokens) {
    return this.lm_head(this.model(tokens))
  }
}

const config = { vocabulary: 24, width: 16, layers: 2, heads: 4, kvHeads: 2, hidden: 24, bias: false, tied: false, experts: 0, chosen: 2 }

export const families = {
  llama: () => new Llama(config),
  qwen2: () => new Llama({ ...config, bias: true, tied: true }),
  mixtral: () => new Llama({ ...config, experts: 4 }),
}
