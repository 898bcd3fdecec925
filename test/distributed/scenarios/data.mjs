// Weights, batches and models of the goldens: numbers come from a hash, so no file holds them.
import { nn, torch } from 'tensorfx'

function hash(i, seed) {
  let x = (i + Math.imul(seed, 0x9e3779b9)) >>> 0
  x ^= x >>> 16
  x = Math.imul(x, 0x85ebca6b)
  x ^= x >>> 13
  x = Math.imul(x, 0xc2b2ae35)
  x ^= x >>> 16
  return x >>> 0
}

const numel = (shape) => shape.reduce((a, b) => a * b, 1)

/** `n` numbers in [-1, 1). */
export const uniform = (n, seed) => Float64Array.from({ length: n }, (_, i) => (hash(i, seed) / 4294967296) * 2 - 1)

/** A float32 tensor of uniform numbers. */
export const input = (shape, seed, scale = 1) => torch.tensor(Float32Array.from(uniform(numel(shape), seed), (v) => v * scale)).view(shape)

/** int64 tokens from 0 to n - 1. */
export const tokens = (shape, seed, n) =>
  torch
    .tensor(
      Array.from({ length: numel(shape) }, (_, i) => hash(i, seed) % n),
      { dtype: 'int64' },
    )
    .view(shape)

/** Sets parameters and buffers by their place in the state dict, as the goldens' models were set. */
export function init(model) {
  let k = 0
  for (const [name, target] of model.stateDict()) {
    k++
    if (!target.isFloatingPoint()) continue
    const around1 = name.endsWith('runningVar') || name.split('.').at(-1) === 'weight'
    const scale = Math.sqrt(target.numel / (target.shape[0] ?? 1))
    const values = Float32Array.from(uniform(target.numel, k), (v) => (target.ndim >= 2 ? v / scale : around1 ? 1 + 0.1 * v : 0.1 * v))
    torch.noGrad(() => target.copy_(torch.tensor(values).view(target.shape)))
  }
  return model
}

export class Mlp extends nn.Module {
  net = new nn.Sequential(new nn.Linear(5, 7), new nn.ReLU(), new nn.Linear(7, 3))
  forward(x) {
    return this.net(x)
  }
}

export class Odd extends nn.Module {
  a = new nn.Linear(3, 1, { bias: false })
  b = new nn.Linear(1, 5)
  forward(x) {
    return this.b(this.a(x))
  }
}

export class Block extends nn.Module {
  ln = new nn.LayerNorm(8)
  up = new nn.Linear(8, 16)
  down = new nn.Linear(16, 8)
  forward(x) {
    return x.add(this.down(torch.nn.functional.gelu(this.up(this.ln(x)))))
  }
}

export class Tower extends nn.Module {
  inp = new nn.Linear(8, 8)
  blocks = new nn.ModuleList([new Block(), new Block(), new Block()])
  head = new nn.Linear(8, 2)
  forward(x) {
    x = this.inp(x)
    for (const block of this.blocks) x = block(x)
    return this.head(x)
  }
}

export class UnitModule extends nn.Module {
  l1 = new nn.Linear(8, 8)
  seq = new nn.Sequential(new nn.ReLU(), new nn.Linear(8, 8), new nn.ReLU())
  l2 = new nn.Linear(8, 8)
  forward(x) {
    return this.l2(this.seq(this.l1(x)))
  }
}

export class CompositeModel extends nn.Module {
  l1 = new nn.Linear(8, 8)
  u1 = new UnitModule()
  u2 = new UnitModule()
  l2 = new nn.Linear(8, 8)
  forward(x) {
    return this.l2(this.u2(this.u1(this.l1(x))))
  }
}

/** The inputs and targets of one step, for all ranks. */
const batches = {
  Mlp: (rows, step) => [input([rows, 5], 1000 + step), input([rows, 3], 2000 + step)],
  Odd: (rows, step) => [input([rows, 3], 1000 + step), input([rows, 5], 2000 + step)],
  Tower: (rows, step) => [input([rows, 8], 1000 + step), input([rows, 2], 2000 + step)],
  CompositeModel: (rows, step) => [input([rows, 8], 1000 + step), input([rows, 8], 2000 + step)],
}

export const models = { Mlp, Odd, Tower, CompositeModel }

/** The part of a step's batch that a rank gets: three rows. */
export function batch(name, step, rank, world) {
  const [x, y] = batches[name](3 * world, step)
  return [x.narrow(0, 3 * rank, 3), y.narrow(0, 3 * rank, 3)]
}

export const lossOf = (output, target) => torch.nn.functional.mseLoss(output, target)
