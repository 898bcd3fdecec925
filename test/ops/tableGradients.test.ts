// Gradients of every differentiable operator against finite differences: once on the arguments of a tenth of its value cases, at least of one, and twice on those of the first.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { tenth } from '../helpers/rotation.ts'
import { builtInOps, hasPlainValues } from './builtInOps.ts'
import { gradcheck, gradgradcheck } from './gradcheck.ts'
import { asFunction, checkGivenGradient, finiteDifferenceCases, floats, missingCases } from './gradientCases.ts'
import { allValueCases } from './valueCases.ts'
import type { ValueCase } from './valueCases.ts'

const cases = await allValueCases()

const differentiable = builtInOps().flatMap((op) => {
  const usable = finiteDifferenceCases(op, cases.get(op.qualname) ?? [])
  return usable.length > 0 ? [{ op, usable }] : []
})

describe.each(differentiable)('$op.qualname', ({ op, usable }) => {
  const numbered = usable.map((one, i): [number, ValueCase] => [i + 1, one])
  it.each(tenth(numbered, ([i]) => `${op.qualname} ${i}`))('has the gradient that finite differences give, case %i', (_, one) => {
    const { fn, inputs } = asFunction(op, one)
    gradcheck(fn, inputs, 2e-6)
  })

  it('has a gradient that is differentiable', () => {
    const [one] = usable
    if (one === undefined) throw new Error('no case')
    const { fn, inputs } = asFunction(op, one)
    // Squares, so that the gradient of a linear operator depends on its arguments too.
    gradgradcheck((...tensors) => floats(fn(...tensors)).map((result) => result.mul(result)), inputs, 2e-5)
  })
})

/** Decompositions that read one triangle of their argument, or give constants as well: differentiated behind a step that makes a fitting argument of any. */
const composed: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  'torch.linalg.cholesky': (x) => torch.linalg.cholesky(x.matmul(x.transpose(0, 1)).add(torch.eye(3, { dtype: 'float64' }))),
  'torch.linalg.cholesky_ex': (x) => torch.linalg.choleskyEx(x.matmul(x.transpose(0, 1)).add(torch.eye(3, { dtype: 'float64' })), { upper: true })[0],
  // Squares, as the sign of a vector is free.
  'torch.linalg.eigh': (x) => {
    const [values, vectors] = torch.linalg.eigh(x.add(x.transpose(0, 1)))
    return vectors.mul(vectors).mul(values)
  },
  'torch.linalg.lu': (x) => {
    const [, lower, upper] = torch.linalg.lu(x)
    return lower.add(upper.mul(upper))
  },
}

describe.each(Object.entries(composed))('%s', (_, fn) => {
  const x = torch.tensor(
    [
      [2.5, 0.3, -0.7],
      [0.4, -1.6, 0.9],
      [-0.2, 1.1, 3.2],
    ],
    { dtype: 'float64' },
  )
  it('has the gradient that finite differences give, behind a fitting argument', () => gradcheck((a) => fn(a), [x], 2e-6))
  it('has a gradient that is differentiable, behind a fitting argument', () => gradgradcheck((a) => [fn(a)], [x], 2e-5))
})

const given = builtInOps().flatMap((op) => {
  const usable = (cases.get(op.qualname) ?? []).filter((one) => one.gradient !== undefined)
  return usable.length > 0 ? [{ op, usable }] : []
})

describe.each(given)('$op.qualname', ({ op, usable }) => {
  const numbered = usable.map((one, i): [number, ValueCase] => [i + 1, one])
  it.each(tenth(numbered, ([i]) => `${op.qualname} ${i}`))('has the gradient that its case gives, %i', (_, one) => checkGivenGradient(op, one))
})

describe('the table', () => {
  it('has a case for the gradient of every operator, or says why it has none', () => {
    expect(
      builtInOps()
        .filter(hasPlainValues)
        .flatMap((op) => missingCases(op, cases.get(op.qualname) ?? []) ?? []),
    ).toEqual([])
  })
})
