// ConvNeXt as torchvision writes it: large convolutions for each channel, layer norm over channels, a learnt scale for each residual.
import { Module } from '../module/index.ts'
import { AdaptiveAvgPool2d, Conv2d, Flatten, GELU, LayerNorm, Linear, Parameter, Sequential } from '../nn/index.ts'
import { full } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import type { Configured, Family } from './family.ts'
import { initialise } from './initialise.ts'

/** Sizes of {@link ConvNeXt}: the keys of Hugging Face's config.json in camel case. */
export interface ConvNeXtConfig {
  /** Widths of the stages. */
  readonly hiddenSizes: readonly number[]
  /** Blocks of each stage. */
  readonly depths: readonly number[]
  readonly numLabels: number
  /** What each residual is scaled with at first; default 1e-6. */
  readonly layerScaleInitValue?: number
}

class Permute extends Module {
  readonly dims: readonly number[]

  constructor(...dims: readonly number[]) {
    super()
    this.dims = dims
  }

  override forward(x: Tensor): Tensor {
    return x.permute(...this.dims)
  }
}

/** Layer norm over the channels of images [batch, channels, height, width]. */
class LayerNorm2d extends LayerNorm {
  override forward(x: Tensor): Tensor {
    return super.forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
  }
}

class CNBlock extends Module {
  readonly layer_scale: Parameter
  readonly block: Sequential

  constructor(width: number, scale: number) {
    super()
    this.block = new Sequential(
      new Conv2d(width, width, 7, { padding: 3, groups: width }),
      new Permute(0, 2, 3, 1),
      new LayerNorm(width, { eps: 1e-6 }),
      new Linear(width, 4 * width),
      new GELU(),
      new Linear(4 * width, width),
      new Permute(0, 3, 1, 2),
    )
    this.layer_scale = new Parameter(full([width, 1, 1], scale))
  }

  override forward(x: Tensor): Tensor {
    return x.add(this.layer_scale.mul(this.block(x)))
  }
}

/** ConvNeXt: images to scores of classes. Parameters have the names of torchvision's `ConvNeXt`. */
export class ConvNeXt extends Module implements Configured {
  readonly modelType = 'convnext'
  readonly config: ConvNeXtConfig
  readonly features: Sequential
  readonly avgpool: AdaptiveAvgPool2d
  readonly classifier: Sequential

  constructor(config: ConvNeXtConfig) {
    super()
    const { hiddenSizes, depths, numLabels, layerScaleInitValue: scale = 1e-6 } = config
    this.config = config
    const norm = (width: number): LayerNorm2d => new LayerNorm2d(width, { eps: 1e-6 })
    const features: Module[] = []
    let last = 3
    for (const [i, width] of hiddenSizes.entries()) {
      if (i === 0) features.push(new Sequential(new Conv2d(3, width, 4, { stride: 4 }), norm(width)))
      else features.push(new Sequential(norm(last), new Conv2d(last, width, 2, { stride: 2 })))
      features.push(new Sequential(...Array.from({ length: depths[i] ?? 0 }, () => new CNBlock(width, scale))))
      last = width
    }
    this.features = new Sequential(...features)
    this.avgpool = new AdaptiveAvgPool2d(1)
    this.classifier = new Sequential(norm(last), new Flatten(1), new Linear(last, numLabels))
    initialise(this, 0.02)
  }

  /** Images [batch, 3, height, width] to scores [batch, classes]. */
  override forward(images: Tensor): Tensor {
    return this.classifier(this.avgpool(this.features(images)))
  }
}

export const convnext: Family = {
  only: { hidden_act: ['gelu'] },
  make: (config) =>
    new ConvNeXt({
      hiddenSizes: config.counts('hidden_sizes', [96, 192, 384, 768]),
      depths: config.counts('depths', [3, 3, 9, 3]),
      numLabels: config.classes(),
      layerScaleInitValue: config.number('layer_scale_init_value', 1e-6),
    }),
}
