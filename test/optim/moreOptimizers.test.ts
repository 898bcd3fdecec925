// NAdam, RAdam, Rprop, ASGD, Adafactor and LBFGS: they continue from state dicts, in either spelling; what the goldens of PyTorch leave out; and errors.
import { describe, expect, test } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { ASGD, Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, LBFGS, NAdam, RAdam, RMSprop, Rprop, SGD } from 'tensorfx/optim'
import type { BaseOptions, OptimizerState, TorchOptimizerState } from 'tensorfx/optim'

interface AnyOptimizer {
  readonly paramGroups: readonly { readonly params: readonly Tensor[] }[]
  zeroGrad(): void
  step<T>(closure: () => T): T
  stateDict(options: { readonly names: 'own' | 'pytorch' }): OptimizerState | TorchOptimizerState
  loadStateDict(dict: OptimizerState | TorchOptimizerState): void
}

const optimizers: Readonly<Record<string, (params: readonly Tensor[]) => AnyOptimizer>> = {
  SGD: (p) => new SGD(p, { lr: 0.01, momentum: 0.9 }),
  Adam: (p) => new Adam(p, { lr: 0.1, amsgrad: true }),
  AdamW: (p) => new AdamW(p, { lr: 0.1 }),
  NAdam: (p) => new NAdam(p, { lr: 0.1 }),
  RAdam: (p) => new RAdam(p, { lr: 0.01, betas: [0.5, 0.6] }),
  Adamax: (p) => new Adamax(p, { lr: 0.1 }),
  RMSprop: (p) => new RMSprop(p, { lr: 0.01, centered: true, momentum: 0.5 }),
  Adagrad: (p) => new Adagrad(p, { lr: 0.1 }),
  Adadelta: (p) => new Adadelta(p),
  Rprop: (p) => new Rprop(p, { lr: 0.05 }),
  ASGD: (p) => new ASGD(p, { lr: 0.002, t0: 1 }),
  Adafactor: (p) => new Adafactor(p, { lr: 0.1 }),
  LBFGS: (p) => new LBFGS(p, { lr: 0.5, maxIter: 2, historySize: 2 }),
}

const start = (): Tensor[] => [torch.tensor([0.5, -1, 2]).requiresGrad_(), torch.tensor([1, 2, 3, 4, 5, 6]).view([2, 3]).requiresGrad_()]
const numbers = (params: readonly Tensor[]): number[] => params.flatMap((p) => Array.from(p.detach().contiguous().toTypedArray(), Number))

function steps(params: readonly Tensor[], optimizer: AnyOptimizer, count: number): number[] {
  for (let i = 0; i < count; i++)
    optimizer.step(() => {
      optimizer.zeroGrad()
      const [a, b] = params as [Tensor, Tensor]
      const loss = a.mul(b).sub(1).square().sum().add(b.pow(4).sum().mul(0.01))
      loss.backward()
      return loss
    })
  return numbers(params)
}

describe.each(Object.entries(optimizers))('%s', (_, make) => {
  test.each(['own', 'pytorch'] as const)('continues from a state dict in the spelling %s', (names) => {
    const a = start()
    const first = make(a)
    steps(a, first, 4)
    const b = a.map((p) => p.detach().clone().requiresGrad_())
    const second = make(b)
    second.loadStateDict(first.stateDict({ names }))
    expect(steps(b, second, 3)).toEqual(steps(a, first, 3))
  })

  test('gets closer to the minimum', () => {
    const a = start()
    const optimizer = make(a)
    const loss = (): number => Number(optimizer.step(() => steps2(a, optimizer)))
    const before = loss()
    steps(a, optimizer, 20)
    expect(loss()).toBeLessThan(before)
  })
})

function steps2([a, b]: readonly Tensor[], optimizer: AnyOptimizer): number {
  optimizer.zeroGrad()
  const loss = (a as Tensor)
    .mul(b as Tensor)
    .sub(1)
    .square()
    .sum()
    .add((b as Tensor).pow(4).sum().mul(0.01))
  loss.backward()
  return loss.item() as number
}

