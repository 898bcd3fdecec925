// Optimizers against PyTorch's trajectories, their options, groups and state dicts.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { RecordMode, withMode } from 'tensorfx/dispatch'
import * as nn from 'tensorfx/nn'
import { Adam, AdamW, SGD } from 'tensorfx/optim'
import type { Optimizer } from 'tensorfx/optim'
import { detInput } from '../helpers/deterministic.ts'

const { manualSeed, tensor } = torch

interface Trajectory {
  readonly name: string
  readonly trajectory: readonly (readonly number[])[]
}
const { cases } = JSON.parse(readFileSync(fileURLToPath(new URL('../goldens/numeric.json', import.meta.url)), 'utf8')) as {
  cases: readonly Trajectory[]
}
const values = (t: Tensor): number[] => Array.from(t.contiguous().toTypedArray(), Number)

const target = tensor([0, 1, 2, 3])
const start = (): Tensor => detInput([4], 90).requiresGrad_()
const lossOf = (p: Tensor): Tensor => p.sub(target).square().sum()

function steps(parameter: Tensor, optimizer: Optimizer, count: number): number[][] {
  return Array.from({ length: count }, () => {
    optimizer.zeroGrad()
    lossOf(parameter).backward()
    optimizer.step()
    return values(parameter)
  })
}

const make: Readonly<Record<string, (p: Tensor) => Optimizer>> = {
  optim_SGD: (p) => new SGD([p], { lr: 0.1 }),
  optim_SGD_mom_wd: (p) => new SGD([p], { lr: 0.1, momentum: 0.9, weightDecay: 0.01 }),
  optim_SGD_nesterov: (p) => new SGD([p], { lr: 0.1, momentum: 0.9, nesterov: true }),
  optim_AdamW: (p) => new AdamW([p], { lr: 0.1 }),
  optim_Adam_amsgrad: (p) => new Adam([p], { lr: 0.1, amsgrad: true }),
}

test.each(Object.keys(make))('%s takes the steps of PyTorch', (name) => {
  const parameter = start()
  const golden = cases.find((c) => c.name === name) as Trajectory
  const got = steps(parameter, (make[name] as (p: Tensor) => Optimizer)(parameter), golden.trajectory.length)
  golden.trajectory.forEach((row, step) => row.forEach((want, i) => expect(got[step]?.[i], `step ${step}, element ${i}`).toBeCloseTo(want, 5)))
})

test('Adam with weight decay differs from AdamW: Adam adds it to the gradient, AdamW shrinks the parameter', () => {
  const options = { lr: 0.1, weightDecay: 0.5 }
  const [a, b] = [start(), start()]
  const [x, y] = [steps(a, new Adam([a], options), 1), steps(b, new AdamW([b], options), 1)]
  // The first step of Adam has the size of the learning rate, whatever the gradient.
  const before = values(start())
  x[0]?.forEach((v, i) => expect(Math.abs(v - (before[i] as number))).toBeCloseTo(0.1, 4))
  y[0]?.forEach((v, i) => expect(Math.abs(v - (before[i] as number) * (1 - 0.05))).toBeCloseTo(0.1, 4))
})

test('SGD damps all gradients but the first, and maximize goes uphill', () => {
  const parameter = tensor([1]).requiresGrad_()
  const optimizer = new SGD([parameter], { lr: 1, momentum: 0.5, dampening: 0.5 })
  const step = (): number => {
    parameter.grad = tensor([1])
    optimizer.step()
    return parameter.item() as number
  }
  // Momentum 1, then 0.5 * 1 + 0.5 * 1 = 1.
  expect([step(), step()]).toEqual([0, -1])
  const up = tensor([1]).requiresGrad_()
  up.grad = tensor([2])
  new SGD([up], { lr: 0.5, maximize: true }).step()
  expect(up.item()).toBe(2)
})

