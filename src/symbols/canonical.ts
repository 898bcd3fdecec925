// One form for truth values that say the same: comparisons with `<` and `<=` only, all terms that are subtracted on the left, without common factors; And of Ors.
// `s0 > s1 + 2` becomes `s1 + 2 < s0`, `4*s0 >= 2*s1` becomes `s1 <= 2*s0`.
import { add, mul, negate, subtract } from './arithmetic.ts'
import { FALSE, TRUE, factorsOf, integer, isBoolean, isRelation, number, operands, operation, termsOf } from './expression.ts'
import type { Expr } from './expression.ts'
import { factsOf } from './facts.ts'
import { hasMinus } from './precedence.ts'
import { coefficientOf } from './order.ts'
import { fraction, gcdOf, isWhole } from './rational.ts'
import { and, not, or } from './relations.ts'

/** The canonical form; numbers stay as they are. */
export function canonicalBoolean(expr: Expr): Expr {
  if (expr.op === 'And' || expr.op === 'Or' || expr.op === 'Not') {
    const form = conjunctive(expr)
    if (form.op === 'And') return and(...form.args.map(canonicalBoolean))
    return form.op === 'Or' ? or(...form.args.map(canonicalBoolean)) : canonicalBoolean(form)
  }
  if (!isRelation(expr) || expr.args.some(isBoolean)) return expr
  const [left, right] = operands(expr)
  const turned = expr.op === 'Gt' || expr.op === 'Ge'
  const op = expr.op === 'Gt' ? 'Lt' : expr.op === 'Ge' ? 'Le' : expr.op
  const difference = reduced(turned ? subtract(left, right) : subtract(right, left))
  const terms = termsOf(difference)
  const subtracted = terms.filter(hasMinus)
  return operation(op, [add(...subtracted.map(negate)), add(...terms.filter((term) => !hasMinus(term)))])
}

/** The expression without the number that all its terms have as a factor. */
function reduced(expr: Expr): Expr {
  if (expr.op === 'number') return expr
  const contents = termsOf(expr).map((term) => {
    const [coefficient] = coefficientOf(term)
    return coefficient.op === 'number' && isWhole(coefficient.value) ? gcdOf(coefficient.value.p, 0n) : 1n
  })
  const common = contents.reduce(gcdOf, 0n)
  if (common <= 1n) return expr
  return add(...termsOf(expr).map((term) => mul(...factorsOf(term), number(fraction(1n, common)))))
}

/** Formulas of more parts than this are not multiplied out. */
const MOST_CLAUSES = 64

/** An And of Ors of comparisons, with Not moved inwards. */
function conjunctive(expr: Expr): Expr {
  if (expr.op === 'Not') {
    const [inner] = operands(expr)
    if (inner.op === 'And') return conjunctive(or(...inner.args.map(not)))
    return inner.op === 'Or' ? conjunctive(and(...inner.args.map(not))) : expr
  }
  if (expr.op === 'And') return and(...expr.args.map(conjunctive))
  if (expr.op !== 'Or') return expr
  const parts = expr.args.map(conjunctive).map((part) => (part.op === 'And' ? part.args : [part]))
  if (parts.reduce((count, { length }) => count * length, 1) > MOST_CLAUSES) return expr
  const clauses = parts.reduce<readonly (readonly Expr[])[]>((all, part) => all.flatMap((clause) => part.map((each) => [...clause, each])), [[]])
  return and(...clauses.map((clause) => or(...clause)))
}

/** Truth values that follow from one that holds, each with its value, in canonical form. */
export function implications(expr: Expr): ReadonlyMap<Expr, Expr> {
  const found = new Map<Expr, Expr>()
  const note = (fact: Expr): void => {
    const form = canonicalBoolean(fact)
    if (form.op !== 'Eq' && form.op !== 'Ne') {
      found.set(form, TRUE)
      found.set(canonicalBoolean(not(form)), FALSE)
      return
    }
    const [left, right] = operands(form)
    const opposite = form.op === 'Eq' ? 'Ne' : 'Eq'
    for (const sides of [
      [left, right],
      [right, left],
    ]) {
      found.set(operation(form.op, sides), TRUE)
      found.set(operation(opposite, sides), FALSE)
    }
  }
  note(expr)
  if (!isRelation(expr)) return found
  const [left, right] = operands(expr)
  if (expr.op === 'Eq') {
    note(operation('Le', [left, right]))
    note(operation('Ge', [left, right]))
  } else if (expr.op === 'Lt') {
    note(operation('Le', [left, right]))
    note(operation('Ne', [left, right]))
    if (factsOf(left).integer && factsOf(right).integer) note(operation('Le', [left, add(right, integer(-1))]))
  } else if (expr.op === 'Le') note(operation('Lt', [left, add(right, integer(1))]))
  return found
}
