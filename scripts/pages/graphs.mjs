// Graphs of about 70, 1,000 and 10,000 nodes, and a difference, for the checks of pages.
import { fx, nn, torch } from 'tensorfx'
import { fuse } from 'tensorfx/fx/experimental'
import { ShapeProp } from 'tensorfx/fx/passes'

/** A block of a residual network; 7 nodes if it keeps the number of channels. */
class Block extends nn.Module {
  constructor(from, to, stride) {
    super()
    this.conv1 = new nn.Conv2d(from, to, 3, { stride, padding: 1, bias: false })
    this.bn1 = new nn.BatchNorm2d(to)
    this.relu = new nn.ReLU()
    this.conv2 = new nn.Conv2d(to, to, 3, { padding: 1, bias: false })
    this.bn2 = new nn.BatchNorm2d(to)
    this.downsample = from === to ? null : new nn.Sequential(new nn.Conv2d(from, to, 1, { stride, bias: false }), new nn.BatchNorm2d(to))
  }

  forward(x) {
    const y = this.bn2(this.conv2(this.relu(this.bn1(this.conv1(x)))))
    return this.relu(y.add(this.downsample === null ? x : this.downsample(x)))
  }
}

/** ResNet-18 with fewer channels. */
export class ResNet extends nn.Module {
  constructor(width = 16) {
    super()
    const layer = (from, to, stride) => new nn.Sequential(new Block(from, to, stride), new Block(to, to, 1))
    this.conv1 = new nn.Conv2d(3, width, 7, { stride: 2, padding: 3, bias: false })
    this.bn1 = new nn.BatchNorm2d(width)
    this.relu = new nn.ReLU()
    this.maxpool = new nn.MaxPool2d(3, { stride: 2, padding: 1 })
    this.layer1 = layer(width, width, 1)
    this.layer2 = layer(width, 2 * width, 2)
    this.layer3 = layer(2 * width, 4 * width, 2)
    this.layer4 = layer(4 * width, 8 * width, 2)
    this.fc = new nn.Linear(8 * width, 10)
  }

  forward(x) {
    const y = this.maxpool(this.relu(this.bn1(this.conv1(x))))
    return this.fc(this.layer4(this.layer3(this.layer2(this.layer1(y)))).mean([2, 3]))
  }
}

/** A network of many blocks. */
class Deep extends nn.Module {
  constructor(blocks) {
    super()
    this.blocks = new nn.Sequential(...Array.from({ length: blocks }, () => new Block(2, 2, 1)))
  }

  forward(x) {
    return this.blocks(x).sum()
  }
}

/** Eight nodes a step, without modules; `m` is read by all steps. */
const steps = (count) => (x, m) => {
  for (let i = 0; i < count; i++) {
    const y = torch.relu(x.mul(m))
    x = x.add(y.add(torch.sigmoid(y)).matmul(torch.tanh(y.neg())))
  }
  return x
}

const withShapes = (gm) => {
  torch.noGrad(() => new ShapeProp(gm).propagate(torch.randn([1, 3, 64, 64])))
  return gm
}

/** ResNet before and after its batch norms were folded into its convolutions. */
export function resnets() {
  const model = new ResNet()
  model.eval()
  return { traced: withShapes(fx.symbolicTrace(model)), fused: withShapes(fuse(model)) }
}

/** Large graphs by a name for their files: of many modules, and all on one level. */
export const large = [
  { 'modules-1000': () => fx.symbolicTrace(new Deep(142)), 'modules-10000': () => fx.symbolicTrace(new Deep(1428)) },
  { 'flat-1000': () => fx.symbolicTrace(steps(125)), 'flat-10000': () => fx.symbolicTrace(steps(1250)) },
]

/** Small graphs of unusual form. */
export const shapes = {
  'a chain of 20 steps': fx.symbolicTrace((x) => Array.from({ length: 20 }).reduce((y) => torch.relu(y), x)),
  'a chain of 20 steps that all read the input': fx.symbolicTrace((x) => Array.from({ length: 20 }).reduce((y) => y.add(x), x)),
  '30 steps side by side': fx.symbolicTrace((x) => torch.cat(Array.from({ length: 30 }, () => torch.relu(x)))),
  'one step': fx.symbolicTrace((x) => torch.relu(x)),
}
