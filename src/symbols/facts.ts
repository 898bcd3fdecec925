// What is known of an expression without ranges: whether it is an integer, its sign, whether it is even. These are sympy's assumptions, and they decide as much as sympy does:
// `s0 - 1 >= 0` is True for a positive s0, `2*s0 + s1 - 3 >= 0` stays open.
import { add, mul, pow } from './arithmetic.ts'
import { freeSymbols, integer, isBoolean, isNumber, number, operands, operation, powerOf } from './expression.ts'
import type { Expr, SymbolExpr } from './expression.ts'
import { coefficientOf } from './order.ts'
import { ZERO, compareRationals, isWhole, isZero, productOf, signOf, sumOf, whole } from './rational.ts'
import type { Rational } from './rational.ts'
import { polynomialOf } from './univariate.ts'

/** What is proved. False means that it is not, and not that the contrary is. */
export interface Facts {
  readonly integer: boolean
  readonly real: boolean
  readonly positive: boolean
  readonly negative: boolean
  readonly nonnegative: boolean
  readonly nonpositive: boolean
  readonly zero: boolean
  readonly nonzero: boolean
  readonly even: boolean
  readonly odd: boolean
}

type Given = Partial<Facts>

/** Adds what follows from what is given. */
function complete(given: Given): Facts {
  const positive = given.positive ?? false
  const negative = given.negative ?? false
  const odd = given.odd ?? false
  const zero = (given.zero ?? false) || ((given.nonnegative ?? false) && (given.nonpositive ?? false))
  const isInteger = (given.integer ?? false) || zero || odd || (given.even ?? false)
  const nonnegative = (given.nonnegative ?? false) || positive || zero
  const nonpositive = (given.nonpositive ?? false) || negative || zero
  const nonzero = (given.nonzero ?? false) || positive || negative || odd
  return {
    integer: isInteger,
    real: (given.real ?? false) || isInteger || nonnegative || nonpositive,
    positive: positive || (nonnegative && nonzero),
    negative: negative || (nonpositive && nonzero),
    nonnegative,
    nonpositive,
    zero,
    nonzero,
    even: (given.even ?? false) || zero,
    odd,
  }
}

const factsByExpr = new WeakMap<Expr, Facts>()

export function factsOf(expr: Expr): Facts {
  const kept = factsByExpr.get(expr)
  if (kept !== undefined) return kept
  const found = complete(find(expr))
  factsByExpr.set(expr, found)
  return found
}

const every = (args: readonly Expr[], fact: keyof Facts): boolean => args.every((arg) => factsOf(arg)[fact])
const some = (args: readonly Expr[], fact: keyof Facts): boolean => args.some((arg) => factsOf(arg)[fact])

function find(expr: Expr): Given {
  switch (expr.op) {
    case 'number':
      return ofNumber(expr.value)
    case 'float':
      return {
        real: Number.isFinite(expr.value),
        positive: expr.value > 0,
        negative: expr.value < 0,
        nonnegative: expr.value >= 0,
        nonpositive: expr.value <= 0,
      }
    case 'symbol':
      return { real: true, integer: expr.integer, positive: expr.positive }
    case 'Add':
      return ofSum(expr)
    case 'Mul':
      return ofProduct(expr.args)
    case 'Pow':
      return ofPower(expr)
    default:
      return ofFunction(expr)
  }
}

function ofFunction(expr: Expr): Given {
  switch (expr.op) {
    case 'Max':
      return {
        ...common(expr.args),
        positive: some(expr.args, 'positive'),
        nonnegative: some(expr.args, 'nonnegative'),
        negative: every(expr.args, 'negative'),
        nonpositive: every(expr.args, 'nonpositive'),
      }
    case 'Min':
      return {
        ...common(expr.args),
        positive: every(expr.args, 'positive'),
        nonnegative: every(expr.args, 'nonnegative'),
        negative: some(expr.args, 'negative'),
        nonpositive: some(expr.args, 'nonpositive'),
      }
    case 'Piecewise': {
      const values = expr.args.filter((_, i) => i % 2 === 0)
      return {
        ...common(values),
        positive: every(values, 'positive'),
        negative: every(values, 'negative'),
        nonnegative: every(values, 'nonnegative'),
        nonpositive: every(values, 'nonpositive'),
      }
    }
    case 'Abs':
      return { ...common(expr.args), nonnegative: true, nonzero: some(expr.args, 'nonzero') }
    case 'Mod':
      return { integer: true, nonnegative: true }
    case 'PythonMod': {
      const [, divisor] = operands(expr)
      return { integer: true, nonnegative: factsOf(divisor).positive, nonpositive: factsOf(divisor).negative }
    }
    case 'FloorDiv':
    case 'CleanDiv':
    case 'PowByNatural':
    case 'TruncToInt':
    case 'FloorToInt':
    case 'CeilToInt':
    case 'RoundToInt':
      return { integer: true }
    case 'IntTrueDiv':
    case 'FloatTrueDiv':
    case 'FloatPow':
    case 'ToFloat':
    case 'RoundDecimal':
      return { real: true }
    default:
      return isBoolean(expr) ? {} : { real: false }
  }
}

