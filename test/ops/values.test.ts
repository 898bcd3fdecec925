// What every operator computes, against the references of test/ops/values: eager in float32 and float64, on fake tensors, and compiled.
import { describe, expect, it } from 'vitest'
import { compile } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import { FakeTensorMode, withMode } from 'tensorfx/dispatch'
import { allOps } from 'tensorfx/ops'
import type { OpDef } from 'tensorfx/ops'
import { Plain } from './plain.ts'
import { allValueCases, dtypeOf, expectedOf, plainsIn, replace, rounded, tensorOf } from './valueCases.ts'
import type { ValueCase } from './valueCases.ts'

const cases = await allValueCases()

function compare(actual: unknown, expected: Plain, float: DType, tolerance: number, what: string): void {
  const result = actual as Tensor
  expect(result.dtype, `${what}: dtype`).toBe(dtypeOf(expected, float))
  expect(result.shape, `${what}: shape`).toEqual(expected.shape)
  const values: ArrayLike<number> = result.contiguous().toTypedArray()
  expected.data.forEach((want, i) => {
    const got = Number(values[i])
    if (Number.isFinite(want) && result.dtype !== 'int32' && result.dtype !== 'bool')
      expect(Math.abs(got - want), `${what}[${i}]: ${got} instead of ${want}`).toBeLessThanOrEqual(tolerance * (1 + Math.abs(want)))
    else expect(got, `${what}[${i}]`).toEqual(want)
  })
}

function compareAll(actual: unknown, expected: Plain | readonly Plain[], float: DType, tolerance: number): void {
  if (expected instanceof Plain) {
    compare(actual, expected, float, tolerance, 'result')
    return
  }
  expect(Array.isArray(actual), 'several results').toBe(true)
  const list = actual as readonly unknown[]
  expect(list.length).toBe(expected.length)
  expected.forEach((plain, i) => compare(list[i], plain, float, tolerance, `result ${i}`))
}

/** Specs of one or several tensors, as text. */
const specs = (result: unknown): string[] => ([result].flat() as Tensor[]).map((t) => `${t.dtype} [${t.shape.join(', ')}]`)

function check(op: OpDef, one: ValueCase, float: DType): void {
  const args = float === 'float32' ? rounded(one.args) : one.args
  const inputs: [Tensor, Plain][] = []
  const given = args.map((arg) =>
    replace(arg, (plain) => {
      const input = tensorOf(plain, float)
      inputs.push([input, plain])
      return input
    }),
  )
  const tolerance = float === 'float32' ? (one.tolerance ?? 4e-6) : 1e-11
  const expected = expectedOf(one, args)
  const result = op.fn(...given)
  compareAll(result, expected, float, tolerance)
  const inPlace = op.schema.args[0]?.type.mutated === true
  if (inPlace) expect(result, 'an in-place operator returns self').toBe(given[0])
  // Nothing else is written to.
  for (const [input, plain] of inputs.slice(inPlace ? 1 : 0)) compare(input, plain, float, 0, 'argument')
  const onFakes = (): unknown => withMode(new FakeTensorMode(), () => op.fn(...args.map((arg) => replace(arg, (plain) => tensorOf(plain, float)))))
  if (one.readsValues === true) expect(onFakes).toThrow(/fake/)
  else expect(specs(onFakes()), 'on fake tensors').toEqual(specs(result))
}

function checkCompiled(op: OpDef, one: ValueCase): void {
  const args = rounded(one.args)
  const plains = plainsIn(args)
  const call = (...tensors: Tensor[]): unknown => {
    let next = 0
    return op.fn(...args.map((arg) => replace(arg, () => tensors[next++])))
  }
  const compiled = compile(call)
  const expected = expectedOf(one, args)
  // The first call captures, the second one replays.
  for (let run = 0; run < 2; run++)
    compareAll(compiled(...plains.map((plain) => tensorOf(plain, 'float32'))), expected, 'float32', (one.tolerance ?? 4e-6) * 4)
}

describe.each(allOps().map((op): [string, OpDef] => [op.qualname, op]))('%s', (qualname, op) => {
  const own = cases.get(qualname) ?? []
  const hasFloats = (one: ValueCase): boolean => plainsIn(one.args).some((plain) => plain.kind === 'float')

  it('has a value case', () => expect(own.length).toBeGreaterThan(0))

  it.each(own.map((one, i): [number, ValueCase] => [i + 1, one]))('case %i: float32', (_, one) => check(op, one, 'float32'))

  it.each(own.map((one, i): [number, ValueCase] => [i + 1, one]).filter(([, one]) => hasFloats(one)))('case %i: float64', (_, one) =>
    check(op, one, 'float64'),
  )

  // compile does not support tensors without elements.
  const isEmpty = (one: ValueCase): boolean => plainsIn([one.args, expectedOf(one, one.args)]).some((plain) => plain.data.length === 0)
  it.each(own.map((one, i): [number, ValueCase] => [i + 1, one]).filter(([, one]) => !isEmpty(one)))('case %i: compiled', (_, one) =>
    checkCompiled(op, one),
  )
})

describe('the cases', () => {
  it('are those of operators', () => {
    const names = new Set(allOps().map((op) => op.qualname))
    expect([...cases.keys()].filter((name) => !names.has(name))).toEqual([])
  })
})