test('a state dict in PyTorch spelling has PyTorch names', () => {
  const a = start()
  const optimizer = new Adam(a)
  steps(a, optimizer, 1)
  const { state, param_groups: groups } = optimizer.stateDict({ names: 'pytorch' }) as TorchOptimizerState
  expect(Object.keys(state[1] ?? {})).toEqual(['step', 'exp_avg', 'exp_avg_sq'])
  expect(groups[0]).toMatchObject({ lr: 1e-3, weight_decay: 0, params: [0, 1] })
})

test('what PyTorch saves is understood: steps are tensors, and groups have options that concern only its speed', () => {
  const [p] = start() as [Tensor]
  const optimizer = new Adam([p], { lr: 0.5 })
  optimizer.loadStateDict({
    state: { 0: { step: torch.tensor(7), exp_avg: torch.full([3], 2), exp_avg_sq: torch.full([3], 4) } },
    param_groups: [
      {
        lr: 0.25,
        betas: [0.9, 0.99],
        eps: 1e-8,
        weight_decay: 0,
        amsgrad: false,
        maximize: false,
        foreach: null,
        capturable: false,
        fused: null,
        differentiable: false,
        decoupled_weight_decay: false,
        params: [0],
      },
    ],
  })
  expect(optimizer.state.get(p)).toMatchObject({ step: 7 })
  expect(optimizer.paramGroups[0]).toMatchObject({ lr: 0.25, betas: [0.9, 0.99] })
  expect(Object.keys(optimizer.paramGroups[0] ?? {})).not.toContain('foreach')
})

/** One step of Adafactor for a matrix, as PyTorch's documentation defines it. */
function adafactorStep(p: number[][], g: number[][], rows: number[], columns: number[], step: number): void {
  const weight = step ** -0.8
  const [m, n] = [p.length, (p[0] ?? []).length]
  const at = (of: number[][], i: number, j: number): number => of[i]?.[j] ?? NaN
  const mean = (list: number[]): number => list.reduce((a, b) => a + b, 0) / list.length
  for (let i = 0; i < m; i++) rows[i] = (rows[i] ?? NaN) * (1 - weight) + weight * mean((g[i] ?? []).map((v) => v * v))
  for (let j = 0; j < n; j++) columns[j] = (columns[j] ?? NaN) * (1 - weight) + weight * mean(g.map((row) => (row[j] ?? NaN) ** 2))
  const update = p.map((row, i) => row.map((_, j) => at(g, i, j) / Math.sqrt(((rows[i] ?? NaN) * (columns[j] ?? NaN)) / mean(rows))))
  const size = (of: number[][]): number => Math.sqrt(mean(of.flat().map((v) => v * v)))
  const rate = (Math.max(1e-3, size(p)) * Math.min(0.1, 1 / Math.sqrt(step))) / Math.max(1, size(update))
  for (const [i, row] of p.entries()) for (const j of row.keys()) row[j] = at(p, i, j) - rate * at(update, i, j)
}

test('Adafactor keeps the squares of a matrix by row and by column', () => {
  const weights = [
    [1, -2, 3],
    [0.5, 0.25, -4],
  ]
  const p = torch.tensor(weights).requiresGrad_()
  const optimizer = new Adafactor([p], { lr: 0.1 })
  const [rows, columns] = [
    [0, 0],
    [0, 0, 0],
  ]
  for (let step = 1; step <= 4; step++) {
    const gradients = [
      [step, 0.5, -1],
      [2, -step, 0.1],
    ]
    p.grad = torch.tensor(gradients)
    optimizer.step()
    adafactorStep(weights, gradients, rows, columns, step)
    for (const [k, value] of numbers([p]).entries()) expect(value).toBeCloseTo(weights.flat()[k] ?? NaN, 5)
  }
  const state = optimizer.state.get(p) as { rowVar: Tensor; colVar: Tensor }
  expect([state.rowVar.shape, state.colVar.shape]).toEqual([
    [2, 1],
    [1, 3],
  ])
})

