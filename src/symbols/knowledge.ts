// What is known of the symbols of a shape environment: values, ranges, replacements, divisibility and facts that follow from guards. It answers questions without making
// guards, and learns from what holds. The rules are those of PyTorch's ShapeEnv.
import { ArgumentError } from '../errors/index.ts'
import { add } from './arithmetic.ts'
import { canonicalBoolean, implications } from './canonical.ts'
import { boolean, float, freeSymbols, integer, isBoolean, isInteger, isNumber, isRelation, number, operands, partsOf, symbol } from './expression.ts'
import type { Expr, Operation, Relation, SymbolExpr } from './expression.ts'
import { expand, substitute } from './expand.ts'
import { factsOf } from './facts.ts'
import { cleanDiv, floorDiv, mod } from './functions.ts'
import { ANY_INTEGER, assumedRange, boundsOf, exactRange, integerRange, intersection, isSingle, isWithin, rangeText, sameRange } from './ranges.ts'
import type { ExactRange, Range } from './ranges.ts'
import { ONE, ceilOf, compareRationals, exactly, floorOf, isFinite, isWhole, negated, sumOf, toNumber, whole } from './rational.ts'
import { eq, ge } from './relations.ts'
import { trySolve } from './solve.ts'

/** How a question is asked. */
export interface Question {
  /** Uses the ranges of symbols without a value only, and returns what remains open instead of null. */
  readonly unbackedOnly?: boolean
  /** Whether symbols that are sizes count as at least 2. */
  readonly sizeOblivious?: boolean
  /** Without what follows from earlier guards, other than ranges and replacements. */
  readonly withoutAxioms?: boolean
}

/** Comparisons of more symbols than this are kept as guards only. */
const MOST_SYMBOLS = 5

export class Knowledge {
  /** The values of this run. Symbols that are not here depend on data. */
  readonly values = new Map<SymbolExpr, number>()
  readonly ranges = new Map<SymbolExpr, Range>()
  readonly replacements = new Map<SymbolExpr, Expr>()
  readonly divisible = new Set<Expr>()
  readonly sizeLike = new Set<SymbolExpr>()
  readonly #axioms = new Map<Expr, Expr>()

  /** What follows from guards and assertions: truth values by what they are of. */
  get axioms(): ReadonlyMap<Expr, Expr> {
    return this.#axioms
  }

  rangeOf(of: SymbolExpr): Range {
    return this.ranges.get(of) ?? assumedRange(of)
  }

  boundsOf(expr: Expr): Range {
    return boundsOf(expr, (each) => this.rangeOf(each))
  }

