// What a failed allocation interrupts is whole: not begun, or done.
import { describe, expect, onTestFinished, test } from 'vitest'
import { Tensor, compile, config, nn, noGrad, optim, torch } from 'tensorfx'
import { OutOfMemoryError, collectBlocks, heapStats, setSoftLimit, withFailingAllocation } from 'tensorfx/kernels'
import { tenth } from '../helpers/rotation.ts'

const MIB = 2 ** 20

/** The elements, bit for bit. */
const bits = (...tensors: readonly Tensor[]): string => JSON.stringify(tensors.map((t) => [...new Uint8Array(t.toTypedArray().buffer.slice(0))]))

/** Lets each allocation of `run` fail, from a new start each time. After it `state` must be one of those that `run` may leave: as it was, or as it is after `run`. Returns how often each was seen. */
function failEach<T>(start: () => T, run: (given: T) => unknown, state: (given: T) => string): { readonly before: number; readonly after: number } {
  const done = start()
  const first = state(done)
  run(done)
  const last = state(done)
  expect(last).not.toBe(first)
  const seen = { before: 0, after: 0 }
  for (let nth = 1; nth < 500; nth++) {
    const given = start()
    const { failed, outcome } = withFailingAllocation(nth, () => run(given))
    if (!failed) return seen
    const now = state(given)
    if ('threw' in outcome) expect(innermost(outcome.threw)).toBeInstanceOf(OutOfMemoryError)
    else expect(now, `allocation ${nth} failed, without an error`).toBe(last)
    expect([first, last], `allocation ${nth} failed`).toContain(now)
    seen[now === first ? 'before' : 'after']++
  }
  throw new Error('too many allocations')
}

function innermost(error: unknown): unknown {
  let inner = error
  while (inner instanceof Error && inner.cause !== undefined) inner = inner.cause
  return inner
}

interface Training {
  readonly forward: (x: Tensor) => Tensor
  readonly optimizer: optim.Optimizer
  readonly parameters: readonly Tensor[]
}

/** A model with gradients, and an optimizer. */
function training(make: (params: Iterable<Tensor>) => optim.Optimizer, steps = 0): Training {
  torch.manualSeed(1)
  const model = new nn.Sequential(new nn.Linear(4, 5), new nn.Tanh(), new nn.Linear(5, 2))
  const parameters = [...model.parameters()]
  const optimizer = make(parameters)
  const loss = (): Tensor => {
    optimizer.zeroGrad()
    const value = model
      .call(torch.arange(8).view([2, 4]).sin())
      .square()
      .sum()
    value.backward()
    return value
  }
  for (let i = 0; i < steps; i++) {
    loss()
    optimizer.step()
  }
  loss()
  return { forward: (x) => model.call(x), optimizer, parameters }
}

const optimizers: Readonly<Record<string, (params: Iterable<Tensor>) => optim.Optimizer>> = {
  SGD: (p) => new optim.SGD(p, { lr: 0.1, momentum: 0.9, weightDecay: 0.1, nesterov: true }),
  Adam: (p) => new optim.Adam(p, { lr: 0.1, amsgrad: true, weightDecay: 0.1 }),
  AdamW: (p) => new optim.AdamW(p, { lr: 0.1 }),
  NAdam: (p) => new optim.NAdam(p, { lr: 0.1 }),
  RMSprop: (p) => new optim.RMSprop(p, { lr: 0.1, momentum: 0.5, centered: true }),
  Adagrad: (p) => new optim.Adagrad(p, { lr: 0.1 }),
  Adadelta: (p) => new optim.Adadelta(p, { lr: 0.1 }),
  Adamax: (p) => new optim.Adamax(p, { lr: 0.1 }),
  RAdam: (p) => new optim.RAdam(p, { lr: 0.1 }),
  Rprop: (p) => new optim.Rprop(p, { lr: 0.1 }),
  Adafactor: (p) => new optim.Adafactor(p, { lr: 0.1 }),
}