describe('LBFGS', () => {
  const rosenbrock = (p: Tensor): Tensor => {
    const [x, y] = p.unbind() as [Tensor, Tensor]
    return x.sub(1).square().add(y.sub(x.square()).square().mul(100))
  }

  test('finds the bottom of a curved valley with a line search, in a few steps', () => {
    const p = torch.tensor([-1.2, 1], { dtype: 'float64' }).requiresGrad_()
    const optimizer = new LBFGS([p], { lineSearchFn: 'strong_wolfe', maxIter: 60, toleranceChange: 1e-12 })
    let calls = 0
    optimizer.step(() => {
      calls++
      optimizer.zeroGrad()
      const loss = rosenbrock(p)
      loss.backward()
      return loss
    })
    for (const value of numbers([p])) expect(value).toBeCloseTo(1, 4)
    expect(calls).toBeLessThan(75)
  })

  test('returns the loss before the step, and stops where the gradient is 0', () => {
    const p = torch.tensor([1, 1], { dtype: 'float64' }).requiresGrad_()
    const optimizer = new LBFGS([p])
    const loss = optimizer.step(() => {
      optimizer.zeroGrad()
      const value = rosenbrock(p)
      value.backward()
      return value
    })
    expect(loss.item()).toBe(0)
    expect(numbers([p])).toEqual([1, 1])
  })
})

const p = torch.ones([2]).requiresGrad_()
const wrong: readonly (readonly [() => unknown, string])[] = [
  [() => new LBFGS([{ params: [p] }, { params: [torch.ones([2]).requiresGrad_()] }]), 'optim.LBFGS: the parameters must be in one group, got 2'],
  [() => new LBFGS([p], { lineSearchFn: 'wolfe' as never }), "option 'lineSearchFn' must be 'strong_wolfe' or null, got 'wolfe'"],
  [() => new LBFGS([p], { maxIter: 0 }), "option 'maxIter' must be a positive integer, got 0"],
  [() => new LBFGS([p]).step(), 'optim.LBFGS.step: needs a function that computes the loss and its gradients, got undefined.'],
  [() => new Rprop([p], { etas: [1.5, 2] }), "option 'etas' must be a number between 0 and 1 and one above 1, got [1.5, 2]"],
  [() => new Rprop([p], { stepSizes: [2, 1] }), "option 'stepSizes' must be the smallest and the greatest step"],
  [() => new Adafactor([p], { beta2Decay: 0.5 }), "option 'beta2Decay' must be at most 0, got 0.5"],
  [() => new Adafactor([p], { eps: [null, -1] }), "option 'eps' must be two numbers of at least 0, of which the first may be null"],
  [() => new NAdam([p], { betas: [0.9, 1] as BaseOptions & never }), "option 'betas' must be two numbers of at least 0 and below 1"],
  [() => new ASGD([p], { lr: -1 }), "optim.ASGD: option 'lr' must be at least 0, got -1."],
  [
    () =>
      new Adafactor([torch.ones([2, 3]).requiresGrad_()]).loadStateDict({
        state: { 0: { step: 1, rowVar: torch.ones([2, 3]), colVar: torch.ones([1, 3]) } },
        paramGroups: [{ params: [0] }],
      }),
    "'rowVar' has shape [2, 3] but the optimizer's has shape [2, 1], for a parameter of shape [2, 3].",
  ],
  [() => new SGD([p]).stateDict({ names: 'torch' as never }), "option 'names' must be 'own' or 'pytorch', got 'torch'"],
]

test.each(wrong)('a wrong argument is an error that says what is right: case %#', (make, message) => expect(make).toThrow(message))
