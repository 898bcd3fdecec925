// The state dicts of all optimizers have PyTorch's names, and states of other optimizers are refused.
import { describe, expect, test } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import * as optim from 'tensorfx/optim'
import type { OptimizerState, TorchOptimizerState } from 'tensorfx/optim'

interface Stateful {
  step(closure: () => Tensor): unknown
  stateDict(options: { readonly names: 'pytorch' }): OptimizerState | TorchOptimizerState
  loadStateDict(state: unknown): void
}

/** PyTorch 2's names of what each optimizer remembers of a parameter, after one step with the options. */
const cases: readonly (readonly [name: string, make: (p: Tensor) => Stateful, names: readonly string[]])[] = [
  ['SGD', (p) => new optim.SGD([p]), []],
  ['SGD with momentum', (p) => new optim.SGD([p], { momentum: 0.5 }), ['momentum_buffer']],
  ['Adam', (p) => new optim.Adam([p]), ['step', 'exp_avg', 'exp_avg_sq']],
  ['Adam with amsgrad', (p) => new optim.Adam([p], { amsgrad: true }), ['step', 'exp_avg', 'exp_avg_sq', 'max_exp_avg_sq']],
  ['AdamW', (p) => new optim.AdamW([p]), ['step', 'exp_avg', 'exp_avg_sq']],
  ['Adamax', (p) => new optim.Adamax([p]), ['step', 'exp_avg', 'exp_inf']],
  ['NAdam', (p) => new optim.NAdam([p]), ['step', 'exp_avg', 'exp_avg_sq', 'mu_product']],
  ['RAdam', (p) => new optim.RAdam([p]), ['step', 'exp_avg', 'exp_avg_sq']],
  ['RMSprop', (p) => new optim.RMSprop([p]), ['step', 'square_avg']],
  [
    'RMSprop, centered with momentum',
    (p) => new optim.RMSprop([p], { centered: true, momentum: 0.5 }),
    ['step', 'square_avg', 'momentum_buffer', 'grad_avg'],
  ],
  ['Adagrad', (p) => new optim.Adagrad([p]), ['step', 'sum']],
  ['Adadelta', (p) => new optim.Adadelta([p]), ['step', 'square_avg', 'acc_delta']],
  ['Adafactor', (p) => new optim.Adafactor([p]), ['step', 'row_var', 'col_var']],
  ['ASGD', (p) => new optim.ASGD([p]), ['step', 'eta', 'mu', 'ax']],
  ['Rprop', (p) => new optim.Rprop([p]), ['step', 'prev', 'step_size']],
  [
    'LBFGS',
    (p) => new optim.LBFGS([p], { maxIter: 3 }),
    ['func_evals', 'n_iter', 'd', 't', 'old_dirs', 'old_stps', 'ro', 'H_diag', 'prev_flat_grad', 'prev_loss'],
  ],
]

const start = (): Tensor =>
  torch
    .tensor([
      [1, 2, 3],
      [4, 5, 6],
    ])
    .requiresGrad_()
const stepOf =
  (p: Tensor): (() => Tensor) =>
  () => {
    p.grad = null
    const loss = p.square().sum()
    loss.backward()
    return loss
  }
/** One step; other optimizers than LBFGS call the closure once too. */
const take = (optimizer: Stateful, p: Tensor): void => void optimizer.step(stepOf(p))

describe.each(cases)('%s', (_, make, names) => {
  const p = start()
  const optimizer = make(p)
  take(optimizer, p)
  const saved = optimizer.stateDict({ names: 'pytorch' })

  test('has PyTorch’s names', () => {
    expect(Object.keys(saved.state[0] ?? {}).toSorted()).toEqual(names.toSorted())
  })

  test('continues from a state with PyTorch’s names', () => {
    const q = p.detach().clone().requiresGrad_()
    const second = make(q)
    second.loadStateDict(saved)
    take(optimizer, p)
    take(second, q)
    expect(q.toArray()).toEqual(p.toArray())
  })

  test('refuses a state in which something is missing, and changes nothing', () => {
    if (names.length < 2 || names.includes('ro')) return
    const q = start()
    const own = make(q)
    const needed = names.filter((name) => !['max_exp_avg_sq', 'momentum_buffer', 'grad_avg'].includes(name))
    for (const missing of needed) {
      const rest = Object.fromEntries(Object.entries(saved.state[0] ?? {}).filter(([name]) => name !== missing))
      const message = `must have '${missing.replace(/_([a-z])/g, (__, c: string) => c.toUpperCase())}', a`
      expect(() => own.loadStateDict({ ...saved, state: { 0: rest } })).toThrow(message)
    }
    expect(own.stateDict({ names: 'pytorch' }).state).toEqual({})
  })
})

test('a momentum that PyTorch did not use is left out', () => {
  const p = start()
  const sgd = new optim.SGD([p])
  const saved = sgd.stateDict({ names: 'pytorch' }) as TorchOptimizerState
  const given: unknown = { ...saved, state: { 0: { momentum_buffer: null } } }
  Reflect.apply(sgd.loadStateDict, sgd, [given])
  expect(sgd.stateDict().state).toEqual({ 0: {} })
})

test('options that only say how PyTorch computes a step have no effect', () => {
  const options: unknown = { lr: 0.5, foreach: true, fused: false, capturable: false }
  const sgd = Reflect.construct(optim.SGD, [[start()], options]) as optim.SGD
  expect(sgd.paramGroups[0]).not.toHaveProperty('foreach')
  expect(sgd.paramGroups[0]?.lr).toBe(0.5)
})
