// GPT-2, with the names of Hugging Face's checkpoints: Conv1D keeps its weight transposed, and the head shares the weight of the token embedding.
import { nn, torch } from 'tensorfx'

const F = torch.nn.functional

class Conv1D extends nn.Module {
  constructor(to, from) {
    super()
    this.weight = new nn.Parameter(torch.zeros([from, to]))
    this.bias = new nn.Parameter(torch.zeros([to]))
  }

  forward(x) {
    return x.matmul(this.weight).add(this.bias)
  }
}

class GPT2Attention extends nn.Module {
  constructor(width, heads) {
    super()
    this.heads = heads
    this.c_attn = new Conv1D(3 * width, width)
    this.c_proj = new Conv1D(width, width)
  }

  forward(x) {
    const [batch, time] = x.shape
    const split = (t) => t.view(batch, time, this.heads, -1).transpose(1, 2)
    const [q, k, v] = this.c_attn(x).chunk(3, -1).map(split)
    const y = F.scaledDotProductAttention(q, k, v, { isCausal: true })
    return this.c_proj(y.transpose(1, 2).reshape(batch, time, -1))
  }
}

class GPT2MLP extends nn.Module {
  constructor(width) {
    super()
    this.c_fc = new Conv1D(4 * width, width)
    this.c_proj = new Conv1D(width, 4 * width)
  }

  forward(x) {
    return this.c_proj(F.gelu(this.c_fc(x), { approximate: 'tanh' }))
  }
}

class GPT2Block extends nn.Module {
  constructor(width, heads) {
    super()
    this.ln_1 = new nn.LayerNorm(width)
    this.attn = new GPT2Attention(width, heads)
    this.ln_2 = new nn.LayerNorm(width)
    this.mlp = new GPT2MLP(width)
  }

  forward(x) {
    x = x.add(this.attn(this.ln_1(x)))
    return x.add(this.mlp(this.ln_2(x)))
  }
}

export class GPT2 extends nn.Module {
  constructor({ vocabulary, context, width, heads, layers }) {
    super()
    this.transformer = new nn.ModuleDict({
      wte: new nn.Embedding(vocabulary, width),
      wpe: new nn.Embedding(context, width),
      h: new nn.ModuleList(Array.from({ length: layers }, () => new GPT2Block(width, heads))),
      ln_f: new nn.LayerNorm(width),
    })
    this.lm_head = new nn.Linear(width, vocabulary, { bias: false })
    this.lm_head.weight = this.transformer.get('wte').weight
  }

  /** Tokens [batch, time] to scores [batch, time, vocabulary]. */
  forward(tokens) {
    const { transformer } = this
    const places = torch.arange(tokens.size(1), { dtype: 'int64' })
    let x = transformer.get('wte')(tokens).add(transformer.get('wpe')(places))
    for (const block of transformer.get('h')) x = block(x)
    return this.lm_head(transformer.get('ln_f')(x))
  }
}

export const families = { gpt2: () => new GPT2({ vocabulary: 24, context: 12, width: 16, heads: 2, layers: 2 }) }
