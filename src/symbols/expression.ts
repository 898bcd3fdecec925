// What an expression is: a number, a symbol, a truth value, or an operation on expressions. Equal expressions are the same object, so `===` compares them and every
// fact about one can be kept in a WeakMap. This file only makes them; the files beside it bring them into sympy's canonical form first, and callers use those.
import { exactly, rationalText, whole } from './rational.ts'
import type { Rational } from './rational.ts'

/** Operations on numbers whose value is a number, in PyTorch's spelling. */
export type NumberOperator =
  | 'Add'
  | 'Mul'
  | 'Pow'
  | 'Max'
  | 'Min'
  | 'Abs'
  | 'FloorDiv'
  | 'CleanDiv'
  | 'Mod'
  | 'PythonMod'
  | 'PowByNatural'
  | 'IntTrueDiv'
  | 'FloatTrueDiv'
  | 'FloatPow'
  | 'ToFloat'
  | 'TruncToInt'
  | 'FloorToInt'
  | 'CeilToInt'
  | 'RoundToInt'
  | 'RoundDecimal'
  | 'Piecewise'
  | OpaqueFunction

/** Functions of floats that nothing is known about but how to compute them. */
export type OpaqueFunction =
  `OpaqueUnaryFn_${'sqrt' | 'cos' | 'cosh' | 'sin' | 'sinh' | 'tan' | 'tanh' | 'asin' | 'acos' | 'atan' | 'exp' | 'log' | 'log2'}`

export type RelationOperator = 'Eq' | 'Ne' | 'Lt' | 'Le' | 'Gt' | 'Ge'
export type BooleanOperator = RelationOperator | 'And' | 'Or' | 'Not'
export type Operator = NumberOperator | BooleanOperator

/** An exact number, or an infinity. */
export interface NumberExpr {
  readonly id: number
  readonly op: 'number'
  readonly value: Rational
  readonly args: readonly []
}

/** A float. */
export interface FloatExpr {
  readonly id: number
  readonly op: 'float'
  readonly value: number
  readonly args: readonly []
}

/** A name that stands for a number. */
export interface SymbolExpr {
  readonly id: number
  readonly op: 'symbol'
  readonly name: string
  readonly integer: boolean
  /** Whether it stands for numbers above 0 only. */
  readonly positive: boolean
  readonly args: readonly []
}

export interface BooleanExpr {
  readonly id: number
  readonly op: 'boolean'
  readonly value: boolean
  readonly args: readonly []
}

/** An operation on expressions. A Piecewise has its values and conditions in turn; the last condition is True. */
export interface Operation<Op extends Operator = Operator> {
  readonly id: number
  readonly op: Op
  readonly args: readonly Expr[]
}

/** An expression: a number, a float, a symbol, a truth value, or an operation on expressions. */
export type Expr = NumberExpr | FloatExpr | SymbolExpr | BooleanExpr | Operation
export type Relation = Operation<RelationOperator>

let lastId = 0
const interned = new Map<string, WeakRef<Expr>>()
const dropped = new FinalizationRegistry<string>((key) => {
  // The expression may have been made again since the old one went.
  if (interned.get(key)?.deref() === undefined) interned.delete(key)
})

function keep<E extends Expr>(key: string, made: E): E {
  interned.set(key, new WeakRef<Expr>(made))
  dropped.register(made, key)
  return made
}

const known = (key: string): Expr | undefined => interned.get(key)?.deref()

export function number(value: Rational): NumberExpr {
  const key = `n${rationalText(value)}`
  const found = known(key)
  return found?.op === 'number' ? found : keep(key, { id: ++lastId, op: 'number', value, args: [] })
}

/** An integer as an expression. @throws ArgumentError if the number is not an integer. */
export const integer = (value: number | bigint): NumberExpr => number(typeof value === 'bigint' ? whole(value) : exactly(value))

export function float(value: number): FloatExpr {
  const key = `f${Object.is(value, -0) ? '-0' : value}`
  const found = known(key)
  return found?.op === 'float' ? found : keep(key, { id: ++lastId, op: 'float', value, args: [] })
}

