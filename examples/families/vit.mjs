// The vision transformer as torchvision writes it, with nn.MultiheadAttention.
import { nn, torch } from 'tensorfx'

class EncoderBlock extends nn.Module {
  constructor({ width, heads, hidden }) {
    super()
    this.ln_1 = new nn.LayerNorm(width, { eps: 1e-6 })
    this.self_attention = new nn.MultiheadAttention(width, heads, { batchFirst: true })
    this.ln_2 = new nn.LayerNorm(width, { eps: 1e-6 })
    this.mlp = new nn.Sequential(new nn.Linear(width, hidden), new nn.GELU(), new nn.Dropout(0), new nn.Linear(hidden, width), new nn.Dropout(0))
  }

  forward(x) {
    const normed = this.ln_1(x)
    const [y] = this.self_attention(normed, normed, normed, { needWeights: false })
    x = x.add(y)
    return x.add(this.mlp(this.ln_2(x)))
  }
}

class Encoder extends nn.Module {
  constructor(length, config) {
    super()
    this.pos_embedding = new nn.Parameter(torch.randn([1, length, config.width]).mul(0.02))
    this.layers = new nn.Sequential()
    for (let i = 0; i < config.layers; i++) this.layers.addModule(`encoder_layer_${i}`, new EncoderBlock(config))
    this.ln = new nn.LayerNorm(config.width, { eps: 1e-6 })
  }

  forward(x) {
    return this.ln(this.layers(x.add(this.pos_embedding)))
  }
}

export class VisionTransformer extends nn.Module {
  constructor(config) {
    super()
    const { image, patch, width, classes } = config
    this.conv_proj = new nn.Conv2d(3, width, patch, { stride: patch })
    this.class_token = new nn.Parameter(torch.zeros([1, 1, width]))
    this.encoder = new Encoder((image / patch) ** 2 + 1, config)
    this.heads = new nn.Sequential()
    this.heads.addModule('head', new nn.Linear(width, classes))
  }

  /** Images [batch, 3, height, width] to scores [batch, classes]. */
  forward(images) {
    const patches = this.conv_proj(images).flatten(2).permute(0, 2, 1)
    const x = torch.cat([this.class_token.expand(images.size(0), -1, -1), patches], 1)
    return this.heads(this.encoder(x).select(1, 0))
  }
}

export const families = {
  vit: () => new VisionTransformer({ image: 16, patch: 8, layers: 2, heads: 2, width: 16, hidden: 32, classes: 5 }),
}
