// What every operator computes, against the references of test/ops/values: eager in every floating-point dtype, in every integer dtype that can hold the numbers of
// the case, on fake tensors, and compiled.
import { describe, expect, it } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import { FakeTensorMode, withMode } from 'tensorfx/dispatch'
import { builtInOps } from './builtInOps.ts'
import type { OpDef } from 'tensorfx/ops'
import { Plain } from './plain.ts'
import { allValueCases, dtypeOf, expectedOf, plainsIn, replace, rounded, tensorOf } from './valueCases.ts'
import type { ValueCase } from './valueCases.ts'

const cases = await allValueCases()

/** The dtypes of a run. */
interface Types {
  readonly float: DType
  readonly int: DType
}

/** The distance from 1 to the next greater number, for the dtypes whose numbers are rounded at each step. */
const UNIT: Readonly<Partial<Record<DType, number>>> = { float16: 2 ** -10, bfloat16: 2 ** -7 }

function toleranceOf({ tolerance = 4e-6, halfTolerance = 8 }: ValueCase, float: DType): number {
  const unit = UNIT[float]
  return unit !== undefined ? halfTolerance * unit : float === 'float32' ? tolerance : 1e-11
}

function compare(actual: unknown, expected: Plain, { float, int }: Types, tolerance: number, what: string): void {
  const result = actual as Tensor
  expect(result.dtype, `${what}: dtype`).toBe(dtypeOf(expected, float, int))
  expect(result.shape, `${what}: shape`).toEqual(expected.shape)
  const values: ArrayLike<number> = result.contiguous().toTypedArray()
  expected.data.forEach((want, i) => {
    const got = Number(values[i])
    if (Number.isFinite(want) && result.isFloatingPoint())
      expect(Math.abs(got - want), `${what}[${i}]: ${got} instead of ${want}`).toBeLessThanOrEqual(tolerance * (1 + Math.abs(want)))
    else expect(got, `${what}[${i}]`).toEqual(want)
  })
}

function compareAll(actual: unknown, expected: Plain | readonly Plain[], types: Types, tolerance: number): void {
  if (expected instanceof Plain) {
    compare(actual, expected, types, tolerance, 'result')
    return
  }
  expect(Array.isArray(actual), 'several results').toBe(true)
  const list = actual as readonly unknown[]
  expect(list.length).toBe(expected.length)
  expected.forEach((plain, i) => compare(list[i], plain, types, tolerance, `result ${i}`))
}

/** Specs of one or several tensors, as text. */
const specs = (result: unknown): string[] => ([result].flat() as Tensor[]).map((t) => `${t.dtype} [${t.shape.join(', ')}]`)

function check(op: OpDef, one: ValueCase, { float = 'float32', int = 'int32' }: Partial<Types>): void {
  const types: Types = { float, int }
  const args = float === 'float64' ? one.args : rounded(one.args, float)
  const inputs: [Tensor, Plain][] = []
  const given = args.map((arg) =>
    replace(arg, (plain) => {
      const input = tensorOf(plain, float, int)
      inputs.push([input, plain])
      return input
    }),
  )
  const expected = expectedOf(one, args)
  const result = op.fn(...given)
  compareAll(result, expected, types, toleranceOf(one, float))
  const inPlace = op.schema.args[0]?.type.mutated === true
  if (inPlace) expect(result, 'an in-place operator returns self').toBe(given[0])
  // Nothing else is written to.
  for (const [input, plain] of inputs.slice(inPlace ? 1 : 0)) compare(input, plain, types, 0, 'argument')
  const onFakes = (): unknown =>
    withMode(new FakeTensorMode(), () => op.fn(...args.map((arg) => replace(arg, (plain) => tensorOf(plain, float, int)))))
  if (one.readsValues === true) expect(onFakes).toThrow(/fake/)
  else expect(specs(onFakes()), 'on fake tensors').toEqual(specs(result))
}

function checkCompiled(op: OpDef, one: ValueCase, float: DType): void {
  const args = rounded(one.args, float)
  const plains = plainsIn(args)
  const call = (...tensors: Tensor[]): unknown => {
    let next = 0
    return op.fn(...args.map((arg) => replace(arg, () => tensors[next++])))
  }
  const compiled = compile(call)
  const expected = expectedOf(one, args)
  // The first call captures, the second one replays.
  for (let run = 0; run < 2; run++)
    compareAll(compiled(...plains.map((plain) => tensorOf(plain, float))), expected, { float, int: 'int32' }, toleranceOf(one, float) * 4)
}

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
