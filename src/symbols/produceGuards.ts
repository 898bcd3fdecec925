// The guards of a trace as texts about its inputs: which sizes are equal, what was asked, and the range of each size. PyTorch's `produce_guards`.
import { checkCount } from '../protocol/index.ts'
import type { Expr, SymbolExpr } from './expression.ts'
import { freeSymbols, number, operation } from './expression.ts'
import { pythonTextOf } from './pythonText.ts'
import { integerRange, intersection, isWithin } from './ranges.ts'
import type { ExactRange } from './ranges.ts'
import { compareRationals, isFinite, rationalText, whole } from './rational.ts'
import type { Constraint } from './dimensions.ts'
import type { ShapeEnv } from './shapeEnv.ts'
import { ConstraintViolationError } from './shapeErrors.ts'
import { localSource, propertySource } from './sources.ts'
import type { Source } from './sources.ts'
import type { SymbolicLayout } from './symbolicLayout.ts'
import { SymInt } from './symValues.ts'

/** An input of the program: a tensor's layout, or a number. */
export interface GuardedInput {
  readonly name: string
  readonly value: SymbolicLayout | SymInt | number
  /** What is promised of each dimension. */
  readonly constraints?: readonly (Constraint | null)[]
}

interface Tracked {
  readonly source: Source
  readonly expr: Expr | number
  readonly constraint: Constraint | null
}

/** Sizes that nothing else is known of. */
const DEFAULT_RANGE = integerRange(2, Infinity)

/**
 * What must be true of other inputs, so that the trace holds for them: one text for each condition, in Python's spelling.
 *
 *     produceGuards(env, [{ name: 'x', value: layout }]) // ["L['x'].stride()[0] == L['x'].size()[1]", "2 <= L['x'].size()[0]", …]
 *
 * @throws ConstraintViolationError if a promise about a dimension does not hold.
 */
export function produceGuards(env: ShapeEnv, inputs: readonly GuardedInput[]): readonly string[] {
  checkCount('produceGuards', arguments, 2)
  return new GuardWriter(env, inputs.flatMap(trackedOf)).write()
}

function trackedOf({ name, value, constraints = [] }: GuardedInput): readonly Tracked[] {
  const source = localSource(name)
  const track = (at: Source, size: SymInt | number, constraint: Constraint | null = null): Tracked => ({
    source: at,
    expr: size instanceof SymInt ? size.expr : size,
    constraint,
  })
  if (typeof value === 'number' || value instanceof SymInt) return [track(source, value)]
  return [
    ...value.sizes.map((size, i) => track(propertySource(source, 'size', i), size, constraints[i] ?? null)),
    ...value.strides.map((stride, i) => track(propertySource(source, 'stride', i), stride)),
    track(propertySource(source, 'storageOffset', 0), value.storageOffset),
  ]
}

class GuardWriter {
  readonly #env: ShapeEnv
  readonly #tracked: readonly Tracked[]
  readonly #sources = new Map<SymbolExpr, Source>()
  readonly #strict = new Map<SymbolExpr, ExactRange[]>()
  readonly #violations: { readonly source: Source; readonly message: string }[] = []

