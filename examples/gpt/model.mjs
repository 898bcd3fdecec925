// A GPT over characters: token and position embeddings, blocks of causal attention and an MLP, a linear head. It reads whole texts in training; for generation each
// block remembers the keys and values of what it has read, so that a new character costs one position, not the whole text.
import { nn, torch } from 'tensorfx'

const F = torch.nn.functional

class Attention extends nn.Module {
  constructor({ width, heads, context }) {
    super()
    this.heads = heads
    this.qkv = new nn.Linear(width, 3 * width)
    this.out = new nn.Linear(width, width)
    // The cache has its final size from the start: a compiled step then has the same shapes at every position.
    const cache = () => torch.zeros([1, heads, context, width / heads])
    this.registerBuffer('keys', cache(), { persistent: false })
    this.registerBuffer('values', cache(), { persistent: false })
  }

  /** [batch, time, width] as three tensors of [batch, heads, time, width / heads]. */
  split(x) {
    const [batch, time, width] = x.shape
    return this.qkv(x)
      .view(batch, time, 3, this.heads, width / this.heads)
      .permute(2, 0, 3, 1, 4)
      .unbind(0)
  }

  merge(x) {
    const [batch, , time] = x.shape
    return this.out(x.transpose(1, 2).reshape(batch, time, -1))
  }

  forward(x) {
    const [q, k, v] = this.split(x)
    return this.merge(F.scaledDotProductAttention(q, k, v, { isCausal: true }))
  }

  /** The same for one position of one text; `seen` is true for the positions up to it. */
  next(x, position, seen) {
    const [q, k, v] = this.split(x)
    this.keys.indexCopy_(2, position, k)
    this.values.indexCopy_(2, position, v)
    return this.merge(F.scaledDotProductAttention(q, this.keys, this.values, { attnMask: seen }))
  }
}

class Block extends nn.Module {
  constructor(config) {
    super()
    this.norm1 = new nn.LayerNorm(config.width)
    this.attention = new Attention(config)
    this.norm2 = new nn.LayerNorm(config.width)
    this.mlp = new nn.Sequential(new nn.Linear(config.width, 4 * config.width), new nn.GELU(), new nn.Linear(4 * config.width, config.width))
  }

  forward(x) {
    x = x.add(this.attention(this.norm1(x)))
    return x.add(this.mlp(this.norm2(x)))
  }

  next(x, position, seen) {
    x = x.add(this.attention.next(this.norm1(x), position, seen))
    return x.add(this.mlp(this.norm2(x)))
  }
}

export class GPT extends nn.Module {
  /** @param {{ vocabulary: number, context: number, width: number, heads: number, layers: number }} config */
  constructor(config) {
    super()
    this.config = config
    this.tokens = new nn.Embedding(config.vocabulary, config.width)
    this.positions = new nn.Embedding(config.context, config.width)
    this.blocks = new nn.ModuleList(Array.from({ length: config.layers }, () => new Block(config)))
    this.norm = new nn.LayerNorm(config.width)
    this.head = new nn.Linear(config.width, config.vocabulary, { bias: false })
    for (const embedding of [this.tokens, this.positions]) nn.init.normal_(embedding.weight, 0, 0.02)
  }

  /** Tokens [batch, time] to the scores of what follows each of them, [batch, time, vocabulary]. */
  forward(tokens) {
    let x = this.tokens(tokens).add(this.positions(torch.arange(tokens.size(1), { dtype: 'int64', device: tokens.device })))
    for (const block of this.blocks) x = block(x)
    return this.head(this.norm(x))
  }

  /** The token at a position, both tensors of one number, to the scores of what follows it, [vocabulary]. Positions must come in order, from 0. */
  next(token, position) {
    const seen = torch.arange(this.config.context, { dtype: 'int64' }).le(position).view(1, 1, 1, -1)
    let x = this.tokens(token).add(this.positions(position)).unsqueeze(0)
    for (const block of this.blocks) x = block.next(x, position, seen)
    return this.head(this.norm(x)).view(-1)
  }
}
