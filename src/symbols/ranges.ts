// Ranges of values: what a symbol may be, and what follows for an expression. A range of an expression contains every value that the expression has for values of its symbols
// within their ranges; it may be wider.
import type { Expr, SymbolExpr } from './expression.ts'
import { isOpaque, opaqueFunction, roundHalfEven } from './functions.ts'
import { floatText } from './print.ts'
import {
  INFINITE,
  MINUS_INFINITE,
  ONE,
  ZERO,
  ceilOf,
  compareRationals,
  exactly,
  floorDivide,
  floorOf,
  isFinite,
  isWhole,
  larger,
  negated,
  productOf,
  quotientOf,
  rationalText,
  sameRational,
  signOf,
  smaller,
  sumOf,
  toNumber,
  whole,
} from './rational.ts'
import type { Rational } from './rational.ts'

/** Both ends belong to the range. */
export interface ExactRange {
  readonly kind: 'exact'
  readonly lower: Rational
  readonly upper: Rational
}

export interface FloatRange {
  readonly kind: 'float'
  readonly lower: number
  readonly upper: number
}

/** The truth values that are possible: `[false, false]`, `[true, true]`, or both. */
export interface BooleanRange {
  readonly kind: 'boolean'
  readonly lower: boolean
  readonly upper: boolean
}

export type Range = ExactRange | FloatRange | BooleanRange

export const exactRange = (lower: Rational, upper: Rational): ExactRange => ({ kind: 'exact', lower, upper })
/** The integers from `lower` to `upper`; infinities are open ends. */
export const integerRange = (lower: number, upper: number): ExactRange => exactRange(exactly(lower), exactly(upper))
export const ANY_INTEGER: ExactRange = exactRange(MINUS_INFINITE, INFINITE)
export const ANY_FLOAT: FloatRange = { kind: 'float', lower: -Infinity, upper: Infinity }
const floatRange = (lower: number, upper: number): FloatRange =>
  Number.isNaN(lower) || Number.isNaN(upper) ? ANY_FLOAT : { kind: 'float', lower, upper }
const booleanRange = (lower: boolean, upper: boolean): BooleanRange => ({ kind: 'boolean', lower, upper })
const truthOf = (value: boolean | null): BooleanRange => booleanRange(value ?? false, value ?? true)

/** `VR[2, int_oo]`, as PyTorch prints it. */
export function rangeText(range: Range): string {
  if (range.kind === 'exact') return `VR[${rationalText(range.lower)}, ${rationalText(range.upper)}]`
  if (range.kind === 'float') return `VR[${floatText(range.lower)}, ${floatText(range.upper)}]`
  return `VR[${range.lower ? 'True' : 'False'}, ${range.upper ? 'True' : 'False'}]`
}

export const isSingle = (range: Range): boolean => (range.kind === 'exact' ? sameRational(range.lower, range.upper) : range.lower === range.upper)

export const sameRange = (a: ExactRange, b: ExactRange): boolean => sameRational(a.lower, b.lower) && sameRational(a.upper, b.upper)
export const isWithin = (inner: ExactRange, outer: ExactRange): boolean =>
  compareRationals(inner.lower, outer.lower) >= 0 && compareRationals(inner.upper, outer.upper) <= 0
export const contains = (range: ExactRange, value: Rational): boolean => isWithin(exactRange(value, value), range)
/** What both ranges allow; null if that is nothing. */
export function intersection(a: ExactRange, b: ExactRange): ExactRange | null {
  const [lower, upper] = [larger(a.lower, b.lower), smaller(a.upper, b.upper)]
  return compareRationals(lower, upper) > 0 ? null : exactRange(lower, upper)
}

/** The range of a symbol about which nothing else is known. */
export const assumedRange = (symbol: SymbolExpr): Range =>
  symbol.integer ? exactRange(symbol.positive ? ONE : MINUS_INFINITE, INFINITE) : symbol.positive ? floatRange(0, Infinity) : ANY_FLOAT

/** The range of an expression, from the ranges of its symbols. */
export function boundsOf(expr: Expr, rangeOf: (symbol: SymbolExpr) => Range): Range {
  const kept = new Map<Expr, Range>()
  const walk = (part: Expr): Range => {
    const known = kept.get(part)
    if (known !== undefined) return known
    const found = part.op === 'symbol' ? rangeOf(part) : bound(part, part.args.map(walk))
    kept.set(part, found)
    return found
  }
  return walk(expr)
}