const common = (args: readonly Expr[]): Given => ({
  integer: every(args, 'integer'),
  real: every(args, 'real'),
  even: every(args, 'even'),
  odd: every(args, 'odd'),
})

function ofNumber(value: Rational): Given {
  const sign = signOf(value)
  const isInteger = isWhole(value)
  return {
    real: true,
    integer: isInteger,
    positive: sign > 0,
    negative: sign < 0,
    zero: isZero(value),
    nonzero: sign !== 0,
    even: isInteger && value.p % 2n === 0n,
    odd: isInteger && value.p % 2n !== 0n,
  }
}

function ofProduct(args: readonly Expr[]): Given {
  const signed = args.every((arg) => factsOf(arg).nonnegative || factsOf(arg).nonpositive)
  const flips = args.filter((arg) => !factsOf(arg).nonnegative).length % 2 === 1
  const nonzero = every(args, 'nonzero')
  const isInteger = isIntegerProduct(args)
  return {
    real: every(args, 'real'),
    integer: isInteger,
    nonnegative: signed && !flips,
    nonpositive: signed && flips,
    zero: some(args, 'zero') && every(args, 'real'),
    nonzero,
    odd: isInteger && every(args, 'odd'),
    even: isInteger && every(args, 'integer') && (some(args, 'even') || hasNeighbours(args)),
  }
}

/** `s0*(s0 + 1)` is even: one of two factors whose sum is odd is. */
function hasNeighbours(args: readonly Expr[]): boolean {
  const factors = args.filter((arg) => !isNumber(arg))
  return factors.some((factor, i) => {
    const next = factors[i + 1]
    return next !== undefined && factor.op !== 'Mul' && next.op !== 'Mul' && factsOf(add(factor, next)).odd
  })
}

function isIntegerProduct(args: readonly Expr[]): boolean {
  if (every(args, 'integer')) return true
  const [coefficient, ...rest] = args
  // A half of an even product is an integer.
  return coefficient?.op === 'number' && coefficient.value.q === 2n && every(rest, 'integer') && some(rest, 'even')
}

function ofPower(expr: Expr): Given {
  const [base, exponent] = powerOf(expr)
  const known = factsOf(base)
  if (exponent.op !== 'number' || !isWhole(exponent.value)) return { real: known.real && known.positive }
  const isEven = exponent.value.p % 2n === 0n
  const isPositive = exponent.value.p > 0n
  return {
    real: known.real && (isPositive || known.nonzero),
    integer: isPositive && known.integer,
    positive: known.positive || (isEven && known.nonzero),
    nonnegative: known.nonnegative || (isEven && known.real),
    negative: !isEven && known.negative,
    nonpositive: !isEven && known.nonpositive,
    nonzero: known.nonzero,
    even: isPositive && known.even,
    odd: isPositive && known.odd,
  }
}

function ofSum(expr: Expr): Given {
  const args = expr.args
  const [first, ...rest] = args
  const constant = first !== undefined && first.op === 'number' ? first.value : ZERO
  const others = isZero(constant) ? expr : rest.length === 1 && rest[0] !== undefined ? rest[0] : operation('Add', rest)
  const bound = isZero(constant) ? null : signedBy(expr, constant, others)
  const integers = every(args, 'integer')
  const odd = args.filter((arg) => factsOf(arg).odd).length
  const parity = args.every((arg) => factsOf(arg).odd || factsOf(arg).even)
  return {
    real: every(args, 'real'),
    integer: integers,
    positive: bound === 'positive' || (every(args, 'nonnegative') && some(args, 'positive')),
    nonnegative: bound === 'nonnegative' || every(args, 'nonnegative'),
    negative: bound === 'negative' || (every(args, 'nonpositive') && some(args, 'negative')),
    nonpositive: bound === 'nonpositive' || every(args, 'nonpositive'),
    odd: parity && odd % 2 === 1,
    even: parity && odd % 2 === 0,
  }
}

type Sign = 'positive' | 'nonnegative' | 'negative' | 'nonpositive'

/** The sign of a constant plus others, from the value closest to 0 that the others may have. */
function signedBy(expr: Expr, constant: Rational, others: Expr): Sign | null {
  const known = factsOf(others)
  const nearest = closestToZero(others)
  if (nearest === null) return null
  const total = sumOf(nearest, constant) ?? ZERO
  const found = signAbove(total, known)
  if (found !== null && found !== 'nonnegative' && found !== 'nonpositive') return found
  // Of one symbol, the whole may say more than its parts.
  const [only, ...more] = freeSymbols(expr)
  const polynomial = only !== undefined && more.length === 0 ? monotonicIn(expr, only) : null
  if (polynomial === null) return found
  if (signOf(polynomial) !== 0) return signOf(polynomial) > 0 ? 'positive' : 'negative'
  return known.nonnegative ? 'nonnegative' : known.nonpositive ? 'nonpositive' : found
}

