// What PyTorch computes with sizes as symbols, as recorded: printed expressions, answers, guards and ranges, letter by letter.
import { describe, expect, it } from 'vitest'
import { ShapeEnv } from '../../src/symbols/index.ts'
import { answer, read, readGolden, stateOf } from './golden.ts'
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
      const found = typeof value === 'object' && 'expr' in value ? { type: value.constructor.name, text: String(value), hint: value.hint } : value
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
