// ShapeEnv: the symbols of one trace, the guards that its questions made, and the assertions that wait for data. `Knowledge` does the thinking.
import { ArgumentError, UnsupportedError } from '../errors/index.ts'
import { canonicalBoolean } from './canonical.ts'
import type { Constraint, DimDynamic, SymbolMaker } from './dimensions.ts'
import { evaluate } from './evaluate.ts'
import { float, freeSymbols, integer, isBoolean, symbol } from './expression.ts'
import type { Expr, SymbolExpr } from './expression.ts'
import { substitute } from './expand.ts'
import { factsOf } from './facts.ts'
import { Knowledge, valueIn } from './knowledge.ts'
import { textOf } from './print.ts'
import { ANY_FLOAT, ANY_INTEGER, contains, integerRange, rangeText } from './ranges.ts'
import type { Range } from './ranges.ts'
import { exactly, rationalText } from './rational.ts'
import { eq, not } from './relations.ts'
import { ConstraintViolationError, GuardOnDataDependentError } from './shapeErrors.ts'
import { createSymbolicLayout } from './symbolicLayout.ts'
import type { SymbolicLayout, SymbolicLayoutOptions } from './symbolicLayout.ts'
import { checkCount } from '../protocol/index.ts'
import type { Size, SymbolicKind } from '../protocol/index.ts'
import { SymBool, SymFloat, SymInt } from './symValues.ts'
import type { SymbolEnvironment } from './symValues.ts'

export interface ShapeEnvOptions {
  /** Whether duck dimensions of equal size share a symbol. Default true. */
  readonly duckShape?: boolean
  /** Whether sizes 0 and 1 stay numbers. Default true. */
  readonly specializeZeroOne?: boolean
  /** Whether `item()` gives symbols. Default true; with false it is refused. */
  readonly allowScalarOutputs?: boolean
  /** Whether operators whose shapes depend on data, such as `nonzero`, give symbols. Default true; with false they are refused. */
  readonly allowDynamicOutputShapeOps?: boolean
}

/** A truth value that the trace relies on. */
export interface ShapeGuard {
  readonly expr: Expr
  readonly sizeOblivious: boolean
}

/** An assertion that is checked when the data is there. */
export interface RuntimeAssert {
  readonly expr: Expr
  readonly message: string
}

/** PyTorch's ShapeEnv. */
export class ShapeEnv implements SymbolEnvironment, SymbolMaker {
  readonly guards: ShapeGuard[] = []
  /** Assertions by the last symbol that they need. */
  readonly deferredRuntimeAsserts = new Map<SymbolExpr, RuntimeAssert[]>()
  readonly #known = new Knowledge()
  readonly #duckShape: boolean
  readonly #specializeZeroOne: boolean
  readonly #byValue = new Map<number, SymbolExpr>()
  readonly #allowed: { readonly scalars: boolean; readonly shapes: boolean }
  #suppressed = false
  readonly #unbacked: Record<'u' | 'zuf', number> = { u: 0, zuf: 0 }

  constructor({ duckShape = true, specializeZeroOne = true, allowScalarOutputs = true, allowDynamicOutputShapeOps = true }: ShapeEnvOptions = {}) {
    checkCount('ShapeEnv', arguments, 1)
    this.#duckShape = duckShape
    this.#specializeZeroOne = specializeZeroOne
    this.#allowed = { scalars: allowScalarOutputs, shapes: allowDynamicOutputShapeOps }
  }

  /** The values of the symbols in this run. */
  get values(): ReadonlyMap<SymbolExpr, number> {
    return this.#known.values
  }
  get ranges(): ReadonlyMap<SymbolExpr, Range> {
    return this.#known.ranges
  }
  get replacements(): ReadonlyMap<SymbolExpr, Expr> {
    return this.#known.replacements
  }
  /** What follows from guards and assertions. @internal */
  get axioms(): ReadonlyMap<Expr, Expr> {
    return this.#known.axioms
  }
  get divisible(): ReadonlySet<Expr> {
    return this.#known.divisible
  }

  replace(expr: Expr): Expr {
    return this.#known.replace(expr)
  }
  simplify(expr: Expr): Expr {
    return this.#known.simplify(expr)
  }
  boundsOf(expr: Expr): Range {
    return this.#known.boundsOf(expr)
  }
  hintOf(expr: Expr): number | boolean | null {
    return this.#known.hintOf(expr)
  }
  isUnbacked(of: SymbolExpr): boolean {
    return this.#known.isUnbacked(of)
  }

