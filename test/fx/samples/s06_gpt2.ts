// s06: a small GPT-2, whose shapes are read from the input and whose mask is a buffer that is cut to size.
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Slice, Tracer, operator } from 'tensorfx/fx'
import { Embedding, F, GELU, LayerNorm, Linear, Module, ModuleList, Sequential } from 'tensorfx/nn'
import { detInit, detTokens } from './common.ts'
import type { Sample, Variant } from './common.ts'

const all = new Slice<number>(null, null)

class Attn extends Module {
  readonly h: number
  c_attn: Linear
  c_proj: Linear
  declare mask: Tensor

  constructor(d: number, h: number, ctx: number) {
    super()
    this.h = h
    this.c_attn = new Linear(d, 3 * d)
    this.c_proj = new Linear(d, d)
    this.registerBuffer('mask', torch.tril(torch.ones([ctx, ctx])).view(1, 1, ctx, ctx), { persistent: false })
  }

  override forward(x: Tensor): Tensor {
    const [B, T, C] = x.size() as readonly [number, number, number]
    const width = (): number => operator.floordiv(C, this.h) as number
    let [q, k, v] = this.c_attn.call(x).split(C, { dim: 2 }) as [Tensor, Tensor, Tensor]
    q = q.view(B, T, this.h, width()).transpose(1, 2)
    k = k.view(B, T, this.h, width()).transpose(1, 2)
    v = v.view(B, T, this.h, width()).transpose(1, 2)
    let att = q.matmul(k.transpose(-2, -1)).mul(operator.pow(width(), -0.5) as number)
    const visible = new Slice<number>(null, T)
    att = att.maskedFill((operator.getitem(this.mask, [all, all, visible, visible]) as Tensor).eq(0), -Infinity)
    att = F.softmax(att, { dim: -1 })
    const y = att.matmul(v).transpose(1, 2).contiguous().view(B, T, C)
    return this.c_proj.call(y)
  }
}

class GBlock extends Module {
  ln_1: LayerNorm
  attn: Attn
  ln_2: LayerNorm
  mlp: Sequential

  constructor(d: number, h: number, ctx: number) {
    super()
    this.ln_1 = new LayerNorm(d)
    this.attn = new Attn(d, h, ctx)
    this.ln_2 = new LayerNorm(d)
    this.mlp = new Sequential(new Linear(d, 4 * d), new GELU({ approximate: 'tanh' }), new Linear(4 * d, d))
  }

  override forward(x: Tensor): Tensor {
    x = x.add(this.attn.call(this.ln_1.call(x)))
    return x.add(this.mlp.call(this.ln_2.call(x)))
  }
}

class GPT extends Module {
  wte: Embedding
  wpe: Embedding
  blocks: ModuleList<GBlock>
  ln_f: LayerNorm
  head: Linear

  constructor(vocab = 64, d = 16, h = 2, ctx = 8, layers = 2) {
    super()
    this.wte = new Embedding(vocab, d)
    this.wpe = new Embedding(ctx, d)
    this.blocks = new ModuleList(Array.from({ length: layers }, () => new GBlock(d, h, ctx)))
    this.ln_f = new LayerNorm(d)
    this.head = new Linear(d, vocab, { bias: false })
  }

  override forward(idx: Tensor): Tensor {
    const [, t] = idx.size() as readonly [number, number]
    const pos = torch.arange(0, t, { dtype: 'int64' })
    let x = this.wte.call(idx).add(this.wpe.call(pos))
    for (const block of this.blocks) x = block.call(x)
    return this.head.call(this.ln_f.call(x))
  }
}

/** Positions come as an input. */
class GPTPos extends Module {
  gpt: GPT = new GPT()

  override forward(idx: Tensor, pos: Tensor): Tensor {
    const { gpt } = this
    let x = gpt.wte.call(idx).add(gpt.wpe.call(pos))
    for (const block of gpt.blocks) x = block.call(x)
    return gpt.head.call(gpt.ln_f.call(x))
  }
}

/** The length of the sequence is fixed, and so are all shapes. */
class AttnStatic extends Attn {
  readonly d: number
  readonly ctx: number

  constructor(d: number, h: number, ctx: number) {
    super(d, h, ctx)
    this.d = d
    this.ctx = ctx
  }

  override forward(x: Tensor): Tensor {
    const B = x.size(0)
    const heads = (t: Tensor): Tensor => t.view(B, this.ctx, this.h, this.d / this.h).transpose(1, 2)
    const [q, k, v] = this.c_attn.call(x).split(this.d, { dim: 2 }) as [Tensor, Tensor, Tensor]
    const att = heads(q)
      .matmul(heads(k).transpose(-2, -1))
      .mul(1 / Math.sqrt(this.d / this.h))
      .maskedFill(this.mask.eq(0), -Infinity)
    const y = F.softmax(att, { dim: -1 }).matmul(heads(v))
    return this.c_proj.call(y.transpose(1, 2).contiguous().view(B, this.ctx, this.d))
  }
}

class GPTStatic extends GPT {
  declare pos: Tensor

  constructor(vocab = 64, d = 16, h = 2, ctx = 8, layers = 2) {
    super(vocab, d, h, ctx, layers)
    for (const block of this.blocks) block.attn = new AttnStatic(d, h, ctx)
    this.registerBuffer('pos', torch.arange(ctx, { dtype: 'int64' }), { persistent: false })
  }

  override forward(idx: Tensor): Tensor {
    let x = this.wte.call(idx).add(this.wpe.call(this.pos))
    for (const block of this.blocks) x = block.call(x)
    return this.head.call(this.ln_f.call(x))
  }
}

class BufferTracer extends Tracer {
  override proxyBufferAttributes = true
}

const make = (): Module => detInit(new GPT()).eval()
const inputs = (): readonly Tensor[] => [detTokens([2, 6], 106, 64)]

/** PyTorch fails on this one: Python's slices of plain tensors take no traced values. */
export const plain: Sample = { golden: 'gpt2', make, inputs }

export const samples: readonly Sample[] = [{ golden: 'gpt2.proxy_buffers', make, inputs, trace: () => ({ tracer: new BufferTracer() }) }]

export const variants: readonly Variant[] = [
  { name: 'gpt2_static', make: () => detInit(new GPTStatic()).eval(), inputs: () => [detTokens([2, 8], 106, 64)] },
  { name: 'gpt2_pos', make: () => detInit(new GPTPos()).eval(), inputs: () => [detTokens([2, 6], 106, 64), torch.arange(6, { dtype: 'int64' })] },
]
