// Polynomials in one symbol, as lists of coefficients around a point.
import { factorsOf, powerOf, termsOf } from './expression.ts'
import type { Expr, SymbolExpr } from './expression.ts'
import { ONE, ZERO, isWhole, productOf, sumOf } from './rational.ts'
import type { Rational } from './rational.ts'

/** Powers above this one are not looked at. */
const HIGHEST = 64n

/** The coefficients, lowest first, in powers of (symbol - point); null if the expression is not a polynomial in the symbol alone. */
export function polynomialOf(expr: Expr, symbol: SymbolExpr, point: Rational): readonly Rational[] | null {
  const coefficients: Rational[] = []
  for (const term of termsOf(expr)) {
    let product: readonly Rational[] = [ONE]
    for (const factor of factorsOf(term)) {
      const next = factorOf(factor, symbol, point)
      if (next === null) return null
      product = times(product, next)
    }
    for (const [i, coefficient] of product.entries()) coefficients[i] = sumOf(coefficients[i] ?? ZERO, coefficient) ?? ZERO
  }
  return Array.from(coefficients, (coefficient) => coefficient ?? ZERO)
}

function factorOf(factor: Expr, symbol: SymbolExpr, point: Rational): readonly Rational[] | null {
  if (factor.op === 'number') return [factor.value]
  const [base, exponent] = powerOf(factor)
  if (exponent.op !== 'number' || !isWhole(exponent.value) || exponent.value.p < 1n || exponent.value.p > HIGHEST) return null
  const single = base === symbol ? [point, ONE] : base.op === 'Add' ? polynomialOf(base, symbol, point) : null
  if (single === null) return null
  let product: readonly Rational[] = [ONE]
  for (let i = 0n; i < exponent.value.p; i++) product = times(product, single)
  return product
}

function times(a: readonly Rational[], b: readonly Rational[]): readonly Rational[] {
  const product = new Array<Rational>(a.length + b.length - 1).fill(ZERO)
  for (const [i, x] of a.entries()) for (const [k, y] of b.entries()) product[i + k] = sumOf(product[i + k] ?? ZERO, productOf(x, y)) ?? ZERO
  return product
}