test('a step of AdamW is a handful of operators, and one of SGD is one', () => {
  const count = (optimizer: Optimizer, parameter: Tensor): number => {
    parameter.grad = tensor([1, 1, 1, 1])
    optimizer.step()
    const mode = new RecordMode()
    withMode(mode, () => optimizer.step())
    return mode.calls.length
  }
  const parameter = start()
  expect(count(new SGD([parameter], { lr: 0.1 }), parameter)).toBe(1)
  expect(count(new AdamW([parameter]), parameter)).toBeLessThanOrEqual(8)
})

describe('parameter groups', () => {
  test('have options of their own', () => {
    const [a, b] = [tensor([1]).requiresGrad_(), tensor([1]).requiresGrad_()]
    const optimizer = new SGD([{ params: [a] }, { params: b, lr: 1 }], { lr: 0.1 })
    a.grad = tensor([1])
    b.grad = tensor([1])
    optimizer.step()
    expect(a.item()).toBeCloseTo(0.9, 6)
    expect(b.item()).toBe(0)
    expect(optimizer.paramGroups.map((g) => g.lr)).toEqual([0.1, 1])
  })

  test('can be added later, but no parameter twice', () => {
    const net = new nn.Linear(2, 2)
    const optimizer = new SGD([net.weight], { lr: 0.1 })
    optimizer.addParamGroup({ params: [net.bias as Tensor], lr: 0.5 })
    expect(optimizer.paramGroups.length).toBe(2)
    expect(() => optimizer.addParamGroup({ params: [net.weight] })).toThrow(/appears twice/)
  })

  test('print as in PyTorch', () => {
    expect(String(new SGD([start()], { lr: 0.5 }))).toBe(
      'SGD (\nParameter Group 0\n    dampening: 0\n    lr: 0.5\n    maximize: false\n    momentum: 0\n    nesterov: false\n    weightDecay: 0\n)',
    )
  })
})

describe('zeroGrad and step', () => {
  test('parameters without a gradient are skipped', () => {
    const [a, b] = [start(), start()]
    const optimizer = new SGD([a, b], { lr: 0.1 })
    lossOf(a).backward()
    optimizer.step()
    expect(values(b)).toEqual(values(start()))
    optimizer.zeroGrad()
    expect(a.grad).toBeNull()
  })

  test('setToNone: false keeps the gradient tensor', () => {
    const a = start()
    lossOf(a).backward()
    const { grad } = a
    new SGD([a]).zeroGrad({ setToNone: false })
    expect(a.grad).toBe(grad)
    expect(values(grad as Tensor)).toEqual([0, 0, 0, 0])
  })

  test('a closure is evaluated with recording on', () => {
    const a = start()
    const optimizer = new SGD([a], { lr: 0.1 })
    const loss = torch.noGrad(() =>
      optimizer.step(() => {
        optimizer.zeroGrad()
        const value = lossOf(a)
        value.backward()
        return value
      }),
    )
    expect(Number(loss.item())).toBeGreaterThan(Number(lossOf(a).item()))
  })

  test('steps are not recorded: parameters stay leaves', () => {
    const a = start()
    steps(a, new AdamW([a]), 2)
    expect(a.isLeaf && a.requiresGrad).toBe(true)
  })
})

describe('state dicts', () => {
  test.each(['optim_SGD_mom_wd', 'optim_AdamW', 'optim_Adam_amsgrad'])('%s continues where it was saved', (name) => {
    const optimizerOf = make[name] as (p: Tensor) => Optimizer
    const a = start()
    const first = optimizerOf(a)
    steps(a, first, 2)
    const b = tensor(Float32Array.from(values(a))).requiresGrad_()
    const second = optimizerOf(b)
    second.loadStateDict(first.stateDict())
    expect(steps(b, second, 2)).toEqual(steps(a, first, 2))
  })

  test('name state as PyTorch does, by the number of the parameter', () => {
    const [a, b] = [start(), start()]
    const optimizer = new AdamW([{ params: [a] }, { params: [b], lr: 1 }])
    lossOf(b).backward()
    optimizer.step()
    const { state, paramGroups } = optimizer.stateDict()
    expect(Object.keys(state)).toEqual(['1'])
    expect(Object.keys(state[1] ?? {})).toEqual(['step', 'expAvg', 'expAvgSq'])
    expect(paramGroups.map((g) => g['params'])).toEqual([[0], [1]])
  })

  test('that do not fit change nothing', () => {
    const a = start()
    const saved = new SGD([a, start()], { lr: 0.5 }).stateDict()
    const optimizer = new SGD([a], { lr: 0.1 })
    expect(() => optimizer.loadStateDict(saved)).toThrow(/2 parameters, of this optimizer 1/)
    expect(optimizer.paramGroups[0]?.lr).toBe(0.1)
  })
})

