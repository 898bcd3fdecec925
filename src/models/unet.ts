// A small UNet of a diffusion model, with names in the style of Hugging Face's diffusers: the time step enters each block, attention in the middle, a transposed convolution up.
import { Module } from '../module/index.ts'
import { scaledDotProductAttention, silu } from '../nn/functional.ts'
import { Conv2d, ConvTranspose2d, Dropout, GroupNorm, Linear, ModuleList } from '../nn/index.ts'
import { arange, cat } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import type { Configured, Family } from './family.ts'

/** Sizes of {@link UNet}. */
export interface UNetConfig {
  /** Channels of the first block; the second has twice as many. */
  readonly width: number
  /** The width of the embedding of a time step. */
  readonly time: number
  /** Channels of an image; default 3. */
  readonly inChannels?: number
}

class ResidualBlock extends Module {
  readonly norm1: GroupNorm
  readonly conv1: Conv2d
  readonly time_emb_proj: Linear
  readonly norm2: GroupNorm
  readonly conv2: Conv2d
  readonly conv_shortcut: Conv2d | null

  constructor(from: number, to: number, time: number) {
    super()
    this.norm1 = new GroupNorm(2, from)
    this.conv1 = new Conv2d(from, to, 3, { padding: 1 })
    this.time_emb_proj = new Linear(time, to)
    this.norm2 = new GroupNorm(2, to)
    this.conv2 = new Conv2d(to, to, 3, { padding: 1 })
    this.conv_shortcut = from === to ? null : new Conv2d(from, to, 1)
  }

  override forward(x: Tensor, t: Tensor): Tensor {
    const moment = this.time_emb_proj(silu(t)).unsqueeze(-1).unsqueeze(-1)
    const first = this.conv1(silu(this.norm1(x))).add(moment)
    const second = this.conv2(silu(this.norm2(first)))
    return second.add(this.conv_shortcut === null ? x : this.conv_shortcut(x))
  }
}

class MiddleAttention extends Module {
  readonly group_norm: GroupNorm
  readonly to_q: Linear
  readonly to_k: Linear
  readonly to_v: Linear
  readonly to_out: ModuleList<Linear | Dropout>

  constructor(width: number) {
    super()
    this.group_norm = new GroupNorm(2, width)
    this.to_q = new Linear(width, width)
    this.to_k = new Linear(width, width)
    this.to_v = new Linear(width, width)
    this.to_out = new ModuleList([new Linear(width, width), new Dropout(0)])
  }

  override forward(x: Tensor): Tensor {
    const h = this.group_norm(x).flatten(2).transpose(1, 2)
    let y = scaledDotProductAttention(this.to_q(h), this.to_k(h), this.to_v(h))
    for (const layer of this.to_out) y = layer.call(y)
    return x.add(y.transpose(1, 2).reshape(x.shape))
  }
}

class TimeEmbedding extends Module {
  readonly rates: number
  readonly linear_1: Linear
  readonly linear_2: Linear

  constructor(width: number, time: number) {
    super()
    this.rates = width / 2
    this.linear_1 = new Linear(width, time)
    this.linear_2 = new Linear(time, time)
  }

  override forward(step: Tensor): Tensor {
    const rates = arange(this.rates)
      .mul(-Math.log(10000) / this.rates)
      .exp()
    const angles = step.float().unsqueeze(1).mul(rates)
    return this.linear_2(silu(this.linear_1(cat([angles.cos(), angles.sin()], -1))))
  }
}

class MiddleBlock extends Module {
  readonly attention: MiddleAttention
  readonly resnet: ResidualBlock

  constructor(width: number, time: number) {
    super()
    this.attention = new MiddleAttention(width)
    this.resnet = new ResidualBlock(width, width, time)
  }

  override forward(x: Tensor, t: Tensor): Tensor {
    return this.resnet(this.attention(x), t)
  }
}

/** A UNet that predicts the noise in an image: what a diffusion model learns. */
export class UNet extends Module implements Configured {
  readonly modelType = 'unet'
  readonly config: UNetConfig
  readonly time_embedding: TimeEmbedding
  readonly conv_in: Conv2d
  readonly down_blocks: ModuleList<ResidualBlock>
  readonly downsample: Conv2d
  readonly mid_block: MiddleBlock
  readonly upsample: ConvTranspose2d
  readonly up_block: ResidualBlock
  readonly conv_norm_out: GroupNorm
  readonly conv_out: Conv2d

  constructor(config: UNetConfig) {
    super()
    const { width, time, inChannels = 3 } = config
    this.config = config
    this.time_embedding = new TimeEmbedding(width, time)
    this.conv_in = new Conv2d(inChannels, width, 3, { padding: 1 })
    this.down_blocks = new ModuleList([new ResidualBlock(width, width, time), new ResidualBlock(width, 2 * width, time)])
    this.downsample = new Conv2d(width, width, 3, { stride: 2, padding: 1 })
    this.mid_block = new MiddleBlock(2 * width, time)
    this.upsample = new ConvTranspose2d(2 * width, width, 2, { stride: 2 })
    this.up_block = new ResidualBlock(2 * width, width, time)
    this.conv_norm_out = new GroupNorm(2, width)
    this.conv_out = new Conv2d(width, inChannels, 3, { padding: 1 })
  }

  /** Noisy images [batch, channels, height, width] of even sizes and time steps [batch] to the noise, of the images' shape. */
  override forward(images: Tensor, step: Tensor): Tensor {
    const t = this.time_embedding(step)
    const skip = this.down_blocks.at(0).call(this.conv_in(images), t)
    const low = this.mid_block(this.down_blocks.at(1).call(this.downsample(skip), t), t)
    const up = this.up_block(cat([this.upsample(low), skip], 1), t)
    return this.conv_out(silu(this.conv_norm_out(up)))
  }
}

export const unet: Family = {
  make: (config) => new UNet({ width: config.count('width'), time: config.count('time'), inChannels: config.count('in_channels', 3) }),
}