  /**
   * The symbol of a size, or the number that it stays.
   *
   * @throws ConstraintViolationError if the value is not in the range of the constraint.
   */
  createSymbol(value: number, dynamic: DimDynamic = 'duck', constraint: Constraint | null = null): Expr {
    if (constraint === null && dynamic === 'static') return integer(value)
    if (this.#specializeZeroOne && (value === 0 || value === 1)) return integer(value)
    const duck = this.#duckShape && dynamic === 'duck' && constraint === null
    const shared = duck ? this.#byValue.get(value) : undefined
    if (shared !== undefined) return shared
    const made = symbol(`s${this.#known.values.size}`, { positive: value > 0 })
    const range = this.#specializeZeroOne ? integerRange(2, Infinity) : integerRange(0, Infinity)
    if (constraint?.kind === 'strict' && !contains(constraint.range, exactly(value)))
      throw new ConstraintViolationError(`${value} not in range [${rationalText(constraint.range.lower)}, ${rationalText(constraint.range.upper)}]`)
    this.#known.values.set(made, value)
    this.#known.ranges.set(made, range)
    if (constraint?.kind === 'strict') this.#known.narrow(made, constraint.range, true)
    if (duck) this.#byValue.set(value, made)
    return made
  }

  /** A size as a SymInt, or as a number if it is one. */
  createSymInt(value: number, dynamic: DimDynamic = 'duck', constraint: Constraint | null = null): SymInt | number {
    return this.toSymInt(this.createSymbol(value, dynamic, constraint))
  }

  /** A float input as a SymFloat. */
  createSymFloat(value: number): SymFloat {
    const made = symbol(`zf${this.#known.values.size}`, { integer: false })
    this.#known.values.set(made, value)
    this.#known.ranges.set(made, ANY_FLOAT)
    return new SymFloat(made, this)
  }

  /** See the function of this name. */
  createSymbolicLayout(sizes: readonly number[], strides: readonly number[], options: SymbolicLayoutOptions = {}): SymbolicLayout {
    return createSymbolicLayout(this, sizes, strides, options)
  }

  /** An expression as a SymInt; as a number if it is one. */
  toSymInt(expr: Expr): SymInt | number {
    const known = this.replace(expr)
    const value = known.op === 'number' ? valueIn(known) : null
    return typeof value === 'number' ? value : new SymInt(expr, this)
  }
  toSize(expr: Expr): SymInt | number {
    return this.toSymInt(expr)
  }
  /** A size that other rooms hold, as what it is here. Throws ArgumentError for a symbolic size of another library. */
  sizeOf(size: Size): SymInt | number {
    if (typeof size === 'number' || size instanceof SymInt) return size
    throw new ArgumentError('ShapeEnv: a symbolic size must be a SymInt.')
  }

  /** An expression as the value that programs see: symbolic, or plain if it is a constant. */
  toValue(expr: Expr): SymInt | SymFloat | SymBool | number | boolean {
    const known = this.replace(expr)
    if (known.op === 'number' || known.op === 'float' || known.op === 'boolean') return valueIn(known) ?? NaN
    return isBoolean(known) ? new SymBool(expr, this) : factsOf(known).integer ? new SymInt(expr, this) : new SymFloat(expr, this)
  }

  #fresh(prefix: 'u' | 'zuf', isInteger: boolean): SymbolExpr {
    const made = symbol(`${prefix}${this.#unbacked[prefix]++}`, { integer: isInteger })
    this.#known.ranges.set(made, isInteger ? ANY_INTEGER : ANY_FLOAT)
    return made
  }

