// Numbers and truth values of programs that are known as expressions only: SymInt, SymFloat and SymBool. Arithmetic and comparisons build expressions; only reading one
// as a plain number or truth value (`toInt`, `toBool`, `+s`) makes a guard.
import { ArgumentError } from '../errors/index.ts'
import { SYMBOLIC, isSymbolic, valueText } from '../protocol/index.ts'
import type { Size, SizeOperation, SizeRelation, SymbolicFunction, SymbolicKind, SymbolicSize, SymbolicValue } from '../protocol/index.ts'
import { add, constantOf, mul, negate, subtract } from './arithmetic.ts'
import { boolean, float, integer } from './expression.ts'
import type { Expr, SymbolExpr } from './expression.ts'
import { factsOf } from './facts.ts'
import * as functions from './functions.ts'
import { max, min } from './minMax.ts'
import { textOf } from './print.ts'
import type { Range } from './ranges.ts'
import { signOf } from './rational.ts'
import { MIRRORED, and, not, or, piecewise, relation } from './relations.ts'

/** What symbolic values ask their environment. */
export interface SymbolEnvironment {
  /** The expression in terms of the symbols that are still in use. */
  replace(expr: Expr): Expr
  boundsOf(expr: Expr): Range
  /** The value of this run, null if it depends on data. */
  hintOf(expr: Expr): number | boolean | null
  /** The value, and a guard that it is this one. */
  evaluate(expr: Expr): number | boolean
  isUnbacked(symbol: SymbolExpr): boolean
  /** The value that an expression has for all values of its symbols that are possible; null if they differ. Makes no guard. */
  alwaysValue(expr: Expr): number | boolean | null
  /** The size that an expression is: a number if it is one. */
  toSize(expr: Expr): Size
  /** Whether a truth value holds where sizes that depend on data count as neither 0 nor 1, with a guard unless that follows. */
  guardSizeOblivious(condition: SymBool): boolean
  /** States that a condition holds, as an assertion for later if it depends on data; false if it is known not to. */
  check(condition: SymBool, message?: string): boolean
  /** States that an integer that depends on data is a size. */
  advise(size: SymInt): void
  guardOrFalse(condition: SymBool): boolean
  guardOrTrue(condition: SymBool): boolean
  constrainRange(size: SymInt, range: { min?: number; max?: number }): void
  constrainUnify(a: SymInt | number, b: SymInt | number): void
}

abstract class SymValue implements SymbolicValue {
  abstract readonly [SYMBOLIC]: SymbolicKind
  readonly env: SymbolEnvironment
  readonly #expr: Expr

  constructor(expr: Expr, env: SymbolEnvironment) {
    this.#expr = expr
    this.env = env
  }

