// MobileNetV3 and EfficientNet as torchvision writes them: inverted residuals (expand, a convolution for each channel, squeeze and excite, project).
import { Module } from '../module/index.ts'
import { kaimingNormal_ } from '../nn/init.ts'
import { AdaptiveAvgPool2d, BatchNorm2d, Conv2d, Dropout, Hardsigmoid, Hardswish, Linear, ReLU, Sequential, SiLU, Sigmoid } from '../nn/index.ts'
import type { Tensor } from '../tensor/index.ts'
import type { Configured, Family } from './family.ts'

/** A block of {@link MobileNetV3}. */
export interface MobileNetV3Block {
  readonly from: number
  readonly kernel: number
  /** Channels within the block. */
  readonly hidden: number
  readonly to: number
  /** Whether it weighs its channels by what they hold on average. */
  readonly excite: boolean
  readonly activation: 'relu' | 'hardswish'
  readonly stride: number
}

/** Sizes of {@link MobileNetV3}. */
export interface MobileNetV3Config {
  readonly blocks: readonly MobileNetV3Block[]
  /** The width of the layer before the last. */
  readonly hidden: number
  /** Default 1000. */
  readonly numClasses?: number
}

/** A stage of {@link EfficientNet}. */
export interface EfficientNetStage {
  readonly from: number
  readonly to: number
  readonly count: number
  readonly expand: number
  readonly kernel: number
  /** The stride of the first block. */
  readonly stride: number
  /** Whether one convolution takes the place of the first two, as in EfficientNetV2. Default false. */
  readonly fused?: boolean
}

/** Sizes of {@link EfficientNet}. */
export interface EfficientNetConfig {
  readonly stages: readonly EfficientNetStage[]
  /** Default 0.2. */
  readonly dropout?: number
  /** Default 1000. */
  readonly numClasses?: number
}

type Make = () => ReLU | SiLU | Hardswish | Hardsigmoid | Sigmoid
const relu: Make = () => new ReLU()
const silu: Make = () => new SiLU()
const hardswish: Make = () => new Hardswish()

interface ConvNormOptions {
  readonly stride?: number
  readonly groups?: number
  readonly activation?: Make
  readonly eps?: number
}

/** Convolution, batch norm and, if there is one, an activation. */
function convNorm(from: number, to: number, kernel: number, { stride = 1, groups = 1, activation, eps = 1e-5 }: ConvNormOptions = {}): Sequential {
  const conv = new Conv2d(from, to, kernel, { stride, padding: (kernel - 1) / 2, groups, bias: false })
  return new Sequential(conv, new BatchNorm2d(to, { eps }), ...(activation === undefined ? [] : [activation()]))
}

/** The multiple of 8 nearest to a number of channels, but not below nine tenths of it. */
function multipleOf8(channels: number): number {
  const near = Math.max(8, Math.floor((channels + 4) / 8) * 8)
  return near < 0.9 * channels ? near + 8 : near
}

class SqueezeExcitation extends Module {
  readonly avgpool: AdaptiveAvgPool2d
  readonly fc1: Conv2d
  readonly fc2: Conv2d
  readonly activation: ReturnType<Make>
  readonly scale: ReturnType<Make>

  constructor(width: number, squeezed: number, activation: Make, scale: Make) {
    super()
    this.avgpool = new AdaptiveAvgPool2d(1)
    this.fc1 = new Conv2d(width, squeezed, 1)
    this.fc2 = new Conv2d(squeezed, width, 1)
    this.activation = activation()
    this.scale = scale()
  }

  override forward(x: Tensor): Tensor {
    const gate = this.scale.call(this.fc2(this.activation.call(this.fc1(this.avgpool(x)))))
    return x.mul(gate)
  }
}

class InvertedResidual extends Module {
  readonly residual: boolean
  readonly block: Sequential

