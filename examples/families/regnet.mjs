// RegNet (Y) as torchvision writes it: bottlenecks of grouped convolutions with squeeze and excite. The names of its blocks, "block1-0", are no identifiers.
import { nn, torch } from 'tensorfx'

function convNorm(from, to, kernel, { stride = 1, groups = 1, activation = true } = {}) {
  const conv = new nn.Conv2d(from, to, kernel, { stride, padding: (kernel - 1) / 2, groups, bias: false })
  return new nn.Sequential(conv, new nn.BatchNorm2d(to), ...(activation ? [new nn.ReLU()] : []))
}

class SqueezeExcitation extends nn.Module {
  constructor(width, squeezed) {
    super()
    this.avgpool = new nn.AdaptiveAvgPool2d(1)
    this.fc1 = new nn.Conv2d(width, squeezed, 1)
    this.fc2 = new nn.Conv2d(squeezed, width, 1)
  }

  forward(x) {
    return x.mul(torch.sigmoid(this.fc2(torch.relu(this.fc1(this.avgpool(x))))))
  }
}

function named(modules) {
  const sequence = new nn.Sequential()
  for (const [name, module] of Object.entries(modules)) sequence.addModule(name, module)
  return sequence
}

class Bottleneck extends nn.Module {
  constructor(from, to, { stride, groupWidth, ratio }) {
    super()
    this.proj = stride === 1 && from === to ? null : convNorm(from, to, 1, { stride, activation: false })
    this.f = named({
      a: convNorm(from, to, 1),
      b: convNorm(to, to, 3, { stride, groups: to / groupWidth }),
      se: new SqueezeExcitation(to, Math.round(ratio * from)),
      c: convNorm(to, to, 1, { activation: false }),
    })
  }

  forward(x) {
    return torch.relu((this.proj === null ? x : this.proj(x)).add(this.f(x)))
  }
}

export class RegNet extends nn.Module {
  /** Stages as { width, depth, groupWidth, stride }. */
  constructor({ stem, stages, ratio = 0.25, classes = 1000 }) {
    super()
    this.stem = convNorm(3, stem, 3, { stride: 2 })
    let from = stem
    const trunk = stages.map(({ width, depth, groupWidth, stride }, stage) => {
      const blocks = Array.from({ length: depth }, (_, i) => {
        const block = new Bottleneck(from, width, { stride: i === 0 ? stride : 1, groupWidth, ratio })
        from = width
        return [`block${stage + 1}-${i}`, block]
      })
      return [`block${stage + 1}`, named(Object.fromEntries(blocks))]
    })
    this.trunk_output = named(Object.fromEntries(trunk))
    this.avgpool = new nn.AdaptiveAvgPool2d(1)
    this.fc = new nn.Linear(from, classes)
  }

  /** Images [batch, 3, height, width] to scores [batch, classes]. */
  forward(x) {
    return this.fc(torch.flatten(this.avgpool(this.trunk_output(this.stem(x))), 1))
  }
}

const stages = [
  { width: 8, depth: 1, groupWidth: 4, stride: 2 },
  { width: 16, depth: 2, groupWidth: 8, stride: 2 },
]

export const families = { regnet: () => new RegNet({ stem: 8, stages, classes: 5 }) }
