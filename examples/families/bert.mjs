// BERT, with the names of Hugging Face's checkpoints: modules whose names are capitalised, and a buffer of positions that is saved.
import { nn, torch } from 'tensorfx'

const F = torch.nn.functional

class BertEmbeddings extends nn.Module {
  constructor({ vocabulary, context, width }) {
    super()
    this.word_embeddings = new nn.Embedding(vocabulary, width, { paddingIdx: 0 })
    this.position_embeddings = new nn.Embedding(context, width)
    this.token_type_embeddings = new nn.Embedding(2, width)
    this.LayerNorm = new nn.LayerNorm(width, { eps: 1e-12 })
    this.registerBuffer('position_ids', torch.arange(context, { dtype: 'int64' }).unsqueeze(0))
  }

  forward(tokens, types) {
    const places = this.position_ids.narrow(1, 0, tokens.size(1))
    return this.LayerNorm(this.word_embeddings(tokens).add(this.position_embeddings(places)).add(this.token_type_embeddings(types)))
  }
}

class BertSelf extends nn.Module {
  constructor({ width, heads }) {
    super()
    this.heads = heads
    this.query = new nn.Linear(width, width)
    this.key = new nn.Linear(width, width)
    this.value = new nn.Linear(width, width)
  }

  forward(x, mask) {
    const [batch, time] = x.shape
    const split = (t) => t.view(batch, time, this.heads, -1).transpose(1, 2)
    const y = F.scaledDotProductAttention(split(this.query(x)), split(this.key(x)), split(this.value(x)), { attnMask: mask })
    return y.transpose(1, 2).reshape(batch, time, -1)
  }
}

class BertOutput extends nn.Module {
  constructor(from, width) {
    super()
    this.dense = new nn.Linear(from, width)
    this.LayerNorm = new nn.LayerNorm(width, { eps: 1e-12 })
  }

  forward(x, residual) {
    return this.LayerNorm(this.dense(x).add(residual))
  }
}

class BertLayer extends nn.Module {
  constructor(config) {
    super()
    this.attention = new nn.ModuleDict({ self: new BertSelf(config), output: new BertOutput(config.width, config.width) })
    this.intermediate = new nn.ModuleDict({ dense: new nn.Linear(config.width, config.hidden) })
    this.output = new BertOutput(config.hidden, config.width)
  }

  forward(x, mask) {
    x = this.attention.get('output')(this.attention.get('self')(x, mask), x)
    return this.output(F.gelu(this.intermediate.get('dense')(x)), x)
  }
}

export class Bert extends nn.Module {
  constructor(config) {
    super()
    this.embeddings = new BertEmbeddings(config)
    this.encoder = new nn.ModuleDict({ layer: new nn.ModuleList(Array.from({ length: config.layers }, () => new BertLayer(config))) })
    this.pooler = new nn.ModuleDict({ dense: new nn.Linear(config.width, config.width) })
  }

  /** Tokens, types and mask, [batch, time], to the hidden states [batch, time, width] and the pooled first one [batch, width]. */
  forward(tokens, types, attentionMask) {
    const mask = torch.ones([]).sub(attentionMask.unsqueeze(1).unsqueeze(1).float()).mul(-10000)
    let x = this.embeddings(tokens, types)
    for (const layer of this.encoder.get('layer')) x = layer(x, mask)
    return [x, torch.tanh(this.pooler.get('dense')(x.select(1, 0)))]
  }
}

export const families = { bert: () => new Bert({ vocabulary: 24, context: 12, width: 16, heads: 2, layers: 2, hidden: 32 }) }
