// ConvNeXt as torchvision writes it: large convolutions for each channel, layer norm over channels, a learnt scale for each residual.
import { nn, torch } from 'tensorfx'

class Permute extends nn.Module {
  constructor(...dims) {
    super()
    this.dims = dims
  }

  forward(x) {
    return x.permute(...this.dims)
  }
}

/** Layer norm over the channels of images [batch, channels, height, width]. */
class LayerNorm2d extends nn.LayerNorm {
  forward(x) {
    return super.forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
  }
}

class CNBlock extends nn.Module {
  constructor(width) {
    super()
    this.block = new nn.Sequential(
      new nn.Conv2d(width, width, 7, { padding: 3, groups: width }),
      new Permute(0, 2, 3, 1),
      new nn.LayerNorm(width, { eps: 1e-6 }),
      new nn.Linear(width, 4 * width),
      new nn.GELU(),
      new nn.Linear(4 * width, width),
      new Permute(0, 3, 1, 2),
    )
    this.layer_scale = new nn.Parameter(torch.full([width, 1, 1], 1e-6))
  }

  forward(x) {
    return x.add(this.layer_scale.mul(this.block(x)))
  }
}

export class ConvNeXt extends nn.Module {
  /** Stages as [width, blocks]. */
  constructor({ stages, classes = 1000 }) {
    super()
    const norm = (width) => new LayerNorm2d(width, { eps: 1e-6 })
    const [first] = stages[0]
    const features = [new nn.Sequential(new nn.Conv2d(3, first, 4, { stride: 4 }), norm(first))]
    for (const [i, [width, count]] of stages.entries()) {
      features.push(new nn.Sequential(...Array.from({ length: count }, () => new CNBlock(width))))
      const next = stages[i + 1]?.[0]
      if (next !== undefined) features.push(new nn.Sequential(norm(width), new nn.Conv2d(width, next, 2, { stride: 2 })))
    }
    const last = stages.at(-1)[0]
    this.features = new nn.Sequential(...features)
    this.avgpool = new nn.AdaptiveAvgPool2d(1)
    this.classifier = new nn.Sequential(norm(last), new nn.Flatten(1), new nn.Linear(last, classes))
  }

  /** Images [batch, 3, height, width] to scores [batch, classes]. */
  forward(x) {
    return this.classifier(this.avgpool(this.features(x)))
  }
}

const stages = [
  [8, 1],
  [12, 2],
  [16, 1],
]

export const families = { convnext: () => new ConvNeXt({ stages, classes: 5 }) }