  constructor({ from, kernel, hidden, to, excite, activation: name, stride }: MobileNetV3Block) {
    super()
    const [eps, activation] = [1e-3, name === 'relu' ? relu : hardswish]
    const wide = hidden === from ? [] : [convNorm(from, hidden, 1, { activation, eps })]
    const deep = convNorm(hidden, hidden, kernel, { stride, groups: hidden, activation, eps })
    const gate = excite ? [new SqueezeExcitation(hidden, multipleOf8(Math.floor(hidden / 4)), relu, () => new Hardsigmoid())] : []
    this.residual = stride === 1 && from === to
    this.block = new Sequential(...wide, deep, ...gate, convNorm(hidden, to, 1, { eps }))
  }

  override forward(x: Tensor): Tensor {
    return this.residual ? x.add(this.block(x)) : this.block(x)
  }
}

/** Features, their average, and a classifier. */
abstract class Classifier extends Module {
  readonly features: Sequential
  readonly avgpool: AdaptiveAvgPool2d
  readonly classifier: Sequential

  constructor(features: Sequential, classifier: Sequential) {
    super()
    this.features = features
    this.avgpool = new AdaptiveAvgPool2d(1)
    this.classifier = classifier
    this.apply((layer) => {
      if (layer instanceof Conv2d) kaimingNormal_(layer.weight, { mode: 'fan_out' })
    })
  }

  /** Images [batch, 3, height, width] to scores [batch, classes]. */
  override forward(images: Tensor): Tensor {
    return this.classifier(this.avgpool(this.features(images)).flatten(1))
  }
}

/** MobileNetV3: images to scores of classes. Parameters have the names of torchvision's `MobileNetV3`. */
export class MobileNetV3 extends Classifier implements Configured {
  readonly modelType = 'mobilenet_v3'
  readonly config: MobileNetV3Config

  constructor(config: MobileNetV3Config) {
    const { blocks, hidden, numClasses = 1000 } = config
    const [first, last] = [blocks[0]?.from ?? 16, blocks.at(-1)?.to ?? 16]
    const options = { activation: hardswish, eps: 1e-3 }
    super(
      new Sequential(
        convNorm(3, first, 3, { ...options, stride: 2 }),
        ...blocks.map((block) => new InvertedResidual(block)),
        convNorm(last, 6 * last, 1, options),
      ),
      new Sequential(new Linear(6 * last, hidden), new Hardswish(), new Dropout(0.2), new Linear(hidden, numClasses)),
    )
    this.config = config
  }
}

class MBConv extends Module {
  readonly residual: boolean
  readonly block: Sequential

  constructor({ from, to, expand, kernel, stride, fused = false }: EfficientNetStage) {
    super()
    const hidden = expand === 1 ? from : multipleOf8(from * expand)
    const options = { stride, activation: silu }
    if (fused) {
      this.block = new Sequential(
        ...(expand === 1 ? [convNorm(from, to, kernel, options)] : [convNorm(from, hidden, kernel, options), convNorm(hidden, to, 1)]),
      )
    } else {
      this.block = new Sequential(
        ...(expand === 1 ? [] : [convNorm(from, hidden, 1, { activation: silu })]),
        convNorm(hidden, hidden, kernel, { ...options, groups: hidden }),
        new SqueezeExcitation(hidden, Math.max(1, Math.floor(from / 4)), silu, () => new Sigmoid()),
        convNorm(hidden, to, 1),
      )
    }
    this.residual = stride === 1 && from === to
  }

  override forward(x: Tensor): Tensor {
    return this.residual ? x.add(this.block(x)) : this.block(x)
  }
}

/** EfficientNet: images to scores of classes. Parameters have the names of torchvision's `EfficientNet`. Residuals are never left out at random, as torchvision's training does. */
export class EfficientNet extends Classifier implements Configured {
  readonly modelType = 'efficientnet'
  readonly config: EfficientNetConfig

