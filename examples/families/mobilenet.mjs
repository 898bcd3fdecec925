// MobileNetV2 as torchvision writes it: inverted residuals (expand, a convolution for each channel, project).
import { nn, torch } from 'tensorfx'

/** Convolution, batch norm and, unless it is null, an activation. */
function convNorm(from, to, kernel, { stride = 1, groups = 1, activation = null } = {}) {
  const conv = new nn.Conv2d(from, to, kernel, { stride, padding: (kernel - 1) / 2, groups, bias: false })
  const norm = new nn.BatchNorm2d(to)
  return new nn.Sequential(conv, norm, ...(activation === null ? [] : [activation()]))
}

const relu6 = () => new nn.ReLU6()

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
}
