// CLIP, with the names of Hugging Face's checkpoints: two towers, a class token, and a temperature that is a parameter without dimensions.
import { nn, torch } from 'tensorfx'

const F = torch.nn.functional

class ClipAttention extends nn.Module {
  constructor({ width, heads }) {
    super()
    this.heads = heads
    this.k_proj = new nn.Linear(width, width)
    this.v_proj = new nn.Linear(width, width)
    this.q_proj = new nn.Linear(width, width)
    this.out_proj = new nn.Linear(width, width)
  }

  forward(x, isCausal) {
    const [batch, time] = x.shape
    const split = (t) => t.view(batch, time, this.heads, -1).transpose(1, 2)
    const y = F.scaledDotProductAttention(split(this.q_proj(x)), split(this.k_proj(x)), split(this.v_proj(x)), { isCausal })
    return this.out_proj(y.transpose(1, 2).reshape(batch, time, -1))
  }
}

class ClipLayer extends nn.Module {
  constructor(config) {
    super()
    const { width } = config
    this.self_attn = new ClipAttention(config)
    this.layer_norm1 = new nn.LayerNorm(width)
    this.mlp = new nn.ModuleDict({ fc1: new nn.Linear(width, 4 * width), fc2: new nn.Linear(4 * width, width) })
    this.layer_norm2 = new nn.LayerNorm(width)
  }

  forward(x, isCausal) {
    x = x.add(this.self_attn(this.layer_norm1(x), isCausal))
    const hidden = this.mlp.get('fc1')(this.layer_norm2(x))
    return x.add(this.mlp.get('fc2')(hidden.mul(torch.sigmoid(hidden.mul(1.702)))))
  }
}

class ClipEncoder extends nn.Module {
  constructor(config) {
    super()
    this.layers = new nn.ModuleList(Array.from({ length: config.layers }, () => new ClipLayer(config)))
  }

  forward(x, isCausal = false) {
    for (const layer of this.layers) x = layer(x, isCausal)
    return x
  }
}

class ClipTextEmbeddings extends nn.Module {
  constructor({ vocabulary, context, width }) {
    super()
    this.token_embedding = new nn.Embedding(vocabulary, width)
    this.position_embedding = new nn.Embedding(context, width)
    this.registerBuffer('position_ids', torch.arange(context, { dtype: 'int64' }).unsqueeze(0), { persistent: false })
  }

  forward(tokens) {
    return this.token_embedding(tokens).add(this.position_embedding(this.position_ids.narrow(1, 0, tokens.size(1))))
  }
}

class ClipText extends nn.Module {
  constructor(config) {
    super()
    this.embeddings = new ClipTextEmbeddings(config)
    this.encoder = new ClipEncoder(config)
    this.final_layer_norm = new nn.LayerNorm(config.width)
  }

  /** The hidden state of the token with the largest number, which ends a text. */
  forward(tokens) {
    const x = this.final_layer_norm(this.encoder(this.embeddings(tokens), true))
    return x.index([torch.arange(x.size(0), { dtype: 'int64' }), tokens.argmax(-1)])
  }
}

class ClipVisionEmbeddings extends nn.Module {
  constructor({ image, patch, width }) {
    super()
    this.class_embedding = new nn.Parameter(torch.zeros([width]))
    this.patch_embedding = new nn.Conv2d(3, width, patch, { stride: patch, bias: false })
    this.position_embedding = new nn.Embedding((image / patch) ** 2 + 1, width)
  }

  forward(images) {
    const patches = this.patch_embedding(images).flatten(2).transpose(1, 2)
    const first = this.class_embedding.expand(images.size(0), 1, -1)
    return torch.cat([first, patches], 1).add(this.position_embedding.weight)
  }
}

class ClipVision extends nn.Module {
  constructor(config) {
    super()
    this.embeddings = new ClipVisionEmbeddings(config)
    this.pre_layrnorm = new nn.LayerNorm(config.width) // the checkpoints spell it like this
    this.encoder = new ClipEncoder(config)
    this.post_layernorm = new nn.LayerNorm(config.width)
  }

  forward(images) {
    return this.post_layernorm(this.encoder(this.pre_layrnorm(this.embeddings(images))).select(1, 0))
  }
}

export class Clip extends nn.Module {
  constructor(config) {
    super()
    this.logit_scale = new nn.Parameter(torch.tensor(2.6592))
    this.text_model = new ClipText(config)
    this.vision_model = new ClipVision(config)
    this.visual_projection = new nn.Linear(config.width, config.projection, { bias: false })
    this.text_projection = new nn.Linear(config.width, config.projection, { bias: false })
  }

  /** Texts [texts, time] and images [images, 3, height, width] to their similarities [texts, images]. */
  forward(tokens, images) {
    const text = F.normalize(this.text_projection(this.text_model(tokens)), { dim: -1 })
    const image = F.normalize(this.visual_projection(this.vision_model(images)), { dim: -1 })
    return this.logit_scale.exp().mul(text).matmul(image.t())
  }
}

export const families = {
  clip: () => new Clip({ image: 16, patch: 8, vocabulary: 20, context: 8, width: 16, heads: 2, layers: 1, projection: 8 }),
}
