// Whisper, with the names of Hugging Face's checkpoints: convolutions over a spectrogram, positions of the encoder without gradient, no bias in k_proj.
import { nn, torch } from 'tensorfx'

const F = torch.nn.functional

class WhisperAttention extends nn.Module {
  constructor({ width, heads }) {
    super()
    this.heads = heads
    this.k_proj = new nn.Linear(width, width, { bias: false })
    this.v_proj = new nn.Linear(width, width)
    this.q_proj = new nn.Linear(width, width)
    this.out_proj = new nn.Linear(width, width)
  }

  forward(x, source, isCausal = false) {
    const split = (t) => t.view(t.size(0), t.size(1), this.heads, -1).transpose(1, 2)
    const y = F.scaledDotProductAttention(split(this.q_proj(x)), split(this.k_proj(source)), split(this.v_proj(source)), { isCausal })
    return this.out_proj(y.transpose(1, 2).reshape(x.size(0), x.size(1), -1))
  }
}

class WhisperLayer extends nn.Module {
  constructor(config, decoder) {
    super()
    const { width } = config
    this.self_attn = new WhisperAttention(config)
    this.self_attn_layer_norm = new nn.LayerNorm(width)
    if (decoder) {
      this.encoder_attn = new WhisperAttention(config)
      this.encoder_attn_layer_norm = new nn.LayerNorm(width)
    }
    this.fc1 = new nn.Linear(width, 4 * width)
    this.fc2 = new nn.Linear(4 * width, width)
    this.final_layer_norm = new nn.LayerNorm(width)
  }

  forward(x, source = null) {
    const normed = this.self_attn_layer_norm(x)
    x = x.add(this.self_attn(normed, normed, source !== null))
    if (source !== null) x = x.add(this.encoder_attn(this.encoder_attn_layer_norm(x), source))
    return x.add(this.fc2(F.gelu(this.fc1(this.final_layer_norm(x)))))
  }
}

const layersOf = (config, decoder) => new nn.ModuleList(Array.from({ length: config.layers }, () => new WhisperLayer(config, decoder)))

class WhisperEncoder extends nn.Module {
  constructor(config) {
    super()
    const { mels, frames, width } = config
    this.conv1 = new nn.Conv1d(mels, width, 3, { padding: 1 })
    this.conv2 = new nn.Conv1d(width, width, 3, { stride: 2, padding: 1 })
    this.embed_positions = new nn.Embedding(frames / 2, width)
    this.embed_positions.requiresGrad_(false)
    this.layers = layersOf(config, false)
    this.layer_norm = new nn.LayerNorm(width)
  }

  forward(features) {
    let x = F.gelu(this.conv2(F.gelu(this.conv1(features))))
    x = x.permute(0, 2, 1).add(this.embed_positions.weight)
    for (const layer of this.layers) x = layer(x)
    return this.layer_norm(x)
  }
}

class WhisperDecoder extends nn.Module {
  constructor(config) {
    super()
    const { vocabulary, context, width } = config
    this.embed_tokens = new nn.Embedding(vocabulary, width, { paddingIdx: 1 })
    this.embed_positions = new nn.Embedding(context, width)
    this.layers = layersOf(config, true)
    this.layer_norm = new nn.LayerNorm(width)
  }

  forward(tokens, source) {
    let x = this.embed_tokens(tokens).add(this.embed_positions.weight.narrow(0, 0, tokens.size(1)))
    for (const layer of this.layers) x = layer(x, source)
    return this.layer_norm(x)
  }
}

export class Whisper extends nn.Module {
  constructor(config) {
    super()
    this.model = new nn.ModuleDict({ encoder: new WhisperEncoder(config), decoder: new WhisperDecoder(config) })
    this.proj_out = new nn.Linear(config.width, config.vocabulary, { bias: false })
    this.proj_out.weight = this.model.get('decoder').embed_tokens.weight
  }

  /** A spectrogram [batch, mels, frames] and tokens [batch, time] to scores [batch, time, vocabulary]. */
  forward(features, tokens) {
    return this.proj_out(this.model.get('decoder')(tokens, this.model.get('encoder')(features)))
  }
}

export const families = { whisper: () => new Whisper({ mels: 6, frames: 16, vocabulary: 20, context: 10, width: 16, heads: 2, layers: 1 }) }
