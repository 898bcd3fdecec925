// VGG with batch norm, as torchvision writes it.
import { nn, torch } from 'tensorfx'

export class VGG extends nn.Module {
  /** @param {{ layers: (number | 'M')[], pooled?: number, hidden?: number, classes?: number }} config the channels of the convolutions, 'M' for max pooling */
  constructor({ layers, pooled = 7, hidden = 4096, classes = 1000 }) {
    super()
    let from = 3
    const features = layers.flatMap((to) => {
      if (to === 'M') return [new nn.MaxPool2d(2, { stride: 2 })]
      const conv = new nn.Conv2d(from, to, 3, { padding: 1 })
      from = to
      return [conv, new nn.BatchNorm2d(to), new nn.ReLU()]
    })
    this.features = new nn.Sequential(...features)
    this.avgpool = new nn.AdaptiveAvgPool2d(pooled)
    this.classifier = new nn.Sequential(
      new nn.Linear(from * pooled ** 2, hidden),
      new nn.ReLU(),
      new nn.Dropout(),
      new nn.Linear(hidden, hidden),
      new nn.ReLU(),
      new nn.Dropout(),
      new nn.Linear(hidden, classes),
    )
  }

  /** Images [batch, 3, height, width] to scores [batch, classes]. */
  forward(x) {
    return this.classifier(torch.flatten(this.avgpool(this.features(x)), 1))
  }
}

export const families = { vgg: () => new VGG({ layers: [8, 'M', 12, 12, 'M'], pooled: 2, hidden: 16, classes: 5 }) }
