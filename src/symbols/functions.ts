// PyTorch's functions of sizes, as torch.utils._sympy.functions evaluates them: what they are for numbers, and what they simplify to.
import { ArgumentError } from '../errors/index.ts'
import { add, divide, mul, negate, pow, subtract } from './arithmetic.ts'
import { factorsOf, float, integer, isInteger, isNumber, number, operands, operation, termsOf } from './expression.ts'
import type { Expr, NumberOperator, OpaqueFunction } from './expression.ts'
import { factsOf, integerQuotient } from './facts.ts'
import { coefficientOf, extractsMinus } from './order.ts'
import { commonDivisor } from './polynomial.ts'
import { ceilOf, compareRationals, exactly, floorOf, gcdOf, isFinite, isWhole, modulo, signOf, toNumber, whole } from './rational.ts'
import { factorTerms } from './factorTerms.ts'

function refuseZero(divisor: Expr, name: string): void {
  if (factsOf(divisor).zero) throw new ArgumentError(`${name}: the divisor is zero.`)
}

/** `a // b`, rounded towards minus infinity. */
export const floorDiv = (base: Expr, divisor: Expr): Expr => simplerQuotient(base, divisor) ?? operation('FloorDiv', [base, divisor])

/** A FloorDiv that is known to leave no remainder. */
export const cleanDiv = (base: Expr, divisor: Expr): Expr => simplerQuotient(base, divisor) ?? operation('CleanDiv', [base, divisor])

function simplerQuotient(base: Expr, divisor: Expr): Expr | null {
  refuseZero(divisor, 'floorDiv')
  if (factsOf(base).zero) return integer(0)
  if (factsOf(base).integer && isInteger(divisor, 1)) return base
  if (factsOf(base).integer && isInteger(divisor, -1)) return negate(base)
  if (base.op === 'number' && divisor.op === 'number') return quotientOfNumbers(base.value, divisor.value)
  // With a negative divisor outside the two roundings go in opposite directions, which PyTorch overlooks.
  if ((base.op === 'FloorDiv' || base.op === 'CleanDiv') && factsOf(divisor).positive) {
    const [inner, other] = operands(base)
    return floorDiv(inner, mul(other, divisor))
  }
  return withoutWholeTerms(base, divisor) ?? withoutCommonFactor(base, divisor)
}

function quotientOfNumbers(base: { p: bigint; q: bigint }, divisor: { p: bigint; q: bigint }): Expr | null {
  if (!isFinite(base)) return number(signOf(base) * signOf(divisor) > 0 ? base : { p: -base.p, q: 0n })
  if (!isFinite(divisor)) return integer(signOf(base) * signOf(divisor) < 0 ? -1 : 0)
  return number(floorOf({ p: divisor.p < 0n ? -(base.p * divisor.q) : base.p * divisor.q, q: base.q * (divisor.p < 0n ? -divisor.p : divisor.p) }))
}

/** `(x + y) // b` is `x // b + y / b` where `y / b` is an integer. */
function withoutWholeTerms(base: Expr, divisor: Expr): Expr | null {
  if (divisor.op !== 'number' || !isWhole(divisor.value)) return null
  const wholes = termsOf(base).filter((term) => divides(divisor.value.p, term))
  if (wholes.length === 0) return null
  const rest = subtract(base, add(...wholes))
  return add(floorDiv(rest, divisor), ...wholes.map((term) => divide(term, divisor)))
}

/** Whether a term is a multiple of a number, by its coefficient. */
function divides(divisor: bigint, term: Expr): boolean {
  const [coefficient, rest] = coefficientOf(term)
  return factsOf(rest).integer && coefficient.op === 'number' && isWhole(coefficient.value) && coefficient.value.p % divisor === 0n
}

function withoutCommonFactor(base: Expr, divisor: Expr): Expr | null {
  const common = commonFactor(base, divisor)
  if (!isInteger(common, 1)) return floorDiv(simplified(base, common), simplified(divisor, common))
  if (divisor.op !== 'Add') return null
  const found = commonDivisor(base, divisor)
  if (found === null || isInteger(found.divisor, 1)) return null
  return floorDiv(factorTerms(found.a), factorTerms(found.b))
}

