// s04: torchvision's resnet18.
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { AdaptiveAvgPool2d, BatchNorm2d, Conv2d, Linear, MaxPool2d, Module, ReLU, Sequential } from 'tensorfx/nn'
import { detInit, detInput } from './common.ts'
import type { Sample } from './common.ts'

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

class ResNet extends Module {
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

export const samples: readonly Sample[] = [
  { golden: 'resnet18', make: () => detInit(new ResNet()).eval(), inputs: () => [detInput([1, 3, 64, 64], 104)] },
]
