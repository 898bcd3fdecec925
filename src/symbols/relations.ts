// Comparisons and what is made of them: Eq and its like, And, Or, Not, and Piecewise. A comparison that the assumptions decide is True or False; ranges are not looked at
// here (see ranges.ts).
import { FALSE, TRUE, boolean, isBoolean, isNumber, isRelation, operands, operation } from './expression.ts'
import type { Expr, Relation, RelationOperator } from './expression.ts'
import { differenceFacts, factsOf } from './facts.ts'
import { compareNumbers } from './functions.ts'
import { negate } from './arithmetic.ts'
import { compareSizes, extractsMinus } from './order.ts'

/** The comparison with its sides exchanged. */
export const MIRRORED: Readonly<Record<RelationOperator, RelationOperator>> = { Eq: 'Eq', Ne: 'Ne', Lt: 'Gt', Le: 'Ge', Gt: 'Lt', Ge: 'Le' }
/** The comparison that is true where this one is false. */
const CONTRARY: Readonly<Record<RelationOperator, RelationOperator>> = { Eq: 'Ne', Ne: 'Eq', Lt: 'Ge', Le: 'Gt', Gt: 'Le', Ge: 'Lt' }

/** A comparison, decided if the assumptions decide it. */
export function relation(op: RelationOperator, left: Expr, right: Expr): Expr {
  const decided = decide(op, left, right)
  return decided === null ? operation(op, [left, right]) : boolean(decided)
}

function decide(op: RelationOperator, left: Expr, right: Expr): boolean | null {
  switch (op) {
    case 'Eq':
      return areEqual(left, right)
    case 'Ne':
      return contrary(areEqual(left, right))
    case 'Ge':
      return isAtLeast(left, right)
    case 'Lt':
      return contrary(isAtLeast(left, right))
    case 'Le':
      return isAtLeast(right, left)
    case 'Gt':
      return contrary(isAtLeast(right, left))
  }
}

const contrary = (value: boolean | null): boolean | null => (value === null ? null : !value)
const infinityOf = (expr: Expr): bigint => (expr.op === 'number' && expr.value.q === 0n ? expr.value.p : 0n)

function isAtLeast(left: Expr, right: Expr): boolean | null {
  const order = compareNumbers(left, right)
  if (order !== null) return order >= 0
  if (!factsOf(left).real || !factsOf(right).real) return infinityDecides(left, right)
  const { nonnegative, negative } = differenceFacts(left, right)
  return nonnegative ? true : negative ? false : null
}

/** Every size is between the infinities. */
function infinityDecides(left: Expr, right: Expr): boolean | null {
  const [a, b] = [infinityOf(left), infinityOf(right)]
  if (a === 0n && b === 0n) return null
  return a > 0n || b < 0n
}

function areEqual(left: Expr, right: Expr): boolean | null {
  if (left === right) return true
  if (left.op === 'boolean' && right.op === 'boolean') return false
  if (left.op !== 'symbol' && right.op !== 'symbol' && isBoolean(left) !== isBoolean(right)) return false
  if (isBoolean(left) || isBoolean(right)) return null
  if (infinityOf(left) !== 0n || infinityOf(right) !== 0n)
    return isNumber(left) && isNumber(right) ? false : factsOf(isNumber(left) ? right : left).real ? false : null
  const { zero, nonzero } = differenceFacts(left, right)
  return zero ? true : nonzero ? false : null
}

export const eq = (a: Expr, b: Expr): Expr => relation('Eq', a, b)
export const ne = (a: Expr, b: Expr): Expr => relation('Ne', a, b)
export const lt = (a: Expr, b: Expr): Expr => relation('Lt', a, b)
export const le = (a: Expr, b: Expr): Expr => relation('Le', a, b)
export const gt = (a: Expr, b: Expr): Expr => relation('Gt', a, b)
export const ge = (a: Expr, b: Expr): Expr => relation('Ge', a, b)

/** A comparison with its sides exchanged. */
export const mirrored = (expr: Relation): Relation => {
  const [left, right] = operands(expr)
  return operation(MIRRORED[expr.op], [right, left])
}

export function not(expr: Expr): Expr {
  if (expr.op === 'boolean') return boolean(!expr.value)
  if (expr.op === 'Not') return operands(expr)[0]
  if (!isRelation(expr)) return operation('Not', [expr])
  const [left, right] = operands(expr)
  return relation(CONTRARY[expr.op], left, right)
}

export const and = (...args: readonly Expr[]): Expr => joined('And', args)
export const or = (...args: readonly Expr[]): Expr => joined('Or', args)

function joined(op: 'And' | 'Or', given: readonly Expr[]): Expr {
  // What decides the whole: False for And, True for Or.
  const deciding = op === 'And' ? FALSE : TRUE
  const args = [...new Set(given.flatMap((arg) => (arg.op === op ? arg.args : [arg])))].filter((arg) => arg !== boolean(!deciding.value))
  if (args.includes(deciding)) return deciding
  const seen = new Set<Expr>()
  const kept: Expr[] = []
  for (const arg of args.toSorted(compareSizes)) {
    if (isRelation(arg)) {
      const form = canonicalRelation(arg)
      const contraryForm = not(form)
      if (seen.has(isRelation(contraryForm) ? canonicalRelation(contraryForm) : contraryForm)) return deciding
      if (seen.has(form)) continue
      seen.add(form)
    } else if (args.includes(not(arg))) return deciding
    kept.push(arg)
  }
  const [only] = kept
  if (only === undefined) return boolean(!deciding.value)
  return kept.length === 1 ? only : operation(op, kept)
}

/** One form of a comparison that can be written in several: the number on the right, the smaller side on the left, without a minus in front. */
function canonicalRelation(expr: Relation): Relation {
  const [left, right] = operands(expr)
  const swap = isNumber(right) ? false : isNumber(left) || compareSizes(right, left) < 0
  const turned = swap ? mirrored(expr) : expr
  const [first, second] = operands(turned)
  if (isBoolean(first) || isBoolean(second) || !extractsMinus(first, negate)) return turned
  return operation(MIRRORED[turned.op], [negate(first), negate(second)])
}

/** The first value whose condition holds, given as value, condition, value, condition, …; the last condition is True. */
export function piecewise(...given: readonly Expr[]): Expr {
  const args: Expr[] = []
  for (let i = 0; i + 1 < given.length; i += 2) {
    const [value = TRUE, condition = TRUE] = given.slice(i, i + 2)
    if (condition === FALSE) continue
    const last = args.at(-2)
    if (last === value) args[args.length - 1] = or(args.at(-1) ?? FALSE, condition)
    else args.push(value, condition)
    if (args.at(-1) === TRUE) break
  }
  const [value, condition] = args
  if (value !== undefined && condition === TRUE) return value
  return operation('Piecewise', args)
}
