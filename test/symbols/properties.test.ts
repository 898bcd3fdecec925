// What holds of every expression, for drawn ones: values stay through simplification, the canonical form is a fixed point, texts and JSON lead back to the same object, and
// ranges contain the values.
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  ShapeEnv,
  boundsOf,
  build,
  canonicalBoolean,
  evaluate,
  expand,
  exprFromJson,
  exprToJson,
  integer,
  integerRange,
  parseExpr,
  pythonTextOf,
  symbol,
  textOf,
  trySolve,
} from '../../src/symbols/index.ts'
import type { Expr, Range, SymbolExpr } from '../../src/symbols/index.ts'

const SIZES = ['s0', 's1', 's2'].map((name) => symbol(name, { positive: true }))
const OPEN = symbol('u0')
const SYMBOLS: readonly SymbolExpr[] = [...SIZES, OPEN]
const symbolOf = (name: string): SymbolExpr => SYMBOLS.find((each) => each.name === name) ?? symbol(name)

/** A program: nested operations, from which the expression is built and the value computed, each in its own way. */
type Program = number | string | readonly [string, ...Program[]]

/** What divides by zero has no value, nor has anything that is made of it. */
const floorDivide = (a: number, b: number): number => (b === 0 ? NaN : Math.floor(a / b))
const truth = (a: number, b: number, holds: boolean): number => (Number.isNaN(a) || Number.isNaN(b) ? NaN : Number(holds))
const COMPUTE: Readonly<Record<string, (...args: readonly number[]) => number>> = {
  Add: (a = 0, b = 0) => a + b,
  Mul: (a = 0, b = 0) => a * b,
  FloorDiv: (a = 0, b = 1) => floorDivide(a, b),
  PythonMod: (a = 0, b = 1) => a - floorDivide(a, b) * b,
  Max: (a = 0, b = 0) => Math.max(a, b),
  Min: (a = 0, b = 0) => Math.min(a, b),
  Abs: (a = 0) => Math.abs(a),
  Eq: (a = 0, b = 0) => truth(a, b, a === b),
  Ne: (a = 0, b = 0) => truth(a, b, a !== b),
  Lt: (a = 0, b = 0) => truth(a, b, a < b),
  Ge: (a = 0, b = 0) => truth(a, b, a >= b),
  And: (a = 0, b = 0) => Math.min(a, b),
  Or: (a = 0, b = 0) => Math.max(a, b),
  Not: (a = 0) => 1 - a,
}

const { number: programs, truth: conditions } = fc.letrec<{ number: Program; truth: Program }>((tie) => ({
  number: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(fc.constantFrom('s0', 's1', 's2', 'u0'), fc.integer({ min: -4, max: 8 })),
    fc.tuple(fc.constantFrom('Add', 'Mul', 'Add', 'Mul', 'Max', 'Min'), tie('number'), tie('number')),
    fc.tuple(fc.constantFrom('FloorDiv', 'PythonMod'), tie('number'), fc.oneof(fc.constantFrom(1, 2, 3, 4, 6, 8, -2), tie('number'))),
    fc.tuple(fc.constant('Abs'), tie('number')),
  ),
  truth: fc.oneof(
    { depthSize: 'xsmall', withCrossShrink: true },
    fc.tuple(fc.constantFrom('Eq', 'Ne', 'Lt', 'Ge'), tie('number'), tie('number')),
    fc.tuple(fc.constantFrom('And', 'Or'), tie('truth'), tie('truth')),
    fc.tuple(fc.constant('Not'), tie('truth')),
  ),
}))

function expressionOf(program: Program): Expr {
  if (typeof program === 'number') return integer(program)
  if (typeof program === 'string') return symbolOf(program)
  const [op, ...args] = program
  return build(op, args.map(expressionOf))
}

function valueOf(program: Program, values: ReadonlyMap<SymbolExpr, number>): number {
  if (typeof program === 'number') return program
  if (typeof program === 'string') return values.get(symbolOf(program)) ?? NaN
  const [op, ...args] = program
  return COMPUTE[op]?.(...args.map((arg) => valueOf(arg, values))) ?? NaN
}

