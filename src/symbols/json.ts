// Expressions as JSON, and back: integers and names as they are, operations as `["FloorDiv", "s0", 2]`; what JSON has no number for is an object.
import { ArgumentError } from '../errors/index.ts'
import { isPlainObject, valueText } from '../protocol/index.ts'
import { build } from './build.ts'
import { boolean, float, integer, number } from './expression.ts'
import type { Expr } from './expression.ts'
import { isWhole, rationalText } from './rational.ts'

/** An expression as JSON. */
export type ExprJson = number | boolean | string | { readonly number: string } | { readonly float: number | string } | readonly ExprJson[]

/** The expression as JSON. The names of symbols stay, and what is assumed of them is the reader's to know. */
export function exprToJson(expr: Expr): ExprJson {
  switch (expr.op) {
    case 'number':
      return isWhole(expr.value) && Number.isSafeInteger(Number(expr.value.p)) ? Number(expr.value.p) : { number: rationalText(expr.value) }
    case 'float':
      return { float: Number.isFinite(expr.value) && !Object.is(expr.value, -0) ? expr.value : Object.is(expr.value, -0) ? '-0' : String(expr.value) }
    case 'boolean':
      return expr.value
    case 'symbol':
      return expr.name
    default:
      return [expr.op, ...expr.args.map(exprToJson)]
  }
}

/** Nested deeper than this, JSON is refused. */
const DEEPEST = 500
const NUMBER = /^(-?\d+)(?:\/(\d+))?$/

/**
 * The expression that JSON says.
 *
 * @param symbolOf - the symbol of a name, with what is assumed of it.
 * @throws ArgumentError for JSON that is no expression.
 */
export function exprFromJson(json: unknown, symbolOf: (name: string) => Expr, depth = 0): Expr {
  if (typeof json === 'string') return symbolOf(json)
  if (typeof json === 'boolean') return boolean(json)
  if (Number.isSafeInteger(json)) return integer(Number(json))
  if (Array.isArray(json) && typeof json[0] === 'string' && depth < DEEPEST) {
    const [op, ...args]: readonly unknown[] = json
    return build(
      String(op),
      args.map((arg) => exprFromJson(arg, symbolOf, depth + 1)),
    )
  }
  const constant = isPlainObject(json) ? constantFrom(json) : null
  if (constant === null) throw new ArgumentError(`exprFromJson: ${valueText(json)} is no expression: a number, a name, or [operation, ...arguments].`)
  return constant
}

function constantFrom(json: Readonly<Record<string, unknown>>): Expr | null {
  const value = json['float']
  if (typeof value === 'number' || (typeof value === 'string' && ['Infinity', '-Infinity', 'NaN', '-0'].includes(value))) return float(Number(value))
  const text = json['number']
  if (typeof text !== 'string') return null
  if (text === 'int_oo' || text === '-int_oo') return number({ p: text === 'int_oo' ? 1n : -1n, q: 0n })
  const [, over, under = '1'] = NUMBER.exec(text) ?? []
  if (over === undefined || BigInt(under) === 0n) return null
  return build('Mul', [integer(BigInt(over)), build('Pow', [integer(BigInt(under)), integer(-1)])])
}
