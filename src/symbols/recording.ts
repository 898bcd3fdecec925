// What was asked of a ShapeEnv and what it was told, as events that can be replayed, and a comparison of two environments. PyTorch's torch.fx.experimental.recording.
import { ArgumentError } from '../errors/index.ts'
import { checkArray, checkCount, valueText } from '../protocol/index.ts'
import type { Constraint, DimDynamic } from './dimensions.ts'
import { integer } from './expression.ts'
import type { Expr } from './expression.ts'
import { textOf } from './print.ts'
import { rangeText } from './ranges.ts'
import { ShapeEnv } from './shapeEnv.ts'
import type { ShapeEnvOptions } from './shapeEnv.ts'
import { SymBool, SymFloat, SymInt } from './symValues.ts'

/** A call of a ShapeEnv's method. PyTorch's ShapeEnvEvent. */
export class ShapeEnvEvent {
  /** The method: `createSymbol`, `evaluate`, `check`, …; `ShapeEnv` for its making. */
  readonly name: string
  /** The arguments as text. */
  readonly args: readonly string[]
  readonly #make: (() => ShapeEnv) | null
  readonly #run: (env: ShapeEnv) => void

  private constructor(name: string, args: readonly unknown[], run: (env: ShapeEnv) => void, make: (() => ShapeEnv) | null = null) {
    this.name = name
    this.args = args.map(shown)
    this.#run = run
    this.#make = make
  }

  /** The making of an environment. @internal */
  static making(options: ShapeEnvOptions): ShapeEnvEvent {
    return new ShapeEnvEvent(
      'ShapeEnv',
      Object.keys(options).length === 0 ? [] : [options],
      () => {},
      () => new ShapeEnv(options),
    )
  }

  /** A call, which `run` makes again. @internal */
  static call(name: string, args: readonly unknown[], run: (env: ShapeEnv) => void): ShapeEnvEvent {
    return new ShapeEnvEvent(name, args, run)
  }

  /** A new environment. Throws ArgumentError for any event but the first. */
  make(): ShapeEnv {
    if (this.#make === null) throw new ArgumentError(`First event must be ShapeEnv constructor, got: ${this.toString()}.`)
    return this.#make()
  }

  /** Makes the call again, of another environment. */
  run(env: ShapeEnv): void {
    this.#run(env)
  }

  /** Whether a value was read, which may have made a guard. */
  isEvaluateExpr(): boolean {
    return this.name === 'evaluate'
  }

  /** Whether something was stated that is checked when the data is there. */
  isDeferRuntimeAssert(): boolean {
    return this.name === 'check'
  }

  toString(): string {
    return `event: ${this.name} (${this.args.join(', ')})`
  }
}

/** A ShapeEnv that records what is asked of it; calls that throw are not kept. PyTorch's `ShapeEnv(should_record_events=True)`. */
export class RecordingShapeEnv extends ShapeEnv {
  readonly events: ShapeEnvEvent[]
  #isInside = false

  constructor(options: ShapeEnvOptions = {}) {
    checkCount('RecordingShapeEnv', arguments, 1)
    super(options)
    this.events = [ShapeEnvEvent.making(options)]
  }

  /** Runs a method, and records it unless another one has called it. */
  #record<T>(name: string, args: readonly unknown[], run: () => T, replay: (env: ShapeEnv) => void): T {
    if (this.#isInside) return run()
    this.#isInside = true
    this.events.push(ShapeEnvEvent.call(name, args, replay))
    try {
      return run()
    } catch (error) {
      this.events.pop()
      throw error
    } finally {
      this.#isInside = false
    }
  }

  override createSymbol(value: number, dynamic: DimDynamic = 'duck', constraint: Constraint | null = null): Expr {
    const run = (env: ShapeEnv): Expr => env.createSymbol(value, dynamic, constraint)
    return this.#record('createSymbol', [value, dynamic], () => super.createSymbol(value, dynamic, constraint), run)
  }
  override createSymFloat(value: number): SymFloat {
    return this.#record(
      'createSymFloat',
      [value],
      () => super.createSymFloat(value),
      (env) => env.createSymFloat(value),
    )
  }
  override createUnbackedSymInt(): SymInt {
    return this.#record(
      'createUnbackedSymInt',
      [],
      () => super.createUnbackedSymInt(),
      (env) => env.createUnbackedSymInt(),
    )
  }
  override createUnbackedSymFloat(): SymFloat {
    return this.#record(
      'createUnbackedSymFloat',
      [],
      () => super.createUnbackedSymFloat(),
      (env) => env.createUnbackedSymFloat(),
    )
  }
  override createUnbackedSymBool(): SymBool {
    return this.#record(
      'createUnbackedSymBool',
      [],
      () => super.createUnbackedSymBool(),
      (env) => env.createUnbackedSymBool(),
    )
  }
  override evaluate(expr: Expr, sizeOblivious = false): number | boolean {
    return this.#record(
      'evaluate',
      [expr],
      () => super.evaluate(expr, sizeOblivious),
      (env) => env.evaluate(expr, sizeOblivious),
    )
  }
  override check(condition: SymBool, message = ''): boolean {
    const { expr } = condition
    return this.#record(
      'check',
      [expr],
      () => super.check(condition, message),
      (env) => env.check(new SymBool(expr, env), message),
    )
  }
  override guardOrFalse(condition: SymBool): boolean {
    const { expr } = condition
    return this.#record(
      'evaluate',
      [expr],
      () => super.guardOrFalse(condition),
      (env) => env.guardOrFalse(new SymBool(expr, env)),
    )
  }
  override guardOrTrue(condition: SymBool): boolean {
    const { expr } = condition
    return this.#record(
      'evaluate',
      [expr],
      () => super.guardOrTrue(condition),
      (env) => env.guardOrTrue(new SymBool(expr, env)),
    )
  }
  override advise(size: SymInt): void {
    const { expr } = size
    this.#record(
      'advise',
      [expr],
      () => super.advise(size),
      (env) => env.advise(new SymInt(expr, env)),
    )
  }
  override constrainRange(size: SymInt | number, range: { min?: number; max?: number } = {}): void {
    const expr = exprOf(size)
    this.#record(
      'constrainRange',
      [expr, range],
      () => super.constrainRange(size, range),
      (env) => env.constrainRange(new SymInt(expr, env), range),
    )
  }
  override constrainUnify(a: SymInt | number, b: SymInt | number): void {
    const [left, right] = [exprOf(a), exprOf(b)]
    const run = (env: ShapeEnv): void => env.constrainUnify(new SymInt(left, env), new SymInt(right, env))
    this.#record('constrainUnify', [left, right], () => super.constrainUnify(a, b), run)
  }

  /** Throws NotEqualError if another environment knows something else. PyTorch's `check_equal`. */
  checkEqual(other: ShapeEnv): void {
    shapeEnvCheckStateEqual(stateOf(this), stateOf(other))
  }
}

