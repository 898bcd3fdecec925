// The in-place forms, `x.mul_(y)` for `mul(x, y)`: each writes exactly what the functional operator gives, with its gradient. values.test.ts runs them in all dtypes and compiled.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import { opByName } from 'tensorfx/ops'
import type { OpDef } from 'tensorfx/ops'
import { ArgumentError, AutogradError, DTypeError, ShapeError, Tensor } from 'tensorfx'
import { hasPlainValues } from './builtInOps.ts'
import { sample } from './gradcheck.ts'
import { allValueCases, inPlaceForms, replace, tensorOf } from './valueCases.ts'
import type { ValueCase } from './valueCases.ts'

const cases = await allValueCases()

function definition(qualname: string): OpDef {
  const op = opByName(qualname)
  if (op === undefined) throw new Error(`no operator ${qualname}`)
  return op
}

/** The result of a call on copies of the case's tensors, of which those of floats require gradients, and their gradients; or the error of the backward pass. */
function run(
  op: OpDef,
  { args, constants = [] }: ValueCase,
  inPlace: boolean,
): { readonly result: Tensor; readonly gradients: readonly (Tensor | null)[] | AutogradError } {
  const { derivative, decompose } = op.functional ?? op
  const differentiable = derivative !== null || decompose !== null
  const variables: Tensor[] = []
  const given = args.map((arg, i) =>
    replace(arg, (plain) => {
      const leaf = tensorOf(plain, 'float64')
      if (differentiable && plain.kind === 'float' && !constants.includes(i)) variables.push(leaf.requiresGrad_())
      return leaf
    }),
  )
  if (inPlace && given[0] instanceof Tensor) given[0] = given[0].clone()
  const before = given[0] instanceof Tensor ? given[0].realize().writes : NaN
  const result = op.fn(...given)
  if (!(result instanceof Tensor)) throw new Error('not a tensor')
  if (inPlace) {
    expect(result).toBe(given[0])
    expect(result.realize().writes, 'copies of the data must be made anew').toBeGreaterThan(before)
  }
  if (!result.requiresGrad) return { result, gradients: [] }
  try {
    return { result, gradients: torch.autograd.grad(result.mul(sample(result.shape, 7)).sum(), variables, { allowUnused: true }) }
  } catch (error) {
    if (error instanceof AutogradError) return { result, gradients: error }
    throw error
  }
}

const bits = (t: Tensor | null): unknown => (t === null ? null : [t.shape, [...t.contiguous().toTypedArray()]])
const isRandom = (op: OpDef): boolean => op.tags.has('random')

describe.each(inPlaceForms().filter(({ functional }) => hasPlainValues(definition(functional))))('$qualname', ({ qualname, functional }) => {
  const own = cases.get(qualname) ?? []

  it('has a case of a result that fits into self', () => expect(own.length).toBeGreaterThan(0))

  it.each(own.map((one, i): [number, ValueCase] => [i + 1, one]))(
    'case %i: writes what the functional operator gives, and has its gradient unless that needs overwritten values',
    (_, one) => {
      const [form, op] = [definition(qualname), definition(functional)]
      if (isRandom(op)) torch.manualSeed(1)
      const expected = run(op, one, false)
      if (isRandom(op)) torch.manualSeed(1)
      const { result, gradients } = run(form, one, true)
      expect(bits(result)).toEqual(bits(expected.result.to(result.dtype)))
      if (gradients instanceof AutogradError) expect(gradients.message).toMatch(/modified|overwritten|in place/)
      else if (!(expected.gradients instanceof AutogradError) && expected.result.dtype === result.dtype)
        expect(gradients.map(bits)).toEqual(expected.gradients.map(bits))
    },
  )
})

describe('in-place forms', () => {
  const names = JSON.parse(readFileSync(fileURLToPath(new URL('../goldens/numeric2/inplace-ops.json', import.meta.url)), 'utf8')) as readonly string[]

  it('reject a result of another shape', () => {
    expect(() => torch.zeros([2]).mul_(torch.zeros([3, 2]))).toThrow(ShapeError)
    expect(() => torch.zeros([1]).trueDivide_(torch.ones([2]))).toThrow(ShapeError)
  })

  it('reject an expanded view, of which several elements share a place', () => {
    const shared = torch.zeros([1]).expand([3])
    expect(() => shared.add_(1)).toThrow(ArgumentError)
    expect(() => shared.trueDivide_(2)).toThrow(ArgumentError)
  })

  it('reject a result of another kind of number', () => {
    expect(() => torch.tensor([1, 2], { dtype: 'int32' }).exp_()).toThrow(DTypeError)
    expect(() => torch.tensor([1, 2], { dtype: 'int32' }).trueDivide_(2)).toThrow(DTypeError)
  })

  it('exist wherever PyTorch has one and its functional operator is here', () => {
    const have = new Set(['relu', 'copy', 'fill', 'zero', 'uniform', 'normal', 'requires_grad'])
    for (const { functional } of inPlaceForms()) have.add(functional.slice(functional.lastIndexOf('.') + 1))
    const missing = names
      .map((name) => /^(.*)\.(\w+)_$/.exec(name))
      .flatMap((match) => (match === null ? [] : [{ owner: match[1] === 'nn.functional' ? 'torch.nn.functional' : 'torch', name: match[2] ?? '' }]))
      .filter(({ owner, name }) => !have.has(name) && opByName(`${owner}.${name}`) !== undefined)
      // Other names of operators have theirs in the same table.
      .filter(({ name }) => opByName(`torch.${name}_`) === undefined && opByName(`torch.Tensor.${name}_`) === undefined)
      .map(({ name }) => name)
    // They change nothing at all; draw, where the functional operator takes probabilities; or give float64, which only float64 could hold.
    expect([...new Set(missing)].sort()).toEqual([
      'alpha_dropout',
      'bernoulli',
      'detach',
      'dropout',
      'feature_alpha_dropout',
      'feature_dropout',
      'float_power',
      'polygamma',
    ])
  })
})
