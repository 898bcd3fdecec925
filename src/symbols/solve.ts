// Solving a comparison for a part of it: `2*s0 + 3 > s1` for s0 gives `s0 > s1/2 - 3/2`. The steps are those of torch.utils._sympy.solve, no more.
import { add, divide, mul, subtract } from './arithmetic.ts'
import { has, integer, isRelation, operands, termsOf } from './expression.ts'
import type { Expr, Relation } from './expression.ts'
import { factsOf } from './facts.ts'
import { MIRRORED, and, mirrored, or, relation } from './relations.ts'

/** How often both sides are changed before the attempt is given up. */
const TRIALS = 5

/** A comparison with `wanted` alone on the left. */
export interface Solution {
  readonly relation: Relation
  readonly right: Expr
}

/**
 * Brings a comparison into a form with `wanted` alone on the left; null if the steps do not lead there.
 *
 * @param throughFloorDiv - whether `a // b > c` may become `a >= b*(c + 1)`, which is another comparison of the same truth.
 */
export function trySolve(expr: Expr, wanted: Expr, throughFloorDiv = true): Solution | null {
  if (!isRelation(expr)) return null
  const [left, right] = operands(expr)
  const [onLeft, onRight] = [has(left, wanted), has(right, wanted)]
  if (onLeft === onRight) return null
  let current: Expr = onLeft ? expr : mirrored(expr)
  for (let i = 0; i < TRIALS && isRelation(current); i++) {
    const next: Expr = isolate(current, wanted, throughFloorDiv)
    if (next === current) break
    current = next
  }
  if (!isRelation(current)) return null
  const [side, rest] = operands(current)
  return side === wanted ? { relation: current, right: rest } : null
}

function isolate(given: Relation, wanted: Expr, throughFloorDiv: boolean): Expr {
  const moved = withoutOtherTerms(given, wanted)
  if (!isRelation(moved)) return moved
  const divided = withoutOtherFactors(moved, wanted)
  return throughFloorDiv && isRelation(divided) ? withoutFloorDiv(divided) : divided
}

function withoutOtherTerms(given: Relation, wanted: Expr): Expr {
  const [left, right] = operands(given)
  if (left.op !== 'Add') return given
  const others = add(...termsOf(left).filter((term) => !has(term, wanted)))
  return relation(given.op, subtract(left, others), subtract(right, others))
}

function withoutOtherFactors(given: Relation, wanted: Expr): Expr {
  const [left, right] = operands(given)
  if (left.op !== 'Mul') return given
  const others = mul(...left.args.filter((factor) => !has(factor, wanted)))
  const { positive, negative } = factsOf(others)
  const isEquation = given.op === 'Eq' || given.op === 'Ne'
  // The sign of what is divided by must be known, and an equation with 0 would lose a case.
  if (isEquation ? factsOf(right).zero : !positive && !negative) return given
  return relation(!isEquation && negative ? MIRRORED[given.op] : given.op, divide(left, others), divide(right, others))
}

function withoutFloorDiv(given: Relation): Expr {
  const [left, right] = operands(given)
  if ((left.op !== 'FloorDiv' && left.op !== 'CleanDiv') || !factsOf(right).integer) return given
  const [base, divisor] = operands(left)
  if (!factsOf(divisor).positive) return given
  const from = mul(right, divisor)
  const next = mul(add(right, integer(1)), divisor)
  switch (given.op) {
    case 'Eq':
      return and(relation('Ge', base, from), relation('Lt', base, next))
    case 'Ne':
      return or(relation('Lt', base, from), relation('Ge', base, next))
    case 'Ge':
      return relation('Ge', base, from)
    case 'Gt':
      return relation('Ge', base, next)
    case 'Lt':
      return relation('Lt', base, from)
    case 'Le':
      return relation('Lt', base, next)
  }
}