const exprOf = (size: SymInt | number): Expr => (typeof size === 'number' ? integer(size) : size.ownExpr)

/**
 * A new environment in which the calls of `events` were made; the first of them must be that of a constructor. PyTorch's `replay_shape_env_events`.
 *
 * @throws ArgumentError if the first event makes no environment.
 */
export function replayShapeEnvEvents(events: readonly ShapeEnvEvent[]): ShapeEnv {
  checkCount('replayShapeEnvEvents', arguments, 1)
  checkArray('replayShapeEnvEvents', 'events', events)
  const [first, ...rest] = events
  if (first === undefined) throw new ArgumentError('First event must be ShapeEnv constructor, got: no events.')
  const env = first.make()
  for (const event of rest) event.run(env)
  return env
}

/** What an environment knows, by names. */
const stateOf = (env: ShapeEnv): Readonly<Record<string, unknown>> => ({
  axioms: env.axioms,
  deferredRuntimeAsserts: new Map([...env.deferredRuntimeAsserts].map(([of, asserts]) => [of, asserts.map(({ expr }) => expr)])),
  divisible: env.divisible,
  guards: env.guards.map(({ expr }) => expr),
  numDeferredRuntimeAsserts: [...env.deferredRuntimeAsserts.values()].reduce((count, asserts) => count + asserts.length, 0),
  ranges: new Map([...env.ranges].map(([of, range]) => [of, rangeText(range)])),
  replacements: env.replacements,
  values: env.values,
})

const isExpr = (value: object): value is Expr => 'op' in value && 'args' in value

const inOrder = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** A value as text, in which the order of entries without an order does not show. */
function shown(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value === 'string') return value
  if (value === null) return 'None'
  if (typeof value !== 'object') return valueText(value)
  if (isExpr(value)) return textOf(value)
  if (Array.isArray(value)) return `[${value.map(shown).join(', ')}]`
  if (value instanceof Set) return `{${[...value].map(shown).toSorted(inOrder).join(', ')}}`
  const entries = (value instanceof Map ? [...value] : Object.entries(value)).map(([key, one]) => [shown(key), shown(one)] as const)
  const texts = entries.toSorted(([a], [b]) => inOrder(a, b)).map(([key, one]) => `${key}: ${one}`)
  return `{${texts.join(', ')}}`
}

/**
 * Two environments know different things.
 *
 * Fix: the message lists the fields that differ. Replay the same events, or leave fields out of the comparison.
 */
export class NotEqualError extends ArgumentError {
  constructor(what: string, differences: readonly (readonly [title: string, left: string, right: string])[]) {
    const text = differences.map(([title, left, right]) => `==> ${title}\n  >  Left: ${left}\n  > Right: ${right}`).join('\n')
    super(`ShapeEnv not equal: ${what}:\n\n${text}\n`)
  }
}

/**
 * Compares two states field by field. `ignored` are fields that may differ; `show` gives what is compared of a field. PyTorch's `shape_env_check_state_equal`.
 *
 * @throws NotEqualError if one has other fields, or other values.
 */
export function shapeEnvCheckStateEqual(
  left: Readonly<Record<string, unknown>>,
  right: Readonly<Record<string, unknown>>,
  ignored: readonly string[] = [],
  show: (field: string, value: unknown) => unknown = (_, value) => value,
): void {
  checkCount('shapeEnvCheckStateEqual', arguments, 4)
  const fields = (of: object): readonly string[] => Object.keys(of).filter((field) => !ignored.includes(field))
  const only = (a: object, b: object): readonly string[] => fields(a).filter((field) => !(field in b))
  const [leftOnly, rightOnly] = [only(left, right), only(right, left)]
  const listed = (names: readonly string[]): string => `[${names.map((name) => `'${name}'`).join(', ')}]`
  if (leftOnly.length + rightOnly.length > 0)
    throw new NotEqualError('field set mismatch', [['found unique fields:', listed(leftOnly), listed(rightOnly)]])
  const differences = fields(left)
    .toSorted()
    .map((field) => [`${field}: values don't match.`, shown(show(field, left[field])), shown(show(field, right[field]))] as const)
    .filter(([, a, b]) => a !== b)
  if (differences.length > 0) throw new NotEqualError("field values don't match", differences)
}
