// Gradients of every differentiable operator against finite differences, once and twice, on the arguments of its value cases.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { builtInOps } from './builtInOps.ts'
import type { OpDef } from 'tensorfx/ops'
import { gradcheck, gradgradcheck } from './gradcheck.ts'
import { plainsIn, replace, tensorOf, allValueCases } from './valueCases.ts'
import type { Plain } from './plain.ts'
import type { ValueCase } from './valueCases.ts'

const cases = await allValueCases()

/** Whether the operator has a gradient: its own, that of its functional form, or that of its parts. */
const isDifferentiable = (op: OpDef): boolean =>
  op.derivative !== null ||
  (op.functional?.derivative ?? null) !== null ||
  (op.decompose !== null && !op.tags.has('creation') && !op.tags.has('random'))

/** The arguments that the gradient is taken of. */
const variables = ({ args, constants = [] }: ValueCase): Plain[] =>
  plainsIn(args.filter((_, i) => !constants.includes(i))).filter((plain) => plain.kind === 'float')

const hasFloats = (one: ValueCase): boolean => variables(one).some((plain) => plain.data.length > 0)

/** The call as a function of these arguments. An in-place operator gets a copy, because a leaf that requires grad must not be written to. */
function asFunction(op: OpDef, one: ValueCase): { fn: (...tensors: Tensor[]) => readonly Tensor[]; inputs: Tensor[] } {
  const { args, constants = [], differentiable } = one
  const inPlace = op.schema.args[0]?.type.mutated === true
  const fn = (...tensors: Tensor[]): readonly Tensor[] => {
    let next = 0
    const given = args.map((arg, i) =>
      replace(arg, (plain) => (plain.kind === 'float' && !constants.includes(i) ? tensors[next++] : tensorOf(plain, 'float64'))),
    )
    if (inPlace) given[0] = (given[0] as Tensor).clone()
    return ([op.fn(...given)].flat() as readonly Tensor[]).slice(0, differentiable)
  }
  return { fn, inputs: variables(one).map((plain) => tensorOf(plain, 'float64')) }
}

/** The results that can have gradients. */
const floats = (results: readonly Tensor[]): readonly Tensor[] => results.filter((result) => result.dtype === 'float64')

const differentiable = builtInOps().flatMap((op) => {
  const usable = (cases.get(op.qualname) ?? []).filter(
    (one) => one.noGradient === undefined && hasFloats(one) && floats(asFunction(op, one).fn(...asFunction(op, one).inputs)).length > 0,
  )
  return isDifferentiable(op) && usable.length > 0 ? [{ op, usable }] : []
})

describe.each(differentiable)('$op.qualname', ({ op, usable }) => {
  it.each(usable.map((one, i): [number, ValueCase] => [i + 1, one]))('has the gradient that finite differences give, case %i', (_, one) => {
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

describe('the table', () => {
  it('has a case for the gradient of every operator that has a derivative', () => {
    const checked = new Set(differentiable.map(({ op }) => op))
    const missing = builtInOps().filter((op) => op.derivative !== null && !checked.has(op))
    // Random primitives are functions of numbers, and the two backwards are never recorded: the forward operators use the formula instead.
    const exempt = (op: OpDef): boolean =>
      !op.schema.args.some((arg) => arg.type.base === 'Tensor') || /^native_.*_norm_backward$/.test(op.name) || op.qualname in composed
    expect(missing.filter((op) => !exempt(op)).map((op) => op.qualname)).toEqual([])
  })
})