const simplified = (expr: Expr, factor: Expr): Expr => {
  const quotient = expr.op === 'Add' ? add(...expr.args.map((term) => divide(term, factor))) : divide(expr, factor)
  return factorTerms(quotient)
}

/** The largest factor that can be seen in both: a number times factors of the divisor that every term of the base has. */
function commonFactor(base: Expr, divisor: Expr): Expr {
  const content = (expr: Expr): bigint => termsOf(expr).reduce((common, term) => gcdOf(common, integerIn(term)), 0n)
  const numbers = gcdOf(content(base), content(divisor))
  const terms = termsOf(base).map((term) => factorsOf(divide(term, number(whole(numbers)))))
  const shared = factorsOf(divide(divisor, number(whole(numbers)))).filter((factor) => terms.every((factors) => factors.includes(factor)))
  return mul(number(whole(numbers)), ...shared)
}

function integerIn(term: Expr): bigint {
  const [coefficient] = coefficientOf(term)
  return coefficient.op === 'number' && isWhole(coefficient.value) ? gcdOf(coefficient.value.p, 0n) : 1n
}

/** `p % q` of numbers that are not negative. */
export const mod = (p: Expr, q: Expr): Expr => simplerRemainder(p, q) ?? operation('Mod', [p, q])

/** Python's `p % q`, which has the sign of `q`. */
export function pythonMod(p: Expr, q: Expr): Expr {
  const simpler = simplerRemainder(p, q)
  if (simpler !== null) return simpler
  return termsOf(p).every((term) => integerQuotient(term, q) !== null) ? integer(0) : operation('PythonMod', [p, q])
}

function simplerRemainder(p: Expr, q: Expr): Expr | null {
  refuseZero(q, 'mod')
  if (isInteger(p, 0) || p === q || p === negate(q) || isInteger(q, 1)) return integer(0)
  if (p.op === 'number' && q.op === 'number' && isWhole(p.value) && isWhole(q.value)) return number(whole(modulo(p.value.p, q.value.p)))
  if (isInteger(q, 2)) {
    if (factsOf(p).even) return integer(0)
    if (factsOf(p).odd) return integer(1)
  }
  if (integerQuotient(p, q) !== null) return integer(0)
  // A smaller number of the same sign is its own remainder; PyTorch overlooks that it is not so for negative ones.
  const isLess = factsOf(subtract(q, p)).positive
  return isLess && factsOf(q).positive && factsOf(divide(p, q)).positive ? p : null
}

/** `base ** exponent` for integers, the exponent at least 0. */
export function powByNatural(base: Expr, exponent: Expr): Expr {
  if (exponent.op === 'number' && isWhole(exponent.value) && signOf(exponent.value) >= 0) return pow(base, exponent.value.p)
  return operation('PowByNatural', [base, exponent])
}

const doubleOf = (expr: Expr): number | null => (expr.op === 'number' ? toNumber(expr.value) : expr.op === 'float' ? expr.value : null)

function onDoubles(op: NumberOperator, args: readonly Expr[], compute: (...values: readonly number[]) => number): Expr {
  const values = args.map(doubleOf)
  return values.every((value) => value !== null) ? float(compute(...values)) : operation(op, args)
}

/** `a / b` of integers, a float. */
export function intTrueDiv(a: Expr, b: Expr): Expr {
  refuseZero(b, 'intTrueDiv')
  return onDoubles('IntTrueDiv', [a, b], (x = 0, y = 1) => x / y)
}

/** `a / b` of floats. */
export function floatTrueDiv(a: Expr, b: Expr): Expr {
  refuseZero(b, 'floatTrueDiv')
  return onDoubles('FloatTrueDiv', [a, b], (x = 0, y = 1) => x / y)
}

export const floatPow = (base: Expr, exponent: Expr): Expr => onDoubles('FloatPow', [base, exponent], (x = 0, y = 1) => x ** y)

