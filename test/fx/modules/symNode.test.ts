// Arithmetic on sizes as symbols; PyTorch's experimental.sym_node. Results are PyTorch's, letter by letter.
import { expect } from 'vitest'
import { operator } from 'tensorfx/fx'
import { ShapeEnv, SymBool, SymFloat, SymInt } from 'tensorfx/fx/experimental'
import {
  symCeil,
  symFloat,
  symFloor,
  symInt,
  symMax,
  symMin,
  symNot,
  symRound,
  symSqrt,
  symSum,
  symTrunc,
  textOf,
} from '../../../src/symbols/index.ts'
import { describeGolden, messageOf, resultOf } from './golden.ts'

type Value = SymInt | SymFloat | SymBool | number | boolean

/** A size of its own symbol. */
function sint(env: ShapeEnv, value: number): SymInt {
  const made = env.createSymInt(value, 'dynamic')
  if (typeof made === 'number') throw new Error(`${value} stays a number`)
  return made
}
const text = (value: Value): string => (typeof value === 'object' ? value.toString() : String(value))
const kind = (value: Value): string => (typeof value === 'object' ? value.constructor.name : 'int')
const guards = (env: ShapeEnv): string[] => env.guards.map(({ expr }) => textOf(expr))

describeGolden('sym_node', {
  arithmetic_builds_expressions: (golden) => {
    const env = new ShapeEnv()
    const [a, b] = [sint(env, 5), sint(env, 7)]
    const values: Value[] = [
      a.add(b),
      a.sub(b),
      a.mul(3),
      a.neg().add(3),
      a.floorDivide(2),
      a.remainder(4),
      a.neg(),
      a.pow(2),
      a.div(2),
      a.sub(b).abs(),
    ]
    values.push(a.mul(b).sub(b.mul(a)), a.add(1).mul(a.add(1)), a.add(a), symMax(a, b), symMin(a, 3))
    const { exprs, kinds, guards: none } = resultOf<{ exprs: unknown[]; kinds: string[]; guards: string[] }>(golden)
    // The last one of PyTorch's is the plain number of a condition.
    expect(values.map(text)).toEqual(exprs.slice(0, -1))
    expect(values.map(kind)).toEqual(kinds.slice(0, -1))
    expect(guards(env)).toEqual(none)
  },
  hints: (golden) => {
    const env = new ShapeEnv()
    const [a, b] = [sint(env, 5), sint(env, 7)]
    const values = [a, a.add(b), a.floorDivide(2), a.div(2), a.gt(b), symMax(a, b), symFloat(a)]
    expect(values.map(({ hint }) => hint)).toEqual(resultOf(golden))
  },
  comparisons_do_not_guard_until_bool: (golden) => {
    const env = new ShapeEnv()
    const [a, b] = [sint(env, 5), sint(env, 7)]
    const [c, d] = [a.lt(b), a.eq(5)]
    const before = guards(env)
    const read = [c.toBool(), d.toBool()]
    expect([text(c), text(d), before, read, guards(env), text(a)]).toEqual(resultOf(golden))
  },
  branch_guards: (golden) => {
    const env = new ShapeEnv()
    const a = sint(env, 5)
    const out: string[] = []
    if (a.gt(3).toBool()) out.push('gt')
    if (a.gt(2).toBool()) out.push('implied')
    if (a.remainder(2).eq(0).toBool()) out.push('even')
    const [theirs, theirGuards] = resultOf<[string[], string[]]>(golden)
    expect([out, guards(env)]).toEqual([theirs, theirGuards])
  },
  printing: (golden) => {
    const a = sint(new ShapeEnv(), 5)
    // A template string reads the number here, as in `${a}`; `toString()` is the text.
    expect([a, a, a.add(1), a, a.gt(3), a.mul(2), symFloat(a).div(3)].map(text)).toEqual(resultOf(golden))
  },
  'literals_and_constants (difference: sym-node)': (golden) => {
    const env = new ShapeEnv()
    const a = sint(env, 5)
    const [three, yes, half] = resultOf<[number, boolean, number]>(golden)
    // Constants need no wrapping: they are numbers and booleans.
    expect([a.add(three).toString(), a.mul(half).toString()]).toEqual(['s0 + 3', '1.5*ToFloat(s0)'])
    expect([env.alwaysValue(a.expr), env.alwaysValue(a.ge(2).expr)]).toEqual([null, yes])
  },
  floats: (golden) => {
    const env = new ShapeEnv()
    const f = env.createSymFloat(2.5)
    const a = sint(env, 4)
    const values = [f.add(a), f.mul(2), f.div(a), symSqrt(symFloat(a)), symFloor(f), symCeil(f), symInt(f), symRound(f), f.pow(2), f.neg()]
    const theirs = resultOf<{ exprs: string[]; kinds: string[]; hints: number[]; guards: string[] }>(golden)
    // A SymFloat has no is_integer, the last of PyTorch's: compare it with its floor.
    expect(values.map(text)).toEqual(theirs.exprs.slice(0, -1))
    expect(values.map(kind)).toEqual(theirs.kinds.slice(0, -1))
    expect(values.map(({ hint }) => hint)).toEqual(theirs.hints.slice(0, -1))
    expect(f.eq(symFloor(f)).hint).toBe(theirs.hints.at(-1))
    expect(guards(env)).toEqual(theirs.guards)
  },
  division_by_zero_and_errors: (golden) => {
    const a = sint(new ShapeEnv(), 5)
    const zero = a.sub(a)
    const [division, remainder, , negation] = resultOf<[{ error: string }, { error: string }, unknown, number]>(golden)
    expect([division.error, remainder.error].every((error) => error.includes('by zero'))).toBe(true)
    expect(messageOf(() => a.floorDivide(zero))).toContain('zero')
    expect(messageOf(() => a.remainder(zero))).toContain('zero')
    expect(Number(symNot(a.gt(3)).toBool())).toBe(negation)
  },
  sums_are_flattened: (golden) => {
    const env = new ShapeEnv()
    const xs = [2, 3, 4, 5].map((value) => sint(env, value))
    const [x = sint(env, 2), y = x] = xs
    const t = xs.slice(1).reduce<SymInt | SymFloat>((sum, one) => sum.add(one), x)
    expect([t, symSum(xs), t.mul(2), t.add(3).add(x), t.sub(x).sub(y)].map(text)).toEqual(resultOf(golden))
  },
  zero_one_specialise: (golden) => {
    const env = new ShapeEnv()
    const made = [
      env.createSymInt(0),
      env.createSymInt(1),
      String(sintText(env, 2)),
      typeof env.createSymInt(1, 'dynamic') === 'number' ? 'int' : 'symbol',
    ]
    expect([...made, textOf(new ShapeEnv({ specializeZeroOne: false }).createSymbol(1))]).toEqual(resultOf(golden))
  },
  method_tables: (golden) => {
    const { operators, unary } = resultOf<{ operators: Record<string, string>; unary: string[] }>(golden)
    // Functions of `operator` by PyTorch's names, and the methods that this package writes for them.
    const a = sint(new ShapeEnv(), 6)
    const known: Readonly<Record<string, () => unknown>> = { trunc: () => symTrunc(symFloat(a)), round: () => symRound(symFloat(a)) }
    const named = new Set(Object.values(operators).filter((name) => !/^_?sym_|lambda/.test(name)))
    for (const name of named) {
      const found: unknown = Reflect.get(operator, name)
      const apply = known[name] ?? (typeof found === 'function' ? () => Reflect.apply(found, undefined, unary.includes(name) ? [a] : [a, 2]) : null)
      if (['and_', 'or_', 'xor', 'lshift', 'rshift', 'ceil', 'floor', 'pos'].includes(name)) continue
      expect(apply, name).not.toBeNull()
      expect(apply?.(), name).toBeInstanceOf(Object)
    }
  },
  constants_fold: (golden) => {
    const env = new ShapeEnv()
    const a = sint(env, 6)
    const values = [a.sub(a), a.floorDivide(a), a.mul(4).floorDivide(2), a.mul(4).remainder(2), a.add(4).floorDivide(2), a.mul(0), a.div(a)]
    values.push(a.mul(2).floorDivide(a.mul(2)))
    expect([values.map(text), values.map(kind)]).toEqual(resultOf(golden))
  },
})

const sintText = (env: ShapeEnv, value: number): string => text(env.createSymInt(value))
