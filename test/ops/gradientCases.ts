// The gradients that value cases ask for: by finite differences, or as the case gives them; and whether the cases of an operator ask for enough.
import { expect } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import type { OpDef } from 'tensorfx/ops'
import { Plain } from './plain.ts'
import { plainsIn, replace, tensorOf } from './valueCases.ts'
import type { ValueCase } from './valueCases.ts'

/** Whether the operator has a gradient: its own, that of its functional form, or that of its parts. */
export const isDifferentiable = (op: OpDef): boolean =>
  op.derivative !== null ||
  (op.functional?.derivative ?? null) !== null ||
  (op.decompose !== null && !op.tags.has('creation') && !op.tags.has('random'))

/** The arguments that the gradient is taken of. */
const variables = ({ args, constants = [] }: ValueCase): Plain[] =>
  plainsIn(args.filter((_, i) => !constants.includes(i))).filter((plain) => plain.kind === 'float')

const hasFloats = (one: ValueCase): boolean => variables(one).some((plain) => plain.data.length > 0)

/** The results that can have gradients. */
export const floats = (results: readonly Tensor[]): readonly Tensor[] => results.filter((result) => result.dtype === 'float64')

/** The call as a function of these arguments. An in-place operator gets a copy, because a leaf that requires grad must not be written to. */
export function asFunction(op: OpDef, one: ValueCase): { fn: (...tensors: Tensor[]) => readonly Tensor[]; inputs: Tensor[] } {
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

/** Whether the call takes and gives floating-point tensors, of which there could be a gradient. */
function mayHaveGradient(op: OpDef, one: ValueCase): boolean {
  if (!hasFloats(one)) return false
  const { fn, inputs } = asFunction(op, one)
  return floats(fn(...inputs)).length > 0
}

/** The cases whose gradient finite differences check. */
export const finiteDifferenceCases = (op: OpDef, cases: readonly ValueCase[]): readonly ValueCase[] =>
  isDifferentiable(op) ? cases.filter((one) => one.noGradient === undefined && one.gradient === undefined && mayHaveGradient(op, one)) : []

/** Compares the gradient with the one that the case gives, eager and, unless `eagerOnly`, compiled. */
export function checkGivenGradient(op: OpDef, one: ValueCase, eagerOnly = false): void {
  const { gradient } = one
  if (gradient === undefined) throw new Error('the case gives no gradient')
  const wanted = [typeof gradient === 'function' ? gradient(...(one.args as never[])) : gradient].flat() as Plain[]
  const { fn, inputs } = asFunction(op, one)
  expect(wanted.length, 'one gradient for each floating-point tensor').toBe(inputs.length)
  for (const call of eagerOnly ? [fn] : [fn, compile(fn)]) {
    const leaves = inputs.map((t) => t.clone().requiresGrad_())
    const total = floats(call(...leaves))
      .map((result) => result.sum())
      .reduce((a, b) => a.add(b))
    const gradients = torch.autograd.grad(total, leaves, { allowUnused: true })
    wanted.forEach((plain, k) => {
      const got = gradients[k]?.contiguous().toTypedArray() as ArrayLike<number> | undefined
      expect(gradients[k]?.shape ?? plain.shape).toEqual(plain.shape)
      plain.data.forEach((want, i) =>
        expect(Math.abs((got?.[i] ?? 0) - want), `gradient ${k}, element ${i}: ${got?.[i] ?? 0} instead of ${want}`).toBeLessThanOrEqual(
          1e-9 * (1 + Math.abs(want)),
        ),
      )
    })
  }
}

/** Results of numbers that are drawn, and results that do not depend on the numbers of an argument. */
const isDrawnOrMade = (op: OpDef): boolean => op.tags.has('random') || op.tags.has('creation')

/** What the cases of an operator lack; null if nothing. */
export function missingCases(op: OpDef, cases: readonly ValueCase[]): string | null {
  if (cases.length === 0) return `${op.qualname} has no value case: write one in a file of test/ops/values`
  if (isDrawnOrMade(op)) return null
  if (op.derivative !== null && op.schema.args.some((arg) => arg.type.base === 'Tensor') && !cases.some(hasFloats))
    return `no case of ${op.qualname} has floating-point numbers: its derivative is not checked`
  const asked = cases.filter((one) => one.noGradient === undefined && mayHaveGradient(op, one))
  if (asked.length === 0 || isDifferentiable(op) || asked.some((one) => one.gradient !== undefined)) return null
  return `no case of ${op.qualname} has a gradient that is checked: give \`gradient\`, or say with \`noGradient\` on each case why there is none`
}