/** Programs that divide by zero for some values have no value there, and for all values no expression. */
function built(program: Program): Expr | null {
  try {
    return expressionOf(program)
  } catch {
    return null
  }
}

const assignments = fc
  .tuple(fc.integer({ min: 2, max: 12 }), fc.integer({ min: 2, max: 12 }), fc.integer({ min: 2, max: 12 }), fc.integer({ min: -6, max: 12 }))
  .map((drawn) => new Map(SYMBOLS.map((each, i) => [each, drawn[i] ?? 2])))
const exact = (value: number): boolean => Number.isSafeInteger(value)
const RUNS = Number(process.env['TENSORFX_FUZZ'] ?? 60)
const SEED = Number(process.env['TENSORFX_FUZZ_SEED'] ?? 28)
const both = fc.oneof(programs, conditions)

describe('drawn expressions', () => {
  it('have the values of their programs, before and after they are simplified', () => {
    fc.assert(
      fc.property(both, assignments, (program, values) => {
        const expr = built(program)
        const wanted = valueOf(program, values)
        if (expr === null || !exact(wanted)) return
        for (const form of [expr, expand(expr), canonicalBoolean(expr)]) {
          const found = evaluate(form, values)
          if (exact(found) || !hasDivision(form)) expect({ text: textOf(form), found: found + 0 }).toEqual({ text: textOf(form), found: wanted + 0 })
        }
      }),
      { numRuns: RUNS, seed: SEED },
    )
  })

  it('are their own canonical form, and are found again by text and JSON', () => {
    fc.assert(
      fc.property(both, (program) => {
        const expr = built(program)
        if (expr === null) return
        expect(textOf(rebuilt(expr))).toBe(textOf(expr))
        expect(rebuilt(expr)).toBe(expr)
        expect(parseExpr(textOf(expr), symbolOf)).toBe(expr)
        expect(exprFromJson(JSON.parse(JSON.stringify(exprToJson(expr))), symbolOf)).toBe(expr)
        expect(canonicalBoolean(canonicalBoolean(expr))).toBe(canonicalBoolean(expr))
      }),
      { numRuns: RUNS, seed: SEED },
    )
  })

  it('have values within their ranges', () => {
    const ranges = new Map<SymbolExpr, Range>([...SIZES.map((each) => [each, integerRange(2, 12)] as const), [OPEN, integerRange(-6, 12)]])
    fc.assert(
      fc.property(both, assignments, (program, values) => {
        const expr = built(program)
        const value = valueOf(program, values)
        if (expr === null || !exact(value)) return
        const range = boundsOf(expr, (each) => ranges.get(each) ?? integerRange(-Infinity, Infinity))
        const text = `${textOf(expr)} is ${value}`
        if (range.kind === 'exact') {
          expect(Number(range.lower.p) / Number(range.lower.q), text).toBeLessThanOrEqual(value)
          expect(Number(range.upper.p) / Number(range.upper.q), text).toBeGreaterThanOrEqual(value)
        } else expect([Number(range.lower), Number(range.upper)], text).toContain(value)
      }),
      { numRuns: RUNS, seed: SEED },
    )
  })

  it('are solved for a symbol without another truth', () => {
    fc.assert(
      fc.property(conditions, assignments, fc.constantFrom(...SYMBOLS), (program, values, wanted) => {
        const expr = built(program)
        const solution = expr === null ? null : trySolve(expr, wanted)
        if (expr === null || solution === null || !exact(valueOf(program, values))) return
        const found = evaluate(solution.relation, values)
        expect(found, `${textOf(expr)} as ${textOf(solution.relation)}`).toBe(evaluate(expr, values))
      }),
      { numRuns: RUNS, seed: SEED },
    )
  })

  it('keep their values where PyTorch forgets negative divisors', () => {
    // PyTorch makes (s0//(-16)) of the first and -3*s0 of the second.
    const [twice, remainder] = [parseExpr('(((s0//8))//(-2))', symbolOf), parseExpr('PythonMod(-3*s0, -2)', symbolOf)]
    const values = new Map(SYMBOLS.map((each) => [each, 7]))
    expect([evaluate(twice, values) + 0, evaluate(remainder, values)]).toEqual([0, -1])
  })

  it('order symbols as sympy does: those of which less is assumed first', () => {
    const expr = parseExpr('s2*u0 + s1', symbolOf)
    expect(textOf(expr)).toBe('s1 + s2*u0')
    expect(pythonTextOf(expr, ({ name }) => name)).toBe('s1 + u0*s2')
  })

  it('have a text in Python with other names', () => {
    const expr = parseExpr('2*s0 + (s1//(s0 + 1)) - Max(3, s2) + Mod(s1, 4)', symbolOf)
    expect(pythonTextOf(expr, ({ name }) => `x.${name}`)).toBe('((-1)*max(3, x.s2)) + 2*x.s0 + (x.s1 // (1 + x.s0)) + (x.s1 % 4)')
  })
})

