// DenseNet as torchvision writes it: each layer reads the results of all layers before it. Modules are added under names that are computed.
import { nn, torch } from 'tensorfx'

const F = torch.nn.functional

class DenseLayer extends nn.Module {
  constructor(from, { growth, bottleneck }) {
    super()
    this.norm1 = new nn.BatchNorm2d(from)
    this.conv1 = new nn.Conv2d(from, bottleneck * growth, 1, { bias: false })
    this.norm2 = new nn.BatchNorm2d(bottleneck * growth)
    this.conv2 = new nn.Conv2d(bottleneck * growth, growth, 3, { padding: 1, bias: false })
  }

  forward(x) {
    return this.conv2(F.relu(this.norm2(this.conv1(F.relu(this.norm1(x))))))
  }
}

class DenseBlock extends nn.Module {
  constructor(from, count, config) {
    super()
    for (let i = 0; i < count; i++) this.addModule(`denselayer${i + 1}`, new DenseLayer(from + i * config.growth, config))
  }

  forward(x) {
    for (const layer of this.children()) x = torch.cat([x, layer(x)], 1)
    return x
  }
}

class Transition extends nn.Module {
  constructor(from, to) {
    super()
    this.norm = new nn.BatchNorm2d(from)
    this.conv = new nn.Conv2d(from, to, 1, { bias: false })
  }

  forward(x) {
    return F.avgPool2d(this.conv(F.relu(this.norm(x))), 2)
  }
}

export class DenseNet extends nn.Module {
  constructor({ stem, blocks, growth, bottleneck = 4, classes = 1000 }) {
    super()
    const features = new nn.Sequential()
    const add = (name, module) => features.addModule(name, module)
    add('conv0', new nn.Conv2d(3, stem, 7, { stride: 2, padding: 3, bias: false }))
    add('norm0', new nn.BatchNorm2d(stem))
    add('relu0', new nn.ReLU())
    add('pool0', new nn.MaxPool2d(3, { stride: 2, padding: 1 }))
    let width = stem
    for (const [i, count] of blocks.entries()) {
      add(`denseblock${i + 1}`, new DenseBlock(width, count, { growth, bottleneck }))
      width += count * growth
      if (i === blocks.length - 1) break
      add(`transition${i + 1}`, new Transition(width, width / 2))
      width /= 2
    }
    add('norm5', new nn.BatchNorm2d(width))
    this.features = features
    this.classifier = new nn.Linear(width, classes)
  }

  /** Images [batch, 3, height, width] to scores [batch, classes]. */
  forward(x) {
    return this.classifier(torch.flatten(F.adaptiveAvgPool2d(F.relu(this.features(x)), 1), 1))
  }
}

export const families = { densenet: () => new DenseNet({ stem: 8, blocks: [2, 3], growth: 4, bottleneck: 2, classes: 5 }) }
