// Runs the goldens of optimizers, step by step, and of learning-rate schedules.
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { deterministic } from '../ops/goldens.ts'
import type { GoldenCase } from './cases.ts'
import { evaluate } from './python.ts'

interface Optimizer {
  zeroGrad: () => void
  step: (closure?: () => Tensor) => unknown
  readonly paramGroups: readonly { readonly lr: number; readonly momentum?: number; readonly betas?: readonly [number, number] }[]
}

/** Optimizers of the first set, which does not say how they were made. */
const FIRST: ReadonlyMap<string, string> = new Map([
  ['optim_SGD', 'lambda p: torch.optim.SGD([p], lr=0.1)'],
  ['optim_SGD_mom_wd', 'lambda p: torch.optim.SGD([p], lr=0.1, momentum=0.9, weight_decay=0.01)'],
  ['optim_SGD_nesterov', 'lambda p: torch.optim.SGD([p], lr=0.1, momentum=0.9, nesterov=True)'],
  ['optim_AdamW', 'lambda p: torch.optim.AdamW([p], lr=0.1)'],
  ['optim_Adam_amsgrad', 'lambda p: torch.optim.Adam([p], lr=0.1, amsgrad=True)'],
  ['optim_RMSprop', 'lambda p: torch.optim.RMSprop([p], lr=0.1)'],
  ['optim_Adagrad', 'lambda p: torch.optim.Adagrad([p], lr=0.1)'],
])

/** The loss of the goldens. */
/** The elements added from the first to the last, as PyTorch does it for a few: LBFGS stops where two losses are equal in float32, so the last bit counts. */
const total = (t: Tensor): Tensor => t.unbind().reduce((sum, element) => sum.add(element))

function lossOf([p, q]: readonly Tensor[], text: string): Tensor {
  if (p === undefined) throw new Error('no parameters')
  let loss = total(p.sub(torch.tensor([0, 1, 2, 3])).pow(2))
  if (text.includes('0.1*sum(p^4)')) loss = loss.add(total(p.pow(4)).mul(0.1))
  if (q !== undefined) loss = loss.add(total(q.pow(2)).mul(total(p)).mul(0.1)).add(total(q.sub(1).abs()))
  return loss
}

function expectNumbers(got: readonly number[], want: readonly number[], what: string, tolerance: number): void {
  if (got.length !== want.length) throw new Error(`${what}: ${got.length} numbers instead of ${want.length}`)
  want.forEach((expected, i) => {
    const value = got[i] ?? NaN
    if (!(Math.abs(value - expected) <= tolerance * (1 + Math.abs(expected)))) throw new Error(`${what}[${i}]: ${value} instead of ${expected}`)
  })
}

export function runOptimizer(golden: GoldenCase & { readonly loss_fn?: string }): void {
  const source = typeof golden.source === 'string' ? golden.source : FIRST.get(golden.name)
  if (source === undefined || golden.trajectory === undefined) throw new Error('the case is incomplete')
  const two = source.startsWith('lambda p, q')
  const params = [deterministic([4], 90), ...(two ? [deterministic([3], 91)] : [])].map((t) => t.requiresGrad_())
  const optimizer = (evaluate(source) as (...given: Tensor[]) => Optimizer)(...params)
  const closure = (): Tensor => {
    optimizer.zeroGrad()
    const loss = lossOf(params, golden.loss_fn ?? '')
    loss.backward()
    return loss
  }
  golden.trajectory.forEach((want, step) => {
    if (source.includes('LBFGS')) optimizer.step(closure)
    else {
      closure()
      optimizer.step()
    }
    const got = params.flatMap((t) => Array.from(t.detach().toTypedArray() as ArrayLike<number>))
    expectNumbers(got, want.flat(), `step ${step + 1}`, golden.tol ?? 2e-5)
  })
}

export function runScheduler(golden: GoldenCase): void {
  const { lrs, momentums, metrics } = golden
  if (typeof golden.source !== 'string' || lrs === undefined || golden.optimizer === undefined) throw new Error('the case is incomplete')
  const params = [torch.zeros([2]).requiresGrad_(), torch.zeros([2]).requiresGrad_()]
  const optimizer = (evaluate(golden.optimizer) as (...given: Tensor[]) => Optimizer)(...params)
  const scheduler = (evaluate(golden.source) as (o: Optimizer) => { step: (metric?: number) => void })(optimizer)
  lrs.forEach((want, epoch) => {
    const groups = optimizer.paramGroups
    expectNumbers(
      groups.map((group) => group.lr),
      want,
      `rate of epoch ${epoch}`,
      1e-7,
    )
    if (momentums !== undefined)
      expectNumbers(
        groups.map((group) => group.momentum ?? group.betas?.[0] ?? NaN),
        momentums[epoch] ?? [],
        `momentum of epoch ${epoch}`,
        1e-7,
      )
    optimizer.step()
    if (metrics === undefined) scheduler.step()
    else if (epoch < metrics.length) scheduler.step(metrics[epoch])
  })
}
