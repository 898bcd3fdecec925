// Every operator with a gradient, in a function compiled for any sizes: its backward is traced with symbols for sizes, and gives the bits of eager mode.
import { expect, it } from 'vitest'
import { compile } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { withConfig } from 'tensorfx/compile'
import { onEvent } from 'tensorfx/debug'
import { tenth } from '../helpers/rotation.ts'
import { builtInOps } from '../ops/builtInOps.ts'
import { asFunction, finiteDifferenceCases, floats } from '../ops/gradientCases.ts'
import { allValueCases } from '../ops/valueCases.ts'
import type { ValueCase } from '../ops/valueCases.ts'

const cases = await allValueCases()

/** Operators for which the tape may be kept, by name, and why. */
const kept: readonly (readonly [RegExp, string])[] = [
  [/^torch\.(?:linalg\.|lu$|qr$|norm$|matrix_exp$)/, 'gradients of decompositions choose their formula by numbers of rows and columns'],
  [/prod_backward$/, 'the second derivative of a product lays its lines out by numbers'],
  [/as_strided/, 'offsets in memory are no sizes'],
  [/^torch\.(?:Tensor\.\w+_|relu_)$/, 'the tape of a write by the in-place operator is not that of its functional form'],
]

const chosen = builtInOps().flatMap((op) =>
  finiteDifferenceCases(op, cases.get(op.qualname) ?? [])
    .slice(0, 4)
    .map((one, i): [string, typeof op, ValueCase] => [`${op.qualname} ${i + 1}`, op, one]),
)

it.each(tenth(chosen, ([name]) => name))('%s', (_, op, one) => {
  const { fn, inputs } = asFunction(op, one)
  const loss = (...tensors: Tensor[]): Tensor => {
    const [first, ...rest] = floats(fn(...tensors)).map((result) => result.mul(result).sum())
    return rest.reduce((sum, term) => sum.add(term), first as Tensor)
  }
  const gradients = (f: typeof loss): readonly unknown[] => {
    const leaves = inputs.map((t) => t.clone().requiresGrad_())
    f(...leaves).backward()
    return leaves.map((leaf) => leaf.grad?.toArray() ?? null)
  }
  const expected = gradients(loss)
  const refused: string[] = []
  using _listening = onEvent((event) => event.ok || refused.push(event.why ?? ''), { kinds: ['joint'] })
  const f = compile(loss, { dynamic: true, backend: 'eager' })
  // The second call is verified.
  withConfig({ verifySizes: true }, () => {
    for (let i = 0; i < 3; i++) expect(gradients(f)).toEqual(expected)
  })
  if (!kept.some(([pattern]) => pattern.test(op.qualname))) expect(refused).toEqual([])
})
