// ResNet-18 as torchvision writes it: the names of the layers are those in its files, so that the weights fit.
import { nn, torch } from 'tensorfx'

class BasicBlock extends nn.Module {
  constructor(from, to, stride = 1) {
    super()
    this.conv1 = new nn.Conv2d(from, to, 3, { stride, padding: 1, bias: false })
    this.bn1 = new nn.BatchNorm2d(to)
    this.conv2 = new nn.Conv2d(to, to, 3, { padding: 1, bias: false })
    this.bn2 = new nn.BatchNorm2d(to)
    this.relu = new nn.ReLU()
    this.downsample =
      stride === 1 && from === to ? null : new nn.Sequential(new nn.Conv2d(from, to, 1, { stride, bias: false }), new nn.BatchNorm2d(to))
  }

  forward(x) {
    const out = this.bn2(this.conv2(this.relu(this.bn1(this.conv1(x)))))
    return this.relu(out.add(this.downsample === null ? x : this.downsample(x)))
  }
}

export class ResNet18 extends nn.Module {
  /** torchvision's has width 64 and 1,000 classes. */
  constructor({ width = 64, classes = 1000 } = {}) {
    super()
    const stage = (from, to, stride) => new nn.Sequential(new BasicBlock(from, to, stride), new BasicBlock(to, to))
    this.conv1 = new nn.Conv2d(3, width, 7, { stride: 2, padding: 3, bias: false })
    this.bn1 = new nn.BatchNorm2d(width)
    this.relu = new nn.ReLU()
    this.maxpool = new nn.MaxPool2d(3, { stride: 2, padding: 1 })
    this.layer1 = stage(width, width, 1)
    this.layer2 = stage(width, 2 * width, 2)
    this.layer3 = stage(2 * width, 4 * width, 2)
    this.layer4 = stage(4 * width, 8 * width, 2)
    this.avgpool = new nn.AdaptiveAvgPool2d(1)
    this.fc = new nn.Linear(8 * width, classes)
  }

  /** Images [batch, 3, height, width] to scores [batch, classes]. */
  forward(x) {
    x = this.maxpool(this.relu(this.bn1(this.conv1(x))))
    x = this.layer4(this.layer3(this.layer2(this.layer1(x))))
    return this.fc(torch.flatten(this.avgpool(x), 1))
  }
}
