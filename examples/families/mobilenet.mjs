// MobileNetV2, MobileNetV3 and EfficientNet as torchvision writes them: inverted residuals (expand, a convolution for each channel, squeeze and excite, project).
import { nn, torch } from 'tensorfx'

/** Convolution, batch norm and, unless it is null, an activation. */
function convNorm(from, to, kernel, { stride = 1, groups = 1, activation = null, eps = 1e-5 } = {}) {
  const conv = new nn.Conv2d(from, to, kernel, { stride, padding: (kernel - 1) / 2, groups, bias: false })
  const norm = new nn.BatchNorm2d(to, { eps })
  return new nn.Sequential(conv, norm, ...(activation === null ? [] : [activation()]))
}

class SqueezeExcitation extends nn.Module {
  constructor(width, squeezed, activation, scale) {
    super()
    this.avgpool = new nn.AdaptiveAvgPool2d(1)
    this.fc1 = new nn.Conv2d(width, squeezed, 1)
    this.fc2 = new nn.Conv2d(squeezed, width, 1)
    this.activation = activation()
    this.scale = scale()
  }

  forward(x) {
    return x.mul(this.scale(this.fc2(this.activation(this.fc1(this.avgpool(x))))))
  }
}

const relu = () => new nn.ReLU()
const relu6 = () => new nn.ReLU6()
const silu = () => new nn.SiLU()
const hardswish = () => new nn.Hardswish()

class InvertedResidualV2 extends nn.Module {
  constructor(from, to, stride, expand) {
    super()
    const hidden = from * expand
    const wide = expand === 1 ? [] : [convNorm(from, hidden, 1, { activation: relu6 })]
    const deep = convNorm(hidden, hidden, 3, { stride, groups: hidden, activation: relu6 })
    this.residual = stride === 1 && from === to
    this.conv = new nn.Sequential(...wide, deep, new nn.Conv2d(hidden, to, 1, { bias: false }), new nn.BatchNorm2d(to))
  }

  forward(x) {
    return this.residual ? x.add(this.conv(x)) : this.conv(x)
  }
}

export class MobileNetV2 extends nn.Module {
  /** Blocks as [expand, channels, count, stride of the first]. */
  constructor({ stem, blocks, last, classes = 1000 }) {
    super()
    let from = stem
    const features = [convNorm(3, stem, 3, { stride: 2, activation: relu6 })]
    for (const [expand, to, count, stride] of blocks) {
      for (let i = 0; i < count; i++) {
        features.push(new InvertedResidualV2(from, to, i === 0 ? stride : 1, expand))
        from = to
      }
    }
    features.push(convNorm(from, last, 1, { activation: relu6 }))
    this.features = new nn.Sequential(...features)
    this.classifier = new nn.Sequential(new nn.Dropout(0.2), new nn.Linear(last, classes))
  }

  /** Images [batch, 3, height, width] to scores [batch, classes]. */
  forward(x) {
    return this.classifier(torch.flatten(torch.nn.functional.adaptiveAvgPool2d(this.features(x), 1), 1))
  }
}

class InvertedResidualV3 extends nn.Module {
  constructor({ from, kernel, hidden, to, excite, activation, stride }) {
    super()
    const eps = 1e-3
    const wide = hidden === from ? [] : [convNorm(from, hidden, 1, { activation, eps })]
    const deep = convNorm(hidden, hidden, kernel, { stride, groups: hidden, activation, eps })
    const squeezed = Math.max(8, Math.floor((hidden / 4 + 4) / 8) * 8)
    const gate = excite ? [new SqueezeExcitation(hidden, squeezed, relu, () => new nn.Hardsigmoid())] : []
    this.residual = stride === 1 && from === to
    this.block = new nn.Sequential(...wide, deep, ...gate, convNorm(hidden, to, 1, { eps }))
  }

  forward(x) {
    return this.residual ? x.add(this.block(x)) : this.block(x)
  }
}

