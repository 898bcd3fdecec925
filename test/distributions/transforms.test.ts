// Transforms against what PyTorch 2.13 computes, and what holds for all of them.
import { describe, expect, it } from 'vitest'
import { TensorfxError, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import * as d from 'tensorfx/distributions'
import { differs, read, tensorOf, weighted } from './stored.ts'
import type { StoredError, StoredTensor } from './stored.ts'

interface Recorded {
  readonly name: string
  readonly x: StoredTensor
  readonly y: StoredTensor
  readonly inv: StoredTensor
  readonly log_abs_det_jacobian: StoredTensor | StoredError
  readonly grad: StoredTensor
  readonly domain: string
  readonly codomain: string
  readonly bijective: boolean
  readonly sign: number | StoredTensor | StoredError
  readonly forward_shape: readonly number[]
  readonly inverse_shape: readonly number[]
}

const TRANSFORMS: Readonly<Record<string, () => d.Transform>> = {
  'ExpTransform()': () => new d.ExpTransform(),
  'ExpTransform().inv': () => new d.ExpTransform().inv,
  'AffineTransform(0, 2, event_dim=1)': () => new d.AffineTransform(0, 2, { eventDim: 1 }),
  'AffineTransform(0, 2)': () => new d.AffineTransform(0, 2),
  'AffineTransform(1, -3)': () => new d.AffineTransform(1, -3),
  'PowerTransform(2)': () => new d.PowerTransform(2),
  'PowerTransform(-0.5)': () => new d.PowerTransform(-0.5),
  'SigmoidTransform()': () => new d.SigmoidTransform(),
  'TanhTransform()': () => new d.TanhTransform(),
  'SoftmaxTransform()': () => new d.SoftmaxTransform(),
  'SoftplusTransform()': () => new d.SoftplusTransform(),
  'AbsTransform()': () => new d.AbsTransform(),
  'StickBreakingTransform()': () => new d.StickBreakingTransform(),
  'LowerCholeskyTransform()': () => new d.LowerCholeskyTransform(),
  'CorrCholeskyTransform()': () => new d.CorrCholeskyTransform(),
  'ReshapeTransform((3,), (3, 1))': () => new d.ReshapeTransform([3], [3, 1]),
  'ComposeTransform([AffineTransform(0, 2), SigmoidTransform()])': () =>
    new d.ComposeTransform([new d.AffineTransform(0, 2), new d.SigmoidTransform()]),
  'ComposeTransform([ExpTransform(), StickBreaking])': () => new d.ComposeTransform([new d.ExpTransform(), new d.StickBreakingTransform()]),
  'StackTransform([Exp, Affine(1, 3), Tanh], dim=1)': () =>
    new d.StackTransform([new d.ExpTransform(), new d.AffineTransform(1, 3), new d.TanhTransform()], 1),
  'CatTransform([Exp, Tanh], dim=1, lengths=[1, 2])': () => new d.CatTransform([new d.ExpTransform(), new d.TanhTransform()], 1, [1, 2]),
  'CumulativeDistributionTransform(Normal(0, 1))': () => new d.CumulativeDistributionTransform(new d.Normal(0, 1)),
}

const refused = (run: () => unknown): boolean => {
  try {
    run()
    return false
  } catch (error) {
    return error instanceof TensorfxError
  }
}

const text = (torchText: string): string => torchText.replaceAll(/(lower|upper)_bound/g, '$1Bound').replaceAll(/(\d)\.0\b/g, '$1')

describe.each(read('transforms') as readonly Recorded[])('$name', (one) => {
  const transform = TRANSFORMS[one.name]?.()
  if (transform === undefined) throw new Error(`${one.name} is not known`)
  it("is PyTorch's", () => {
    const x = tensorOf(one.x).requiresGrad_()
    const y = transform.forward(x)
    expect(differs(y, one.y)).toBe(null)
    expect(differs(transform.inverse(y), one.inv)).toBe(null)
    expect(differs(transform.inv.forward(y), one.inv)).toBe(null)
    if ('error' in one.log_abs_det_jacobian) expect(refused(() => transform.logAbsDetJacobian(x, y))).toBe(true)
    else {
      expect(differs(transform.logAbsDetJacobian(x, y), one.log_abs_det_jacobian)).toBe(null)
      expect(differs(transform.inv.logAbsDetJacobian(y, x).neg(), one.log_abs_det_jacobian)).toBe(null)
    }
    weighted(y).backward()
    expect(differs(x.grad ?? torch.tensor(NaN), one.grad)).toBe(null)
    expect([String(transform.domain), String(transform.codomain), transform.bijective]).toEqual([text(one.domain), text(one.codomain), one.bijective])
    const { sign } = one
    if (typeof sign === 'object' && 'error' in sign) expect(refused(() => transform.sign)).toBe(true)
    else
      expect(Number(transform.sign instanceof torch.Tensor ? transform.sign.item() : transform.sign)).toBe(
        typeof sign === 'number' ? sign : sign.data[0],
      )
    expect(transform.forwardShape(one.x.shape)).toEqual(one.forward_shape)
    expect(transform.inverseShape(one.y.shape)).toEqual(one.inverse_shape)
  })

  it('maps its domain into its codomain, and its logarithm is that of the Jacobian', () => {
    // The absolute value of 0 is no positive number.
    const x = tensorOf(one.x).add(1e-3)
    const y = transform.forward(x)
    expect(transform.codomain.check(y).all().item()).toBeTruthy()
    expect(transform.domain.check(transform.inverse(y)).all().item()).toBeTruthy()
    if ('error' in one.log_abs_det_jacobian || x.shape.join() !== y.shape.join()) return
    // Finite differences of one event, or of numbers.
    const dims = Math.max(transform.domain.eventDim, 1)
    const event = x.shape.slice(x.ndim - dims)
    if (x.ndim > dims) return
    const flat = x.flatten()
    const columns: Tensor[] = []
    for (let i = 0; i < flat.numel; i++) {
      const step = torch.zeros([flat.numel], { dtype: 'float64' })
      step.narrow(0, i, 1).fill_(1e-6)
      const at = (sign: number): Tensor => transform.forward(flat.add(step.mul(sign)).reshape([...event])).flatten()
      columns.push(at(1).sub(at(-1)).div(2e-6))
    }
    const [, logDet] = torch.linalg.slogdet(torch.stack(columns))
    expect(logDet.item()).toBeCloseTo(transform.logAbsDetJacobian(x, y).sum().item(), 5)
  })
})

it('transforms are equal if they are the same functions', () => {
  const make = (): readonly d.Transform[] => Object.values(TRANSFORMS).map((transform) => transform())
  const [ones, others] = [make(), make()]
  const same = ones.map((one) => others.filter((other) => one.equals(other)).length)
  // Distributions are compared by identity.
  expect(same).toEqual(ones.map((one) => (one instanceof d.CumulativeDistributionTransform ? 0 : 1)))
})

it('transforms refuse what is none, and shapes that they cannot take', () => {
  expect(() => new d.ComposeTransform([3 as never])).toThrow("ComposeTransform: argument 'parts[0]' must be a Transform, got 3")
  expect(() => new d.ComposeTransform([])).toThrow("argument 'parts' must have at least one transform")
  expect(() => new d.ReshapeTransform([2], [3])).toThrow('both shapes must have as many elements')
  expect(() => new d.ReshapeTransform([2], [2, 1]).forward(torch.ones([3]))).toThrow('the shape must end with [2], got [3]')
  expect(() => new d.CorrCholeskyTransform().forward(torch.ones([4]))).toThrow('the last size must be D (D - 1) / 2 for a whole D')
  expect(() => new d.CatTransform([new d.ExpTransform()], 0, [1, 2])).toThrow(
    "argument 'lengths' must have a size for each of the 1 transforms, got 2",
  )
  expect(() => new d.StackTransform([new d.ExpTransform()]).forward(torch.ones([2]))).toThrow('dimension 0 must have 1 slices')
})
