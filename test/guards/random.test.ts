// Random programs, and random changes of state between their calls, in all that answers calls from records, against the program itself.
import { afterEach, describe, expect, it } from 'vitest'
import { nn, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { setDetectAnomaly } from 'tensorfx/autograd'
import { randomFrom } from '../../scripts/fuzz/random.mjs'
import { seeds } from '../helpers/rotation.ts'
import { outcome, seen } from './plans.ts'
import { makeFxGraphs, users } from './users.ts'
import type { Use } from './users.ts'

// 34: a custom Function under another default dtype, which skipReplay answered without its gradient.
const SEEDS = [...seeds('TENSORFX_GUARD_PROGRAMS', Number(process.env['TENSORFX_GUARD_PROGRAMS'] ?? 12), 1), 34]

afterEach(() => {
  torch.setDefaultDtype('float32')
  setDetectAnomaly(false)
})

class Same extends torch.autograd.Function {
  static override forward(_ctx: unknown, x: Tensor): Tensor {
    return x.mul(1)
  }
  static override backward(_ctx: unknown, grad: Tensor): Tensor {
    return grad.mul(3)
  }
}

class World {
  readonly w = torch.tensor([0.5, -2])
  readonly u = torch.tensor([1.5, 2]).requiresGrad_()
  readonly layer: nn.Linear
  readonly norm = new nn.BatchNorm1d(2)
  readonly drop = new nn.Dropout(0.5)
  readonly block: nn.Sequential
  x = torch.tensor([
    [1, 2],
    [4, -3],
  ])
  grads = true
  #hooks: { remove(): void }[] = []

  constructor() {
    torch.manualSeed(5)
    this.layer = new nn.Linear(2, 2)
    this.block = new nn.Sequential(this.layer, this.norm, this.drop)
  }

  readonly steps: readonly ((x: Tensor) => Tensor)[] = [
    (x) => x.mul(this.w),
    (x) => x.add(this.u),
    (x) => this.block(x) as Tensor,
    (x) => this.layer(x),
    (x) => this.drop(x),
    (x) => this.norm(x),
    (x) => x.tanh(),
    (x) => x.add(torch.arange(2).div(4)),
    (x) => Same.apply(x),
    (x) => x.mul(noGrad(() => this.u.mul(2))),
    (x) => x.add(torch.rand([2])),
    (x) => x.t().t(),
  ]

  readonly changes: readonly (() => void)[] = [
    () => this.w.requiresGrad_(!this.w.requiresGrad),
    () => this.u.requiresGrad_(!this.u.requiresGrad),
    () => (this.x = this.x.detach().requiresGrad_(this.x.isFloatingPoint() && !this.x.requiresGrad)),
    () => (this.x = torch.cat([this.x.detach(), torch.ones([1, 2])])),
    () => (this.x = this.x.detach().t().contiguous().t()),
    () => (this.x = this.x.detach().to('float64')),
    () => (this.x = torch.tensor([[1, 2]], { dtype: 'int32' })),
    () => (this.grads = !this.grads),
    () => torch.setDefaultDtype(torch.getDefaultDtype() === 'float32' ? 'float64' : 'float32'),
    () => void this.block.train(!this.block.training),
    () => void this.norm.train(!this.norm.training),
    () => void this.drop.train(!this.drop.training),
    () => void Object.assign(this.drop, { p: this.drop.p === 0.5 ? 0.25 : 0.5 }),
    () => (this.layer.weight = new nn.Parameter(this.layer.weight.detach().mul(2))),
    () => void this.block.append(new nn.Tanh()),
    () => void this.#hooks.push(this.layer.registerForwardHook((_module, _args, output) => (output as Tensor).mul(2))),
    () => this.#hooks.pop()?.remove(),
    () => noGrad(() => this.w.add_(1)),
    () => noGrad(() => this.norm.weight?.mul_(2)),
    () => setDetectAnomaly(this.grads),
  ]

  /** All that a call leaves behind. */
  call(f: (x: Tensor) => Tensor, seed: number): unknown {
    torch.manualSeed(seed)
    const { x, w, u, layer } = this
    for (const tensor of [x, w, u, layer.weight]) tensor.grad = null
    const result = outcome(() => {
      const y = this.grads ? f(x) : noGrad(() => f(x))
      const before = seen(y)
      if (y.requiresGrad) y.sum().backward()
      return [before]
    })
    const { runningMean } = this.norm
    return [result, [x, w, u, layer.weight].map((tensor) => seen(tensor.grad)), seen(runningMean)]
  }
}

function run(seed: number, use: Use): unknown[] {
  torch.setDefaultDtype('float32')
  setDetectAnomaly(false)
  const { pick } = randomFrom(seed)
  const world = new World()
  const program = Array.from({ length: 1 + (seed % 4) }, () => pick(world.steps))
  const f = use((x: Tensor) => program.reduce((y, step) => step(y), x.mul(1)))
  return Array.from({ length: 8 }, (_, i) => {
    if (i > 0) pick([...world.changes, () => undefined])()
    return world.call(f, i)
  })
}

/** The same up to rounding: fused code adds in another order. */
function expectClose(actual: unknown, expected: unknown, where: string): void {
  if (typeof actual === 'number' && typeof expected === 'number' && Number.isFinite(expected))
    return expect(Math.abs(actual - expected), where).toBeLessThanOrEqual(1e-4 * (1 + Math.abs(expected)))
  if (typeof actual === 'object' && actual !== null && typeof expected === 'object' && expected !== null) {
    expect(Object.keys(actual), where).toEqual(Object.keys(expected))
    for (const [key, value] of Object.entries(expected)) expectClose(Reflect.get(actual, key), value, `${where}.${key}`)
    return
  }
  expect(actual, where).toEqual(expected)
}

// Gradients of makeFx's graphs are compared nowhere: they have what is below autograd.
describe.each(Object.entries(users).filter(([user]) => user !== makeFxGraphs))('%s', (_, { use, reference }) => {
  it.each(SEEDS)('program %i', (seed) => {
    const expected = run(seed, reference)
    expectClose(run(seed, use), expected, 'call')
  })
})