  #integerBounds(expr: Expr): ExactRange {
    const bounds = this.boundsOf(expr)
    return bounds.kind === 'exact' ? bounds : ANY_INTEGER
  }

  isUnbacked(of: SymbolExpr): boolean {
    return !this.values.has(of)
  }

  hasUnbacked(expr: Expr): boolean {
    return [...freeSymbols(expr)].some((each) => this.isUnbacked(each))
  }

  /** The value of an expression in this run; null if it depends on data. */
  hintOf(expr: Expr): number | boolean | null {
    if (this.hasUnbacked(expr)) return null
    const values = new Map([...freeSymbols(expr)].map((each) => [each, this.constantFor(each)]))
    return valueIn(expand(substitute(expr, values)))
  }

  constantFor(of: SymbolExpr): Expr {
    const value = this.values.get(of)
    return value === undefined ? of : of.integer ? integer(value) : float(value)
  }

  /** What a symbol stands for, with everything that was learnt since. */
  find(of: SymbolExpr): Expr {
    const target = this.replacements.get(of)
    if (target === undefined || target === of) return of
    const found = this.replace(target)
    if (found !== target) this.setReplacement(of, found)
    return found
  }

  /** The expression without symbols that have replacements. */
  replace(expr: Expr): Expr {
    const found = new Map<Expr, Expr>()
    for (const each of freeSymbols(expr)) {
      const target = this.find(each)
      if (target !== each) found.set(each, target)
    }
    return found.size === 0 ? expr : expand(substitute(expr, found))
  }

  /** The expression in its simplest known form. */
  simplify(given: Expr, { sizeOblivious = false }: Question = {}): Expr {
    let expr = this.replace(expand(given))
    if (!sizeOblivious) expr = this.#withoutMax(expr)
    expr = withoutTrunc(expr)
    return this.#withoutDivisions(expr)
  }

  /** `Max(1, x)` is x where x is known to be at least 1. */
  #withoutMax(expr: Expr): Expr {
    const found = new Map<Expr, Expr>()
    for (const part of partsOf(expr)) {
      if (part.op !== 'Max' || part.args.length !== 2) continue
      const bound = part.args.find((arg) => isInteger(arg, 0) || isInteger(arg, 1))
      const other = part.args.find((arg) => arg !== bound)
      if (bound === undefined || other === undefined) continue
      if (this.staticValue(ge(other, bound)) === boolean(true)) found.set(part, other)
    }
    return substitute(expr, found)
  }

  #withoutDivisions(expr: Expr): Expr {
    const divisions = [...partsOf(expr)].filter((part) => part.op === 'FloorDiv')
    if (divisions.length === 0 || this.divisible.size === 0) return expr
    const found = new Map<Expr, Expr>()
    for (const part of divisions) {
      if (part.args.length !== 2) continue
      const [base = part, divisor = part] = part.args
      if (!this.#divides(divisor, base)) continue
      // s0 // (s0 // 2) is 2, if both leave no remainder.
      if (divisor.op === 'FloorDiv' || divisor.op === 'CleanDiv') {
        const [inner, other] = operands(divisor)
        if (inner === base && this.#divides(other, inner)) {
          found.set(part, other)
          continue
        }
      }
      found.set(part, cleanDiv(base, divisor))
    }
    return found.size === 0 ? expr : expand(substitute(expr, found))
  }

  #divides(divisor: Expr, base: Expr): boolean {
    if (factsOf(divisor).zero) return false
    const remainder = this.replace(mod(base, divisor))
    return isInteger(remainder, 0) || [...this.divisible].some((known) => this.replace(known) === remainder)
  }

  /** The value of an expression for all values of its symbols that are possible; null if there is none. */
  staticValue(given: Expr, question: Question = {}): Expr | null {
    const simple = canonicalBoolean(this.simplify(given, question))
    const expr = question.withoutAxioms === true ? simple : substitute(simple, this.#axioms)
    const symbols = [...freeSymbols(expr)].toSorted((a, b) => (a.name < b.name ? -1 : 1))
    if (symbols.length === 0 && (isNumber(expr) || expr.op === 'boolean')) return expr
    // Symbols that start at their lower bound tell the assumptions most: s0 of at least 2 is s + 1 for a positive s.
    const shifted = new Map<Expr, Expr>()
    const ranges = new Map<SymbolExpr, Range>()
    for (const [i, each] of symbols.entries()) {
      const range = this.#askedRange(each, question)
      if (range.kind !== 'exact' || !isFinite(range.lower) || (question.unbackedOnly === true && !this.isUnbacked(each))) {
        ranges.set(each, range)
        continue
      }
      const positive = symbol(`evaluate_static_shape_${i}`, { positive: true })
      const offset = sumOf(range.lower, negated(ONE)) ?? range.lower
      shifted.set(each, add(positive, number(offset)))
      ranges.set(positive, exactRange(ONE, sumOf(range.upper, negated(offset)) ?? range.upper))
    }
    const moved = canonicalBoolean(expand(substitute(expr, shifted)))
    if (isNumber(moved) || moved.op === 'boolean') return moved
    const bounds = boundsOf(moved, (each) => ranges.get(each) ?? assumedRange(each))
    if (isSingle(bounds))
      return bounds.kind === 'exact' ? number(bounds.lower) : bounds.kind === 'float' ? float(bounds.lower) : boolean(bounds.lower)
    return question.unbackedOnly === true ? moved : null
  }

  #askedRange(of: SymbolExpr, { sizeOblivious = false }: Question): Range {
    const range = this.rangeOf(of)
    if (!sizeOblivious || !this.sizeLike.has(of) || range.kind !== 'exact') return range
    const size = intersection(range, integerRange(2, 2 ** 48))
    if (size === null) return range
    // Without its very end a size also differs from every number that stands for "all".
    return compareRationals(size.upper, size.lower) > 0 ? exactRange(size.lower, sumOf(size.upper, negated(ONE)) ?? size.upper) : size
  }

  /**
   * Narrows the range of a symbol.
   *
   * @throws ArgumentError if the value of this run is not in it. The range is narrowed nevertheless, as in PyTorch: what was promised is promised.
   */
  narrow(of: SymbolExpr, range: ExactRange, isConstraint = false): void {
    // A size that may not be told from 2 must not become 0 or 1 either.
    const two = whole(2n)
    const given = this.sizeLike.has(of) && compareRationals(range.upper, two) < 0 ? exactRange(range.lower, two) : range
    const known = this.ranges.get(of)
    const old = known?.kind === 'exact' ? known : ANY_INTEGER
    const narrowed = intersection(old, given)
    if (narrowed === null)
      throw new ArgumentError(`${of.name}: the range ${rangeText(given)} and the known range ${rangeText(old)} have no number in common.`)
    this.ranges.set(of, narrowed)
    const value = this.values.get(of)
    if (value === undefined || isConstraint) return
    const exact = exactly(value)
    if (!isWithin(exactRange(exact, exact), narrowed)) throw new ArgumentError(`${value} not in ${rangeText(narrowed)}`)
  }

  /** Keeps what follows from a truth value that holds. */
  addAxioms(expr: Expr): void {
    for (const [fact, value] of implications(this.simplify(expr))) if (fact.op !== 'boolean') this.#axioms.set(fact, value)
  }

  /** Learns from a truth value that holds: ranges, replacements, divisibility. */
  learn(expr: Expr): void {
    if (expr.op === 'And') {
      for (const arg of expr.args) this.learn(arg)
      return
    }
    if (!isRelation(expr) || expr.op === 'Ne') return
    const symbols = [...freeSymbols(expr)]
    if (symbols.length === 0 || symbols.length > MOST_SYMBOLS) return
    this.#narrowFrom(expr)
    if (expr.op === 'Eq') this.#learnEquation(expr, this.#byPreference(symbols))
  }

  /** Symbols with larger values first, then later ones: those that are replaced by the others. */
  #byPreference(symbols: readonly SymbolExpr[]): readonly SymbolExpr[] {
    const size = (each: SymbolExpr): number => {
      const hint = this.hintOf(this.replace(each))
      return typeof hint === 'number' ? hint : Infinity
    }
    return symbols.toSorted((a, b) => Math.sign(size(b) - size(a)) || (a.name < b.name ? 1 : -1))
  }

  #narrowFrom(given: Relation): void {
    const expr = this.simplify(given)
    for (const each of freeSymbols(expr)) {
      const solution = trySolve(expr, each)
      if (solution === null || !each.integer || !factsOf(solution.right).integer) continue
      const known = this.ranges.get(each)
      const range = known?.kind === 'exact' ? known : ANY_INTEGER
      const right = this.#integerBounds(solution.right)
      let { lower, upper } = range
      const { op } = solution.relation
      if (compareRationals(lower, right.lower) <= 0 && (op === 'Eq' || op === 'Ge' || op === 'Gt'))
        lower = op === 'Gt' ? (sumOf(right.lower, ONE) ?? lower) : right.lower
      if (compareRationals(upper, right.upper) >= 0 && (op === 'Eq' || op === 'Le' || op === 'Lt'))
        upper = op === 'Lt' ? (sumOf(right.upper, negated(ONE)) ?? upper) : right.upper
      const narrowed = exactRange(lower, upper)
      if (sameRange(range, narrowed)) continue
      this.narrow(each, narrowed)
      const now = this.ranges.get(each)
      if (now?.kind === 'exact' && isSingle(now)) this.setReplacement(each, number(now.lower))
    }
  }

  #learnEquation(expr: Operation, symbols: readonly SymbolExpr[]): void {
    const parts = [...partsOf(expr)]
    const remainder = parts.find((part) => part.op === 'Mod')
    if (remainder !== undefined) {
      const solution = trySolve(expr, remainder, false)
      if (solution !== null && isInteger(solution.right, 0)) this.divisible.add(remainder)
      return
    }
    if (parts.some((part) => part.op === 'FloorDiv' || part.op === 'CleanDiv')) return
    const [first] = symbols
    if (first === undefined || !first.integer) return
    const solution = trySolve(expr, first, false)
    if (solution === null || ![...partsOf(solution.right)].every((part) => factsOf(part).integer)) return
    const target = this.replace(solution.right)
    if (!this.hasUnbacked(target)) this.setReplacement(first, target)
  }

  /** From now on a symbol is written as `target`, unless that would lose a part of what is known about it. */
  setReplacement(of: SymbolExpr, target: Expr): void {
    if (this.replacements.get(of) === target || freeSymbols(target).has(of)) return
    const range = this.ranges.get(of)
    if (range?.kind === 'exact') {
      let bounds = this.#integerBounds(target)
      this.narrow(of, bounds)
      const [other, ...more] = freeSymbols(target)
      if (!isWithin(bounds, range) && other !== undefined && more.length === 0) {
        const solution = trySolve(eq(of, target), other, false)
        if (solution !== null) {
          const around = this.#integerBounds(solution.right)
          this.narrow(other, exactRange(ceilOf(around.lower), floorOf(around.upper)))
          bounds = this.#integerBounds(target)
        }
      }
      if (!isWithin(bounds, range)) return
      if (this.sizeLike.has(of) && !isWithin(this.#obliviousBounds(target), this.#obliviousBounds(of))) return
    }
    this.replacements.set(of, target)
  }

  #obliviousBounds(expr: Expr): ExactRange {
    const bounds = boundsOf(expr, (each) => this.#askedRange(each, { sizeOblivious: true }))
    return bounds.kind === 'exact' ? bounds : ANY_INTEGER
  }
}

/** `TruncToInt(IntTrueDiv(a, b))` is `a // b` for sizes. */
function withoutTrunc(expr: Expr): Expr {
  const found = new Map<Expr, Expr>()
  for (const part of partsOf(expr)) {
    if (part.op !== 'TruncToInt') continue
    const [division] = part.args
    if (division?.op !== 'IntTrueDiv') continue
    const [base, divisor] = operands(division)
    if (factsOf(base).nonnegative && factsOf(divisor).positive) found.set(part, floorDiv(base, divisor))
  }
  return substitute(expr, found)
}

/** The number or truth value that an expression is; null if it is none. */
export function valueIn(expr: Expr): number | boolean | null {
  if (expr.op === 'boolean') return expr.value
  if (expr.op === 'float') return expr.value
  return expr.op === 'number' && (isWhole(expr.value) || !isBoolean(expr)) ? toNumber(expr.value) : null
}
