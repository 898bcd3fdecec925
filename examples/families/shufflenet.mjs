// ShuffleNetV2 as torchvision writes it: half of the channels go through a branch, then the halves are interleaved.
import { nn, torch } from 'tensorfx'

function shuffled(x, groups) {
  const [batch, channels, height, width] = x.shape
  return x
    .view(batch, groups, channels / groups, height, width)
    .transpose(1, 2)
    .reshape(batch, channels, height, width)
}

class InvertedResidual extends nn.Module {
  constructor(from, to, stride) {
    super()
    const half = to / 2
    const deep = (width) => [new nn.Conv2d(width, width, 3, { stride, padding: 1, groups: width, bias: false }), new nn.BatchNorm2d(width)]
    const point = (source) => [new nn.Conv2d(source, half, 1, { bias: false }), new nn.BatchNorm2d(half), new nn.ReLU()]
    this.stride = stride
    this.branch1 = stride === 1 ? new nn.Sequential() : new nn.Sequential(...deep(from), ...point(from))
    this.branch2 = new nn.Sequential(...point(stride === 1 ? half : from), ...deep(half), ...point(half))
  }

  forward(x) {
    const [first, second] = this.stride === 1 ? x.chunk(2, 1) : [this.branch1(x), x]
    return shuffled(torch.cat([first, this.branch2(second)], 1), 2)
  }
}

export class ShuffleNetV2 extends nn.Module {
  constructor({ stem, stages, last, classes = 1000 }) {
    super()
    this.conv1 = new nn.Sequential(new nn.Conv2d(3, stem, 3, { stride: 2, padding: 1, bias: false }), new nn.BatchNorm2d(stem), new nn.ReLU())
    this.maxpool = new nn.MaxPool2d(3, { stride: 2, padding: 1 })
    let from = stem
    const [stage2, stage3, stage4] = stages.map(([to, count]) => {
      const blocks = Array.from({ length: count }, (_, i) => new InvertedResidual(i === 0 ? from : to, to, i === 0 ? 2 : 1))
      from = to
      return new nn.Sequential(...blocks)
    })
    Object.assign(this, { stage2, stage3, stage4 })
    this.conv5 = new nn.Sequential(new nn.Conv2d(from, last, 1, { bias: false }), new nn.BatchNorm2d(last), new nn.ReLU())
    this.fc = new nn.Linear(last, classes)
  }

  /** Images [batch, 3, height, width] to scores [batch, classes]. */
  forward(x) {
    x = this.maxpool(this.conv1(x))
    x = this.conv5(this.stage4(this.stage3(this.stage2(x))))
    return this.fc(x.mean([2, 3]))
  }
}

const stages = [
  [12, 2],
  [16, 2],
  [24, 1],
]

export const families = { shufflenet_v2: () => new ShuffleNetV2({ stem: 8, stages, last: 32, classes: 5 }) }
