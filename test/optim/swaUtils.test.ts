// Averages of a model's weights. Expected values follow from the formulas of torch.optim.swa_utils, which the tests write down.
import { describe, expect, test } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import * as nn from 'tensorfx/nn'
import { AdamW, ExponentialLR, SGD, SequentialLR, ConstantLR, swaUtils } from 'tensorfx/optim'

const { AveragedModel, SWALR, getEmaAvgFn, getEmaMultiAvgFn, getSwaAvgFn, getSwaMultiAvgFn, updateBn } = swaUtils

class Net extends nn.Module {
  weight = new nn.Parameter(torch.tensor([1, 2]))
  constructor() {
    super()
    this.registerBuffer('count', torch.tensor([3], { dtype: 'int64' }))
  }
  forward(x: Tensor): Tensor {
    return x.mul(this.weight)
  }
  set(values: readonly number[], count: number): void {
    torch.noGrad(() => {
      this.weight.copy_(torch.tensor(values))
      this.getBuffer('count')
    })
    this.registerBuffer('count', torch.tensor([count], { dtype: 'int64' }))
  }
}

const buffer = (model: nn.Module): number => Number(model.getBuffer('count').item())
const numbers = (t: Tensor): readonly number[] => t.toArray() as number[]

const VALUES = [
  [1, 2],
  [3, -2],
  [8, 6],
] as const

/** The averaged weights after `updateParameters` with each of the values. */
function averages(options: swaUtils.AveragedModelOptions): readonly (readonly number[])[] {
  const net = new Net()
  const averaged = new AveragedModel(net, options)
  return VALUES.map((values, i) => {
    net.set(values, i)
    averaged.updateParameters(net)
    return numbers(averaged.module.weight)
  })
}

const expectClose = (got: readonly (readonly number[])[], want: readonly (readonly number[])[]): void =>
  want.forEach((row, i) => row.forEach((value, j) => expect(got[i]?.[j]).toBeCloseTo(value, 5)))

describe('AveragedModel', () => {
  test.each([
    ['without a function', {}],
    ['with getSwaAvgFn', { avgFn: getSwaAvgFn() }],
    ['with getSwaMultiAvgFn', { multiAvgFn: getSwaMultiAvgFn() }],
  ])('%s takes the equal average', (_, options) => {
    expectClose(averages(options), [
      [1, 2],
      [2, 0],
      [4, 2],
    ])
  })

  test.each([
    ['getEmaAvgFn', { avgFn: getEmaAvgFn(0.75) }],
    ['getEmaMultiAvgFn', { multiAvgFn: getEmaMultiAvgFn(0.75) }],
  ])('with %s moves a part of the way', (_, options) => {
    // 0.75 * average + 0.25 * value; the first call copies.
    expectClose(averages(options), [
      [1, 2],
      [1.5, 1],
      [3.125, 2.25],
    ])
  })

  test('gives its function the number of averaged values, and tensors without history', () => {
    const seen: [number, boolean][] = []
    averages({
      avgFn: (averaged, current, count) => {
        seen.push([Number(count.item()), averaged.requiresGrad || current.requiresGrad])
        return averaged
      },
    })
    expect(seen).toEqual([
      [1, false],
      [2, false],
    ])
  })

  test('has the state dict of PyTorch, and continues from it', () => {
    const net = new Net()
    const averaged = new AveragedModel(net)
    averaged.updateParameters(net)
    const state = averaged.stateDict({ names: 'pytorch' })
    expect([...state.keys()]).toEqual(['n_averaged', 'module.weight', 'module.count'])
    const other = new AveragedModel(new Net())
    other.loadStateDict(state)
    net.set([5, 4], 0)
    other.updateParameters(net)
    expect(numbers(other.module.weight)).toEqual([3, 3])
    expect(Number(other.nAveraged.item())).toBe(2)
  })

  test('copies buffers, and averages them with useBuffers', () => {
    const results = [false, true].map((useBuffers) => {
      const net = new Net()
      const averaged = new AveragedModel(net, { useBuffers })
      for (const count of [4, 7, 100]) {
        net.set([0, 0], count)
        averaged.updateParameters(net)
      }
      return buffer(averaged.module)
    })
    // Integers are cut: 4, then trunc(4 + 3 / 2) = 5, then trunc(5 + 95 / 3) = 36.
    expect(results).toEqual([100, 36])
  })

  test('averages integers in multiAvgFn too', () => {
    const net = new Net()
    const averaged = new AveragedModel(net, { useBuffers: true, multiAvgFn: getEmaMultiAvgFn(0.5) })
    for (const count of [4, 7]) {
      net.set([0, 0], count)
      averaged.updateParameters(net)
    }
    expect(buffer(averaged.module)).toBe(5)
  })

  test('is a copy that runs like the model and does not follow it', () => {
    const net = new Net()
    const averaged = new AveragedModel(net)
    net.set([0, 0], 0)
    expect(averaged(torch.tensor([2, 2])).toArray()).toEqual([2, 4])
    expect(
      averaged
        .deepCopy()(torch.tensor([1, 1]))
        .toArray(),
    ).toEqual([1, 2])
  })

  test('refuses two functions, another model, and a decay out of range', () => {
    expect(() => new AveragedModel(new Net(), { avgFn: getEmaAvgFn(), multiAvgFn: getEmaMultiAvgFn() })).toThrow(/give avgFn or multiAvgFn, not both/)
    expect(() => new AveragedModel(new Net()).updateParameters(new nn.Linear(2, 1))).toThrow(
      /same shapes as the averaged one, \[2\]; it has \[1, 2\]/,
    )
    expect(() => getEmaAvgFn(1.5)).toThrow(/getEmaAvgFn: argument 'decay' must be a number from 0 to 1, got 1.5/)
    expect(() => getEmaMultiAvgFn(-1)).toThrow(/getEmaMultiAvgFn: argument 'decay'/)
  })
})

