// Options of optimizers and schedules at their limits, what errors say, and what amsgrad remembers.
import { describe, expect, test } from 'vitest'
import { nn, torch } from 'tensorfx'
import { Adam, AdamW, CosineAnnealingLR, LRScheduler, LambdaLR, SGD, StepLR } from 'tensorfx/optim'

const parameter = (): nn.Parameter => new nn.Parameter(torch.tensor([1, 2]))

test.each([
  [() => new SGD([parameter()], { lr: -1 }), "optim.SGD: option 'lr' must be at least 0, got -1."],
  [() => new SGD([parameter()], { momentum: -1 }), "optim.SGD: option 'momentum' must be at least 0, got -1."],
  [() => new SGD([parameter()], { weightDecay: -1 }), "optim.SGD: option 'weightDecay' must be at least 0, got -1."],
  [
    () => new SGD([parameter()], { nesterov: true }),
    "optim.SGD: option 'nesterov' needs a momentum above 0 and no dampening, got momentum 0 and dampening 0.",
  ],
  [() => new SGD([parameter()], { nesterov: true, momentum: 1, dampening: 1 }), 'got momentum 1 and dampening 1.'],
  [() => new SGD([parameter()], { lr: '1' as never }), "optim.SGD: option 'lr' must be a number, got '1'."],
  [() => new SGD([parameter()], { lr: null as never }), "optim.SGD: option 'lr' must be a number, got null."],
  [
    () => new SGD([parameter()], { rate: 1 } as never),
    "optim.SGD: unknown option 'rate'; known are lr, momentum, dampening, weightDecay, nesterov, maximize.",
  ],
  [() => new SGD([parameter()], 0.1 as never), 'optim.SGD: options must be an object such as { lr: 0.01 }, got 0.1.'],
  [
    () => new SGD(parameter() as never),
    'must be an array (or another iterable) of parameters or of groups { params, lr, … }, got a Tensor of shape [2].',
  ],
  [() => new SGD({} as never), 'got an object.'],
  [() => new SGD(null as never), 'got null.'],
  [() => new SGD([]), 'optim.SGD: the list of parameters is empty.'],
  [() => new SGD([{ lr: 1 } as never]), "optim.SGD: a parameter group needs 'params', a parameter or several of them; got undefined."],
  [() => new SGD([{ params: null } as never]), "a parameter group needs 'params', a parameter or several of them; got null."],
  [() => new SGD([{ params: [3] } as never]), 'optim.SGD: parameters must be Tensors, got 3.'],
  [() => new SGD([{ params: [[]] } as never]), 'optim.SGD: parameters must be Tensors, got [].'],
  [() => new SGD([parameter().mul(2)]), 'optim.SGD: a tensor of shape [2] was computed from others and cannot be optimized'],
  [() => new Adam([parameter()], { lr: -1 }), "optim.Adam: option 'lr' must be at least 0, got -1."],
  [() => new Adam([parameter()], { eps: -1 }), "optim.Adam: option 'eps' must be at least 0, got -1."],
  [() => new AdamW([parameter()], { weightDecay: -1 }), "optim.AdamW: option 'weightDecay' must be at least 0, got -1."],
  [() => new Adam([parameter()], { betas: [1, 0] }), "optim.Adam: option 'betas' must be two numbers of at least 0 and below 1, got [1, 0]."],
  [() => new Adam([parameter()], { betas: [0, -0.5] }), "optim.Adam: option 'betas' must be two numbers"],
  [() => new Adam([parameter()], { betas: [0.5] as never }), "optim.Adam: option 'betas' must be two numbers"],
])('a wrong option is an error that says what is right: case %#', (make, message) => expect(make).toThrow(message))

test('limits are allowed, and an undefined option is the default', () => {
  expect(new SGD([parameter()], { lr: 0, momentum: 0, weightDecay: 0, maximize: undefined as never }).defaults).toMatchObject({
    lr: 0,
    maximize: false,
  })
  expect(new Adam([parameter()], { lr: 0, eps: 0, weightDecay: 0, betas: [0, 0] }).defaults).toMatchObject({ eps: 0, betas: [0, 0] })
  expect(() => new SGD([{ params: parameter() }])).not.toThrow()
})

test('amsgrad divides by the largest average so far', () => {
  const [plain, ams] = [parameter(), parameter()]
  const optimizers = [new Adam([plain], { lr: 0.1 }), new Adam([ams], { lr: 0.1, amsgrad: true })]
  for (const gradient of [10, 0.1, 0.1, 0.1]) {
    for (const p of [plain, ams]) p.grad = torch.full([2], gradient)
    for (const optimizer of optimizers) optimizer.step()
  }
  // (1 - beta2) * 10 ** 2, the average after the first step, is the largest.
  expect(optimizers[1]?.state.get(ams)?.['maxExpAvgSq']?.toString()).toBe('tensor([0.1000, 0.1000])')
  expect(optimizers[1]?.state.get(ams)?.['expAvgSq']?.toString()).toBe('tensor([0.0997, 0.0997])')
  expect(plain.select(0, 0).item()).not.toBe(ams.select(0, 0).item())
})

describe('schedules', () => {
  const optimizer = (): SGD => new SGD([{ params: [parameter()] }, { params: [parameter()], lr: 0.5 }], { lr: 1 })

  test.each([
    [() => new StepLR(optimizer(), 0), 'optim.StepLR: stepSize must be a positive integer, got 0.'],
    [() => new StepLR(optimizer(), 1.5), 'optim.StepLR: stepSize must be a positive integer, got 1.5.'],
    [() => new StepLR(optimizer(), 1, { rate: 1 } as never), "optim.StepLR: unknown option 'rate'; known are gamma."],
    [() => new CosineAnnealingLR(optimizer(), 0), 'optim.CosineAnnealingLR: tMax must be a positive integer, got 0.'],
    [() => new CosineAnnealingLR(optimizer(), 2, { min: 1 } as never), "optim.CosineAnnealingLR: unknown option 'min'; known are etaMin."],
    [() => new LambdaLR(optimizer(), [() => 1]), 'optim.LambdaLR: expected 2 functions, one for each parameter group, got 1.'],
    [
      () => new StepLR(optimizer(), 1).loadStateDict({ baseLrs: [1], lastEpoch: 0 }),
      'LRScheduler.loadStateDict: the state has 1 groups, the optimizer 2.',
    ],
  ])('a wrong argument is an error: case %#', (run, message) => expect(run).toThrow(message))

  test('each group has its own function of the step', () => {
    const schedule = new LambdaLR(optimizer(), [(step) => step, () => 2])
    schedule.step()
    schedule.step()
    expect(schedule.getLastLr()).toEqual([2, 1])
    expect(schedule).toBeInstanceOf(LRScheduler)
  })
})

test('two groups print one below the other', () => {
  const text = String(new SGD([{ params: [parameter()] }, { params: [parameter()], lr: 0.5 }], { lr: 1 }))
  expect(text).toContain('    weightDecay: 0\n\nParameter Group 1\n')
  expect(text.split('\n').filter((line) => line.includes('lr:'))).toEqual(['    lr: 1', '    lr: 0.5'])
})
