// Sums, products and powers in sympy's canonical form: flat, with like terms and powers collected, a number in front, in the order of `compareExprs`. A number times a sum
// is multiplied out; a product of sums is not (see expand.ts).
import { ArgumentError } from '../errors/index.ts'
import { factorsOf, float, integer, isInteger, isNumber, number, operation, powerOf } from './expression.ts'
import type { Expr, FloatExpr, NumberExpr } from './expression.ts'
import { coefficientOf, compareExprs } from './order.ts'
import { exactly, fraction, isWhole, productOf, sumOf, toNumber, whole } from './rational.ts'

type Constant = NumberExpr | FloatExpr

const asNumber = (constant: Constant): number => (constant.op === 'number' ? toNumber(constant.value) : constant.value)

function addConstants(a: Constant, b: Constant): Constant {
  const sum = a.op === 'number' && b.op === 'number' ? sumOf(a.value, b.value) : null
  return sum === null ? float(asNumber(a) + asNumber(b)) : number(sum)
}

function multiplyConstants(a: Constant, b: Constant): Constant {
  if (a.op === 'number' && b.op === 'number') return number(productOf(a.value, b.value))
  // An exact zero stays exact, whatever it multiplies.
  if (isInteger(a, 0) || isInteger(b, 0)) return integer(0)
  return float(asNumber(a) * asNumber(b))
}

const isOne = (expr: Expr): boolean => isInteger(expr, 1)
const isZeroNumber = (expr: Expr): boolean => (expr.op === 'number' ? expr.value.p === 0n : expr.op === 'float' && expr.value === 0)

/** The sum. */
export function add(...given: readonly Expr[]): Expr {
  const coefficients = new Map<Expr, Constant>()
  let constant: Constant = integer(0)
  const queue = [...given]
  for (const term of queue) {
    if (isNumber(term)) constant = addConstants(constant, term)
    else if (term.op === 'Add') queue.push(...term.args)
    else {
      const [coefficient, rest] = coefficientOf(term)
      const known = coefficients.get(rest)
      if (isNumber(coefficient)) coefficients.set(rest, known === undefined ? coefficient : addConstants(known, coefficient))
    }
  }
  const terms = [...coefficients].filter(([, coefficient]) => !isZeroNumber(coefficient)).map(([rest, coefficient]) => scaled(coefficient, rest))
  return sumFrom(constant, terms.toSorted(compareExprs))
}

/** A number times what has none in front, not multiplied out. */
function scaled(coefficient: Constant, rest: Expr): Expr {
  if (isOne(coefficient)) return rest
  return operation('Mul', [coefficient, ...factorsOf(rest)])
}

function sumFrom(constant: Constant, terms: readonly Expr[]): Expr {
  const all = isInteger(constant, 0) ? terms : [constant, ...terms]
  const [only] = all
  if (only === undefined) return integer(0)
  return all.length === 1 ? only : operation('Add', all)
}

/** The product. */
export function mul(...given: readonly Expr[]): Expr {
  const [first, second] = given
  if (first === undefined) return integer(1)
  if (second === undefined) return first
  if (given.length === 2) {
    const distributed = timesSum(first, second) ?? timesSum(second, first)
    if (distributed !== null) return distributed
  }
  let coefficient: Constant = integer(1)
  const exponents = new Map<Expr, Expr>()
  const queue = [...given]
  for (const factor of queue) {
    if (isNumber(factor)) coefficient = multiplyConstants(coefficient, factor)
    else if (factor.op === 'Mul') queue.push(...factor.args)
    else {
      const [base, exponent] = powerOf(factor)
      const known = exponents.get(base)
      exponents.set(base, known === undefined ? exponent : add(known, exponent))
    }
  }
  if (isInteger(coefficient, 0)) return coefficient
  // An even power of an absolute value is one of the value itself.
  const absolute = [...exponents].find(([base, exponent]) => base.op === 'Abs' && exponent.op === 'number' && exponent.value.p > 1n)
  if (absolute !== undefined && absolute[1].op === 'number') {
    const [base, { value }] = [absolute[0], absolute[1]]
    exponents.delete(base)
    return mul(coefficient, ...[...exponents].map(([each, exponent]) => operation('Pow', [each, exponent])), pow(base, value.p))
  }
  const factors: Expr[] = []
  for (const [base, exponent] of exponents) if (!isInteger(exponent, 0)) factors.push(isOne(exponent) ? base : operation('Pow', [base, exponent]))
  const [only] = factors
  if (only === undefined) return coefficient
  if (factors.length === 1) {
    if (isOne(coefficient)) return only
    if (only.op === 'Add') return timesSum(coefficient, only) ?? scaled(coefficient, only)
  }
  factors.sort(compareExprs)
  return operation('Mul', isOne(coefficient) ? factors : [coefficient, ...factors])
}

/** A number times a sum, multiplied out; null for anything else. */
function timesSum(constant: Expr, sum: Expr): Expr | null {
  if (!isNumber(constant) || sum.op !== 'Add' || isOne(constant) || isZeroNumber(constant)) return null
  return add(
    ...sum.args.map((term) => {
      const [coefficient, rest] = coefficientOf(term)
      return isNumber(coefficient) ? timesConstant(multiplyConstants(constant, coefficient), rest) : term
    }),
  )
}

const timesConstant = (coefficient: Constant, rest: Expr): Expr => (isOne(rest) ? coefficient : scaled(coefficient, rest))

/** A power with an integer as its exponent. @throws ArgumentError for zero to a negative power. */
export function pow(base: Expr, exponent: number | bigint): Expr {
  const power = BigInt(exponent)
  if (power === 0n) return integer(1)
  if (power === 1n) return base
  switch (base.op) {
    case 'number': {
      const { p, q } = base.value
      if (power > 0n) return number(q === 0n ? { p: power % 2n === 0n ? 1n : p, q } : { p: p ** power, q: q ** power })
      if (p === 0n) throw new ArgumentError('pow: zero cannot be raised to a negative power.')
      return number(q === 0n ? whole(0n) : fraction(q ** -power, p ** -power))
    }
    case 'float':
      return float(base.value ** Number(power))
    case 'Mul':
      return mul(...base.args.map((factor) => pow(factor, power)))
    case 'Pow': {
      const [inner, other] = powerOf(base)
      if (other.op === 'number' && isWhole(other.value)) return pow(inner, other.value.p * power)
      break
    }
    case 'Abs': {
      const [inner] = base.args
      if (inner !== undefined && power > 1n) return power % 2n === 0n ? pow(inner, power) : mul(pow(inner, power - 1n), base)
      break
    }
    default:
  }
  return operation('Pow', [base, number(whole(power))])
}

export const negate = (expr: Expr): Expr => mul(integer(-1), expr)
export const subtract = (a: Expr, b: Expr): Expr => add(a, negate(b))

/** `a / b`, exactly: what cannot be cancelled stays as a power of -1. */
export const divide = (a: Expr, b: Expr): Expr => mul(a, pow(b, -1))

/** A JavaScript number as an expression: an integer, or else a float. */
export const constantOf = (value: number): Expr => (Number.isInteger(value) || Math.abs(value) === Infinity ? number(exactly(value)) : float(value))