  /** The expression, with what was learnt since it was built. */
  get expr(): Expr {
    return this.env.replace(this.#expr)
  }

  /** The expression as it was built: a symbol is itself, even if it was found to be another one. @internal */
  get ownExpr(): Expr {
    return this.#expr
  }

  /** The value of this run; null if it depends on data. */
  get hint(): number | boolean | null {
    return this.env.hintOf(this.#expr)
  }

  /** What `torch.symMax` and the other functions of sizes call. */
  applied(name: SymbolicFunction, args: readonly unknown[]): unknown {
    return FUNCTIONS[name](args)
  }

  /**
   * Where JavaScript wants a plain value (arithmetic, `<`, a template string, an index) it is that of this run, with a guard. `===` and `if` do not ask: compare with `eq`, and read
   * a truth value with `toBool`.
   */
  [Symbol.toPrimitive](): number | boolean {
    return this.env.evaluate(this.expr)
  }

  /** The expression as text, without a guard: `2*s0 + 1`. */
  toString(): string {
    return textOf(this.expr)
  }
}

/** A truth value. */
export class SymBool extends SymValue {
  readonly [SYMBOLIC] = 'bool'

  /** The value as a boolean, with a guard. PyTorch's `bool(s)`. */
  toBool(): boolean {
    return this.env.evaluate(this.expr) === true
  }
}

/** A number, or a symbolic one. */
export type NumberLike = number | SymInt | SymFloat
export type BoolLike = boolean | SymBool

abstract class SymNumber extends SymValue {
  add(other: NumberLike): SymInt | SymFloat {
    return arithmetic(this.self(), other, add)
  }
  sub(other: NumberLike): SymInt | SymFloat {
    return arithmetic(this.self(), other, subtract)
  }
  mul(other: NumberLike): SymInt | SymFloat {
    return arithmetic(this.self(), other, mul)
  }
  neg(): SymInt | SymFloat {
    return like(this.self(), negate(this.expr))
  }
  abs(): SymInt | SymFloat {
    return like(this.self(), functions.abs(this.expr))
  }
  /** The quotient, a float. Python's `/`. */
  div(other: NumberLike): SymFloat {
    return trueDivide(this.self(), other)
  }
  /** The quotient, rounded down. Python's `//`. */
  floorDivide(other: NumberLike): SymInt | SymFloat {
    return floorDivide(this.self(), other)
  }
  /** What is left of a division, with the sign of `other`. Python's `%`. */
  remainder(other: NumberLike): SymInt | SymFloat {
    return remainder(this.self(), other)
  }
  pow(exponent: NumberLike): SymInt | SymFloat {
    return power(this.self(), exponent)
  }
  eq(other: NumberLike): SymBool {
    return compare('Eq', this.self(), other)
  }
  ne(other: NumberLike): SymBool {
    return compare('Ne', this.self(), other)
  }
  lt(other: NumberLike): SymBool {
    return compare('Lt', this.self(), other)
  }
  le(other: NumberLike): SymBool {
    return compare('Le', this.self(), other)
  }
  gt(other: NumberLike): SymBool {
    return compare('Gt', this.self(), other)
  }
  ge(other: NumberLike): SymBool {
    return compare('Ge', this.self(), other)
  }
  protected abstract self(): SymInt | SymFloat
}

const SIZE_OPERATIONS: Readonly<Record<Exclude<SizeOperation, 'remainder'>, (a: Expr, b: Expr, env: SymbolEnvironment) => Expr>> = {
  add: (a, b) => add(a, b),
  subtract,
  multiply: (a, b) => mul(a, b),
  floorDivide: functions.floorDiv,
  min: (a, b, env) => (isAtMost(a, b, env) ? a : isAtMost(b, a, env) ? b : min(a, b)),
  max: (a, b, env) => (isAtMost(a, b, env) ? b : isAtMost(b, a, env) ? a : max(a, b)),
}

/** Whether `a <= b` for all values. */
const isAtMost = (a: Expr, b: Expr, env: SymbolEnvironment): boolean => env.alwaysValue(relation('Le', a, b)) === true

/** The expression of a size. Throws ArgumentError for a symbolic size of another kind than SymInt. */
function sizeExpr(size: Size): Expr {
  if (typeof size === 'number') return constantOf(size)
  if (size instanceof SymInt) return size.expr
  throw new ArgumentError('a symbolic size must be a SymInt.')
}

/** An integer. */
export class SymInt extends SymNumber implements SymbolicSize {
  readonly [SYMBOLIC] = 'int'

  combined(operation: SizeOperation, a: Size, b: Size): Size {
    const [left, right] = [sizeExpr(a), sizeExpr(b)]
    return this.env.toSize(operation === 'remainder' ? remainderExpr(left, right, this.env) : SIZE_OPERATIONS[operation](left, right, this.env))
  }
  holds(of: SizeRelation, a: Size, b: Size): boolean {
    return this.env.guardSizeOblivious(this.#related(of, a, b))
  }
  mustEqual(a: Size, b: Size): boolean {
    return this.env.check(this.#related('Eq', a, b))
  }
  becomeSize(): void {
    this.env.advise(this)
  }
  #related(of: SizeRelation, a: Size, b: Size): SymBool {
    return new SymBool(relation(of, sizeExpr(a), sizeExpr(b)), this.env)
  }
  alwaysHolds(of: SizeRelation, a: Size, b: Size): boolean {
    return this.env.alwaysValue(relation(of, sizeExpr(a), sizeExpr(b))) === true
  }

  /** The value as a number, with a guard that makes it this one for good. PyTorch's `int(s)`. */
  toInt(): number {
    return Number(this.env.evaluate(this.expr))
  }
  protected override self(): this {
    return this
  }
}

/** A float. */
export class SymFloat extends SymNumber {
  readonly [SYMBOLIC] = 'float'

  /** The value as a number, with a guard. PyTorch's `float(s)`. */
  toFloat(): number {
    return Number(this.env.evaluate(this.expr))
  }
  protected override self(): this {
    return this
  }
}

export type Sym = SymInt | SymFloat
const isSym = (value: unknown): value is Sym => value instanceof SymInt || value instanceof SymFloat
const isFloat = (value: NumberLike): boolean => value instanceof SymFloat || (typeof value === 'number' && !Number.isInteger(value))

/** The environment of the first symbolic value. @throws ArgumentError if there is none. */
function environmentOf(args: readonly (NumberLike | BoolLike)[]): SymbolEnvironment {
  const found = args.find((arg) => isSym(arg) || arg instanceof SymBool)
  if (isSym(found) || found instanceof SymBool) return found.env
  throw new ArgumentError('sym*: at least one argument must be a SymInt, SymFloat or SymBool; compute with plain numbers directly.')
}

const exprOf = (value: NumberLike): Expr => (typeof value === 'number' ? constantOf(value) : value.expr)
const floatExprOf = (value: NumberLike): Expr =>
  typeof value === 'number' ? float(value) : value instanceof SymFloat ? value.expr : functions.toFloat(value.expr)
const like = (value: Sym, expr: Expr): Sym => (value instanceof SymInt ? new SymInt(expr, value.env) : new SymFloat(expr, value.env))

/** An operation whose result is a float if one of the operands is. */
function arithmetic(a: NumberLike, b: NumberLike, build: (x: Expr, y: Expr) => Expr): Sym {
  const env = environmentOf([a, b])
  return isFloat(a) || isFloat(b) ? new SymFloat(build(floatExprOf(a), floatExprOf(b)), env) : new SymInt(build(exprOf(a), exprOf(b)), env)
}

export const symAdd = (a: NumberLike, b: NumberLike): Sym => arithmetic(a, b, add)
export const symSub = (a: NumberLike, b: NumberLike): Sym => arithmetic(a, b, subtract)
export const symMul = (a: NumberLike, b: NumberLike): Sym => arithmetic(a, b, mul)
/** The larger one. PyTorch's `torch.sym_max`. */
export const symMax = (a: NumberLike, b: NumberLike): Sym => arithmetic(a, b, max)
/** The smaller one. PyTorch's `torch.sym_min`. */
export const symMin = (a: NumberLike, b: NumberLike): Sym => arithmetic(a, b, min)
/** The sum of a list. PyTorch's `torch.sym_sum`. */
export const symSum = (args: readonly NumberLike[]): Sym =>
  args.reduce<Sym>((sum, arg) => symAdd(sum, arg), new SymInt(integer(0), environmentOf(args)))

/** `a / b`, a float. */
export function trueDivide(a: NumberLike, b: NumberLike): SymFloat {
  const env = environmentOf([a, b])
  if (isFloat(a) || isFloat(b)) return new SymFloat(functions.floatTrueDiv(floatExprOf(a), floatExprOf(b)), env)
  return new SymFloat(functions.intTrueDiv(exprOf(a), exprOf(b)), env)
}

/** `a // b`, rounded towards minus infinity. */
export function floorDivide(a: NumberLike, b: NumberLike): Sym {
  const env = environmentOf([a, b])
  if (!isFloat(a) && !isFloat(b)) return new SymInt(functions.floorDiv(exprOf(a), exprOf(b)), env)
  return new SymFloat(functions.toFloat(functions.floorToInt(functions.floatTrueDiv(floatExprOf(a), floatExprOf(b)))), env)
}

/** Python's `a % b`. */
export function remainder(a: NumberLike, b: NumberLike): Sym {
  const env = environmentOf([a, b])
  if (isFloat(a) || isFloat(b)) throw new ArgumentError('mod: sizes have a remainder, floats have none here; turn them into integers first.')
  return new SymInt(remainderExpr(exprOf(a), exprOf(b), env), env)
}

const remainderExpr = (p: Expr, q: Expr, env: SymbolEnvironment): Expr =>
  isNatural(p, env) && isNatural(q, env) ? functions.mod(p, q) : functions.pythonMod(p, q)

function isNatural(expr: Expr, env: SymbolEnvironment): boolean {
  if (factsOf(expr).nonnegative) return true
  const bounds = env.boundsOf(expr)
  return bounds.kind === 'exact' && signOf(bounds.lower) >= 0
}

/** `base ** exponent`. A symbolic exponent is compared with 0, since a negative one makes a float. */
export function power(base: NumberLike, exponent: NumberLike): Sym {
  const env = environmentOf([base, exponent])
  if (isFloat(base) || isFloat(exponent)) return new SymFloat(functions.floatPow(floatExprOf(base), floatExprOf(exponent)), env)
  const natural = typeof exponent === 'number' ? exponent >= 0 : exponent.ge(0).toBool()
  if (!natural) return new SymFloat(functions.floatPow(floatExprOf(base), floatExprOf(exponent)), env)
  return new SymInt(functions.powByNatural(exprOf(base), exprOf(exponent)), env)
}

/** A comparison. A plain number on the left changes sides, as Python does: `3 < s` is `s > 3`. */
export function compare(op: keyof typeof MIRRORED, a: NumberLike, b: NumberLike): SymBool {
  if (typeof a === 'number' && typeof b !== 'number') return compare(MIRRORED[op], b, a)
  const floats = isFloat(a) || isFloat(b)
  const [left, right] = floats ? [floatExprOf(a), floatExprOf(b)] : [exprOf(a), exprOf(b)]
  return new SymBool(relation(op, left, right), environmentOf([a, b]))
}

/** `a << b`, as a product. */
export const shiftLeft = (a: NumberLike, b: number): Sym => arithmetic(a, 2 ** b, mul)
/** `a >> b`, as a division that rounds down. */
export const shiftRight = (a: NumberLike, b: number): Sym => floorDivide(a, 2 ** b)

/** The float of an integer. PyTorch's `torch.sym_float`. */
export const symFloat = (a: Sym): SymFloat => (a instanceof SymFloat ? a : new SymFloat(functions.toFloat(a.expr), a.env))

const toInteger =
  (build: (expr: Expr) => Expr) =>
  (a: Sym): SymInt =>
    a instanceof SymInt ? a : new SymInt(build(a.expr), a.env)

/** The integer of a float, rounded towards 0. PyTorch's `torch.sym_int`. */
export const symInt: (a: Sym) => SymInt = toInteger(functions.truncToInt)
export const symTrunc: (a: Sym) => SymInt = symInt
export const symFloor: (a: Sym) => SymInt = toInteger(functions.floorToInt)
export const symCeil: (a: Sym) => SymInt = toInteger(functions.ceilToInt)

/** The nearest integer, or the nearest number with a number of decimal places. */
export function symRound(a: Sym, places?: number): Sym {
  if (a instanceof SymInt) return a
  if (places === undefined) return new SymInt(functions.roundToInt(a.expr), a.env)
  return new SymFloat(functions.roundToDecimal(a.expr, integer(places)), a.env)
}

/** The square root, a float. PyTorch's `torch.sym_sqrt`. */
export const symSqrt = (a: Sym): SymFloat => new SymFloat(functions.opaque('OpaqueUnaryFn_sqrt', symFloat(a).expr), a.env)

const truthOf = (value: BoolLike): Expr => (typeof value === 'boolean' ? boolean(value) : value.expr)

/** The contrary. PyTorch's `torch.sym_not`. */
export const symNot = (a: SymBool): SymBool => new SymBool(not(a.expr), a.env)
export const symAnd = (a: BoolLike, b: BoolLike): SymBool => new SymBool(and(truthOf(a), truthOf(b)), environmentOf([a, b]))
export const symOr = (a: BoolLike, b: BoolLike): SymBool => new SymBool(or(truthOf(a), truthOf(b)), environmentOf([a, b]))

/** `a` where the condition holds, and else `b`, without a guard. PyTorch's `torch.sym_ite`. */
export const symIte = (condition: SymBool, a: NumberLike, b: NumberLike): Sym =>
  arithmetic(typeof a === 'number' && typeof b === 'number' ? new SymInt(integer(a), condition.env) : a, b, (x, y) =>
    piecewise(x, condition.expr, y, boolean(true)),
  )

const EXPECTED = { number: 'numbers, SymInts or SymFloats', truth: 'booleans or SymBools' }
const wrong = (name: SymbolicFunction, of: keyof typeof EXPECTED, value: unknown): never => {
  throw new ArgumentError(`torch.${name}: the arguments must be ${EXPECTED[of]}, got ${isSymbolic(value) ? 'a SymBool' : valueText(value)}.`)
}
const numberArg = (name: SymbolicFunction, value: unknown): NumberLike =>
  typeof value === 'number' || isSym(value) ? value : wrong(name, 'number', value)
const symArg = (name: SymbolicFunction, value: unknown): Sym => (isSym(value) ? value : wrong(name, 'number', value))
const truthArg = (name: SymbolicFunction, value: unknown): SymBool => (value instanceof SymBool ? value : wrong(name, 'truth', value))

/** Functions of symbolic values by name, on arguments of any kind. */
const FUNCTIONS: Readonly<Record<SymbolicFunction, (args: readonly unknown[]) => unknown>> = {
  symMax: ([a, b]) => symMax(numberArg('symMax', a), numberArg('symMax', b)),
  symMin: ([a, b]) => symMin(numberArg('symMin', a), numberArg('symMin', b)),
  symSum: ([list]) => symSum(Array.isArray(list) ? list.map((one) => numberArg('symSum', one)) : wrong('symSum', 'number', list)),
  symFloat: ([a]) => symFloat(symArg('symFloat', a)),
  symInt: ([a]) => symInt(symArg('symInt', a)),
  symNot: ([a]) => symNot(truthArg('symNot', a)),
  symIte: ([condition, a, b]) => symIte(truthArg('symIte', condition), numberArg('symIte', a), numberArg('symIte', b)),
  symSqrt: ([a]) => symSqrt(symArg('symSqrt', a)),
  _check: ([condition, message]) => {
    const { env } = truthArg('_check', condition)
    const text = typeof message === 'string' ? message : ''
    if (!env.check(truthArg('_check', condition), text))
      throw new ArgumentError(`torch._check: ${text === '' ? `${String(condition)} does not hold` : text}.`)
  },
  _checkIsSize: ([size]) => {
    const symbolic = symArg('_checkIsSize', size)
    if (!(symbolic instanceof SymInt)) return wrong('_checkIsSize', 'number', size)
    if (!symbolic.env.check(symbolic.ge(0))) throw new ArgumentError(`torch._checkIsSize: a size is at least 0, got ${symbolic.toString()}.`)
    symbolic.env.advise(symbolic)
    return undefined
  },
}
