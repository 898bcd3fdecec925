// What an in-place operator keeps of the tensor that it overwrites: a copy where a gradient that is wanted reads it, and nothing otherwise.
import { describe, expect, test } from 'vitest'
import { AutogradError, Tensor, noGrad, torch } from 'tensorfx'
import { RecordMode, withMode } from 'tensorfx/dispatch'
import { opByName } from 'tensorfx/ops'
import type { OpDef } from 'tensorfx/ops'
import { allValueCases, inPlaceForms, replace, tensorOf } from '../ops/valueCases.ts'
import type { ValueCase } from '../ops/valueCases.ts'

interface Tensors {
  readonly x: Tensor
  readonly w: Tensor
  readonly plain: Tensor
}

/** What is called, and whether a copy is kept when x has a history, and when it has none. */
const cases: Readonly<Record<string, readonly [write: (given: Tensors) => Tensor, withHistory: boolean, without: boolean]>> = {
  'x.sin_()': [({ x }) => x.sin_(), true, false],
  'x.square_()': [({ x }) => x.square_(), true, false],
  'x.pow_(2)': [({ x }) => x.pow_(2), true, false],
  'x.add_(w)': [({ x, w }) => x.add_(w), false, false],
  'x.neg_()': [({ x }) => x.neg_(), false, false],
  'x.mul_(2)': [({ x }) => x.mul_(2), false, false],
  'x.mul_(w)': [({ x, w }) => x.mul_(w), true, true],
  'x.mul_(plain)': [({ x, plain }) => x.mul_(plain), false, false],
  'x.div_(w)': [({ x, w }) => x.div_(w), true, true],
  'x.copy_(w)': [({ x, w }) => x.copy_(w), false, false],
  'x.addcmul_(w, plain)': [({ x, w, plain }) => x.addcmul_(w, plain), false, false],
  'x.lerp_(w, 0.5)': [({ x, w }) => x.lerp_(w, 0.5), false, false],
  'x.exp_()': [({ x }) => x.exp_(), false, false],
}

const copiesIn = (fn: () => unknown): number => {
  const mode = new RecordMode()
  withMode(mode, fn)
  return mode.calls.filter(({ op }) => op.name === 'clone').length
}

const made = (hasHistory: boolean): Tensors => {
  const w = torch.tensor([1, 2]).requiresGrad_()
  return { w, x: hasHistory ? w.mul(3) : torch.tensor([3, 6]), plain: torch.tensor([5, 7]) }
}

describe.each(Object.entries(cases))('%s', (_, [write, withHistory, without]) => {
  test('keeps a copy where a gradient reads it, also when it is asked again', () => {
    for (let call = 0; call < 2; call++) {
      expect(copiesIn(() => write(made(true)))).toBe(withHistory ? 1 : 0)
      expect(copiesIn(() => write(made(false)))).toBe(without ? 1 : 0)
      expect(copiesIn(() => noGrad(() => write(made(true))))).toBe(0)
    }
  })

  test('has the gradients of the operator out of place', () => {
    for (const hasHistory of [true, false]) {
      const [ours, theirs] = [made(hasHistory), made(hasHistory)]
      const results = [write(ours), write({ ...theirs, x: theirs.x.clone() })]
      for (const result of results)
        if (result.requiresGrad)
          result
            .mul(torch.tensor([1, 10]))
            .sum()
            .backward()
      expect(ours.w.grad?.toArray()).toEqual(theirs.w.grad?.toArray())
    }
  })
})

test('calls with ever new numbers are answered, too', () => {
  for (let i = 0; i < 200; i++) expect(copiesIn(() => made(true).x.pow_(2 + i / 8))).toBe(1)
})

test('a list among the arguments', () => {
  const { x, w } = made(true)
  const rows = torch.zeros([2, 2])
  expect(copiesIn(() => rows.indexPut_([torch.tensor([0], { dtype: 'int64' })], w))).toBe(0)
  rows.sum().add(x.sum()).backward()
  expect(w.grad?.toArray()).toEqual([4, 4])
})

describe('every in-place form of an operator with a derivative', async () => {
  const cases = await allValueCases()
  const forms = inPlaceForms().flatMap(({ qualname }) => {
    const form = opByName(qualname)
    const [one] = cases.get(qualname) ?? []
    const op = form?.functional ?? null
    return form === undefined || op === null || op.derivative === null || one === undefined ? [] : [[qualname, form, op, one] as const]
  })

  /** Arguments, of whose floats those at `wanted` (bits) require gradients; the first is no leaf. */
  function argumentsOf(
    { args, constants = [] }: ValueCase,
    wanted: number,
  ): { readonly given: readonly unknown[]; readonly leaves: readonly Tensor[] } {
    const leaves: Tensor[] = []
    let position = 0
    const given = args.map((arg, i) =>
      replace(arg, (plain) => {
        const leaf = tensorOf(plain, 'float64')
        if (plain.kind === 'float' && !constants.includes(i) && (wanted >> position++) % 2 === 1) leaves.push(leaf.requiresGrad_())
        return i === 0 ? leaf.mul(1) : leaf
      }),
    )
    return { given, leaves }
  }

  /** The gradients of the leaves, or the error. */
  function gradients(result: unknown, leaves: readonly Tensor[]): unknown {
    if (!(result instanceof Tensor) || !result.requiresGrad) return null
    try {
      return torch.autograd.grad(result.square().sum(), leaves, { allowUnused: true }).map((g) => g?.toArray() ?? null)
    } catch (error) {
      if (error instanceof AutogradError) return error
      throw error
    }
  }

  /** Whether the gradients read the first argument: the operator out of place is asked, whose backward is refused after a write to that. */
  function readsSelf(op: OpDef, one: ValueCase, wanted: number): boolean {
    const { given, leaves } = argumentsOf(one, wanted)
    const result = op.fn(...given)
    noGrad(() => (given[0] as Tensor).detach().zero_())
    return gradients(result, leaves) instanceof AutogradError
  }

  test.each(forms)(
    '%s keeps a copy of self exactly if gradients that are wanted read it, and has the gradients of the operator',
    (_, form, op, one) => {
      for (const wanted of [1, 2, 3, 4, 5, 6, 7]) {
        const [ours, theirs] = [argumentsOf(one, wanted), argumentsOf(one, wanted)]
        if (ours.leaves.length === 0 || form.tags.has('random')) continue
        let result: unknown = null
        const copies = copiesIn(() => (result = form.fn(...ours.given)))
        const expected = gradients(op.fn(...theirs.given), theirs.leaves)
        if (!(result instanceof Tensor) || !result.requiresGrad) continue
        expect(copies, `with gradients for ${wanted}`).toBe(readsSelf(op, one, wanted) ? 1 : 0)
        expect(gradients(result, ours.leaves)).toEqual(expected)
      }
    },
  )

  test('are many', () => expect(forms.length).toBeGreaterThan(40))
})
