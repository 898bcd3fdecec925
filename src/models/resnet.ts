// ResNet as torchvision writes it, with its two kinds of blocks.
import { Module } from '../module/index.ts'
import { kaimingNormal_ } from '../nn/init.ts'
import { AdaptiveAvgPool2d, BatchNorm2d, Conv2d, Linear, MaxPool2d, ReLU, Sequential } from '../nn/index.ts'
import type { Tensor } from '../tensor/index.ts'
import type { Configured, Family } from './family.ts'

/** A stage of {@link ResNet}. */
export interface ResNetStage {
  readonly block: 'basic' | 'bottleneck'
  /** Channels within a block; a bottleneck gives four times as many. */
  readonly width: number
  readonly count: number
}

/** Sizes of {@link ResNet}. */
export interface ResNetConfig {
  /** Four stages, of which the last three halve height and width. */
  readonly stages: readonly ResNetStage[]
  /** Channels of the first convolution; default 64. */
  readonly stem?: number
  /** Default 1000. */
  readonly numClasses?: number
}

const shortcut = (from: number, to: number, stride: number): Sequential | null =>
  stride === 1 && from === to ? null : new Sequential(new Conv2d(from, to, 1, { stride, bias: false }), new BatchNorm2d(to))

class BasicBlock extends Module {
  readonly conv1: Conv2d
  readonly bn1: BatchNorm2d
  readonly relu: ReLU
  readonly conv2: Conv2d
  readonly bn2: BatchNorm2d
  readonly downsample: Sequential | null

  constructor(from: number, width: number, stride: number) {
    super()
    this.conv1 = new Conv2d(from, width, 3, { stride, padding: 1, bias: false })
    this.bn1 = new BatchNorm2d(width)
    this.relu = new ReLU()
    this.conv2 = new Conv2d(width, width, 3, { padding: 1, bias: false })
    this.bn2 = new BatchNorm2d(width)
    this.downsample = shortcut(from, width, stride)
  }

  override forward(x: Tensor): Tensor {
    const out = this.bn2(this.conv2(this.relu(this.bn1(this.conv1(x)))))
    return this.relu(out.add(this.downsample === null ? x : this.downsample(x)))
  }
}

class Bottleneck extends Module {
  readonly conv1: Conv2d
  readonly bn1: BatchNorm2d
  readonly conv2: Conv2d
  readonly bn2: BatchNorm2d
  readonly conv3: Conv2d
  readonly bn3: BatchNorm2d
  readonly relu: ReLU
  readonly downsample: Sequential | null

  constructor(from: number, width: number, stride: number) {
    super()
    const to = 4 * width
    this.conv1 = new Conv2d(from, width, 1, { bias: false })
    this.bn1 = new BatchNorm2d(width)
    this.conv2 = new Conv2d(width, width, 3, { stride, padding: 1, bias: false })
    this.bn2 = new BatchNorm2d(width)
    this.conv3 = new Conv2d(width, to, 1, { bias: false })
    this.bn3 = new BatchNorm2d(to)
    this.relu = new ReLU()
    this.downsample = shortcut(from, to, stride)
  }

  override forward(x: Tensor): Tensor {
    const squeezed = this.relu(this.bn1(this.conv1(x)))
    const out = this.bn3(this.conv3(this.relu(this.bn2(this.conv2(squeezed)))))
    return this.relu(out.add(this.downsample === null ? x : this.downsample(x)))
  }
}

/**
 * ResNet: images to scores of classes. Parameters have the names of torchvision's `ResNet`. {@link ResNet.config} of the published ones: {@link resnet18}, {@link resnet50}.
 */
export class ResNet extends Module implements Configured {
  readonly modelType = 'resnet'
  readonly config: ResNetConfig
  readonly conv1: Conv2d
  readonly bn1: BatchNorm2d
  readonly relu: ReLU
  readonly maxpool: MaxPool2d
  readonly layer1: Sequential
  readonly layer2: Sequential
  readonly layer3: Sequential
  readonly layer4: Sequential
  readonly avgpool: AdaptiveAvgPool2d
  readonly fc: Linear

  constructor(config: ResNetConfig) {
    super()
    const { stages, stem = 64, numClasses = 1000 } = config
    this.config = config
    this.conv1 = new Conv2d(3, stem, 7, { stride: 2, padding: 3, bias: false })
    this.bn1 = new BatchNorm2d(stem)
    this.relu = new ReLU()
    this.maxpool = new MaxPool2d(3, { stride: 2, padding: 1 })
    let from = stem
    const stage = (i: number): Sequential => {
      const { block, width, count } = stages[i] ?? { block: 'basic', width: from, count: 0 }
      const blocks = Array.from({ length: count }, (_, k) => {
        const stride = i > 0 && k === 0 ? 2 : 1
        const one = block === 'basic' ? new BasicBlock(from, width, stride) : new Bottleneck(from, width, stride)
        from = block === 'basic' ? width : 4 * width
        return one
      })
      return new Sequential(...blocks)
    }
    this.layer1 = stage(0)
    this.layer2 = stage(1)
    this.layer3 = stage(2)
    this.layer4 = stage(3)
    this.avgpool = new AdaptiveAvgPool2d(1)
    this.fc = new Linear(from, numClasses)
    this.apply((layer) => {
      if (layer instanceof Conv2d) kaimingNormal_(layer.weight, { mode: 'fan_out', nonlinearity: 'relu' })
    })
  }

  /** Images [batch, 3, height, width] to scores [batch, classes]. */
  override forward(images: Tensor): Tensor {
    const stem = this.maxpool(this.relu(this.bn1(this.conv1(images))))
    const last = this.layer4(this.layer3(this.layer2(this.layer1(stem))))
    return this.fc(this.avgpool(last).flatten(1))
  }
}

const WIDTHS = [64, 128, 256, 512]
const published = (block: ResNetStage['block'], counts: readonly number[], numClasses: number): ResNet =>
  new ResNet({ stages: WIDTHS.map((width, i) => ({ block, width, count: counts[i] ?? 0 })), numClasses })

/** ResNet-18 for images of 224 × 224 pixels, with torchvision's names. */
export const resnet18 = (numClasses = 1000): ResNet => published('basic', [2, 2, 2, 2], numClasses)

/** ResNet-50 for images of 224 × 224 pixels, with torchvision's names. */
export const resnet50 = (numClasses = 1000): ResNet => published('bottleneck', [3, 4, 6, 3], numClasses)

export const resnet: Family = {
  make: (config) =>
    new ResNet({
      stages: config.list('stages').map((stage) => ({
        block: stage.choice('block', ['basic', 'bottleneck'], 'basic'),
        width: stage.count('width'),
        count: stage.count('count'),
      })),
      stem: config.count('stem', 64),
      numClasses: config.count('num_classes', 1000),
    }),
}
