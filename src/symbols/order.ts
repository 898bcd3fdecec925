// Two orders of expressions, both sympy's. `compareExprs` is the order in which sums and products keep their arguments (sympy's Basic.compare); `compareKeys` is the order
// of what people read: terms as they print, the arguments of Max, Min, And and Or (sympy's sort_key).
import { remembered } from '../protocol/index.ts'
import { factorsOf, integer, isNumber, isOperation, operation, powerOf, termsOf } from './expression.ts'
import type { Expr, Operator, SymbolExpr } from './expression.ts'
import { compareRationals, isWhole, toNumber, whole } from './rational.ts'
import type { Rational } from './rational.ts'

/** Classes of sympy that have a place in its order; all others follow, by name. */
const CLASSES: readonly string[] = ['Zero', 'One', 'Half', 'NegativeOne', 'Integer', 'Rational', 'Float', 'Symbol', 'Pow', 'Mul', 'Add', 'Abs']
const RELATION_CLASSES: Readonly<Partial<Record<Operator, string>>> = {
  Eq: 'Equality',
  Ne: 'Unequality',
  Gt: 'StrictGreaterThan',
  Lt: 'StrictLessThan',
  Ge: 'GreaterThan',
  Le: 'LessThan',
}
const RELATION_ORDER: readonly string[] = Object.values(RELATION_CLASSES)

function numberClass({ p, q }: Rational): string {
  if (q === 1n) return p === 0n ? 'Zero' : p === 1n ? 'One' : p === -1n ? 'NegativeOne' : 'Integer'
  return p === 1n && q === 2n ? 'Half' : 'Rational'
}

/** The name of the class that the expression has in sympy. */
export function className(expr: Expr): string {
  switch (expr.op) {
    case 'number':
      return numberClass(expr.value)
    case 'float':
      return 'Float'
    case 'symbol':
      return 'Symbol'
    case 'boolean':
      return expr.value ? 'BooleanTrue' : 'BooleanFalse'
    default:
      return RELATION_CLASSES[expr.op] ?? expr.op
  }
}

const order = <T extends number | string | bigint>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0)

function classRank(name: string): number {
  const at = CLASSES.indexOf(name)
  const relation = RELATION_ORDER.indexOf(name)
  return at >= 0 ? at : relation >= 0 ? CLASSES.length + relation : CLASSES.length + RELATION_ORDER.length
}

/** Symbols of which less is assumed come first: floats, then integers, then sizes. */
const assumptionsOf = ({ integer: isInteger, positive }: SymbolExpr): number => Number(isInteger) + 2 * Number(positive)

/** sympy's Basic.compare: by class, number of arguments, then argument by argument. */
export function compareExprs(a: Expr, b: Expr): number {
  if (a === b) return 0
  const [nameOfA, nameOfB] = [className(a), className(b)]
  const byClass = order(classRank(nameOfA), classRank(nameOfB)) || order(nameOfA, nameOfB)
  if (byClass !== 0) return byClass
  if (a.op === 'number' && b.op === 'number') return order(a.value.p, b.value.p) || order(a.value.q, b.value.q)
  if (a.op === 'float' && b.op === 'float') return order(a.value, b.value)
  if (a.op === 'symbol' && b.op === 'symbol') return order(assumptionsOf(a), assumptionsOf(b)) || order(a.name, b.name)
  if (a.args.length !== b.args.length) return order(a.args.length, b.args.length)
  for (const [i, arg] of a.args.entries()) {
    const other = b.args[i]
    const found = other === undefined ? 0 : compareExprs(arg, other)
    if (found !== 0) return found
  }
  return 0
}

/** A sort key of sympy: nested tuples, compared element by element. */
export type SortKey = string | Rational | readonly SortKey[]

const isList = (key: SortKey): key is readonly SortKey[] => Array.isArray(key)
const count = (value: number): Rational => whole(BigInt(value))

function compareSortKeys(a: SortKey, b: SortKey): number {
  if (typeof a === 'string' || typeof b === 'string') return order(String(a), String(b))
  if (!isList(a) || !isList(b)) return isList(a) || isList(b) ? 0 : compareRationals(a, b)
  for (const [i, part] of a.entries()) {
    const other = b[i]
    if (other === undefined) return 1
    const found = compareSortKeys(part, other)
    if (found !== 0) return found
  }
  return order(a.length, b.length)
}

const LATTICES: ReadonlySet<Operator> = new Set(['Max', 'Min', 'And', 'Or', 'Not', 'Eq', 'Ne', 'Lt', 'Le', 'Gt', 'Ge'])

function classKey(expr: Expr): SortKey {
  if (expr.op === 'boolean') return [count(5), count(0), className(expr)]
  if (expr.op === 'symbol') return [count(2), count(0), 'Symbol']
  if (isNumber(expr)) return [count(1), count(0), 'Number']
  if (expr.op === 'Mul') return [count(3), count(0), 'Mul']
  if (expr.op === 'Add') return [count(3), count(1), 'Add']
  if (expr.op === 'Pow') return [count(3), count(2), 'Pow']
  if (LATTICES.has(expr.op)) return [count(5), count(0), className(expr)]
  // Functions of a fixed number of arguments come after those of any number.
  return [count(4), count(expr.op === 'Piecewise' ? 0 : 10000), expr.op]
}

