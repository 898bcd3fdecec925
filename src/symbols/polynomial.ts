// Polynomials in several symbols with integer coefficients, for what monomial division cannot cancel: the greatest common divisor of two expressions, and exact quotients.
// Whatever is not a number, a sum, a product or a natural power counts as a symbol.
import { add, mul, pow } from './arithmetic.ts'
import { factorsOf, integer, isNumber, number, powerOf, termsOf } from './expression.ts'
import type { Expr } from './expression.ts'
import { compareKeys } from './order.ts'
import { gcdOf, isWhole, whole } from './rational.ts'

/** A polynomial in the first symbol, whose coefficients (lowest first) are polynomials in the others; or a number. The last coefficient is not 0. */
type Polynomial = bigint | readonly Polynomial[]

/** Expressions of more terms or symbols are not looked at. */
const MOST_TERMS = 64
const MOST_SYMBOLS = 6
const HIGHEST = 16n

const isZero = (a: Polynomial): boolean => (typeof a === 'bigint' ? a === 0n : a.length === 0)

function trim(coefficients: readonly Polynomial[]): readonly Polynomial[] {
  let length = coefficients.length
  while (length > 0 && isZero(coefficients[length - 1] ?? 0n)) length--
  return coefficients.slice(0, length)
}

function plus(a: Polynomial, b: Polynomial, sign: bigint): Polynomial {
  if (typeof a === 'bigint' || typeof b === 'bigint')
    return typeof a === 'bigint' && typeof b === 'bigint' ? a + sign * b : isZero(b) ? a : times(b, sign)
  return trim(
    Array.from({ length: Math.max(a.length, b.length) }, (_, i) => {
      const [x, y] = [a[i], b[i]]
      if (y === undefined) return x ?? 0n
      return x === undefined ? times(y, sign) : plus(x, y, sign)
    }),
  )
}

function times(a: Polynomial, b: Polynomial): Polynomial {
  if (typeof a === 'bigint') return typeof b === 'bigint' ? a * b : trim(b.map((coefficient) => times(a, coefficient)))
  if (typeof b === 'bigint') return times(b, a)
  let product: Polynomial = []
  for (const [i, x] of a.entries()) {
    const shifted = b.map((y) => times(x, y))
    product = plus(product, trim([...new Array<Polynomial>(i).fill(zeroLike(x)), ...shifted]), 1n)
  }
  return product
}

const zeroLike = (a: Polynomial): Polynomial => (typeof a === 'bigint' ? 0n : [])

/** `a / b` if there is no remainder, and null otherwise. */
function exactQuotient(a: Polynomial, b: Polynomial): Polynomial | null {
  if (isZero(b)) return null
  if (typeof a === 'bigint' || typeof b === 'bigint') {
    if (typeof a === 'bigint' && typeof b === 'bigint') return a % b === 0n ? a / b : null
    if (typeof a === 'bigint') return null
    const quotients = a.map((coefficient) => exactQuotient(coefficient, b))
    return quotients.every((quotient) => quotient !== null) ? quotients : null
  }
  const quotient: Polynomial[] = []
  let rest = a
  const leading = b.at(-1) ?? 0n
  while (rest.length >= b.length) {
    const factor = exactQuotient(rest.at(-1) ?? 0n, leading)
    if (factor === null) return null
    const degree = rest.length - b.length
    while (quotient.length <= degree) quotient.push(zeroLike(leading))
    quotient[degree] = factor
    const next = plus(rest, times(trim([...new Array<Polynomial>(degree).fill(zeroLike(factor)), factor]), b), -1n)
    if (typeof next === 'bigint') return null
    rest = next
  }
  return rest.length === 0 ? trim(quotient) : null
}

/** The greatest common divisor of the coefficients. */
const contentOf = (a: readonly Polynomial[]): Polynomial => a.reduce((common, coefficient) => gcd(common, coefficient), zeroLike(a[0] ?? 0n))

/** The greatest common divisor, by pseudo-remainders of primitive parts. */
function gcd(a: Polynomial, b: Polynomial): Polynomial {
  if (typeof a === 'bigint' || typeof b === 'bigint') {
    if (typeof a === 'bigint' && typeof b === 'bigint') return gcdOf(a, b)
    return isZero(a) ? b : a
  }
  if (isZero(a)) return b
  if (isZero(b)) return a
  const [contentOfA, contentOfB] = [contentOf(a), contentOf(b)]
  const common = gcd(contentOfA, contentOfB)
  let [x, y] = [dividedBy(a, contentOfA), dividedBy(b, contentOfB)]
  if (x.length < y.length) [x, y] = [y, x]
  while (y.length > 0) {
    const rest = pseudoRemainder(x, y)
    x = y
    y = rest.length === 0 ? rest : dividedBy(rest, contentOf(rest))
  }
  const product = times(common, [])
  return isZero(product) ? trim(x.map((coefficient) => times(coefficient, common))) : product
}

