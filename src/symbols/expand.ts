// Replacing parts of expressions, and multiplying out. Replacing rebuilds what is above a part through the constructors, so the result is canonical again.
import { add, mul, pow } from './arithmetic.ts'
import { factorsOf, integer, powerOf, termsOf } from './expression.ts'
import type { Expr } from './expression.ts'
import { build } from './build.ts'

/** The expression with every part that has a replacement replaced, in one pass: what a replacement brings in is not replaced again. */
export function substitute(expr: Expr, replacements: ReadonlyMap<Expr, Expr>): Expr {
  if (replacements.size === 0) return expr
  const done = new Map<Expr, Expr>()
  const walk = (part: Expr): Expr => {
    const given = replacements.get(part) ?? done.get(part)
    if (given !== undefined) return given
    if (part.args.length === 0) return part
    const args = part.args.map(walk)
    const result = args.every((arg, i) => arg === part.args[i]) ? part : build(part.op, args)
    done.set(part, result)
    return result
  }
  return walk(expr)
}

const expanded = new WeakMap<Expr, Expr>()

/** Products of sums and powers of sums as sums of products, everywhere. */
export function expand(expr: Expr): Expr {
  const kept = expanded.get(expr)
  if (kept !== undefined) return kept
  const result = expandOnce(expr)
  expanded.set(expr, result)
  return result
}

function expandOnce(expr: Expr): Expr {
  if (expr.args.length === 0) return expr
  const args = expr.args.map(expand)
  if (args.some((arg, i) => arg !== expr.args[i])) return expand(build(expr.op, args))
  if (expr.op === 'Pow') return expandPower(expr)
  if (expr.op !== 'Mul') return expr
  const under = factorsOf(expr).filter((factor) => exponentOf(factor) === -1n)
  const over = factorsOf(expr).filter((factor) => exponentOf(factor) !== -1n)
  const numerator = multiplySums(over)
  const denominator = multiplySums(under.map((factor) => powerOf(factor)[0]))
  return numerator.changed || denominator.changed ? mul(numerator.product, pow(denominator.product, -1)) : expr
}

function exponentOf(expr: Expr): bigint {
  const [, exponent] = powerOf(expr)
  return exponent.op === 'number' && exponent.value.q === 1n ? exponent.value.p : 1n
}

/** The most terms that a power is multiplied out to: powers of long sums stay as they are. */
const MOST_TERMS = 2000

function expandPower(expr: Expr): Expr {
  const [base] = powerOf(expr)
  const exponent = exponentOf(expr)
  const count = Number(exponent < 0n ? -exponent : exponent)
  if (base.op !== 'Add' || count < 2 || base.args.length ** count > MOST_TERMS) return expr
  let product: readonly Expr[] = [integer(1)]
  for (let i = 0; i < count; i++) product = termsOf(add(...product.flatMap((a) => base.args.map((b) => mul(a, b)))))
  const sum = add(...product)
  return exponent < 0n ? pow(sum, -1) : sum
}

function multiplySums(factors: readonly Expr[]): { product: Expr; changed: boolean } {
  const sums = factors.filter((factor) => factor.op === 'Add')
  const others = factors.filter((factor) => factor.op !== 'Add')
  let terms: readonly Expr[] = [mul(...others)]
  for (const sum of sums) terms = terms.flatMap((term) => sum.args.map((other) => mul(term, other)))
  return { product: add(...terms), changed: sums.length > 1 || (sums.length > 0 && others.length > 0) }
}
