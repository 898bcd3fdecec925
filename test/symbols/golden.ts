// Reads the recorded cases of goldens/symbols: expressions as nested arrays, and steps that ask an environment.
import { readFileSync } from 'node:fs'
import {
  ShapeEnv,
  SymBool,
  SymFloat,
  SymInt,
  compare,
  floorDivide,
  power,
  rangeText,
  remainder,
  shiftLeft,
  shiftRight,
  symAdd,
  symAnd,
  symCeil,
  symFloat,
  symFloor,
  symInt,
  symIte,
  symMax,
  symMin,
  symMul,
  symNot,
  symOr,
  symRound,
  symSqrt,
  symSub,
  symSum,
  symTrunc,
  textOf,
  trueDivide,
} from '../../src/symbols/index.ts'
import type { NumberLike, Sym } from '../../src/symbols/index.ts'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }
export type Value = NumberLike | boolean | SymBool | readonly NumberLike[]

/** The cases of a file. */
export function readGolden(name: string): readonly { readonly [name: string]: Json }[] {
  const { cases }: { cases: readonly { readonly [name: string]: Json }[] } = JSON.parse(
    readFileSync(new URL(`../goldens/symbols/${name}.json`, import.meta.url), 'utf8'),
  )
  return cases
}

export const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value)
const isSym = (value: Value): value is Sym => value instanceof SymInt || value instanceof SymFloat
const isNumberLike = (value: Value): value is NumberLike => typeof value === 'number' || isSym(value)

function number(value: Value | undefined): NumberLike {
  if (value === undefined || !isNumberLike(value)) throw new Error(`not a number: ${String(value)}`)
  return value
}
function sym(value: Value | undefined): Sym {
  if (value === undefined || !isSym(value)) throw new Error(`not symbolic: ${String(value)}`)
  return value
}
function truth(value: Value | undefined): SymBool {
  if (!(value instanceof SymBool)) throw new Error(`not a truth value: ${String(value)}`)
  return value
}
const plain = (value: Value | undefined): value is number => typeof value === 'number'

const RELATIONS = { eq: 'Eq', ne: 'Ne', lt: 'Lt', le: 'Le', gt: 'Gt', ge: 'Ge' } as const
const isRelationName = (name: string): name is keyof typeof RELATIONS => Object.hasOwn(RELATIONS, name)

/** Computes a recorded expression with the values of its names. */
export function read(expr: Json, names: ReadonlyMap<string, Value>): Value {
  if (typeof expr === 'number') return expr
  if (typeof expr === 'boolean') return expr
  if (typeof expr === 'string') {
    const value = names.get(expr)
    if (value === undefined) throw new Error(`no value for ${expr}`)
    return value
  }
  if (!isList(expr)) throw new Error(`not an expression: ${JSON.stringify(expr)}`)
  const [op, ...rest] = expr
  const args = rest.map((arg) => read(arg, names))
  const [a, b, c] = args
  if (plain(a) && plain(b)) {
    const computed = { add: a + b, sub: a - b, mul: a * b, pow: a ** b, floordiv: Math.floor(a / b) }[String(op)]
    if (computed !== undefined) return computed
  }
  const name = String(op)
  if (isRelationName(name)) return compare(RELATIONS[name], number(a), number(b))
  switch (op) {
    case 'list':
      return args.map(number)
    case 'add':
      return symAdd(number(a), number(b))
    case 'sub':
      return symSub(number(a), number(b))
    case 'mul':
      return symMul(number(a), number(b))
    case 'neg':
      return sym(a).neg()
    case 'floordiv':
      return floorDivide(number(a), number(b))
    case 'mod':
      return remainder(number(a), number(b))
    case 'truediv':
      return trueDivide(number(a), number(b))
    case 'pow':
      return power(number(a), number(b))
    case 'lshift':
      return shiftLeft(number(a), Number(b))
    case 'rshift':
      return shiftRight(number(a), Number(b))
    case 'sym_max':
      return symMax(number(a), number(b))
    case 'sym_min':
      return symMin(number(a), number(b))
    case 'sym_ite':
      return symIte(truth(a), number(b), number(c))
    case 'sym_not':
      return symNot(truth(a))
    case 'sym_and':
      return symAnd(truth(a), truth(b))
    case 'sym_or':
      return symOr(truth(a), truth(b))
    case 'sym_sum':
      return symSum(Array.isArray(a) ? a.map(number) : [])
    case 'sym_float':
      return symFloat(sym(a))
    case 'sym_int':
      return symInt(sym(a))
    case 'sym_sqrt':
      return symSqrt(sym(a))
    case 'floor':
      return symFloor(sym(a))
    case 'ceil':
      return symCeil(sym(a))
    case 'trunc':
      return symTrunc(sym(a))
    case 'round':
      return symRound(sym(a))
    case 'abs':
      return sym(a).abs()
    default:
      throw new Error(`no operation ${String(op)}`)
  }
}

/** The answer of a step, as the goldens record it; an error as its message. */
export function answer(env: ShapeEnv, step: Json, names: ReadonlyMap<string, Value>): Json {
  if (!isList(step)) throw new Error('not a step')
  const [kind, first = null, second = null, third = null] = step
  const value = read(first, names)
  const condition = (): SymBool => truth(value)
  try {
    switch (kind) {
      case 'bool':
        return condition().toBool()
      case 'int':
        return plain(value) ? value : symInt(sym(value)).toInt()
      case 'known':
        return env.staticallyKnownTrue(condition())
      case 'orFalse':
        return env.guardOrFalse(condition())
      case 'orTrue':
        return env.guardOrTrue(condition())
      case 'oblivious':
        return env.guardSizeOblivious(condition())
      case 'check':
        if (!env.check(condition())) return { error: 'check' }
        return null
      case 'isSize': {
        const size = sym(value)
        if (size instanceof SymInt) {
          env.check(size.ge(0))
          env.advise(size)
        }
        return null
      }
      case 'range': {
        const size = sym(value)
        if (size instanceof SymInt) env.constrainRange(size, { min: bound(second, -Infinity), max: bound(third, Infinity) })
        return null
      }
      case 'unify': {
        const [left, right] = [sym(value), sym(read(second, names))]
        if (left instanceof SymInt && right instanceof SymInt) env.constrainUnify(left, right)
        return null
      }
      case 'simplify':
        return plain(value) ? String(value) : textOf(env.simplify(sym(value).expr))
      default:
        throw new Error(`no step ${String(kind)}`)
    }
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) }
  }
}

const bound = (value: Json, open: number): number => (typeof value === 'number' ? value : open)

/** The state of an environment, as the goldens record it. */
export function stateOf(env: ShapeEnv): Json {
  const sorted = (entries: Iterable<readonly [string, Json]>): Json => Object.fromEntries([...entries].toSorted(([a], [b]) => (a < b ? -1 : 1)))
  return {
    guards: env.guards.map(({ expr }) => textOf(expr)),
    ranges: sorted([...env.ranges].map(([symbol, range]) => [symbol.name, rangeText(range)] as const)),
    replacements: sorted([...env.replacements].map(([symbol, target]) => [symbol.name, textOf(target)] as const)),
    divisible: [...env.divisible].map(textOf).toSorted(),
    deferred: sorted([...env.deferredRuntimeAsserts].map(([symbol, asserts]) => [symbol.name, asserts.map(({ expr }) => textOf(expr))] as const)),
  }
}