const dividedBy = (a: readonly Polynomial[], by: Polynomial): readonly Polynomial[] =>
  a.map((coefficient) => exactQuotient(coefficient, by) ?? coefficient)

function pseudoRemainder(a: readonly Polynomial[], b: readonly Polynomial[]): readonly Polynomial[] {
  let rest = a
  const leading = b.at(-1) ?? 0n
  while (rest.length >= b.length && b.length > 0) {
    const factor = rest.at(-1) ?? 0n
    const degree = rest.length - b.length
    const scaledRest = rest.map((coefficient) => times(coefficient, leading))
    const subtracted = [...new Array<Polynomial>(degree).fill(zeroLike(leading)), ...b.map((coefficient) => times(coefficient, factor))]
    const next = plus(trim(scaledRest), trim(subtracted), -1n)
    if (typeof next === 'bigint') return []
    rest = next
  }
  return rest
}

function symbolsIn(expr: Expr, found: Set<Expr>): boolean {
  return termsOf(expr).every((term) =>
    factorsOf(term).every((factor) => {
      if (isNumber(factor)) return factor.op === 'number' && isWhole(factor.value)
      const [base, exponent] = powerOf(factor)
      if (exponent.op !== 'number' || !isWhole(exponent.value) || exponent.value.p < 1n || exponent.value.p > HIGHEST) return false
      if (base.op === 'Add') return symbolsIn(base, found)
      found.add(base)
      return true
    }),
  )
}

function read(expr: Expr, symbols: readonly Expr[]): Polynomial {
  const constant = (value: bigint): Polynomial => symbols.reduce<Polynomial>((inner) => (isZero(inner) ? [] : [inner]), value)
  const variable = (base: Expr): Polynomial => {
    const at = symbols.indexOf(base)
    const rest = symbols.length - 1 - at
    let inner: Polynomial = 1n
    for (let i = 0; i < rest; i++) inner = [inner]
    let zero: Polynomial = 0n
    for (let i = 0; i < rest; i++) zero = []
    let result: Polynomial = [zero, inner]
    for (let i = 0; i < at; i++) result = [result]
    return result
  }
  let sum = constant(0n)
  for (const term of termsOf(expr)) {
    let product = constant(1n)
    for (const factor of factorsOf(term)) {
      const [base, exponent] = powerOf(factor)
      const single = base.op === 'number' ? constant(base.value.p) : base.op === 'Add' ? read(base, symbols) : variable(base)
      const times_ = exponent.op === 'number' ? exponent.value.p : 1n
      for (let i = 0n; i < times_; i++) product = times(product, single)
    }
    sum = plus(sum, product, 1n)
  }
  return sum
}

function write(polynomial: Polynomial, symbols: readonly Expr[]): Expr {
  if (typeof polynomial === 'bigint') return number(whole(polynomial))
  const [symbol, ...rest] = symbols
  if (symbol === undefined) return integer(0)
  const terms = polynomial.flatMap((coefficient, i) => termsOf(write(coefficient, rest)).map((term) => mul(term, pow(symbol, i))))
  return add(...terms)
}

const leadingSign = (a: Polynomial): bigint => (typeof a === 'bigint' ? (a < 0n ? -1n : 1n) : leadingSign(a.at(-1) ?? 0n))

/** What both have in common, and what is left of each once it is divided by that; null if they are not polynomials with integer coefficients, or large ones. */
export function commonDivisor(a: Expr, b: Expr): { readonly divisor: Expr; readonly a: Expr; readonly b: Expr } | null {
  const found = new Set<Expr>()
  if (termsOf(a).length > MOST_TERMS || termsOf(b).length > MOST_TERMS || !symbolsIn(a, found) || !symbolsIn(b, found)) return null
  if (found.size > MOST_SYMBOLS || found.size === 0) return null
  const symbols = [...found].toSorted(compareKeys)
  const [x, y] = [read(a, symbols), read(b, symbols)]
  const common = gcd(x, y)
  const divisor = times(common, leadingSign(common))
  const [left, right] = [exactQuotient(x, divisor), exactQuotient(y, divisor)]
  if (left === null || right === null) return null
  return { divisor: write(divisor, symbols), a: write(left, symbols), b: write(right, symbols) }
}
