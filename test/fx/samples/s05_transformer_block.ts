// s05: a transformer block: sizes read from the input, views, attention, a feed-forward part.
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { F, LayerNorm, Linear, Module } from 'tensorfx/nn'
import { detInit, detInput } from './common.ts'
import type { Sample } from './common.ts'

class Block extends Module {
  readonly h: number
  readonly dh: number
  q: Linear
  k: Linear
  v: Linear
  o: Linear
  ln1: LayerNorm
  ln2: LayerNorm
  ff1: Linear
  ff2: Linear

  constructor(d = 16, heads = 2, ff = 32) {
    super()
    this.h = heads
    this.dh = d / heads
    this.q = new Linear(d, d)
    this.k = new Linear(d, d)
    this.v = new Linear(d, d)
    this.o = new Linear(d, d)
    this.ln1 = new LayerNorm(d)
    this.ln2 = new LayerNorm(d)
    this.ff1 = new Linear(d, ff)
    this.ff2 = new Linear(ff, d)
  }

  split(t: Tensor, b: number, s: number): Tensor {
    return t.view(b, s, this.h, this.dh).transpose(1, 2)
  }

  override forward(x: Tensor): Tensor {
    const [b, s, d] = x.shape as readonly [number, number, number]
    const y = this.ln1.call(x)
    const [q, k, v] = [this.split(this.q.call(y), b, s), this.split(this.k.call(y), b, s), this.split(this.v.call(y), b, s)] as const
    let att = torch.matmul(q, k.transpose(-2, -1)).div(Math.sqrt(this.dh))
    att = F.softmax(att, { dim: -1 })
    const z = torch.matmul(att, v).transpose(1, 2).contiguous().view(b, s, d)
    x = x.add(this.o.call(z))
    return x.add(this.ff2.call(F.gelu(this.ff1.call(this.ln2.call(x)))))
  }
}

export const samples: readonly Sample[] = [
  { golden: 'transformer_block', make: () => detInit(new Block()).eval(), inputs: () => [detInput([2, 5, 16], 105)] },
]
