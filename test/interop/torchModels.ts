// The models whose weights PyTorch saved (test/goldens/weights), as one would port them.
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const F = torch.nn.functional

class BasicBlock extends nn.Module {
  conv1
  bn1
  conv2
  bn2
  downsample
  constructor(i: number, o: number, stride = 1) {
    super()
    this.conv1 = new nn.Conv2d(i, o, 3, { stride, padding: 1, bias: false })
    this.bn1 = new nn.BatchNorm2d(o)
    this.conv2 = new nn.Conv2d(o, o, 3, { padding: 1, bias: false })
    this.bn2 = new nn.BatchNorm2d(o)
    this.downsample = stride !== 1 || i !== o ? new nn.Sequential(new nn.Conv2d(i, o, 1, { stride, bias: false }), new nn.BatchNorm2d(o)) : null
  }
  override forward(x: Tensor): Tensor {
    const out = this.bn2(this.conv2(F.relu(this.bn1(this.conv1(x)))))
    return F.relu(out.add(this.downsample === null ? x : this.downsample(x)))
  }
}

class ResNet18 extends nn.Module {
  conv1 = new nn.Conv2d(3, 8, 7, { stride: 2, padding: 3, bias: false })
  bn1 = new nn.BatchNorm2d(8)
  layer1 = new nn.Sequential(new BasicBlock(8, 8), new BasicBlock(8, 8))
  layer2 = new nn.Sequential(new BasicBlock(8, 16, 2), new BasicBlock(16, 16))
  layer3 = new nn.Sequential(new BasicBlock(16, 32, 2), new BasicBlock(32, 32))
  layer4 = new nn.Sequential(new BasicBlock(32, 64, 2), new BasicBlock(64, 64))
  fc = new nn.Linear(64, 10)
  override forward(x: Tensor): Tensor {
    const h = F.maxPool2d(F.relu(this.bn1(this.conv1(x))), 3, 2, 1)
    return this.fc(torch.flatten(F.adaptiveAvgPool2d(this.layer4(this.layer3(this.layer2(this.layer1(h)))), 1), 1))
  }
}

class GPT2Block extends nn.Module {
  ln_1 = new nn.LayerNorm(32)
  ln_2 = new nn.LayerNorm(32)
  attn = new nn.ModuleDict({ c_attn: new nn.Linear(32, 96), c_proj: new nn.Linear(32, 32) })
  mlp = new nn.ModuleDict({ c_fc: new nn.Linear(32, 128), c_proj: new nn.Linear(128, 32) })
  declare bias: Tensor
  constructor() {
    super()
    this.registerBuffer(
      'bias',
      torch
        .tril(torch.ones([12, 12]))
        .bool()
        .view(1, 1, 12, 12),
    )
  }
  override forward(x: Tensor): Tensor {
    const [b = 0, t = 0, c = 0] = x.shape
    const layer = (dict: nn.ModuleDict, name: string): nn.Linear => dict.get(name) as nn.Linear
    const heads = layer(
      this.attn,
      'c_attn',
    )(this.ln_1(x))
      .split(c, 2)
      .map((part) => part.view(b, t, 4, c / 4).transpose(1, 2))
    const [q, k, v] = heads as [Tensor, Tensor, Tensor]
    const mask = this.bias.narrow(2, 0, t).narrow(3, 0, t)
    const scores = q.matmul(k.transpose(-2, -1)).mul((c / 4) ** -0.5)
    const weights = scores.maskedFill(mask.logicalNot(), -Infinity).softmax(-1)
    const h = x.add(layer(this.attn, 'c_proj')(weights.matmul(v).transpose(1, 2).contiguous().view(b, t, c)))
    return h.add(layer(this.mlp, 'c_proj')(F.gelu(layer(this.mlp, 'c_fc')(this.ln_2(h)), { approximate: 'tanh' })))
  }
}

class Encoder extends nn.Module {
  word = new nn.Embedding(50, 32, { paddingIdx: 0 })
  position = new nn.Embedding(16, 32)
  norm = new nn.LayerNorm(32)
  encoder = new nn.TransformerEncoder(new nn.TransformerEncoderLayer(32, 4, 64, { activation: 'gelu', batchFirst: true }), 2)
  pooler = new nn.Linear(32, 32)
  override forward(ids: Tensor): readonly Tensor[] {
    const places = torch.arange(ids.size(1), { dtype: 'int64' })
    const h = this.norm(this.word(ids).add(this.position(places)))
    const out = this.encoder(h, { srcKeyPaddingMask: ids.eq(0) })
    return [out, torch.tanh(this.pooler(out.select(1, 0)))]
  }
}

class Tagger extends nn.Module {
  embedding = new nn.Embedding(40, 16)
  lstm = new nn.LSTM(16, 12, { numLayers: 2, batchFirst: true, bidirectional: true })
  gru = new nn.GRU(24, 12, { batchFirst: true })
  out = new nn.Linear(12, 5)
  override forward(ids: Tensor): readonly Tensor[] {
    const [y, states] = this.lstm(this.embedding(ids))
    const [z, g] = this.gru(y)
    return [F.logSoftmax(this.out(z), -1), ...states, g]
  }
}

class UNet extends nn.Module {
  down1 = new nn.Sequential(new nn.Conv2d(1, 8, 3, { padding: 1 }), new nn.GroupNorm(2, 8), new nn.SiLU())
  down2 = new nn.Sequential(new nn.Conv2d(8, 16, 3, 2, 1), new nn.GroupNorm(2, 16), new nn.SiLU())
  mid = new nn.Conv2d(16, 16, 3, { padding: 1, groups: 2 })
  up = new nn.ConvTranspose2d(16, 8, 2, 2)
  skip = new nn.Upsample({ scaleFactor: 2, mode: 'bilinear', alignCorners: false })
  one = new nn.Conv2d(16, 8, 1)
  out = new nn.Conv2d(16, 1, 3, { padding: 1, paddingMode: 'reflect' })
  override forward(x: Tensor): Tensor {
    const a = this.down1(x)
    const b = this.mid(this.down2(a))
    return this.out(torch.cat([a, this.up(b).add(this.one(this.skip(b)))], 1))
  }
}

export const models: Readonly<Record<string, () => nn.Module>> = {
  resnet18_w8: () => new ResNet18(),
  gpt2_block: () => new GPT2Block(),
  encoder: () => new Encoder(),
  tagger: () => new Tagger(),
  unet: () => new UNet(),
}