/** The expression, built again from its parts. */
const rebuilt = (expr: Expr): Expr => (expr.args.length === 0 ? expr : build(expr.op, expr.args.map(rebuilt)))
const hasDivision = (expr: Expr): boolean => textOf(expr).includes('/') || textOf(expr).includes('Mod')

describe('an environment', () => {
  it('answers as its values do, and its guards hold', () => {
    fc.assert(
      fc.property(
        fc.array(conditions, { minLength: 1, maxLength: 6 }),
        fc.array(fc.integer({ min: 2, max: 12 }), { minLength: 3, maxLength: 3 }),
        (asked, drawn) => {
          const env = new ShapeEnv()
          const symbols = drawn.map((value) => env.createSymbol(value, 'dynamic'))
          const values = new Map(symbols.flatMap((each, i) => (each.op === 'symbol' ? [[each, drawn[i] ?? 2] as const] : [])))
          for (const program of asked) {
            const expr = built(withoutOpen(program))
            const wanted = valueOf(withoutOpen(program), values)
            if (expr === null || !exact(wanted)) continue
            expect(env.evaluate(expr), textOf(expr)).toBe(wanted === 1)
          }
          for (const { expr } of env.guards) expect(evaluate(expr, values), textOf(expr)).toBe(1)
          for (const [each, target] of env.replacements) expect(evaluate(target, values), each.name).toBe(values.get(each))
        },
      ),
      { numRuns: RUNS, seed: SEED },
    )
  })

  it('answers other values that satisfy its guards and ranges in the same way', () => {
    fc.assert(
      fc.property(fc.array(conditions, { minLength: 1, maxLength: 4 }), assignments, assignments, (asked, first, second) => {
        const env = new ShapeEnv()
        const symbols = SIZES.map((each) => env.createSymbol(first.get(each) ?? 2, 'dynamic'))
        const values = new Map(symbols.flatMap((each, i) => (each.op === 'symbol' ? [[each, second.get(SIZES[i] ?? OPEN) ?? 2] as const] : [])))
        const answers: { readonly program: Program; readonly answer: unknown }[] = []
        for (const program of asked.map(withoutOpen)) {
          const expr = built(program)
          if (expr === null || !exact(valueOf(program, first)) || !exact(valueOf(program, second))) continue
          answers.push({ program, answer: env.evaluate(expr) })
        }
        const holds = env.guards.every(({ expr }) => evaluate(expr, values) === 1)
        if (holds) for (const { program, answer } of answers) expect(valueOf(program, values) === 1, JSON.stringify(program)).toBe(answer)
      }),
      { numRuns: RUNS, seed: SEED },
    )
  })
})

/** Sizes only. */
const withoutOpen = (program: Program): Program => {
  if (typeof program === 'string') return program === 'u0' ? 's2' : program
  if (typeof program === 'number') return program
  const [op, ...args] = program
  return [op, ...args.map(withoutOpen)]
}