describe('updateBn', () => {
  const make = (): { model: nn.Sequential; norm: nn.BatchNorm1d } => {
    const norm = new nn.BatchNorm1d(1, { momentum: 0.3 })
    return { model: new nn.Sequential(norm, new nn.InstanceNorm1d(1, { trackRunningStats: true })), norm }
  }

  test('averages the statistics of the batches equally, and leaves the modes as they were', () => {
    const { model, norm } = make()
    model(torch.tensor([[[50, 70]]]))
    model.eval()
    const instance = model.getSubmodule('1') as nn.InstanceNorm1d
    updateBn([torch.tensor([[[0, 2]]]), [torch.tensor([[[4, 8]]]), 'label']], model)
    // Means 1 and 6; unbiased variances 2 and 8.
    expect(norm.runningMean?.toArray()).toEqual([3.5])
    expect(norm.runningVar?.toArray()).toEqual([5])
    expect([norm.momentum, norm.training, model.training]).toEqual([0.3, false, false])
    // InstanceNorm is not reset, and does not count batches, as in PyTorch.
    expect([instance.numBatchesTracked?.item(), instance.runningVar?.item() === 1]).toEqual([0, false])
  })

  test('restores the momentum if the model throws', () => {
    const { model, norm } = make()
    expect(() => updateBn([torch.zeros([2, 5, 3])], model)).toThrow(/channels/)
    expect(norm.momentum).toBe(0.3)
  })

  test('does not read the batches of a model without BatchNorm', () => {
    const batches: Iterable<unknown> = {
      [Symbol.iterator]: () => {
        throw new Error('read')
      },
    }
    expect(() => updateBn(batches, new nn.Linear(1, 1))).not.toThrow()
  })
})

