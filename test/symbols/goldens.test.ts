// What PyTorch computes with sizes as symbols, as recorded: printed expressions, answers, guards and ranges, letter by letter.
import { describe, expect, it } from 'vitest'
import { ConstraintViolationError, ShapeEnv, createSymbolicLayout, integerRange, produceGuards } from '../../src/symbols/index.ts'
import type { Constraint, DimDynamic } from '../../src/symbols/index.ts'
import { answer, isList, read, readGolden, stateOf } from './golden.ts'
import type { Json, Value } from './golden.ts'

function environment(floats = false): { env: ShapeEnv; names: Map<string, Value> } {
  const env = new ShapeEnv()
  const names = new Map<string, Value>(Object.entries({ a: 6, b: 4, c: 9 }).map(([name, value]) => [name, env.createSymInt(value, 'dynamic')]))
  if (floats) names.set('f', env.createSymFloat(2.5))
  return { env, names }
}

const textIn = (value: Json | undefined): string => (typeof value === 'string' ? value : '')

describe('expressions print as in PyTorch', () => {
  for (const { source, expr = null, result } of readGolden('expressions')) {
    it(textIn(source), () => {
      const { env, names } = environment(true)
      const value = read(expr, names)
      const found = typeof value === 'object' && 'expr' in value ? { type: value.constructor.name, text: value.toString(), hint: value.hint } : value
      expect(found).toEqual(result)
      expect(env.guards).toEqual([])
    })
  }
})

// Assertions of PyTorch have texts of their own here.
const ownErrors = (answers: Json | undefined): Json =>
  Array.isArray(answers)
    ? answers.map((each: Json) =>
        isError(each) && each['error_type'] === 'RuntimeError' ? { error: 'check' } : isError(each) ? { error: each['error'] ?? null } : each,
      )
    : null
const isError = (value: Json): value is { readonly [name: string]: Json } => typeof value === 'object' && value !== null && 'error' in value

describe('questions get the answers of PyTorch, and leave its guards', () => {
  for (const { source, steps, answers, state } of readGolden('questions')) {
    it(textIn(source), () => {
      const { env, names } = environment()
      const found = (Array.isArray(steps) ? steps : []).map((step) => answer(env, step, names))
      expect({ answers: found, state: stateOf(env) }).toEqual({ answers: ownErrors(answers), state })
    })
  }
})

const firstLine = (value: Json): Json => (isError(value) ? { error: textIn(value['error']).split('\n')[0] ?? '' } : value)

describe('sizes that depend on data', () => {
  for (const { source, steps, answers, state } of readGolden('unbacked')) {
    it(textIn(source), () => {
      const env = new ShapeEnv()
      const names = new Map<string, Value>([
        ['a', env.createSymInt(6, 'dynamic')] as const,
        ['u', env.createUnbackedSymInt()],
        ['v', env.createUnbackedSymInt()],
      ])
      const found = (Array.isArray(steps) ? steps : []).map((step) => firstLine(answer(env, step, names)))
      const wanted = ownErrors(answers)
      expect({ answers: found, state: stateOf(env) }).toEqual({ answers: Array.isArray(wanted) ? wanted.map(firstLine) : wanted, state })
    })
  }
})

const KINDS = new Map<string, DimDynamic>([
  ['d', 'dynamic'],
  ['k', 'duck'],
  ['s', 'static'],
])
const numbersIn = (value: Json | undefined): readonly number[] => (isList(value) ? value.filter((each) => typeof each === 'number') : [])

function constraintOf(given: Json | undefined): Constraint | null {
  if (!isList(given)) return null
  const [kind, lower, upper] = given
  return kind === 'relaxed' ? { kind } : { kind: 'strict', range: integerRange(Number(lower), Number(upper)) }
}

const fieldOf = (value: Json | undefined, name: string): Json | undefined =>
  typeof value === 'object' && value !== null && !isList(value) ? value[name] : undefined
const entriesOf = (value: Json | undefined): readonly (readonly [string, Json])[] =>
  typeof value === 'object' && value !== null && !isList(value) ? Object.entries(value) : []

function failure(error: unknown): Json {
  if (!(error instanceof ConstraintViolationError)) throw error
  return { error_type: 'ConstraintViolationError', error: error.message }
}

/** The layouts of contiguous tensors, the symbols of their sizes by name, and what is known after the steps. */
function guardsOf(tensors: Json | undefined, constraints: Json | undefined, steps: Json | undefined): Json {
  const env = new ShapeEnv()
  const names = new Map<string, Value>()
  const inputs = entriesOf(tensors).map(([name, tensor]) => {
    const sizes = numbersIn(fieldOf(tensor, 'sizes'))
    const strides = sizes.map((_, i) => sizes.slice(i + 1).reduce((a, b) => a * Math.max(b, 1), 1))
    const dims = [...textIn(fieldOf(tensor, 'dims'))].map((letter) => KINDS.get(letter) ?? 'static')
    const given = fieldOf(constraints, name)
    const promised = isList(given) ? given.map(constraintOf) : []
    const value = createSymbolicLayout(env, sizes, strides, { dims, constraints: promised })
    for (const [i, size] of value.sizes.entries()) names.set(`${name}${i}`, size)
    return { name, value, constraints: promised }
  })
  const answers = (isList(steps) ? steps : []).map((step) => answer(env, step, names))
  let produced: Json
  try {
    produced = [...produceGuards(env, inputs)]
  } catch (error) {
    produced = failure(error)
  }
  const texts = (of: 'sizes' | 'strides'): Json =>
    Object.fromEntries(inputs.map(({ name, value }) => [name, value[of].map((size) => size.toString())]))
  return { shapes: texts('sizes'), strides: texts('strides'), answers, produced, state: stateOf(env) }
}

describe('guards are written about inputs as in PyTorch', () => {
  for (const { tensors, constraints, source, steps, ...recorded } of readGolden('inputGuards')) {
    it(`${JSON.stringify(tensors)} ${JSON.stringify(constraints)} ${textIn(source)}`, () => {
      const { shapes, strides, answers, produced, state, error_type, error } = recorded
      let found: Json
      try {
        found = guardsOf(tensors, constraints, steps)
      } catch (thrown) {
        found = failure(thrown)
      }
      expect(found).toEqual(error === undefined ? { shapes, strides, answers, produced, state } : { error_type, error })
    })
  }
})
