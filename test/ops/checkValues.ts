// Whether a call of an operator gives what its value case says: eagerly, on fake tensors and compiled.
import { expect } from 'vitest'
import { compile } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import { FakeTensorMode, withMode } from 'tensorfx/dispatch'
import type { OpDef } from 'tensorfx/ops'
import { Plain } from './plain.ts'
import { dtypeOf, expectedOf, plainsIn, replace, rounded, tensorOf } from './valueCases.ts'
import type { ValueCase } from './valueCases.ts'

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
  const isRounded = result.isFloatingPoint()
  const isRight = (got: number, want: number): boolean =>
    isRounded && Number.isFinite(want) ? Math.abs(got - want) <= tolerance * (1 + Math.abs(want)) : Object.is(got, want)
  const wrong = expected.data.flatMap((want, i) => {
    const got = Number(values[i])
    return isRight(got, want) ? [] : [`[${i}]: ${got} instead of ${want}`]
  })
  // One expectation for all elements: each costs more than the comparison.
  expect(wrong, what).toEqual([])
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

/** Compares the call with its case in these dtypes, on fake tensors too, and looks whether it writes to its arguments. */
export function check(op: OpDef, one: ValueCase, { float = 'float32', int = 'int32' }: Partial<Types>): void {
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

/** Compares the call, compiled for a backend, with its case, captured and replayed. */
export function checkCompiled(op: OpDef, one: ValueCase, float: DType, backend = 'inductor'): void {
  const args = rounded(one.args, float)
  const plains = plainsIn(args)
  const call = (...tensors: Tensor[]): unknown => {
    let next = 0
    return op.fn(...args.map((arg) => replace(arg, () => tensors[next++])))
  }
  const compiled = compile(call, { backend })
  const expected = expectedOf(one, args)
  // The first call captures, the second one replays.
  for (let run = 0; run < 2; run++)
    compareAll(compiled(...plains.map((plain) => tensorOf(plain, float))), expected, { float, int: 'int32' }, toleranceOf(one, float) * 4)
}
