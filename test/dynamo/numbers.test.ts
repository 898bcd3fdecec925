// Numbers among the arguments of operators: which of them may change in one graph, and of what kind they are.
import { describe, expect, it } from 'vitest'
import { compile, nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { agree, times } from './against.ts'

const ints = (): Tensor => torch.tensor([7, -3], { dtype: 'int32' })

describe.each(['eager', 'inductor'])('on the backend %s', (backend) => {
  it('an integer that becomes a fraction promotes the result', () => {
    agree(backend, (c) => {
      const f = c((x: Tensor, k: number) => x.add(k))
      return [1, 1.5, 2, 2.5, 3, 2 ** 40, -1].map((k) => f(ints(), k))
    })
  })

  it('a fraction that becomes an integer does not promote', () => {
    agree(backend, (c) => {
      const f = c((x: Tensor, k: number) => x.mul(k))
      return [1.5, 2.5, 2, 3, 4].map((k) => f(ints(), k))
    })
  })

  it.each(['int32', 'int64', 'uint8'] as const)('an integer alpha, a value of addcmul and a bit mask change with %s', (dtype) => {
    agree(backend, (c) => {
      const x = torch.tensor([5, 6, 7], { dtype })
      const alpha = c((k: number) => x.add(x, { alpha: k }))
      const value = c((k: number) => torch.addcmul(x, x, x, { value: k }))
      const mask = c((k: number) => torch.bitwiseAnd(x, k))
      return times(5, (k) => [alpha(k), value(k), mask(k)])
    })
  })

  it('NaN, infinities and zeros of either sign are inputs too', () => {
    agree(backend, (c) => {
      const f = c((x: Tensor, k: number) => torch.div(x, k))
      return [1, 2, 0, -0, Infinity, -Infinity, NaN, 3].map((k) => f(torch.tensor([1, -1]), k))
    })
  })

  it('a number that changes in a graph of float tensors is one input, whole or not', () => {
    const f = compile((x: Tensor, k: number) => x.mul(k), { backend })
    for (const k of [1, 2, 2.5, 3, 0.25]) expect(f(torch.ones([1]), k).item()).toBe(k)
    expect(f.graphs()).toHaveLength(2)
  })

  it.each([
    ['Adam', optim.Adam, {}],
    ['AdamW', optim.AdamW, {}],
    ['SGD', optim.SGD, {}],
    ['SGD with momentum', optim.SGD, { momentum: 0.9, nesterov: true }],
  ] as const)(
    'a training step with %s and OneCycleLR, which changes momenta too, compiles once: the numbers that change are inputs from the start',
    (_name, Optimizer, options) => {
      const model = new nn.Linear(2, 1)
      const optimizer = new Optimizer(model.parameters(), { lr: 0.1, ...options })
      const schedule = Object.keys(options).length === 0 && Optimizer === optim.SGD ? null : new optim.OneCycleLR(optimizer, 0.1, { totalSteps: 20 })
      const step = compile(
        (x: Tensor) => {
          optimizer.zeroGrad()
          const loss = model.call(x).sum()
          loss.backward()
          optimizer.step()
          return loss.detach()
        },
        { backend },
      )
      for (let i = 0; i < 4; i++) {
        step(torch.ones([3, 2]))
        schedule?.step()
      }
      expect(step.graphs()).toHaveLength(1)
      expect(step.recompileReasons()).toEqual([])
    },
  )
})
