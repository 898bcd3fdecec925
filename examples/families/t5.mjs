// T5, with the names of Hugging Face's checkpoints: one embedding under four names, relative positions that the first block of each stack owns, attention without a scale.
import { nn, torch } from 'tensorfx'

const F = torch.nn.functional

/** The bucket of each distance between two positions: exact for short ones, logarithmic for long ones. */
function relativeBucket(distance, both, buckets = 8, furthest = 16) {
  let offset = torch.zerosLike(distance)
  if (both) {
    buckets /= 2
    offset = distance.gt(0).long().mul(buckets)
    distance = distance.abs()
  } else {
    distance = distance.clamp({ max: 0 }).neg()
  }
  const exact = buckets / 2
  const steps = distance
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
  return offset.add(torch.where(distance.lt(exact), distance, far))
}

class T5Attention extends nn.Module {
  constructor({ width, heads, size }, positions = false) {
    super()
    this.heads = heads
    this.q = new nn.Linear(width, heads * size, { bias: false })
    this.k = new nn.Linear(width, heads * size, { bias: false })
    this.v = new nn.Linear(width, heads * size, { bias: false })
    this.o = new nn.Linear(heads * size, width, { bias: false })
    if (positions) this.relative_attention_bias = new nn.Embedding(8, heads)
  }

  forward(x, source, bias = null) {
    const split = (t) => t.view(t.size(0), t.size(1), this.heads, -1).transpose(1, 2)
    const y = F.scaledDotProductAttention(split(this.q(x)), split(this.k(source)), split(this.v(source)), { attnMask: bias, scale: 1 })
    return this.o(y.transpose(1, 2).reshape(x.size(0), x.size(1), -1))
  }
}

class T5LayerSelf extends nn.Module {
  constructor(config, positions) {
    super()
    this.SelfAttention = new T5Attention(config, positions)
    this.layer_norm = new nn.RMSNorm(config.width, { eps: 1e-6 })
  }

  forward(x, bias) {
    const normed = this.layer_norm(x)
    return x.add(this.SelfAttention(normed, normed, bias))
  }
}

class T5LayerCross extends nn.Module {
  constructor(config) {
    super()
    this.EncDecAttention = new T5Attention(config)
    this.layer_norm = new nn.RMSNorm(config.width, { eps: 1e-6 })
  }

  forward(x, source) {
    return x.add(this.EncDecAttention(this.layer_norm(x), source))
  }
}

class T5LayerFF extends nn.Module {
  constructor({ width, hidden }) {
    super()
    this.DenseReluDense = new nn.ModuleDict({ wi: new nn.Linear(width, hidden, { bias: false }), wo: new nn.Linear(hidden, width, { bias: false }) })
    this.layer_norm = new nn.RMSNorm(width, { eps: 1e-6 })
  }

  forward(x) {
    const { DenseReluDense: dense } = this
    return x.add(dense.get('wo')(F.relu(dense.get('wi')(this.layer_norm(x)))))
  }
}

class T5Block extends nn.Module {
  constructor(config, decoder, positions) {
    super()
    const cross = decoder ? [new T5LayerCross(config)] : []
    this.layer = new nn.ModuleList([new T5LayerSelf(config, positions), ...cross, new T5LayerFF(config)])
  }

  forward(x, bias, source = null) {
    const [self, ...others] = this.layer
    x = self(x, bias)
    if (source !== null) x = others[0](x, source)
    return others.at(-1)(x)
  }
}

class T5Stack extends nn.Module {
  constructor(embedding, config, decoder) {
    super()
    this.decoder = decoder
    this.embed_tokens = embedding
    this.block = new nn.ModuleList(Array.from({ length: config.layers }, (_, i) => new T5Block(config, decoder, i === 0)))
    this.final_layer_norm = new nn.RMSNorm(config.width, { eps: 1e-6 })
  }

  forward(tokens, source = null) {
    let x = this.embed_tokens(tokens)
    const places = torch.arange(x.size(1), { dtype: 'int64' })
    const distance = places.unsqueeze(0).sub(places.unsqueeze(1))
    const table = this.block[0].layer[0].SelfAttention.relative_attention_bias
    let bias = table(relativeBucket(distance, !this.decoder)).permute(2, 0, 1).unsqueeze(0)
    if (this.decoder) bias = bias.maskedFill(distance.gt(0), -Infinity)
    for (const block of this.block) x = block(x, bias, source)
    return this.final_layer_norm(x)
  }
}

export class T5 extends nn.Module {
  constructor(config) {
    super()
    this.scale = config.width ** -0.5
    this.shared = new nn.Embedding(config.vocabulary, config.width)
    this.encoder = new T5Stack(this.shared, config, false)
    this.decoder = new T5Stack(this.shared, config, true)
    this.lm_head = new nn.Linear(config.width, config.vocabulary, { bias: false })
    this.lm_head.weight = this.shared.weight
  }

  /** Tokens [batch, time] and those of the answer so far [batch, answer] to scores [batch, answer, vocabulary]. */
  forward(tokens, answer) {
    return this.lm_head(this.decoder(answer, this.encoder(tokens)).mul(this.scale))
  }
}

export const families = { t5: () => new T5({ vocabulary: 24, width: 16, heads: 2, size: 8, hidden: 24, layers: 2 }) }