/** An integer as a float. */
export const toFloat = (expr: Expr): Expr =>
  expr.op === 'number' && isWhole(expr.value) ? float(toNumber(expr.value)) : expr.op === 'float' ? expr : operation('ToFloat', [expr])

function rounded(op: NumberOperator, expr: Expr, round: (value: number) => number): Expr {
  if (expr.op === 'number') {
    if (!isFinite(expr.value) || isWhole(expr.value)) return expr
    if (op === 'FloorToInt') return number(floorOf(expr.value))
    if (op === 'CeilToInt') return number(ceilOf(expr.value))
  }
  const value = doubleOf(expr)
  return value === null || Number.isNaN(value) ? operation(op, [expr]) : number(exactly(round(value)))
}

export const truncToInt = (expr: Expr): Expr => rounded('TruncToInt', expr, Math.trunc)
export const floorToInt = (expr: Expr): Expr => rounded('FloorToInt', expr, Math.floor)
export const ceilToInt = (expr: Expr): Expr => rounded('CeilToInt', expr, Math.ceil)
export const roundToInt = (expr: Expr): Expr => rounded('RoundToInt', expr, roundHalfEven)

/** The nearest integer; of two equally near ones the even one, as Python's round. */
export function roundHalfEven(value: number): number {
  const below = Math.floor(value)
  const rest = value - below
  if (rest !== 0.5) return rest < 0.5 ? below : below + 1
  return below % 2 === 0 ? below : below + 1
}

/** The nearest number with a number of decimal places, as Python's `round(x, n)`. */
export function roundDecimal(value: number, places: number): number {
  if (places >= 0) return Number(value.toFixed(Math.min(places, 100)))
  return roundHalfEven(value / 10 ** -places) * 10 ** -places
}

export const roundToDecimal = (expr: Expr, places: Expr): Expr =>
  onDoubles('RoundDecimal', [expr, places], (value = 0, n = 0) => roundDecimal(value, n))

const OPAQUE: Readonly<Record<string, (value: number) => number>> = {
  sqrt: Math.sqrt,
  cos: Math.cos,
  cosh: Math.cosh,
  sin: Math.sin,
  sinh: Math.sinh,
  tan: Math.tan,
  tanh: Math.tanh,
  asin: Math.asin,
  acos: Math.acos,
  atan: Math.atan,
  exp: Math.exp,
  log: Math.log,
  log2: Math.log2,
}

/** How an opaque function is computed. */
export const opaqueFunction = (op: string): ((value: number) => number) | undefined => OPAQUE[op.slice('OpaqueUnaryFn_'.length)]

export const isOpaque = (op: string): op is OpaqueFunction => op.startsWith('OpaqueUnaryFn_') && opaqueFunction(op) !== undefined

export const opaque = (op: OpaqueFunction, expr: Expr): Expr => onDoubles(op, [expr], (value = 0) => opaqueFunction(op)?.(value) ?? NaN)

/** The absolute value. */
export function abs(expr: Expr): Expr {
  if (expr.op === 'Abs') return expr
  const known = factsOf(expr)
  if (known.nonnegative) return expr
  if (known.nonpositive) return negate(expr)
  if (expr.op === 'Mul') {
    const signed = expr.args.filter((arg) => factsOf(arg).nonnegative || factsOf(arg).nonpositive)
    if (signed.length > 0) return mul(...signed.map(abs), abs(mul(...expr.args.filter((arg) => !signed.includes(arg)))))
  }
  return operation('Abs', [extractsMinus(expr, negate) ? negate(expr) : expr])
}

/** Whether the numbers are in order, for floats too; null if one of them is none. */
export function compareNumbers(a: Expr, b: Expr): number | null {
  if (a.op === 'number' && b.op === 'number') return compareRationals(a.value, b.value)
  if (!isNumber(a) || !isNumber(b)) return null
  return Math.sign((doubleOf(a) ?? NaN) - (doubleOf(b) ?? NaN))
}
