// LBFGS goes PyTorch's way, step by step: against PyTorch's algorithm on plain numbers, in float64.
import { expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { LBFGS } from 'tensorfx/optim'
import { referenceSteps } from './lbfgsReference.ts'
import type { Objective, ReferenceOptions } from './lbfgsReference.ts'

const functions: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  quadratic: (x) =>
    x
      .square()
      .mul(torch.arange(1, x.numel + 1, { dtype: 'float64' }))
      .sum()
      .add(x.sum()),
  rosenbrock: (x) => {
    const [a, b] = [x.narrow(0, 0, x.numel - 1), x.narrow(0, 1, x.numel - 1)]
    return b.sub(a.square()).square().mul(100).add(a.sub(1).square()).sum()
  },
  steep: (x) => x.mul(4).exp().sum().log().add(x.square().sum().mul(0.5)),
  quartic: (x) => x.pow(4).sum().add(x.sub(2).square().sum().mul(0.01)),
  waves: (x) => x.mul(3).sin().sum().add(x.square().sum().mul(0.1)),
}
const base: ReferenceOptions = { lr: 1, maxIter: 20, maxEval: 25, toleranceGrad: 1e-7, toleranceChange: 1e-9, historySize: 100, lineSearch: false }
const settings: readonly Partial<ReferenceOptions>[] = [
  { lr: 0.02, maxIter: 4, maxEval: 5 },
  { lr: 0.1, historySize: 2 },
  { lineSearch: true },
  { lineSearch: true, maxIter: 3, maxEval: 30, historySize: 3 },
  { lineSearch: true, maxIter: 60, maxEval: 75, toleranceChange: 1e-3 },
  { lineSearch: true, lr: 0.5, maxEval: 4, toleranceChange: 0 },
]

const cases = Object.entries(functions).flatMap(([name, fn]) => settings.map((setting, i) => [name, i, fn, { ...base, ...setting }] as const))

it.each(cases)('%s, setting %i', (_, __, fn, options) => {
  for (const seed of [1, 2, 3]) {
    torch.manualSeed(seed)
    const start = torch.randn([3 + seed], { dtype: 'float64' }).mul(0.7)
    const objective: Objective = (x) => {
      const at = torch.tensor([...x], { dtype: 'float64' }).requiresGrad_()
      const f = fn(at)
      f.backward()
      return { f: f.item(), g: Array.from(at.grad?.toTypedArray() ?? [], Number) }
    }
    const { lineSearch, ...rest } = options
    const p = start.clone().requiresGrad_()
    const optimizer = new LBFGS([p], { ...rest, lineSearchFn: lineSearch ? 'strong_wolfe' : null })
    let evals = 0
    for (const wanted of referenceSteps(objective, Array.from(start.toTypedArray(), Number), 4, options)) {
      optimizer.step(() => {
        evals++
        optimizer.zeroGrad()
        const loss = fn(p)
        loss.backward()
        return loss
      })
      const got = Array.from(p.detach().toTypedArray(), Number)
      if (!got.every(Number.isFinite)) return
      expect(evals, 'calls of the closure').toBe(wanted.evals)
      got.forEach((value, i) => expect(Math.abs(value - (wanted.x[i] ?? NaN))).toBeLessThanOrEqual(1e-6 * (1 + Math.abs(value))))
    }
  }
})
