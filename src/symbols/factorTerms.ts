// A sum with what its terms have in common in front: `s0*s1 + s0` as `s0*(s1 + 1)`. FloorDiv writes its operands so after it has cancelled something.
import { add, divide, mul, pow } from './arithmetic.ts'
import { factorsOf, integer, isInteger, number, operation, powerOf, termsOf } from './expression.ts'
import type { Expr } from './expression.ts'
import { compareExprs, coefficientOf } from './order.ts'
import { gcdOf, isWhole, whole } from './rational.ts'

export function factorTerms(expr: Expr): Expr {
  if (expr.op !== 'Add') return expr
  const shared = sharedPowers(expr)
  if (shared.length === 0) return expr
  const content = contentOf(expr)
  const front = mul(...shared)
  const rest = add(...termsOf(expr).map((term) => divide(term, mul(number(whole(content)), front))))
  if (content === 1n) return mul(front, rest)
  // A number in front of a single sum would be multiplied out; in front of a product it stays.
  return operation('Mul', [number(whole(content)), ...factorsOf(mul(front, rest)).toSorted(compareExprs)])
}

/** The highest powers that all terms have. */
function sharedPowers(expr: Expr): readonly Expr[] {
  const [first, ...others] = termsOf(expr).map((term) => new Map(factorsOf(term).map((factor) => powerOf(factor))))
  const shared: Expr[] = []
  for (const [base, exponent] of first ?? []) {
    const exponents = [exponent, ...others.map((powers) => powers.get(base) ?? integer(0))].map((each) =>
      each.op === 'number' && isWhole(each.value) ? each.value.p : 0n,
    )
    const least = exponents.reduce((a, b) => (a < b ? a : b))
    if (base.op !== 'number' && !isInteger(exponent, 0) && least > 0n) shared.push(pow(base, least))
  }
  return shared
}

function contentOf(expr: Expr): bigint {
  return termsOf(expr).reduce((common, term) => {
    const [coefficient] = coefficientOf(term)
    return coefficient.op === 'number' && isWhole(coefficient.value) ? gcdOf(common, coefficient.value.p) : 1n
  }, 0n)
}
