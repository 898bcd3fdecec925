// Shape rules hold for symbols: for every operator with value cases, the layouts that it gives for symbolic sizes are, for drawn sizes that satisfy the guards of the trace, those that it
// gives for these numbers. Operators without such a rule are refused by name; src/cli/withoutShapeRule.ts lists them.
import { describe, expect, it } from 'vitest'
import { UnsupportedError } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { FakeTensorMode, withMode } from 'tensorfx/dispatch'
import type { OpDef } from 'tensorfx/dispatch'
import { withoutShapeRule } from '../../src/cli/withoutShapeRule.ts'
import { NumbersNeeded, Tensor as FakeTensor } from '../../src/tensor/index.ts'
import { isFull, turn } from '../helpers/rotation.ts'
import { builtInOps } from '../ops/builtInOps.ts'
import { allValueCases, plainsIn, replace, tensorOf } from '../ops/valueCases.ts'
import type { ValueCase } from '../ops/valueCases.ts'
import { assignments, numbersAt, randomNumbers, runSymbolically, specOf, tensorsIn } from './shapes.ts'

const cases = await allValueCases()
const missing = new Set(withoutShapeRule)
const DRAWS = isFull ? 20 : 5

interface Call {
  /** New tensors at each call, since operators write to theirs. */
  readonly inputs: () => readonly Tensor[]
  readonly run: (...tensors: readonly Tensor[]) => unknown
}

/** The call of a case; null if it cannot be made without data. */
function callOf(op: OpDef, one: ValueCase): Call | null {
  if (one.readsValues === true) return null
  const inputs = (): readonly Tensor[] => plainsIn(one.args).map((plain) => tensorOf(plain, 'float32', 'int64'))
  const run = (...tensors: readonly Tensor[]): unknown => {
    let next = 0
    return op.fn(...one.args.map((arg) => replace(arg, () => tensors[next++])))
  }
  try {
    withMode(new FakeTensorMode(), () => run(...inputs()))
    return { inputs, run }
  } catch {
    return null
  }
}

/** Whether the error says that a rule takes numbers only. */
const isRefused = (error: unknown): boolean =>
  error instanceof NumbersNeeded || (error instanceof UnsupportedError && error.cause instanceof NumbersNeeded)

function isRefusedCall({ inputs, run }: Call): boolean {
  try {
    runSymbolically(inputs(), run)
    return false
  } catch (error) {
    if (isRefused(error)) return true
    throw error
  }
}

function check({ inputs, run }: Call): void {
  const traced = runSymbolically(inputs(), run)
  const drawn = assignments(traced.env, DRAWS, randomNumbers(1))
  expect(drawn.length, 'sizes that satisfy the guards').toBeGreaterThan(0)
  for (const values of drawn) {
    const numbers = traced.inputs.map((spec) => FakeTensor.fake(numbersAt(spec, values)))
    const wanted = tensorsIn(withMode(new FakeTensorMode(), () => run(...numbers))).map((result) => numbersAt(specOf(result), values))
    const found = traced.results.map((result) => numbersAt(result, values))
    expect(found, `for ${[...values].map(([symbol, value]) => `${symbol.name}=${value}`).join(', ')}`).toEqual(wanted)
  }
}

const called = builtInOps().map((op) => ({ op, calls: (cases.get(op.qualname) ?? []).map((one) => callOf(op, one)).filter((call) => call !== null) }))

describe('shape rules hold for symbols', () => {
  for (const { op, calls } of called) {
    if (calls.length === 0 || missing.has(op.qualname)) continue
    it(op.qualname, () => {
      for (const call of turn(calls)) check(call)
    })
  }
})

it('operators without shape rules for symbols are those that the list names', () => {
  const listed = called.filter(({ op, calls }) => calls.length > 0 && missing.has(op.qualname))
  expect(listed.filter(({ calls }) => !calls.some(isRefusedCall)).map(({ op }) => op.qualname)).toEqual([])
  expect(withoutShapeRule.filter((name) => !called.some(({ op }) => op.qualname === name))).toEqual([])
})
