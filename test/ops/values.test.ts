// What every operator computes, against the references of test/ops/values: every case eagerly in float32, and on fake tensors; of each operator a tenth of the cases, and at least
// one, in the other floating-point dtypes and in the integer dtypes that can hold the numbers of the case; and a tenth of all cases compiled.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { DType } from 'tensorfx'
import { isChosen, tenth } from '../helpers/rotation.ts'
import { builtInOps, hasPlainValues } from './builtInOps.ts'
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

/** The floating-point dtypes besides float32 that a case can be computed in. */
const otherFloats = (one: ValueCase): readonly DType[] =>
  !hasFloats(one) ? [] : one.notInHalf === undefined ? ['float64', 'float16', 'bfloat16'] : ['float64']

/** A case by its number, and a dtype. */
type Typed = readonly [number, DType, ValueCase]

describe.each(
  builtInOps()
    .filter(hasPlainValues)
    .map((op): [string, OpDef] => [op.qualname, op]),
)('%s', (qualname, op) => {
  const own = (cases.get(qualname) ?? []).map((one, i): [number, ValueCase] => [i + 1, one])
  const inFloats = own.flatMap(([i, one]) => otherFloats(one).map((float): Typed => [i, float, one]))
  const inIntegers = own.flatMap(([i, one]) => otherIntegers(one).map((int): Typed => [i, int, one]))
  const inHalf = inFloats.filter(([, float]) => float === 'float16')
  const typed = ([i, dtype]: Typed): string => `${qualname} ${i} ${dtype}`

  it('has a value case', () => expect(own.length).toBeGreaterThan(0))

  it.each(own)('case %i: float32', (_, one) => check(op, one, {}))
  it.each(tenth(inFloats, typed))('case %i: %s', (_, float, one) => check(op, one, { float }))
  it.each(tenth(inIntegers, typed))('case %i: %s', (_, int, one) => check(op, one, { int }))
  it.each(own.filter(([i]) => isChosen(`${qualname} ${i}`)))('case %i: compiled', (_, one) => checkCompiled(op, one, 'float32'))
  it.each(inHalf.filter((one) => isChosen(typed(one))))('case %i: float16, compiled', (_, float, one) => checkCompiled(op, one, float))
})

describe('the cases', () => {
  it('are those of operators', () => {
    const names = new Set(builtInOps().map((op) => op.qualname))
    expect([...cases.keys()].filter((name) => !names.has(name))).toEqual([])
  })
})
