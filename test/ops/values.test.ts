// What every operator computes, against the references of test/ops/values: eager in every floating-point dtype, in every integer dtype that can hold the numbers of
// the case, on fake tensors, and compiled.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { DType } from 'tensorfx'
import { builtInOps } from './builtInOps.ts'
import type { OpDef } from 'tensorfx/ops'
import { check, checkCompiled } from './checkValues.ts'
import { allValueCases, expectedOf, plainsIn } from './valueCases.ts'
import type { ValueCase } from './valueCases.ts'

const cases = await allValueCases()

const hasFloats = (one: ValueCase): boolean => plainsIn(one.args).some((plain) => plain.kind === 'float')

/** The integer dtypes besides int32 that can hold the integers of a case and of its result. */
function otherIntegers(one: ValueCase): readonly DType[] {
  if (!plainsIn(one.args).some((plain) => plain.kind === 'int')) return []
  const values = plainsIn([one.args, expectedOf(one, one.args)]).flatMap((plain) => (plain.kind === 'int' ? plain.data : []))
  const others = ['uint8', 'int8', 'int16', 'int64'] as const
  return others.filter((dtype) => values.every((value) => value >= Number(torch.iinfo(dtype).min) && value <= Number(torch.iinfo(dtype).max)))
}

describe.each(builtInOps().map((op): [string, OpDef] => [op.qualname, op]))('%s', (qualname, op) => {
  const own = (cases.get(qualname) ?? []).map((one, i): [number, ValueCase] => [i + 1, one])
  const withFloats = own.filter(([, one]) => hasFloats(one))
  const inHalf = withFloats.filter(([, one]) => one.notInHalf === undefined)

  it('has a value case', () => expect(own.length).toBeGreaterThan(0))

  it.each(own)('case %i: float32', (_, one) => check(op, one, {}))
  it.each(withFloats)('case %i: float64', (_, one) => check(op, one, { float: 'float64' }))
  it.each(inHalf)('case %i: float16', (_, one) => check(op, one, { float: 'float16' }))
  it.each(inHalf)('case %i: bfloat16', (_, one) => check(op, one, { float: 'bfloat16' }))
  it.each(own.flatMap(([i, one]) => otherIntegers(one).map((int): [number, DType, ValueCase] => [i, int, one])))('case %i: %s', (_, int, one) =>
    check(op, one, { int }),
  )
  it.each(own)('case %i: compiled', (_, one) => checkCompiled(op, one, 'float32'))
  it.each(inHalf)('case %i: float16, compiled', (_, one) => checkCompiled(op, one, 'float16'))
})

describe('the cases', () => {
  it('are those of operators', () => {
    const names = new Set(builtInOps().map((op) => op.qualname))
    expect([...cases.keys()].filter((name) => !names.has(name))).toEqual([])
  })
})