const isBooleanRange = (range: Range): range is BooleanRange => range.kind === 'boolean'

function bound(expr: Expr, args: readonly Range[]): Range {
  switch (expr.op) {
    case 'number':
      return exactRange(expr.value, expr.value)
    case 'float':
      return floatRange(expr.value, expr.value)
    case 'boolean':
      return booleanRange(expr.value, expr.value)
    case 'And':
    case 'Or':
    case 'Not':
      return ofConnective(expr.op, args.filter(isBooleanRange))
    case 'Piecewise':
      return ofChoice(args)
    case 'Eq':
    case 'Ne':
    case 'Lt':
    case 'Le':
    case 'Gt':
    case 'Ge':
      return truthOf(compare(expr.op, args))
    default:
  }
  const exact = args.filter((arg) => arg.kind === 'exact')
  const result = exact.length === args.length ? ofIntegers(expr, exact) : null
  return result ?? ofFloats(expr, args.map(asFloats))
}

const asFloats = (range: Range): FloatRange =>
  range.kind === 'float' ? range : range.kind === 'exact' ? floatRange(toNumber(range.lower), toNumber(range.upper)) : floatRange(0, 1)

function ofConnective(op: 'And' | 'Or' | 'Not', args: readonly BooleanRange[]): BooleanRange {
  const [first] = args
  if (op === 'Not') return first === undefined ? truthOf(null) : booleanRange(!first.upper, !first.lower)
  const all = (end: 'lower' | 'upper'): boolean => (op === 'And' ? args.every((arg) => arg[end]) : args.some((arg) => arg[end]))
  return booleanRange(all('lower'), all('upper'))
}

/** All values whose conditions may hold. */
function ofChoice(args: readonly Range[]): Range {
  const values: Range[] = []
  for (let i = 0; i + 1 < args.length; i += 2) {
    const [value, condition] = args.slice(i, i + 2)
    if (value !== undefined && condition?.kind === 'boolean' && condition.upper) values.push(value)
  }
  const exact = values.filter((value) => value.kind === 'exact')
  const [first, ...rest] = exact
  if (first === undefined || exact.length < values.length) {
    const floats = values.map(asFloats)
    return floatRange(Math.min(...floats.map(({ lower }) => lower)), Math.max(...floats.map(({ upper }) => upper)))
  }
  return rest.reduce((a, b) => exactRange(smaller(a.lower, b.lower), larger(a.upper, b.upper)), first)
}

function compare(op: 'Eq' | 'Ne' | 'Lt' | 'Le' | 'Gt' | 'Ge', [left, right]: readonly Range[]): boolean | null {
  if (left === undefined || right === undefined) return null
  if (op === 'Gt') return compare('Lt', [right, left])
  if (op === 'Le') return contrary(compare('Lt', [right, left]))
  if (op === 'Ge') return contrary(compare('Lt', [left, right]))
  if (op === 'Ne') return contrary(compare('Eq', [left, right]))
  const [below, above] = [orderOf(left, 'upper', right, 'lower'), orderOf(left, 'lower', right, 'upper')]
  if (op === 'Lt') return below < 0 ? true : above >= 0 ? false : null
  if (isSingle(left) && isSingle(right) && below === 0) return true
  return below < 0 || above > 0 ? false : null
}

const contrary = (value: boolean | null): boolean | null => (value === null ? null : !value)

function orderOf(a: Range, endOfA: 'lower' | 'upper', b: Range, endOfB: 'lower' | 'upper'): number {
  if (a.kind === 'exact' && b.kind === 'exact') return compareRationals(a[endOfA], b[endOfB])
  const value = (range: Range, end: 'lower' | 'upper'): number => (range.kind === 'exact' ? toNumber(range[end]) : Number(range[end]))
  return Math.sign(value(a, endOfA) - value(b, endOfB)) || 0
}

const spanned = (values: readonly Rational[]): ExactRange => {
  const [first = ZERO, ...rest] = values
  return exactRange(rest.reduce(smaller, first), rest.reduce(larger, first))
}

const corners = (a: ExactRange, b: ExactRange, of: (x: Rational, y: Rational) => Rational): ExactRange =>
  spanned([of(a.lower, b.lower), of(a.lower, b.upper), of(a.upper, b.lower), of(a.upper, b.upper)])

const hasZero = (range: ExactRange): boolean => contains(range, ZERO)