function signAbove(total: Rational, others: Facts): Sign | null {
  const sign = signOf(total)
  if (others.nonnegative && sign >= 0) return sign > 0 ? 'positive' : 'nonnegative'
  if (others.nonpositive && sign <= 0) return sign < 0 ? 'negative' : 'nonpositive'
  return null
}

/** The value closest to 0 that the expression may have, if its sign never changes; null if that is not known. sympy's _monotonic_sign. */
function closestToZero(expr: Expr): Rational | null {
  const known = factsOf(expr)
  if (!known.real) return null
  if (expr.op !== 'Add' && !hasDenominator(expr)) {
    if (known.positive) return isComposite(expr) ? whole(known.odd ? 9n : 4n) : whole(known.even ? 2n : known.integer ? 1n : 0n)
    if (known.negative) return whole(known.even ? -2n : known.integer ? -1n : 0n)
    return known.zero || known.nonnegative || known.nonpositive ? ZERO : null
  }
  const symbols = [...freeSymbols(expr)]
  const [only] = symbols
  if (symbols.length === 1 && only !== undefined) return monotonicIn(expr, only)
  return ofLinear(expr, symbols)
}

/** Whether it is a product of two integers above 1. */
function isComposite(expr: Expr): boolean {
  const isAboveOne = (part: Expr): boolean => factsOf(part).integer && factsOf(add(part, integer(-1))).positive
  if (expr.op === 'Mul') return every(expr.args, 'integer') && every(expr.args, 'positive') && expr.args.filter(isAboveOne).length > 1
  const [base, exponent] = powerOf(expr)
  return expr.op === 'Pow' && isAboveOne(base) && isAboveOne(exponent)
}

const hasDenominator = (expr: Expr): boolean =>
  (expr.op === 'Mul' ? expr.args : [expr]).some((factor) => {
    const [, exponent] = powerOf(factor)
    return exponent.op === 'number' && signOf(exponent.value) < 0
  })

/** A polynomial in one symbol that only grows or only falls from the symbol's least value on: its value there. */
function monotonicIn(expr: Expr, symbol: SymbolExpr): Rational | null {
  if (!symbol.positive) return null
  const polynomial = polynomialOf(expr, symbol, whole(symbol.integer ? 1n : 0n))
  if (polynomial === null) return null
  const [value = ZERO, ...slopes] = polynomial
  const [slope = ZERO] = slopes
  if (signOf(slope) > 0 && slopes.every((each) => signOf(each) >= 0) && signOf(value) >= 0) return value
  if (signOf(slope) < 0 && slopes.every((each) => signOf(each) <= 0) && signOf(value) <= 0) return value
  return null
}

/** A sum of signed terms without powers, and a constant: its value where all symbols are at theirs closest to 0. */
function ofLinear(expr: Expr, symbols: readonly SymbolExpr[]): Rational | null {
  const [constant] = expr.op === 'Add' ? expr.args : []
  if (constant?.op !== 'number') return null
  const rest = add(expr, number(productOf(constant.value, whole(-1n))))
  const known = factsOf(rest)
  if (!known.nonnegative && !known.nonpositive) return null
  let value = ZERO
  for (const term of rest.op === 'Add' ? rest.args : [rest]) {
    const [coefficient, factors] = coefficientOf(term)
    const parts = factors.op === 'Mul' ? factors.args : [factors]
    if (coefficient.op !== 'number' || !parts.every((part) => part.op === 'symbol' && part.positive && symbols.includes(part))) return null
    const least = parts.every((part) => part.op === 'symbol' && part.integer) ? coefficient.value : ZERO
    value = sumOf(value, least) ?? ZERO
  }
  const total = sumOf(value, constant.value) ?? ZERO
  if (known.nonnegative && compareRationals(total, ZERO) > 0) return total
  return known.nonpositive && compareRationals(total, ZERO) < 0 ? total : null
}

/** Whether `a - b` is at least 0, at most 0, or not 0, as far as it is known. */
export const differenceFacts = (a: Expr, b: Expr): Facts => factsOf(add(a, mul(integer(-1), b)))

/** `a / b` if that is known to be an integer without looking at values; null otherwise. */
export function integerQuotient(a: Expr, b: Expr): Expr | null {
  if (factsOf(b).zero) return null
  const quotient = mul(a, pow(b, -1))
  return factsOf(quotient).integer ? quotient : null
}