describe('after a failed allocation', () => {
  test.each(tenth(Object.entries(optimizers), ([name]) => name))('a step of %s changed all parameters and their state, or nothing', (_, make) => {
    for (const steps of [0, 2])
      failEach(
        () => training(make, steps),
        ({ optimizer }) => optimizer.step(),
        ({ optimizer, parameters }) => {
          const states = parameters.map((p) => Object.entries(optimizer.state.get(p) ?? {}))
          return JSON.stringify([
            bits(...parameters),
            states.map((state) => state.map(([name, value]) => [name, value instanceof Tensor ? bits(value) : value])),
          ])
        },
      )
  })

  test('a step of LBFGS is undone', () => {
    for (const lineSearchFn of ['strong_wolfe', null] as const) {
      const seen = failEach(
        () => training((p) => new optim.LBFGS(p, { lr: 0.5, maxIter: 3, lineSearchFn })),
        ({ optimizer, forward }) =>
          optimizer.step(() => {
            optimizer.zeroGrad()
            const value = forward(torch.ones([2, 4]))
              .square()
              .sum()
            value.backward()
            return value
          }),
        ({ parameters }) => bits(...parameters),
      )
      expect(seen.before).toBeGreaterThan(50)
    }
  })

  test('a backward added to the gradients of all leaves, or of none (difference: steps-are-whole)', () => {
    for (const create of [false, true]) {
      const seen = failEach(
        () => {
          const leaves = [torch.ones([3]), torch.arange(3), torch.ones([3, 3])].map((t, i) =>
            t
              .requiresGrad_(true)
              .mul(1)
              .detach()
              .requiresGrad_(i >= 0),
          )
          leaves.slice(1).forEach((leaf) => (leaf.grad = torch.ones(leaf.shape)))
          const [a, b, c] = leaves
          if (a === undefined || b === undefined || c === undefined) throw new Error('no leaves')
          return {
            leaves,
            loss: a
              .add(b)
              .matmul(c.t())
              .exp()
              .sum()
              .add(a.view([3, 1]).t().sum()),
          }
        },
        ({ loss }) => loss.backward(null, { createGraph: create }),
        ({ leaves }) => JSON.stringify(leaves.map((leaf) => leaf.grad?.toArray() ?? null)),
      )
      expect(seen.before).toBeGreaterThanOrEqual(5)
    }
  })

  const inPlace: Readonly<Record<string, (x: Tensor, y: Tensor) => unknown>> = {
    mul_: (x, y) => x.mul_(y),
    'add_ of a transposed view': (x, y) => x.t().add_(y),
    addcmul_: (x, y) => x.addcmul_(y, y.t()),
    clamp_: (x) => x.clamp_({ min: 1, max: 3 }),
    copy_: (x, y) => x.copy_(y.t()),
    fill_: (x) => x.fill_(2),
    'copy_ of another dtype': (x, y) => x.copy_(y.double()),
    indexAdd_: (x, y) => x.indexAdd_(0, torch.tensor([1, 0, 1, 3], { dtype: 'int64' }), y),
    scatter_: (x, y) =>
      x.scatter_(
        1,
        torch.tensor(
          [
            [0, 1],
            [2, 3],
          ],
          { dtype: 'int64' },
        ),
        y,
      ),
    'masked fill': (x, y) => x.maskedFill_(y.gt(2), 9),
    'cumsum of a view': (x) => x.select(0, 1).copy_(x.select(0, 1).cumsum(0)),
    'its own transpose': (x) => x.copy_(x.t()),
    lerp_: (x, y) => x.lerp_(y, 0.3),
    sorted: (x) => x.copy_(x.sort(0, true)[0]),
  }
  const start = (): readonly [Tensor, Tensor] => [torch.arange(16).view([4, 4]).add(0.5), torch.arange(16).view([4, 4]).sin().mul(4)]

  test.each(tenth(Object.entries(inPlace), ([name]) => name))('%s has written all or nothing, on the heap and outside it', (_, write) => {
    const { softLimit } = heapStats()
    onTestFinished(() => setSoftLimit(softLimit))
    for (const soft of [softLimit, 0]) {
      setSoftLimit(soft)
      failEach(
        start,
        ([x, y]) => write(x, y),
        ([x]) => bits(x),
      )
    }
  })

  test.each(tenth(Object.entries(inPlace), ([name]) => `compiled ${name}`))('%s in a compiled function has written all or nothing', (_, write) => {
    const compiled = compile((x: Tensor, y: Tensor) => {
      write(x, y)
      // What comes after the write can fail as well.
      return x.add(1).cumsum(0).sort(1)[0]
    })
    // Paths are young for 16 calls, in which compile keeps old data.
    for (let i = 0; i < 20; i++) compiled(...start())
    const seen = failEach(
      start,
      ([x, y]) => compiled(x, y),
      ([x]) => bits(x),
    )
    expect(seen.after + seen.before).toBeGreaterThan(0)
  })

  test('a compiled training step has updated all parameters, or none', () => {
    const given = training((p) => new optim.SGD(p, { lr: 0.1, momentum: 0.9 }), 1)
    const data = given.parameters.map((p) => p.detach().clone())
    const compiled = compile((x: Tensor) => {
      given.optimizer.zeroGrad()
      const value = given.forward(x).square().sum()
      value.backward()
      given.optimizer.step()
      return value
    })
    const x = torch.ones([2, 4])
    const restore = (): void => noGrad(() => given.parameters.forEach((p, i) => void p.copy_(data[i] ?? p)))
    for (let i = 0; i < 20; i++) compiled(x)
    failEach(
      () => {
        restore()
        return given
      },
      () => compiled(x),
      ({ parameters }) => JSON.stringify(parameters.map((p, i) => bits(p) === bits(data[i] ?? p))),
    )
  })
})

describe('under the limit', () => {
  test('an optimizer whose state has no room changes nothing, and its step succeeds when there is room again', () => {
    const given = config.memoryLimit
    onTestFinished(() => {
      config.memoryLimit = given
    })
    const weight = torch.ones([2 ** 19]).requiresGrad_()
    weight.grad = torch.ones([2 ** 19])
    const optimizer = new optim.Adam([weight], { lr: 0.1 })
    collectBlocks()
    config.memoryLimit = torch.memory.memoryAllocated() + 3 * MIB
    expect(() => optimizer.step()).toThrow(OutOfMemoryError)
    config.memoryLimit = torch.memory.memoryAllocated() + 5 * MIB
    expect(() => optimizer.step()).toThrow(/optim\.Adam\.step/)
    expect(weight.min().item()).toBe(1)
    expect(optimizer.state.size).toBe(0)
    config.memoryLimit = given
    optimizer.step()
    expect(weight.max().item()).toBeCloseTo(0.9, 5)
  })
})