/** The range where everything is exact; null if the result is a float. */
function ofIntegers(expr: Expr, args: readonly ExactRange[]): Range | null {
  const [a = ANY_INTEGER, b = ANY_INTEGER] = args
  switch (expr.op) {
    case 'Add':
      return args.reduce((x, y) => exactRange(sumOf(x.lower, y.lower) ?? MINUS_INFINITE, sumOf(x.upper, y.upper) ?? INFINITE))
    case 'Mul':
      return args.reduce((x, y) => corners(x, y, productOf))
    case 'Max':
      return args.reduce((x, y) => exactRange(larger(x.lower, y.lower), larger(x.upper, y.upper)))
    case 'Min':
      return args.reduce((x, y) => exactRange(smaller(x.lower, y.lower), smaller(x.upper, y.upper)))
    case 'Abs':
      return withoutSign(a)
    case 'Pow':
    case 'PowByNatural':
      return ofPower(a, b)
    case 'FloorDiv':
    case 'CleanDiv':
      return hasZero(b) ? ANY_INTEGER : corners(a, b, flooredQuotient)
    case 'Mod':
    case 'PythonMod':
      return ofRemainder(a, b)
    case 'IntTrueDiv': {
      if (hasZero(b) || !(isBounded(a) || isBounded(b))) return ANY_FLOAT
      const { lower, upper } = corners(a, b, quotientOf)
      return floatRange(toNumber(lower), toNumber(upper))
    }
    case 'ToFloat':
      return asFloats(a)
    case 'TruncToInt':
    case 'FloorToInt':
    case 'CeilToInt':
    case 'RoundToInt':
      return rounded(expr.op, a)
    default:
      return null
  }
}

const isBounded = (range: ExactRange): boolean => isFinite(range.lower) && isFinite(range.upper)

function rounded(op: 'TruncToInt' | 'FloorToInt' | 'CeilToInt' | 'RoundToInt', range: ExactRange): ExactRange {
  if (op === 'FloorToInt') return exactRange(floorOf(range.lower), floorOf(range.upper))
  if (op === 'CeilToInt') return exactRange(ceilOf(range.lower), ceilOf(range.upper))
  return exactRange(floorOf(range.lower), ceilOf(range.upper))
}

function withoutSign(range: ExactRange): ExactRange {
  const ends = spanned([range.lower, range.upper].map((end) => (signOf(end) < 0 ? negated(end) : end)))
  return hasZero(range) ? exactRange(ZERO, ends.upper) : ends
}

function flooredQuotient(a: Rational, b: Rational): Rational {
  if (isFinite(a) && isFinite(b)) return floorOf(quotientOf(a, b))
  if (!isFinite(a)) return signOf(a) * signOf(b) > 0 ? INFINITE : MINUS_INFINITE
  // A finite number over an unlimited one is 0, or -1 if their signs differ.
  return whole(signOf(a) * signOf(b) < 0 ? -1n : 0n)
}

/** Powers of larger exponents are not computed. */
const HIGHEST = 512n

function ofPower(base: ExactRange, exponent: ExactRange): ExactRange {
  if (isSingle(exponent) && signOf(exponent.lower) < 0) {
    if (hasZero(base)) return ANY_INTEGER
    return spanned([base.lower, base.upper].map((end) => quotientOf(ONE, powerOf(end, negated(exponent.lower)))))
  }
  const power = exactRange(larger(exponent.lower, ZERO), larger(exponent.upper, ZERO))
  if (compareRationals(base.lower, ONE) >= 0) return corners(base, power, powerOf)
  if (!isSingle(exponent)) {
    const most = powerOf(withoutSign(base).upper, power.upper)
    return exactRange(negated(larger(most, ONE)), larger(most, ONE))
  }
  return exponent.lower.p % 2n === 0n
    ? spanned([...(hasZero(base) ? [powerOf(ZERO, power.lower)] : []), powerOf(base.lower, power.lower), powerOf(base.upper, power.lower)])
    : spanned([powerOf(base.lower, power.lower), powerOf(base.upper, power.lower)])
}

/** A power for the end of a range: an infinity if it is too large to be written down. */
function powerOf(base: Rational, exponent: Rational): Rational {
  if (signOf(exponent) === 0) return ONE
  if (!isFinite(exponent) || exponent.p > HIGHEST) return sameRational(base, ONE) || signOf(base) === 0 ? base : INFINITE
  if (!isFinite(base)) return signOf(base) < 0 && exponent.p % 2n === 1n ? MINUS_INFINITE : INFINITE
  return { p: base.p ** exponent.p, q: base.q ** exponent.p }
}