class Classifier extends nn.Module {
  constructor(features, classifier) {
    super()
    this.features = features
    this.avgpool = new nn.AdaptiveAvgPool2d(1)
    this.classifier = classifier
  }

  /** Images [batch, 3, height, width] to scores [batch, classes]. */
  forward(x) {
    return this.classifier(torch.flatten(this.avgpool(this.features(x)), 1))
  }
}

export class MobileNetV3 extends Classifier {
  constructor({ blocks, hidden, classes = 1000 }) {
    const last = blocks.at(-1).to
    const eps = 1e-3
    const features = new nn.Sequential(
      convNorm(3, blocks[0].from, 3, { stride: 2, activation: hardswish, eps }),
      ...blocks.map((block) => new InvertedResidualV3(block)),
      convNorm(last, 6 * last, 1, { activation: hardswish, eps }),
    )
    super(features, new nn.Sequential(new nn.Linear(6 * last, hidden), new nn.Hardswish(), new nn.Dropout(0.2), new nn.Linear(hidden, classes)))
  }
}

class MBConv extends nn.Module {
  constructor({ from, to, expand, kernel, stride, fused }) {
    super()
    const hidden = from * expand
    const options = { stride, activation: silu }
    if (fused) {
      this.block = new nn.Sequential(
        ...(expand === 1 ? [convNorm(from, to, kernel, options)] : [convNorm(from, hidden, kernel, options), convNorm(hidden, to, 1)]),
      )
    } else {
      this.block = new nn.Sequential(
        ...(expand === 1 ? [] : [convNorm(from, hidden, 1, { activation: silu })]),
        convNorm(hidden, hidden, kernel, { ...options, groups: hidden }),
        new SqueezeExcitation(hidden, Math.max(1, Math.floor(from / 4)), silu, () => new nn.Sigmoid()),
        convNorm(hidden, to, 1),
      )
    }
    this.residual = stride === 1 && from === to
  }

  forward(x) {
    return this.residual ? x.add(this.block(x)) : this.block(x)
  }
}

export class EfficientNet extends Classifier {
  /** Stages as { from, to, count, expand, kernel, stride, fused }. */
  constructor({ stages, dropout = 0.2, classes = 1000 }) {
    const last = stages.at(-1).to
    const blocksOf = (stage) => Array.from({ length: stage.count }, (_, i) => new MBConv(i === 0 ? stage : { ...stage, from: stage.to, stride: 1 }))
    const features = new nn.Sequential(
      convNorm(3, stages[0].from, 3, { stride: 2, activation: silu }),
      ...stages.map((stage) => new nn.Sequential(...blocksOf(stage))),
      convNorm(last, 4 * last, 1, { activation: silu }),
    )
    super(features, new nn.Sequential(new nn.Dropout(dropout), new nn.Linear(4 * last, classes)))
  }
}

export const families = {
  mobilenet_v2: () =>
    new MobileNetV2({
      stem: 8,
      blocks: [
        [1, 8, 1, 1],
        [6, 8, 2, 2],
        [6, 16, 1, 2],
      ],
      last: 32,
      classes: 5,
    }),
  mobilenet_v3: () =>
    new MobileNetV3({
      blocks: [
        { from: 8, kernel: 3, hidden: 8, to: 8, excite: true, activation: relu, stride: 2 },
        { from: 8, kernel: 3, hidden: 24, to: 16, excite: false, activation: relu, stride: 2 },
        { from: 16, kernel: 5, hidden: 32, to: 16, excite: true, activation: hardswish, stride: 1 },
      ],
      hidden: 24,
      classes: 5,
    }),
  efficientnet: () =>
    new EfficientNet({
      stages: [
        { from: 8, to: 8, count: 1, expand: 1, kernel: 3, stride: 1, fused: true },
        { from: 8, to: 16, count: 1, expand: 2, kernel: 3, stride: 2, fused: true },
        { from: 16, to: 16, count: 2, expand: 4, kernel: 5, stride: 2, fused: false },
      ],
      classes: 5,
    }),
}
