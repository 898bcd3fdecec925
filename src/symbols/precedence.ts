// How strongly an expression holds together in print, as sympy and PyTorch's printers have it. What holds less than its surroundings gets parentheses.
import type { Expr, Operator } from './expression.ts'
import { isNumber } from './expression.ts'
import { signOf } from './rational.ts'

export const ATOM = 1000
/** Everything but atoms is put in parentheses at this level. */
export const BELOW_ATOM = ATOM - 0.5
export const PRECEDENCE = {
  or: 20,
  and: 30,
  relation: 35,
  bitwiseOr: 36,
  bitwiseAnd: 38,
  sum: 40,
  product: 50,
  power: 60,
  call: 70,
  not: 100,
} as const

const BY_OPERATOR: Readonly<Partial<Record<Operator, number>>> = {
  Or: PRECEDENCE.or,
  And: PRECEDENCE.and,
  Not: PRECEDENCE.not,
  Lt: PRECEDENCE.relation,
  Le: PRECEDENCE.relation,
  Gt: PRECEDENCE.relation,
  Ge: PRECEDENCE.relation,
  Eq: PRECEDENCE.product,
  Ne: PRECEDENCE.product,
  Add: PRECEDENCE.sum,
  Pow: PRECEDENCE.power,
  FloatPow: PRECEDENCE.power,
  PowByNatural: PRECEDENCE.product,
  FloorDiv: PRECEDENCE.relation,
  CleanDiv: PRECEDENCE.relation,
  Mod: PRECEDENCE.relation,
  PythonMod: PRECEDENCE.relation,
  IntTrueDiv: PRECEDENCE.relation,
  FloatTrueDiv: PRECEDENCE.relation,
  Max: ATOM,
  Min: ATOM,
}

export function precedence(expr: Expr): number {
  switch (expr.op) {
    case 'number':
      return signOf(expr.value) < 0 ? PRECEDENCE.sum : expr.value.q > 1n ? PRECEDENCE.product : ATOM
    case 'float':
      return expr.value < 0 ? PRECEDENCE.sum : ATOM
    case 'symbol':
    case 'boolean':
      return ATOM
    case 'Mul':
      return hasMinus(expr) ? PRECEDENCE.sum : PRECEDENCE.product
    default:
      return BY_OPERATOR[expr.op] ?? PRECEDENCE.call
  }
}

/** Whether a product or number prints with a minus in front. */
export function hasMinus(expr: Expr): boolean {
  if (expr.op === 'number') return signOf(expr.value) < 0
  if (expr.op === 'float') return expr.value < 0
  const [first] = expr.args
  return expr.op === 'Mul' && first !== undefined && isNumber(first) && hasMinus(first)
}
