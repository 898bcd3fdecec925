// The sample models of the goldens (test/goldens/models.json), with the inputs they were run on.
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { AdaptiveAvgPool2d, BatchNorm2d, Conv2d, Dropout, LayerNorm, Linear, MaxPool2d, Module, Parameter, ReLU, Sequential } from 'tensorfx/nn'
import { detInit, detInput } from './deterministic.ts'

const { gelu } = torch.nn.functional

export class MyModule extends Module {
  param: Parameter = new Parameter(torch.rand([3, 4]))
  linear: Linear = new Linear(4, 5)

  override forward(x: Tensor): readonly [Tensor, Tensor] {
    return torch.topk(torch.sum(this.linear.call(x.add(this.linear.weight)).relu(), { dim: -1 }), 3) as readonly [Tensor, Tensor]
  }
}

export class MLP extends Module {
  fc1: Linear
  act1: ReLU = new ReLU()
  drop1: Dropout
  fc2: Linear
  act2: ReLU = new ReLU()
  drop2: Dropout
  fc3: Linear

  constructor(inputs = 8, hidden = 16, outputs = 4, p = 0.1) {
    super()
    this.fc1 = new Linear(inputs, hidden)
    this.drop1 = new Dropout(p)
    this.fc2 = new Linear(hidden, hidden)
    this.drop2 = new Dropout(p)
    this.fc3 = new Linear(hidden, outputs)
  }

  override forward(x: Tensor): Tensor {
    x = this.drop1.call(this.act1.call(this.fc1.call(x)))
    x = this.drop2.call(this.act2.call(this.fc2.call(x)))
    return this.fc3.call(x)
  }
}

export class CNN extends Module {
  conv1: Conv2d = new Conv2d(3, 8, 3, { stride: 1, padding: 1, bias: false })
  bn1: BatchNorm2d = new BatchNorm2d(8)
  relu: ReLU = new ReLU({ inplace: true })
  conv2: Conv2d = new Conv2d(8, 16, 3, { stride: 2, padding: 1 })
  bn2: BatchNorm2d = new BatchNorm2d(16)
  pool: AdaptiveAvgPool2d = new AdaptiveAvgPool2d([1, 1])
  fc: Linear = new Linear(16, 10)

  override forward(x: Tensor): Tensor {
    x = this.relu.call(this.bn1.call(this.conv1.call(x)))
    x = this.relu.call(this.bn2.call(this.conv2.call(x)))
    x = this.pool.call(x)
    return this.fc.call(torch.flatten(x, 1))
  }
}

class BasicBlock extends Module {
  conv1: Conv2d
  bn1: BatchNorm2d
  relu: ReLU = new ReLU({ inplace: true })
  conv2: Conv2d
  bn2: BatchNorm2d
  downsample: Sequential | null

  constructor(inputs: number, outputs: number, stride: number) {
    super()
    this.conv1 = new Conv2d(inputs, outputs, 3, { stride, padding: 1, bias: false })
    this.bn1 = new BatchNorm2d(outputs)
    this.conv2 = new Conv2d(outputs, outputs, 3, { padding: 1, bias: false })
    this.bn2 = new BatchNorm2d(outputs)
    this.downsample = stride === 1 ? null : new Sequential(new Conv2d(inputs, outputs, 1, { stride, bias: false }), new BatchNorm2d(outputs))
  }

  override forward(x: Tensor): Tensor {
    const out = this.relu.call(this.bn1.call(this.conv1.call(x)))
    const main = this.bn2.call(this.conv2.call(out))
    return this.relu.call(main.add(this.downsample === null ? x : this.downsample.call(x)))
  }
}

export class ResNet extends Module {
  conv1: Conv2d = new Conv2d(3, 64, 7, { stride: 2, padding: 3, bias: false })
  bn1: BatchNorm2d = new BatchNorm2d(64)
  relu: ReLU = new ReLU({ inplace: true })
  maxpool: MaxPool2d = new MaxPool2d(3, { stride: 2, padding: 1 })
  layer1: Sequential = new Sequential(new BasicBlock(64, 64, 1), new BasicBlock(64, 64, 1))
  layer2: Sequential = new Sequential(new BasicBlock(64, 128, 2), new BasicBlock(128, 128, 1))
  layer3: Sequential = new Sequential(new BasicBlock(128, 256, 2), new BasicBlock(256, 256, 1))
  layer4: Sequential = new Sequential(new BasicBlock(256, 512, 2), new BasicBlock(512, 512, 1))
  avgpool: AdaptiveAvgPool2d = new AdaptiveAvgPool2d([1, 1])
  fc: Linear = new Linear(512, 1000)

  override forward(x: Tensor): Tensor {
    x = this.maxpool.call(this.relu.call(this.bn1.call(this.conv1.call(x))))
    x = this.layer4.call(this.layer3.call(this.layer2.call(this.layer1.call(x))))
    return this.fc.call(torch.flatten(this.avgpool.call(x), 1))
  }
}

export class Block extends Module {
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

  override forward(x: Tensor): Tensor {
    const [b, s, d] = x.shape as readonly number[] as [number, number, number]
    const split = (t: Tensor): Tensor => t.view(b, s, this.h, this.dh).transpose(1, 2)
    const y = this.ln1.call(x)
    const [q, k, v] = [split(this.q.call(y)), split(this.k.call(y)), split(this.v.call(y))]
    const scores = torch.matmul(q, k.transpose(-2, -1)).div(Math.sqrt(this.dh))
    const z = torch
      .matmul(torch.nn.functional.softmax(scores, { dim: -1 }), v)
      .transpose(1, 2)
      .contiguous()
      .view(b, s, d)
    x = x.add(this.o.call(z))
    return x.add(this.ff2.call(gelu(this.ff1.call(this.ln2.call(x)))))
  }
}

export interface Sample {
  readonly make: () => Module
  readonly inputs: () => readonly Tensor[]
}

/** By the golden's name; weights are set by detInit and the model is in eval mode. */
export const samples: Readonly<Record<'mymodule' | 'mlp3' | 'cnn' | 'resnet18' | 'transformer_block', Sample>> = {
  mymodule: { make: () => detInit(new MyModule()).eval(), inputs: () => [detInput([5, 4], 101)] },
  mlp3: { make: () => detInit(new MLP()).eval(), inputs: () => [detInput([3, 8], 102)] },
  cnn: { make: () => detInit(new CNN()).eval(), inputs: () => [detInput([2, 3, 8, 8], 103)] },
  resnet18: { make: () => detInit(new ResNet()).eval(), inputs: () => [detInput([1, 3, 64, 64], 104)] },
  transformer_block: { make: () => detInit(new Block()).eval(), inputs: () => [detInput([2, 5, 16], 105)] },
}
