// Learning-rate schedules.
import { expect, test } from 'vitest'
import { torch } from 'tensorfx'
import { CosineAnnealingLR, LambdaLR, SGD, StepLR } from 'tensorfx/optim'
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