  constructor(env: ShapeEnv, tracked: readonly Tracked[]) {
    this.#env = env
    this.#tracked = tracked
    for (const { source, expr, constraint } of tracked) {
      if (typeof expr === 'number' || expr.op !== 'symbol') continue
      if (!this.#sources.has(expr)) this.#sources.set(expr, source)
      if (constraint?.kind === 'strict') this.#strict.set(expr, [...(this.#strict.get(expr) ?? []), constraint.range])
    }
  }

  write(): readonly string[] {
    const texts = [...this.#equalities(), ...this.#questions(), ...this.#ranges()]
    if (this.#violations.length === 0) return texts
    const names = [...new Set(this.#violations.map(({ source }) => source.name))].toSorted().join(', ')
    const list = this.#violations.map(({ message }) => `  - ${message}`).join('\n')
    throw new ConstraintViolationError(`Constraints violated (${names})! For more information, run with TORCH_LOGS="+dynamic".\n${list}`)
  }

  #text(expr: Expr): string {
    return pythonTextOf(expr, (symbol) => this.#sources.get(symbol)?.name ?? symbol.name)
  }

  /** Every size is what the trace has for it. Plain numbers of tensors are not written: what runs the trace compares those itself. */
  #equalities(): readonly string[] {
    const texts: string[] = []
    for (const { source, expr, constraint } of this.#tracked) {
      const value = typeof expr === 'number' ? expr : expr.op === 'number' && isFinite(expr.value) ? Number(expr.value.p) : null
      if (value !== null) {
        this.#checkNumber(source, value, constraint)
        if (source.property === null) texts.push(`${source.name} == ${value}`)
      } else if (typeof expr !== 'number' && (expr.op !== 'symbol' || this.#sources.get(expr) !== source))
        texts.push(`${source.name} == ${this.#text(expr)}`)
    }
    return texts
  }

  #checkNumber(source: Source, value: number, constraint: Constraint | null): void {
    if (constraint === null) return
    const exact = whole(BigInt(value))
    const promised = constraint.kind === 'strict' && isWithin(constraint.range, { kind: 'exact', lower: exact, upper: exact })
    // Sizes 0 and 1 are always traced on their own.
    if (promised || (constraint.kind === 'relaxed' && (value === 0 || value === 1))) return
    this.#violations.push({
      source,
      message: `You marked ${source.name} as dynamic but your code specialized it to be a constant (${value}). If you're using mark_dynamic, either remove it or use maybe_mark_dynamic. If you're using Dim.DYNAMIC, replace it with either Dim.STATIC or Dim.AUTO.`,
    })
  }

  /** The guards that ranges and equalities do not imply. */
  #questions(): readonly string[] {
    const issued = new Set<Expr>()
    const texts: string[] = []
    for (const guard of this.#env.guards) {
      if (this.#env.isImpliedByRanges(guard)) continue
      const expr = this.#env.simplify(guard.expr)
      if (issued.has(expr)) continue
      issued.add(expr)
      texts.push(this.#text(expr))
      const [only, ...more] = freeSymbols(expr)
      if (only !== undefined && more.length === 0) this.#checkSingle(only, this.#text(expr))
    }
    return texts
  }

  #checkSingle(symbol: SymbolExpr, text: string): void {
    const source = this.#sources.get(symbol)
    if (source === undefined) return
    for (const range of this.#strict.get(symbol) ?? []) {
      this.#violations.push({ source, message: `Not all values of ${promisedText(source, range)} satisfy the generated guard ${text}.` })
    }
  }

  #ranges(): readonly string[] {
    const texts: string[] = []
    for (const [symbol, source] of this.#sources) {
      const range = this.#env.ranges.get(symbol)
      if (range?.kind !== 'exact') continue
      const lower = isFinite(range.lower) ? [operation('Le', [number(range.lower), symbol])] : []
      const upper = isFinite(range.upper) ? [operation('Le', [symbol, number(range.upper)])] : []
      const text = [...lower, ...upper].map((bound) => this.#text(bound)).join(' and ')
      if (text === '') continue
      texts.push(text)
      for (const promised of this.#strict.get(symbol) ?? []) {
        const needed = intersection(promised, DEFAULT_RANGE)
        if (needed !== null && !isWithin(needed, range))
          this.#violations.push({ source, message: `Not all values of ${promisedText(source, promised)} satisfy the generated guard ${text}` })
      }
    }
    return texts
  }
}

/** `L['x'].size()[0] = L['x'].size()[0] in the specified range L['x'].size()[0] <= 10`. */
function promisedText({ name }: Source, { lower, upper }: ExactRange): string {
  const from = compareRationals(lower, DEFAULT_RANGE.lower) > 0 ? `${rationalText(lower)} <= ` : ''
  const to = compareRationals(upper, DEFAULT_RANGE.upper) < 0 ? ` <= ${rationalText(upper)}` : ''
  return `${name} = ${name} in the specified range ${from}${name}${to}`
}
