// Expressions as text, letter by letter as sympy writes them: `2*s0 + 1`, `((s0 + 1)//2)`, `Max(1, s0 - 2)`.
import { remembered } from '../protocol/index.ts'
import { negate, pow } from './arithmetic.ts'
import { factorsOf, integer, isInteger, number, operands, powerOf } from './expression.ts'
import type { Expr, Operation } from './expression.ts'
import { compareKeys, coefficientOf, orderedTerms } from './order.ts'
import { BELOW_ATOM, PRECEDENCE, hasMinus, precedence } from './precedence.ts'
import { rationalText, signOf, whole } from './rational.ts'

const texts = new WeakMap<Expr, string>()

/** The expression as sympy prints it. */
export const textOf = (expr: Expr): string => remembered(texts, expr, print)

const parenthesized = (expr: Expr, level: number): string => (precedence(expr) <= level ? `(${textOf(expr)})` : textOf(expr))

const SIGNS = { Lt: '<', Le: '<=', Gt: '>', Ge: '>=' } as const

function print(expr: Expr): string {
  switch (expr.op) {
    case 'number':
      return rationalText(expr.value)
    case 'float':
      return floatText(expr.value)
    case 'symbol':
      return expr.name
    case 'boolean':
      return expr.value ? 'True' : 'False'
    case 'Add':
      return sumText(expr)
    case 'Mul':
      return productText(expr)
    case 'Pow':
      return powerText(expr)
    case 'FloorDiv':
    case 'CleanDiv': {
      const [base, divisor] = operands(expr)
      return `(${parenthesized(base, BELOW_ATOM)}//${parenthesized(divisor, BELOW_ATOM)})`
    }
    case 'Lt':
    case 'Le':
    case 'Gt':
    case 'Ge': {
      const [left, right] = operands(expr)
      return `${parenthesized(left, PRECEDENCE.relation)} ${SIGNS[expr.op]} ${parenthesized(right, PRECEDENCE.relation)}`
    }
    case 'And':
      return expr.args.map((arg) => parenthesized(arg, PRECEDENCE.bitwiseAnd)).join(' & ')
    case 'Or':
      return expr.args.map((arg) => parenthesized(arg, PRECEDENCE.bitwiseOr)).join(' | ')
    case 'Not':
      return `~${parenthesized(operands(expr)[0], PRECEDENCE.not)}`
    case 'Max':
    case 'Min':
      return callText(expr.op, expr.args.toSorted(compareKeys))
    case 'Piecewise': {
      const pairs = expr.args.flatMap((value, i) => (i % 2 === 0 ? [`(${textOf(value)}, ${textOf(expr.args[i + 1] ?? value)})`] : []))
      return `Piecewise(${pairs.join(', ')})`
    }
    default:
      return callText(expr.op, expr.args)
  }
}

const callText = (name: string, args: readonly Expr[]): string => `${name}(${args.map(textOf).join(', ')})`

function sumText(expr: Expr): string {
  const parts = orderedTerms(expr).map((term) => {
    const text = textOf(term)
    const minus = text.startsWith('-')
    const rest = minus ? text.slice(1) : text
    return { minus, text: precedence(term) < PRECEDENCE.sum || term.op === 'Add' ? `(${rest})` : rest }
  })
  return parts.map(({ minus, text }, i) => (i === 0 ? `${minus ? '-' : ''}${text}` : ` ${minus ? '-' : '+'} ${text}`)).join('')
}

function productText(expr: Operation): string {
  const level = precedence(expr)
  const [coefficient, rest] = coefficientOf(expr)
  const minus = hasMinus(expr)
  const front = minus ? negate(coefficient) : coefficient
  const factors = [...(isInteger(front, 1) ? [] : [front]), ...factorsOf(rest)].toSorted(compareKeys)
  const over: Expr[] = []
  const under: Expr[] = []
  for (const factor of factors) {
    const [base, exponent] = powerOf(factor)
    if (factor.op === 'Pow' && exponent.op === 'number' && signOf(exponent.value) < 0) under.push(pow(base, -exponent.value.p))
    else if (factor.op === 'number') {
      if (factor.value.p !== 1n) over.push(number(whole(factor.value.p)))
      if (factor.value.q !== 1n) under.push(number(whole(factor.value.q)))
    } else over.push(factor)
  }
  const text = (over.length === 0 ? [integer(1)] : over).map((factor) => parenthesized(factor, level)).join('*')
  const below = under.map((factor) => parenthesized(factor, level))
  const divisor = below.length === 0 ? '' : below.length === 1 ? `/${below[0]}` : `/(${below.join('*')})`
  return `${minus ? '-' : ''}${text}${divisor}`
}

function powerText(expr: Operation): string {
  const [base, exponent] = operands(expr)
  if (isInteger(exponent, -1)) return `1/${parenthesized(base, PRECEDENCE.power)}`
  return `${parenthesized(base, PRECEDENCE.power)}**${parenthesized(exponent, PRECEDENCE.power)}`
}

/** A float with the 15 digits that sympy prints, without needless zeros. */
export function floatText(value: number): string {
  if (Number.isNaN(value)) return 'nan'
  if (!Number.isFinite(value)) return value > 0 ? 'oo' : '-oo'
  const [digits = '0', exponent = '0'] = value.toExponential(14).split('e')
  const power = Number(exponent)
  const short = digits.replace(/0+$/, '').replace(/\.$/, '.0')
  if (value !== 0 && (power < -5 || power >= 15)) return `${short}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`
  const fixed = Number(value.toPrecision(15)).toFixed(Math.max(1, 14 - power))
  return fixed.replace(/(\.\d+?)0+$/, '$1')
}