/** The range of Python's remainder, which has the sign of the divisor. */
function ofRemainder(a: ExactRange, b: ExactRange): ExactRange {
  if (hasZero(b)) return ANY_INTEGER
  if (signOf(b.upper) < 0) return exactRange(sumOf(b.lower, ONE) ?? MINUS_INFINITE, ZERO)
  const most = sumOf(b.upper, whole(-1n)) ?? INFINITE
  if (
    isSingle(b) &&
    isBounded(a) &&
    isWhole(a.lower) &&
    isWhole(a.upper) &&
    floorDivide(a.lower.p, b.lower.p) === floorDivide(a.upper.p, b.lower.p)
  ) {
    const below = productOf(whole(floorDivide(a.lower.p, b.lower.p)), negated(b.lower))
    return exactRange(sumOf(a.lower, below) ?? ZERO, sumOf(a.upper, below) ?? most)
  }
  return exactRange(ZERO, signOf(a.lower) >= 0 ? smaller(most, a.upper) : most)
}

function ofFloats(expr: Expr, args: readonly FloatRange[]): Range {
  const [a = ANY_FLOAT, b = ANY_FLOAT] = args
  switch (expr.op) {
    case 'Add':
      return args.reduce((x, y) => floatRange(x.lower + y.lower, x.upper + y.upper))
    case 'Mul':
      return args.reduce((x, y) => floatCorners(x, y, (p, q) => (p === 0 || q === 0 ? 0 : p * q)))
    case 'Max':
      return args.reduce((x, y) => floatRange(Math.max(x.lower, y.lower), Math.max(x.upper, y.upper)))
    case 'Min':
      return args.reduce((x, y) => floatRange(Math.min(x.lower, y.lower), Math.min(x.upper, y.upper)))
    case 'Abs':
      return floatRange(
        a.lower <= 0 && a.upper >= 0 ? 0 : Math.min(Math.abs(a.lower), Math.abs(a.upper)),
        Math.max(Math.abs(a.lower), Math.abs(a.upper)),
      )
    case 'FloatTrueDiv':
      return b.lower <= 0 && b.upper >= 0 ? ANY_FLOAT : floatCorners(a, b, (p, q) => (p === 0 ? 0 : p / q))
    case 'TruncToInt':
      return ofRounded(a, Math.trunc)
    case 'FloorToInt':
      return ofRounded(a, Math.floor)
    case 'CeilToInt':
      return ofRounded(a, Math.ceil)
    case 'RoundToInt':
      return ofRounded(a, roundHalfEven)
    case 'FloorDiv':
    case 'CleanDiv':
    case 'Mod':
    case 'PythonMod':
    case 'PowByNatural':
      return ANY_INTEGER
    default:
      return isOpaque(expr.op) ? ofOpaque(expr.op, a) : ANY_FLOAT
  }
}

const ofRounded = (range: FloatRange, round: (value: number) => number): ExactRange =>
  exactRange(
    exactly(Number.isFinite(range.lower) ? round(range.lower) : range.lower),
    exactly(Number.isFinite(range.upper) ? round(range.upper) : range.upper),
  )

function floatCorners(a: FloatRange, b: FloatRange, of: (x: number, y: number) => number): FloatRange {
  const values = [of(a.lower, b.lower), of(a.lower, b.upper), of(a.upper, b.lower), of(a.upper, b.upper)]
  return values.some(Number.isNaN) ? ANY_FLOAT : floatRange(Math.min(...values), Math.max(...values))
}

const GROWING: ReadonlySet<string> = new Set(['sqrt', 'exp', 'log', 'log2', 'atan', 'sinh', 'tanh', 'asin'].map((name) => `OpaqueUnaryFn_${name}`))

function ofOpaque(op: string, { lower, upper }: FloatRange): FloatRange {
  const compute = opaqueFunction(op)
  return compute !== undefined && GROWING.has(op) ? floatRange(compute(lower), compute(upper)) : ANY_FLOAT
}

/** The ends of a range as numbers. */
export const boundsAsNumbers = ({ kind, lower, upper }: Range): { readonly min: number; readonly max: number } =>
  kind === 'exact' ? { min: toNumber(lower), max: toNumber(upper) } : { min: Number(lower), max: Number(upper) }