/**
 * The symbol of a name. Symbols of one name with other assumptions are other symbols, as in sympy.
 *
 *     const s0 = symbol('s0', { positive: true })
 */
export function symbol(name: string, { integer: isInteger = true, positive = false }: { integer?: boolean; positive?: boolean } = {}): SymbolExpr {
  const key = `s${isInteger ? 'i' : 'r'}${positive ? 'p' : ' '}${name}`
  const found = known(key)
  return found?.op === 'symbol' ? found : keep(key, { id: ++lastId, op: 'symbol', name, integer: isInteger, positive, args: [] })
}

function truth(value: boolean): BooleanExpr {
  return { id: ++lastId, op: 'boolean', value, args: [] }
}

export const TRUE: BooleanExpr = truth(true)
export const FALSE: BooleanExpr = truth(false)
export const boolean = (value: boolean): BooleanExpr => (value ? TRUE : FALSE)

/** The operation itself, without bringing it into canonical form. */
export function operation<Op extends Operator>(op: Op, args: readonly Expr[]): Operation<Op> {
  const key = `${op} ${args.map(({ id }) => id).join(' ')}`
  const found = known(key)
  return isOperation(found, op) ? found : keep(key, { id: ++lastId, op, args })
}

export const isOperation = <Op extends Operator>(expr: Expr | undefined, op: Op): expr is Operation<Op> => expr?.op === op

const RELATIONS: ReadonlySet<string> = new Set(['Eq', 'Ne', 'Lt', 'Le', 'Gt', 'Ge'])
export const isRelation = (expr: Expr): expr is Relation => RELATIONS.has(expr.op)

/** Whether the value is a truth value. */
export const isBoolean = (expr: Expr): boolean =>
  expr.op === 'boolean' || isRelation(expr) || expr.op === 'And' || expr.op === 'Or' || expr.op === 'Not'

/** A number or a float. */
export const isNumber = (expr: Expr): expr is NumberExpr | FloatExpr => expr.op === 'number' || expr.op === 'float'

/** Whether the expression is this integer. */
export const isInteger = (expr: Expr, value: number): boolean => expr.op === 'number' && expr.value.q === 1n && expr.value.p === BigInt(value)

/** The first and second operand. */
export function operands({ args }: Operation): readonly [Expr, Expr] {
  const [left = TRUE, right = TRUE] = args
  return [left, right]
}

/** The terms of a sum; what is not a sum is its own only term. */
export const termsOf = (expr: Expr): readonly Expr[] => (expr.op === 'Add' ? expr.args : [expr])
/** The factors of a product; what is not a product is its own only factor. */
export const factorsOf = (expr: Expr): readonly Expr[] => (expr.op === 'Mul' ? expr.args : [expr])

/** The base and the exponent of a power; what is not one has the exponent 1. */
export function powerOf(expr: Expr): readonly [base: Expr, exponent: Expr] {
  return expr.op === 'Pow' ? operands(expr) : [expr, integer(1)]
}

const symbolsByExpr = new WeakMap<Expr, ReadonlySet<SymbolExpr>>()

/** The symbols that occur. */
export function freeSymbols(expr: Expr): ReadonlySet<SymbolExpr> {
  const kept = symbolsByExpr.get(expr)
  if (kept !== undefined) return kept
  const found = new Set<SymbolExpr>(expr.op === 'symbol' ? [expr] : expr.args.flatMap((arg) => [...freeSymbols(arg)]))
  symbolsByExpr.set(expr, found)
  return found
}

/** The expression and all that it is made of, outside first; each once. */
export function partsOf(expr: Expr, found: Set<Expr> = new Set()): ReadonlySet<Expr> {
  if (found.has(expr)) return found
  found.add(expr)
  for (const arg of expr.args) partsOf(arg, found)
  return found
}

/** Whether `part` occurs in the expression. */
export const has = (expr: Expr, part: Expr): boolean => (part.op === 'symbol' ? freeSymbols(expr).has(part) : partsOf(expr).has(part))