  constructor(config: EfficientNetConfig) {
    const { stages, dropout = 0.2, numClasses = 1000 } = config
    const [first, last] = [stages[0]?.from ?? 32, stages.at(-1)?.to ?? 32]
    const blocksOf = (stage: EfficientNetStage): MBConv[] =>
      Array.from({ length: stage.count }, (_, i) => new MBConv(i === 0 ? stage : { ...stage, from: stage.to, stride: 1 }))
    super(
      new Sequential(
        convNorm(3, first, 3, { stride: 2, activation: silu }),
        ...stages.map((stage) => new Sequential(...blocksOf(stage))),
        convNorm(last, 4 * last, 1, { activation: silu }),
      ),
      new Sequential(new Dropout(dropout), new Linear(4 * last, numClasses)),
    )
    this.config = config
  }
}

type BlockRow = readonly [from: number, kernel: number, hidden: number, to: number, excite: boolean, activation: 'relu' | 'hardswish', stride: number]

const SMALL: readonly BlockRow[] = [
  [16, 3, 16, 16, true, 'relu', 2],
  [16, 3, 72, 24, false, 'relu', 2],
  [24, 3, 88, 24, false, 'relu', 1],
  [24, 5, 96, 40, true, 'hardswish', 2],
  [40, 5, 240, 40, true, 'hardswish', 1],
  [40, 5, 240, 40, true, 'hardswish', 1],
  [40, 5, 120, 48, true, 'hardswish', 1],
  [48, 5, 144, 48, true, 'hardswish', 1],
  [48, 5, 288, 96, true, 'hardswish', 2],
  [96, 5, 576, 96, true, 'hardswish', 1],
  [96, 5, 576, 96, true, 'hardswish', 1],
]

/** MobileNetV3-Small for images of 224 × 224 pixels, with torchvision's names. */
export const mobilenetV3Small = (numClasses = 1000): MobileNetV3 =>
  new MobileNetV3({
    blocks: SMALL.map(([from, kernel, hidden, to, excite, activation, stride]) => ({ from, kernel, hidden, to, excite, activation, stride })),
    hidden: 1024,
    numClasses,
  })

type StageRow = readonly [expand: number, kernel: number, stride: number, from: number, to: number, count: number]

const B0: readonly StageRow[] = [
  [1, 3, 1, 32, 16, 1],
  [6, 3, 2, 16, 24, 2],
  [6, 5, 2, 24, 40, 2],
  [6, 3, 2, 40, 80, 3],
  [6, 5, 1, 80, 112, 3],
  [6, 5, 2, 112, 192, 4],
  [6, 3, 1, 192, 320, 1],
]

/** EfficientNet-B0 for images of 224 × 224 pixels, with torchvision's names. */
export const efficientnetB0 = (numClasses = 1000): EfficientNet =>
  new EfficientNet({ stages: B0.map(([expand, kernel, stride, from, to, count]) => ({ expand, kernel, stride, from, to, count })), numClasses })

export const mobilenetV3: Family = {
  make: (config) =>
    new MobileNetV3({
      blocks: config.list('blocks').map((block) => ({
        from: block.count('from'),
        kernel: block.count('kernel'),
        hidden: block.count('hidden'),
        to: block.count('to'),
        excite: block.flag('excite', false),
        activation: block.choice('activation', ['relu', 'hardswish'], 'relu'),
        stride: block.count('stride'),
      })),
      hidden: config.count('hidden'),
      numClasses: config.count('num_classes', 1000),
    }),
}

export const efficientnet: Family = {
  make: (config) =>
    new EfficientNet({
      stages: config.list('stages').map((stage) => ({
        from: stage.count('from'),
        to: stage.count('to'),
        count: stage.count('count'),
        expand: stage.count('expand'),
        kernel: stage.count('kernel'),
        stride: stage.count('stride'),
        fused: stage.flag('fused', false),
      })),
      dropout: config.number('dropout', 0.2),
      numClasses: config.count('num_classes', 1000),
    }),
}