describe('SWALR', () => {
  const sgd = (): SGD => {
    const group = (): { params: Tensor[] } => ({ params: [torch.zeros([1]).requiresGrad_()] })
    return new SGD([group(), { ...group(), lr: 0.5 }], { lr: 0.1 })
  }

  const rates = (schedule: { step: () => void; getLastLr: () => readonly number[] }, count: number): (readonly number[])[] =>
    Array.from({ length: count }, () => {
      const now = schedule.getLastLr()
      schedule.step()
      return now
    })

  test('goes from the rate of each group to swaLr, along a line', () => {
    expectClose(rates(new SWALR(sgd(), 0.3, { annealEpochs: 4, annealStrategy: 'linear' }), 6), [
      [0.1, 0.5],
      [0.15, 0.45],
      [0.2, 0.4],
      [0.25, 0.35],
      [0.3, 0.3],
      [0.3, 0.3],
    ])
  })

  test('goes along half a cosine, to a rate for each group', () => {
    const at = (from: number, to: number, t: number): number => from + ((to - from) * (1 - Math.cos(Math.PI * t))) / 2
    const want = [0, 1, 2, 3].map((step) => [at(0.1, 0.01, step / 3), at(0.5, 1, step / 3)])
    expectClose(rates(new SWALR(sgd(), [0.01, 1], { annealEpochs: 3 }), 4), want)
  })

  test('is there at once without steps to anneal', () => {
    expectClose(rates(new SWALR(sgd(), 0.05, { annealEpochs: 0 }), 2), [
      [0.05, 0.05],
      [0.05, 0.05],
    ])
  })

  test('begins at the rate where another schedule stops', () => {
    const optimizer = sgd()
    const first = new ExponentialLR(optimizer, 0.5)
    const swa = new SWALR(optimizer, 0.1, { annealEpochs: 2, annealStrategy: 'linear' })
    for (let i = 0; i < 3; i++) first.step()
    expectClose(rates(swa, 3), [
      [0.0125, 0.0625],
      [0.05625, 0.08125],
      [0.1, 0.1],
    ])
  })

  test('may be the last part of a SequentialLR', () => {
    const optimizer = sgd()
    const constant = new ConstantLR(optimizer, { factor: 1, totalIters: 1 })
    const all = new SequentialLR(optimizer, [constant, new SWALR(optimizer, 0.3, { annealEpochs: 2, annealStrategy: 'linear' })], [2])
    expectClose(rates(all, 5), [
      [0.1, 0.5],
      [0.1, 0.5],
      [0.1, 0.5],
      [0.2, 0.4],
      [0.3, 0.3],
    ])
  })

  test('continues from state dicts of itself and of the optimizer, whose groups have swaLr', () => {
    const whole = rates(new SWALR(sgd(), 0.3, { annealEpochs: 4 }), 5)
    const optimizer = sgd()
    const half = new SWALR(optimizer, 0.3, { annealEpochs: 4 })
    rates(half, 2)
    const next = sgd()
    const swa = new SWALR(next, 0.3, { annealEpochs: 4 })
    next.loadStateDict(optimizer.stateDict({ names: 'pytorch' }))
    swa.loadStateDict(half.stateDict())
    expectClose(rates(swa, 3), whole.slice(2))
    expect(optimizer.stateDict({ names: 'pytorch' })).toMatchObject({ param_groups: [{ swa_lr: 0.3, initial_lr: 0.1 }, { swa_lr: 0.3 }] })
  })

  test('refuses options out of range, and rates for other groups', () => {
    expect(() => new SWALR(sgd(), [0.1])).toThrow(/argument 'swaLr' must be a number, or 2 of them, one for each parameter group/)
    expect(() => new SWALR(sgd(), 0.1, { annealEpochs: -1 })).toThrow(/annealEpochs/)
    expect(() => new SWALR(sgd(), 0.1, { annealStrategy: 'step' as never })).toThrow(/'cos' or 'linear'/)
  })
})

test('state dicts of PyTorch with what its OneCycleLR adds to the groups can be loaded', () => {
  const optimizer = new AdamW([torch.zeros([1]).requiresGrad_()], { lr: 0.1 })
  const added = { initial_lr: 0.004, max_lr: 0.1, min_lr: 4e-7, base_momentum: 0.85, max_momentum: 0.95 }
  optimizer.loadStateDict({ state: {}, param_groups: [{ params: [0], lr: 0.02, ...added }] })
  expect(optimizer.paramGroups[0]).toMatchObject({ lr: 0.02, initialLr: 0.004, maxLr: 0.1, maxMomentum: 0.95 })
  const wrong = { state: {}, param_groups: [{ params: [0], max_lr: 'high' }] }
  expect(() => optimizer.loadStateDict(wrong)).toThrow(/option 'maxLr' must be a number, got 'high'/)
})
