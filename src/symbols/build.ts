// The constructor of every operation: brings what it makes into canonical form. Replacing parts, parsing and reading JSON go through it.
import { ArgumentError } from '../errors/index.ts'
import { add, mul, pow } from './arithmetic.ts'
import { operation } from './expression.ts'
import type { Expr, Operator } from './expression.ts'
import * as functions from './functions.ts'
import { max, min } from './minMax.ts'
import { and, eq, ge, gt, le, lt, ne, not, or, piecewise } from './relations.ts'
import { isWhole } from './rational.ts'

type Unary = (expr: Expr) => Expr
type Binary = (a: Expr, b: Expr) => Expr

const UNARY: Readonly<Partial<Record<Operator, Unary>>> = {
  Abs: functions.abs,
  ToFloat: functions.toFloat,
  TruncToInt: functions.truncToInt,
  FloorToInt: functions.floorToInt,
  CeilToInt: functions.ceilToInt,
  RoundToInt: functions.roundToInt,
  Not: not,
}

const BINARY: Readonly<Partial<Record<Operator, Binary>>> = {
  FloorDiv: functions.floorDiv,
  CleanDiv: functions.cleanDiv,
  Mod: functions.mod,
  PythonMod: functions.pythonMod,
  PowByNatural: functions.powByNatural,
  IntTrueDiv: functions.intTrueDiv,
  FloatTrueDiv: functions.floatTrueDiv,
  FloatPow: functions.floatPow,
  RoundDecimal: functions.roundToDecimal,
  Pow: (base, exponent) => (exponent.op === 'number' && isWhole(exponent.value) ? pow(base, exponent.value.p) : operation('Pow', [base, exponent])),
  Eq: eq,
  Ne: ne,
  Lt: lt,
  Le: le,
  Gt: gt,
  Ge: ge,
}

const ANY: Readonly<Partial<Record<Operator, (...args: readonly Expr[]) => Expr>>> = {
  Add: add,
  Mul: mul,
  Max: max,
  Min: min,
  And: and,
  Or: or,
  Piecewise: piecewise,
}

/**
 * The operation of these arguments, in canonical form.
 *
 *     build('FloorDiv', [add(s0, integer(4)), integer(2)]) // ((s0//2)) + 2
 *
 * @throws ArgumentError for an operation that does not exist, or another number of arguments than it takes.
 */
export function build(op: string, args: readonly Expr[]): Expr {
  const [first, second] = args
  const any = lookUp(ANY, op)
  if (any !== undefined && first !== undefined) return any(...args)
  const unary = lookUp(UNARY, op)
  if (unary !== undefined && first !== undefined && args.length === 1) return unary(first)
  const binary = lookUp(BINARY, op)
  if (binary !== undefined && first !== undefined && second !== undefined && args.length === 2) return binary(first, second)
  if (functions.isOpaque(op) && first !== undefined && args.length === 1) return functions.opaque(op, first)
  throw new ArgumentError(`build: there is no operation '${op}' of ${args.length} ${args.length === 1 ? 'argument' : 'arguments'}.`)
}

const lookUp = <T>(table: Readonly<Partial<Record<string, T>>>, op: string): T | undefined => (Object.hasOwn(table, op) ? table[op] : undefined)
