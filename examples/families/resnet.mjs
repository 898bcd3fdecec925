// ResNet as torchvision writes it, with its two kinds of blocks. examples/resnet18 classifies images with one.
import { nn, torch } from 'tensorfx'

const shortcut = (from, to, stride) =>
  stride === 1 && from === to ? null : new nn.Sequential(new nn.Conv2d(from, to, 1, { stride, bias: false }), new nn.BatchNorm2d(to))

class BasicBlock extends nn.Module {
  static expansion = 1

  constructor(from, width, stride) {
    super()
    this.conv1 = new nn.Conv2d(from, width, 3, { stride, padding: 1, bias: false })
    this.bn1 = new nn.BatchNorm2d(width)
    this.relu = new nn.ReLU()
    this.conv2 = new nn.Conv2d(width, width, 3, { padding: 1, bias: false })
    this.bn2 = new nn.BatchNorm2d(width)
    this.downsample = shortcut(from, width, stride)
  }

  forward(x) {
    const out = this.bn2(this.conv2(this.relu(this.bn1(this.conv1(x)))))
    return this.relu(out.add(this.downsample === null ? x : this.downsample(x)))
  }
}

class Bottleneck extends nn.Module {
  static expansion = 4

  constructor(from, width, stride) {
    super()
    const to = 4 * width
    this.conv1 = new nn.Conv2d(from, width, 1, { bias: false })
    this.bn1 = new nn.BatchNorm2d(width)
    this.conv2 = new nn.Conv2d(width, width, 3, { stride, padding: 1, bias: false })
    this.bn2 = new nn.BatchNorm2d(width)
    this.conv3 = new nn.Conv2d(width, to, 1, { bias: false })
    this.bn3 = new nn.BatchNorm2d(to)
    this.relu = new nn.ReLU()
    this.downsample = shortcut(from, to, stride)
  }

  forward(x) {
    let out = this.relu(this.bn1(this.conv1(x)))
    out = this.bn3(this.conv3(this.relu(this.bn2(this.conv2(out)))))
    return this.relu(out.add(this.downsample === null ? x : this.downsample(x)))
  }
}

export class ResNet extends nn.Module {
  /** Four stages [block, width, blocks], the later three with stride 2. */
  constructor(stages, { stem = 64, classes = 1000 } = {}) {
    super()
    this.conv1 = new nn.Conv2d(3, stem, 7, { stride: 2, padding: 3, bias: false })
    this.bn1 = new nn.BatchNorm2d(stem)
    this.relu = new nn.ReLU()
    this.maxpool = new nn.MaxPool2d(3, { stride: 2, padding: 1 })
    let from = stem
    const [layer1, layer2, layer3, layer4] = stages.map(([Block, width, count], stage) => {
      const blocks = Array.from({ length: count }, (_, i) => {
        const block = new Block(from, width, stage > 0 && i === 0 ? 2 : 1)
        from = width * Block.expansion
        return block
      })
      return new nn.Sequential(...blocks)
    })
    Object.assign(this, { layer1, layer2, layer3, layer4 })
    this.avgpool = new nn.AdaptiveAvgPool2d(1)
    this.fc = new nn.Linear(from, classes)
  }

  /** Images [batch, 3, height, width] to scores [batch, classes]. */
  forward(x) {
    x = this.maxpool(this.relu(this.bn1(this.conv1(x))))
    x = this.layer4(this.layer3(this.layer2(this.layer1(x))))
    return this.fc(torch.flatten(this.avgpool(x), 1))
  }
}

const stages = [
  [BasicBlock, 8, 2],
  [BasicBlock, 12, 1],
  [Bottleneck, 4, 2],
  [Bottleneck, 6, 1],
]

export const families = { resnet: () => new ResNet(stages, { stem: 8, classes: 5 }) }