  /** An integer that depends on data: u0, u1, … */
  createUnbackedSymInt(): SymInt {
    return new SymInt(this.#fresh('u', true), this)
  }
  /** A float that depends on data. */
  createUnbackedSymFloat(): SymFloat {
    return new SymFloat(this.#fresh('zuf', false), this)
  }
  /** A truth value that depends on data: whether an integer is 1. */
  createUnbackedSymBool(): SymBool {
    const made = this.#fresh('u', true)
    this.#known.narrow(made, integerRange(0, 1))
    return new SymBool(eq(made, integer(1)), this)
  }

  /** The size of a result that depends on data: at most `most`. */
  createDataSize(most: Size): SymInt {
    if (!this.#allowed.shapes)
      throw new UnsupportedError('the shape of a result depends on data, which this ShapeEnv refuses: allowDynamicOutputShapeOps is false.')
    const size = this.createUnbackedSymInt()
    this.advise(size)
    if (typeof most === 'number') this.constrainRange(size, { max: most })
    return size
  }
  /** What `item()` gives: a number or a truth value that depends on data. */
  createDataValue(kind: SymbolicKind): SymInt | SymFloat | SymBool {
    if (!this.#allowed.scalars)
      throw new UnsupportedError('the value of an element is not known, and this ShapeEnv refuses it: allowScalarOutputs is false.')
    return kind === 'int' ? this.createUnbackedSymInt() : kind === 'float' ? this.createUnbackedSymFloat() : this.createUnbackedSymBool()
  }

  /** The value that an expression has for all values of its symbols that are possible, without a guard; null if they differ. */
  alwaysValue(expr: Expr): number | boolean | null {
    const found = this.#known.staticValue(expr)
    return found === null ? null : valueIn(found)
  }

  /**
   * The value of this run, with a guard that it is this one unless that follows from earlier ones.
   *
   * @throws GuardOnDataDependentError if it depends on data.
   */
  evaluate(expr: Expr, sizeOblivious = false): number | boolean {
    const constant = freeSymbols(expr).size === 0 ? valueIn(expr) : null
    if (constant !== null) return constant
    const known = this.#known.staticValue(expr, { sizeOblivious })
    const decided = known === null ? null : valueIn(known)
    if (decided !== null) return decided
    const asked = this.#known.hasUnbacked(expr) ? this.#withoutUnbacked(expr) : expr
    const value = this.hintOf(asked)
    if (value === null) throw this.#dataDependent(expr)
    const holds = value === true ? asked : value === false ? not(asked) : eq(asked, factsOf(asked).integer ? integer(value) : float(value))
    if (this.#suppressed) return value
    this.#known.learn(holds)
    this.guards.push({ expr: holds, sizeOblivious })
    this.#known.addAxioms(holds)
    return value
  }

  /** Runs `fn`, whose questions are answered for this run and leave no guard. PyTorch's `suppress_guards`. */
  suppressGuards<T>(fn: () => T): T {
    const outer = this.#suppressed
    this.#suppressed = true
    try {
      return fn()
    } finally {
      this.#suppressed = outer
    }
  }

  #withoutUnbacked(expr: Expr): Expr {
    const open = this.#known.staticValue(expr, { unbackedOnly: true })
    if (open === null || this.#known.hasUnbacked(open)) throw this.#dataDependent(expr)
    return open
  }

  #dataDependent(expr: Expr): GuardOnDataDependentError {
    const values = new Map([...freeSymbols(expr)].map((each) => [each, this.#known.constantFor(each)]))
    const hinted = textOf(substitute(expr, values))
    const sizes = [...freeSymbols(expr)].filter((each) => this.#known.sizeLike.has(each)).map(({ name }) => name)
    const detail = `${hinted} (unhinted: ${textOf(expr)}).  (Size-like symbols: ${sizes.toSorted().join(', ') || 'none'})`
    if (!isBoolean(expr))
      return new GuardOnDataDependentError(
        `Could not extract specialized integer from data-dependent expression ${detail}\n\nThe program wants the number itself (an index, a loop, JavaScript's own operators). Compute with torch.sym* and the functions of operator, which keep it symbolic, or make the number an argument.`,
      )
    return new GuardOnDataDependentError(
      `Could not guard on data-dependent expression ${detail}\n\nState what is true with torch._check(), for sizes with torch._checkIsSize(), or ask with guardOrFalse(), guardOrTrue() or staticallyKnownTrue(), which do not need the value.`,
    )
  }

  /**
   * States that a condition holds: a guard if its value is known, and otherwise an assertion for the time when it is.
   *
   * @returns false if it is known not to hold.
   */
  check(condition: SymBool, message = ''): boolean {
    const expr = condition.expr
    if (!this.#known.hasUnbacked(expr)) return this.evaluate(expr) === true
    const known = this.#known.staticValue(expr)
    if (known !== null) return valueIn(known) === true
    const open = this.#known.staticValue(expr, { unbackedOnly: true })
    if (open !== null && !this.#known.hasUnbacked(open)) return this.evaluate(open) === true
    const form = canonicalBoolean(expr)
    const last = [...freeSymbols(form)]
      .filter((each) => this.isUnbacked(each) && each.integer)
      .toSorted((a, b) => Number(b.name.slice(1)) - Number(a.name.slice(1)))[0]
    if (last !== undefined) this.deferredRuntimeAsserts.set(last, [...(this.deferredRuntimeAsserts.get(last) ?? []), { expr: form, message }])
    this.#known.addAxioms(form)
    this.#known.learn(form)
    return true
  }

  /** Whether a condition holds for all values that are possible; never makes a guard. */
  staticallyKnownTrue(condition: SymBool): boolean {
    return this.alwaysValue(condition.expr) === true
  }

  /** The value of a condition, with a guard; false if it depends on data and is not known. */
  guardOrFalse(condition: SymBool): boolean {
    return this.#guardOr(condition, false)
  }
  /** The value of a condition, with a guard; true if it depends on data and is not known. */
  guardOrTrue(condition: SymBool): boolean {
    return this.#guardOr(condition, true)
  }

  #guardOr({ expr }: SymBool, otherwise: boolean): boolean {
    const known = this.alwaysValue(expr)
    if (known !== null) return known === true
    return this.#known.hasUnbacked(expr) ? otherwise : this.evaluate(expr) === true
  }

  /** The value of a condition where sizes that depend on data count as neither 0 nor 1. */
  guardSizeOblivious(condition: SymBool): boolean {
    return this.evaluate(condition.expr, true) === true
  }

  /** States that an integer that depends on data is a size: at least 0, and treated as at least 2 by `guardSizeOblivious`. */
  advise(size: SymInt): void {
    const { expr } = size
    if (expr.op !== 'symbol' || !this.isUnbacked(expr)) return
    this.#known.sizeLike.add(expr)
    this.#known.narrow(expr, integerRange(0, Infinity))
  }

  /**
   * Narrows the range of a symbol without a guard: a promise of the caller.
   *
   * @throws ArgumentError if `max` is below `min`, or if a number is not between them.
   */
  constrainRange(size: SymInt | number, { min = -Infinity, max = Infinity }: { min?: number; max?: number } = {}): void {
    if (max < min)
      throw new ArgumentError(`Maximum value to constrain_as_size can't be less than the specified min value, received min=${min} and max=${max}`)
    const value = typeof size === 'number' ? size : valueIn(size.expr)
    if (typeof value === 'number') {
      if (value < min || value > max) throw new ArgumentError(`Invalid value ${value} for range [${min}:${max}]`)
      return
    }
    if (typeof size !== 'number' && size.expr.op === 'symbol') this.#known.narrow(size.expr, integerRange(min, max))
  }

  /** Makes two sizes one, without a guard: a promise of the caller. */
  constrainUnify(a: SymInt | number, b: SymInt | number): void {
    const [left, right] = [a, b].map((size) => (typeof size === 'number' ? integer(size) : size.expr))
    if (right?.op === 'symbol' && left !== undefined) this.#known.replacements.set(right, left)
    else if (left?.op === 'symbol' && right !== undefined) this.#known.replacements.set(left, right)
    else if (left !== right) throw new ArgumentError(`constrainUnify: ${String(a)} and ${String(b)} are not equal.`)
  }

  /** The value of an expression for other values of the symbols. Symbols without one are unknown: NaN. */
  valueAt(expr: Expr, values: ReadonlyMap<SymbolExpr, number>): number {
    const all = new Map<SymbolExpr, number>([...freeSymbols(expr)].map((each) => [each, values.get(each) ?? NaN]))
    return evaluate(expr, all)
  }

  /** What does not hold for other values of the symbols: a guard, a range, or that symbols are equal. Null if the trace holds for them. */
  failedAt(values: ReadonlyMap<SymbolExpr, number>): string | null {
    for (const { expr } of this.guards) if (this.valueAt(expr, values) !== 1) return textOf(expr)
    for (const [of, value] of values) {
      const by = this.replacements.get(of)
      if (by !== undefined && this.valueAt(by, values) !== value) return `Eq(${of.name}, ${textOf(by)})`
      const range = this.ranges.get(of)
      if (range?.kind === 'exact' && !contains(range, exactly(value))) return `${of.name} in ${rangeText(range)}`
    }
    return null
  }

  /** Whether a guard says nothing that ranges and replacements do not say as well. */
  isImpliedByRanges({ expr, sizeOblivious }: ShapeGuard): boolean {
    return this.#known.staticValue(expr, { sizeOblivious, withoutAxioms: true }) !== null
  }

  /** The guards that say more than ranges and replacements, as text. */
  guardTexts(): readonly string[] {
    return this.guards.filter((guard) => !this.isImpliedByRanges(guard)).map(({ expr }) => textOf(expr))
  }
}
