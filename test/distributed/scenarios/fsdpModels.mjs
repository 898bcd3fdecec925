// The models of the FSDP goldens, and their batches.
import { nn, torch } from 'tensorfx'
import { Block, CompositeModel, Mlp, Odd, Tower, UnitModule, batch, init, input, lossOf, tokens } from './data.mjs'

const { functional } = nn

/** An embedding whose weight is the output layer's. */
class Tied extends nn.Module {
  emb = new nn.Embedding(11, 6)
  mid = new nn.Linear(6, 6)
  out = new nn.Linear(6, 11, { bias: false })
  constructor() {
    super()
    this.out.weight = this.emb.weight
  }
  forward(x) {
    return this.out(torch.relu(this.mid(this.emb(x))))
  }
}

class ConvBn extends nn.Module {
  conv = new nn.Conv2d(3, 4, 3, { padding: 1 })
  bn = new nn.BatchNorm2d(4)
  fc = new nn.Linear(4, 2)
  forward(x) {
    return this.fc(torch.relu(this.bn(this.conv(x))).mean([2, 3]))
  }
}

class Scalarish extends nn.Module {
  scale = new nn.Parameter(torch.ones([1]))
  lin = new nn.Linear(2, 2, { bias: false })
  forward(x) {
    return this.lin(x.mul(this.scale))
  }
}

class Frozen extends nn.Module {
  a = new nn.Linear(4, 4)
  b = new nn.Linear(4, 4)
  constructor() {
    super()
    this.b.requiresGrad_(false)
  }
  forward(x) {
    return this.b(torch.relu(this.a(x)))
  }
}

export const models = { Mlp, Odd, Tower, CompositeModel, Tied, ConvBn, Scalarish, Frozen }
export { Block, CompositeModel, UnitModule, init, input }

const own = {
  Tied: (rows, step) => [tokens([rows, 4], 1000 + step, 11), tokens([rows, 4], 2000 + step, 11)],
  ConvBn: (rows, step) => [input([rows, 3, 4, 4], 1000 + step), input([rows, 2], 2000 + step)],
}

/** The part of a step's batch that a rank gets. */
export function part(name, step, rank, world) {
  if (own[name] === undefined) return batch(name, step, rank, world)
  const [x, y] = own[name](3 * world, step)
  return [x.narrow(0, 3 * rank, 3), y.narrow(0, 3 * rank, 3)]
}

export const loss = (name, output, target) =>
  name === 'Tied' ? functional.crossEntropy(output.reshape([-1, 11]), target.reshape([-1])) : lossOf(output, target)