// A float is as large as the rational that it is, which is a fraction of a power of two.
function valueKey(expr: Expr): Rational {
  if (expr.op === 'number') return expr.value
  if (expr.op !== 'float' || !Number.isFinite(expr.value)) return count(0)
  let [value, under] = [expr.value, 1n]
  while (!Number.isInteger(value)) [value, under] = [value * 2, under * 2n]
  return { p: BigInt(value), q: under }
}

const keys = new WeakMap<Expr, SortKey>()

/** sympy's sort_key: class, arguments, exponent, coefficient. */
export const sortKey = (expr: Expr): SortKey => remembered(keys, expr, makeKey)

function makeKey(expr: Expr): SortKey {
  if (isNumber(expr)) return [classKey(expr), [count(0), []], [], valueKey(expr)]
  const [coefficient, rest] = coefficientOf(expr)
  const [base, exponent] = powerOf(rest)
  const args: readonly SortKey[] = base.op === 'symbol' ? [base.name] : base.op === 'boolean' ? [String(base.value)] : readingArgs(base).map(sortKey)
  return [classKey(base), [count(args.length), args], sortKey(exponent), valueKey(coefficient)]
}

const readingArgs = (expr: Expr): readonly Expr[] => (expr.op === 'Add' ? orderedTerms(expr) : expr.op === 'Mul' ? orderedFactors(expr) : expr.args)

export const compareKeys = (a: Expr, b: Expr): number => compareSortKeys(sortKey(a), sortKey(b))

const sizes = new WeakMap<Expr, number>()
const sizeOf = (expr: Expr): number => remembered(sizes, expr, () => 1 + expr.args.reduce((sum, arg) => sum + sizeOf(arg), 0))

/** Smaller expressions first, then by sort key: the order of sympy's `ordered`. */
export const compareSizes = (a: Expr, b: Expr): number => order(sizeOf(a), sizeOf(b)) || compareKeys(a, b)

/** The number in front of a product, and the rest: `[2, s0]` of `2*s0`. */
export function coefficientOf(expr: Expr): readonly [coefficient: Expr, rest: Expr] {
  if (isNumber(expr)) return [expr, integer(1)]
  const [first, ...rest] = factorsOf(expr)
  if (expr.op !== 'Mul' || first === undefined || !isNumber(first)) return [integer(1), expr]
  const [only] = rest
  return [first, rest.length === 1 && only !== undefined ? only : operation('Mul', rest)]
}

/** The factors of a product, as they print. */
export const orderedFactors = (expr: Expr): readonly Expr[] => [...factorsOf(expr)].toSorted(compareKeys)

const isNegativeNumber = (expr: Expr): boolean => (expr.op === 'number' ? expr.value.p < 0n : expr.op === 'float' && expr.value < 0)
const isPositiveNumber = (expr: Expr): boolean => (expr.op === 'number' ? expr.value.p > 0n : expr.op === 'float' && expr.value > 0)

/** The terms of a sum, as they print: higher powers of earlier symbols first, numbers last. `10 - s0` is the exception. */
export function orderedTerms(expr: Expr): readonly Expr[] {
  const terms = termsOf(expr)
  const numbersFirst = [...terms.filter(isNumber), ...terms.filter((term) => !isNumber(term))]
  const [constant, term] = numbersFirst
  if (terms.length === 2 && constant !== undefined && isPositiveNumber(constant) && isOperation(term, 'Mul') && term.args.length === 2) {
    const [factor] = term.args
    if (factor !== undefined && isNegativeNumber(factor)) return numbersFirst
  }
  const read = terms.map((each) => ({ each, ...monomialOf(each) }))
  const generators = [...new Set(read.flatMap(({ powers }) => [...powers.keys()]))].toSorted(compareKeys)
  return read
    .toSorted((a, b) => {
      for (const generator of generators) {
        const found = order(b.powers.get(generator) ?? 0, a.powers.get(generator) ?? 0)
        if (found !== 0) return found
      }
      return order(a.coefficient, b.coefficient)
    })
    .map(({ each }) => each)
}

interface Monomial {
  readonly coefficient: number
  readonly powers: ReadonlyMap<Expr, number>
}

function monomialOf(term: Expr): Monomial {
  const [coefficient, rest] = coefficientOf(term)
  const powers = new Map<Expr, number>()
  if (!isNumber(rest)) {
    for (const factor of factorsOf(rest)) {
      const [base, exponent] = powerOf(factor)
      // A power whose exponent is no integer is a generator itself.
      if (exponent.op === 'number' && isWhole(exponent.value)) powers.set(base, toNumber(exponent.value))
      else powers.set(factor, 1)
    }
  }
  const value = coefficient.op === 'number' ? toNumber(coefficient.value) : coefficient.op === 'float' ? coefficient.value : 1
  return { coefficient: value, powers }
}

const signs = new WeakMap<Expr, boolean>()

/** Whether the expression is better written as minus its negation: `-s0`, `s1 - s0`. */
export const extractsMinus = (expr: Expr, negate: (expr: Expr) => Expr): boolean =>
  remembered(signs, expr, () => {
    if (isNumber(expr)) return isNegativeNumber(expr)
    if (expr.op === 'Mul') return expr.args.some((arg, i) => i === 0 && isNegativeNumber(arg))
    if (expr.op !== 'Add') return false
    const negative = expr.args.filter((arg) => extractsMinus(arg, negate)).length
    const positive = expr.args.length - negative
    return positive === negative ? compareKeys(expr, negate(expr)) < 0 : negative > positive
  })
