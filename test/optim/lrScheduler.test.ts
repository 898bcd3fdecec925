// Learning-rate schedules.
import { expect, test } from 'vitest'
import { torch } from 'tensorfx'
import { CosineAnnealingLR, CyclicLR, LambdaLR, OneCycleLR, ReduceLROnPlateau, SGD, StepLR } from 'tensorfx/optim'
import type { LRScheduler } from 'tensorfx/optim'

const { tensor } = torch

const parameter = (): ReturnType<typeof tensor> => tensor([1]).requiresGrad_()
const optimizer = (): SGD => new SGD([{ params: [parameter()] }, { params: [parameter()], lr: 0.5 }], { lr: 1 })

function rates(schedule: LRScheduler, count: number): (readonly number[])[] {
  return Array.from({ length: count }, () => {
    const now = schedule.getLastLr()
    schedule.step()
    return now
  })
}

test('StepLR multiplies by gamma every few steps', () => {
  const got = rates(new StepLR(optimizer(), 2, { gamma: 0.5 }), 5)
  expect(got).toEqual([
    [1, 0.5],
    [1, 0.5],
    [0.5, 0.25],
    [0.5, 0.25],
    [0.25, 0.125],
  ])
})

test('CosineAnnealingLR goes down half a cosine', () => {
  const got = rates(new CosineAnnealingLR(optimizer(), 4, { etaMin: 0.1 }), 6).map(([lr]) => lr as number)
  const expected = [1, 0.868198, 0.55, 0.231802, 0.1, 0.231802]
  got.forEach((lr, i) => expect(lr).toBeCloseTo(expected[i] as number, 5))
})

test('LambdaLR takes one function, or one for each group', () => {
  expect(rates(new LambdaLR(optimizer(), (epoch) => 1 / (epoch + 1)), 2)).toEqual([
    [1, 0.5],
    [0.5, 0.25],
  ])
  expect(rates(new LambdaLR(optimizer(), [() => 1, (epoch) => epoch]), 2)).toEqual([
    [1, 0],
    [1, 0.5],
  ])
})

test('the optimizer steps with the current rate', () => {
  const p = parameter()
  const sgd = new SGD([p], { lr: 1 })
  const schedule = new StepLR(sgd, 1, { gamma: 0.5 })
  const step = (): number => {
    p.grad = tensor([1])
    sgd.step()
    schedule.step()
    return p.item() as number
  }
  expect([step(), step(), step()]).toEqual([0, -0.5, -0.75])
})

test('a schedule continues from its state dict, and a second one from the first rates', () => {
  const first = new StepLR(optimizer(), 2)
  rates(first, 3)
  const sgd = optimizer()
  const second = new StepLR(sgd, 2)
  second.loadStateDict(first.stateDict())
  expect(second.getLastLr()).toEqual(first.getLastLr())
  expect(new StepLR(sgd, 5).baseLrs).toEqual([1, 0.5])
})

test('options out of range and unknown ones are errors', () => {
  expect(() => new StepLR(optimizer(), 0)).toThrow(/stepSize must be a positive integer/)
  expect(() => new StepLR(optimizer(), 2, { gama: 1 } as never)).toThrow(/unknown option 'gama'/)
  expect(() => new LambdaLR(optimizer(), [() => 1])).toThrow(/expected 2 functions/)
})

test('rates may be given for each group, and must be as many', () => {
  const oneCycle = new OneCycleLR(optimizer(), [1, 2], {
    totalSteps: 5,
    pctStart: 0.4,
    divFactor: 10,
    annealStrategy: 'linear',
    cycleMomentum: false,
  })
  expect(oneCycle.getLastLr()).toEqual([0.1, 0.2])
  oneCycle.step()
  expect(oneCycle.getLastLr()).toEqual([1, 2])
  const cyclic = new CyclicLR(optimizer(), [0.1, 0.2], [0.3, 1], { stepSizeUp: 2, cycleMomentum: false })
  cyclic.step()
  expect(cyclic.getLastLr()[0]).toBeCloseTo(0.2)
  expect(cyclic.getLastLr()[1]).toBeCloseTo(0.6)
  const plateau = new ReduceLROnPlateau(optimizer(), { patience: 0, minLr: [0.3, 0.01] })
  for (const metric of [1, 1]) plateau.step(metric)
  expect(plateau.getLastLr()).toEqual([0.3, 0.05])
  expect(() => new OneCycleLR(optimizer(), [1], { totalSteps: 5 })).toThrow(/OneCycleLR: argument 'maxLr' must be a number, or 2 of them/)
})

test('ReduceLROnPlateau continues from its state dict', () => {
  const metrics = [3, 2, 2, 2, 2, 1, 1, 1]
  const run = (plateau: ReduceLROnPlateau, from: number, to: number): (readonly number[])[] =>
    metrics.slice(from, to).map((metric) => {
      plateau.step(metric)
      return plateau.getLastLr()
    })
  const options = { patience: 1, cooldown: 1 }
  const whole = run(new ReduceLROnPlateau(optimizer(), options), 0, 8)
  const shared = optimizer()
  const first = new ReduceLROnPlateau(shared, options)
  run(first, 0, 4)
  expect(first.stateDict()).toEqual({ best: 2, cooldownCounter: 1, lastEpoch: 4, numBadEpochs: 0 })
  const second = new ReduceLROnPlateau(shared, options)
  second.loadStateDict(first.stateDict())
  expect(run(second, 4, 8)).toEqual(whole.slice(4))
  expect(() => second.loadStateDict({ best: 1 } as never)).toThrow(/cooldownCounter/)
})