describe('errors name the optimizer and the option', () => {
  const p = start()
  test.each([
    [() => new SGD([p], { learningRate: 1 } as never), /optim\.SGD: unknown option 'learningRate'; did you mean 'lr'\? Known are lr/],
    [() => new SGD([p], { lr: '1' as never }), /option 'lr' must be a number/],
    [() => new SGD([p], 0.1 as never), /options must be an object such as \{ lr: 0\.01 \}, got 0\.1/],
    [() => new SGD([p], { lr: -1 }), /option 'lr' must be at least 0, got -1/],
    [() => new SGD([p], { nesterov: true }), /nesterov/],
    [() => new AdamW([p], { betas: [0.9, 1] }), /betas/],
    [() => new AdamW([]), /the list of parameters is empty/],
    [() => new AdamW(p as never), /got a Tensor/],
    [() => new AdamW([p.mul(2)]), /computed from others/],
    [() => new AdamW([{ params: [p], momentum: 1 } as never]), /optim\.AdamW: unknown option 'momentum'/],
    [() => new AdamW([3] as never), /argument 'params\[0\]' must be a parameter or/],
  ])('case %#', (create, message) => {
    expect(create).toThrow(message)
  })
})

describe('training', () => {
  test.each([
    ['SGD', (m: nn.Module) => new SGD(m.parameters(), { lr: 0.2, momentum: 0.9 })],
    ['AdamW', (m: nn.Module) => new AdamW(m.parameters(), { lr: 0.02 })],
  ] as const)('a small MLP learns XOR by heart with %s', (_, optimizerOf) => {
    manualSeed(4)
    const net = new nn.Sequential(new nn.Linear(2, 16), new nn.Tanh(), new nn.Linear(16, 2))
    const optimizer = optimizerOf(net)
    const x = tensor([
      [0, 0],
      [0, 1],
      [1, 0],
      [1, 1],
    ])
    const y = tensor(Int32Array.of(0, 1, 1, 0))
    const criterion = new nn.CrossEntropyLoss()
    let loss = Infinity
    for (let i = 0; i < 200; i++) {
      optimizer.zeroGrad()
      const value = criterion.call(net.call(x), y)
      value.backward()
      optimizer.step()
      loss = value.item() as number
    }
    expect(loss).toBeLessThan(0.02)
  })

  test('a small CNN with batch norm and dropout overfits a batch', () => {
    manualSeed(9)
    const net = new nn.Sequential(
      new nn.Conv2d(1, 8, 3, { padding: 1 }),
      new nn.BatchNorm2d(8),
      new nn.ReLU(),
      new nn.MaxPool2d(2),
      new nn.Flatten(),
      new nn.Dropout(0.1),
      new nn.Linear(8 * 9, 4),
    )
    const optimizer = new AdamW(net.parameters(), { lr: 0.02 })
    const x = detInput([16, 1, 6, 6], 3)
    const y = tensor(Int32Array.from({ length: 16 }, (_, i) => i % 4))
    for (let i = 0; i < 80; i++) {
      optimizer.zeroGrad()
      nn.F.crossEntropy(net.call(x), y).backward()
      nn.utils.clipGradNorm_(net.parameters(), 5)
      optimizer.step()
    }
    net.eval()
    expect(net.call(x).argmax(1).eq(y).to('float32').mean().item()).toBe(1)
  })
})
