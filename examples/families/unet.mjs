// A UNet of a diffusion model, with names in the style of Hugging Face's diffusers: the time step enters each block, attention in the middle, a transposed convolution up.
import { nn, torch } from 'tensorfx'

const F = torch.nn.functional

class ResidualBlock extends nn.Module {
  constructor(from, to, time) {
    super()
    this.norm1 = new nn.GroupNorm(2, from)
    this.conv1 = new nn.Conv2d(from, to, 3, { padding: 1 })
    this.time_emb_proj = new nn.Linear(time, to)
    this.norm2 = new nn.GroupNorm(2, to)
    this.conv2 = new nn.Conv2d(to, to, 3, { padding: 1 })
    this.conv_shortcut = from === to ? null : new nn.Conv2d(from, to, 1)
  }

  forward(x, t) {
    let h = this.conv1(F.silu(this.norm1(x))).add(this.time_emb_proj(F.silu(t)).unsqueeze(-1).unsqueeze(-1))
    h = this.conv2(F.silu(this.norm2(h)))
    return h.add(this.conv_shortcut === null ? x : this.conv_shortcut(x))
  }
}

class MiddleAttention extends nn.Module {
  constructor(width) {
    super()
    this.group_norm = new nn.GroupNorm(2, width)
    this.to_q = new nn.Linear(width, width)
    this.to_k = new nn.Linear(width, width)
    this.to_v = new nn.Linear(width, width)
    this.to_out = new nn.ModuleList([new nn.Linear(width, width), new nn.Dropout(0)])
  }

  forward(x) {
    const h = this.group_norm(x).flatten(2).transpose(1, 2)
    let y = F.scaledDotProductAttention(this.to_q(h), this.to_k(h), this.to_v(h))
    for (const layer of this.to_out) y = layer(y)
    return x.add(y.transpose(1, 2).reshape(x.shape))
  }
}

export class UNet extends nn.Module {
  constructor({ width, time }) {
    super()
    this.width = width
    this.time_embedding = new nn.ModuleDict({ linear_1: new nn.Linear(width, time), linear_2: new nn.Linear(time, time) })
    this.conv_in = new nn.Conv2d(3, width, 3, { padding: 1 })
    this.down_blocks = new nn.ModuleList([new ResidualBlock(width, width, time), new ResidualBlock(width, 2 * width, time)])
    this.downsample = new nn.Conv2d(width, width, 3, { stride: 2, padding: 1 })
    this.mid_block = new nn.ModuleDict({ attention: new MiddleAttention(2 * width), resnet: new ResidualBlock(2 * width, 2 * width, time) })
    this.upsample = new nn.ConvTranspose2d(2 * width, width, 2, { stride: 2 })
    this.up_block = new ResidualBlock(2 * width, width, time)
    this.conv_norm_out = new nn.GroupNorm(2, width)
    this.conv_out = new nn.Conv2d(width, 3, 3, { padding: 1 })
  }

  /** Noisy images [batch, 3, height, width] and time steps [batch] to the noise, of the images' shape. */
  forward(images, step) {
    const half = this.width / 2
    const rates = torch
      .arange(half)
      .mul(-Math.log(10000) / half)
      .exp()
    const angles = step.float().unsqueeze(1).mul(rates)
    const embedded = torch.cat([angles.cos(), angles.sin()], -1)
    const t = this.time_embedding.get('linear_2')(F.silu(this.time_embedding.get('linear_1')(embedded)))
    const [first, second] = this.down_blocks
    const skip = first(this.conv_in(images), t)
    let x = second(this.downsample(skip), t)
    x = this.mid_block.get('resnet')(this.mid_block.get('attention')(x), t)
    x = this.up_block(torch.cat([this.upsample(x), skip], 1), t)
    return this.conv_out(F.silu(this.conv_norm_out(x)))
  }
}

export const families = { unet: () => new UNet({ width: 8, time: 16 }) }
