// Checks that guards say what a trace asked: what is compared with other inputs must imply every question. PyTorch's torch.fx.experimental.validator.
import { ArgumentError, UnsupportedError } from '../../errors/index.ts'
import { checkCount } from '../../protocol/index.ts'
import { RecordingShapeEnv, textOf, checkedFacts, factsOf, replayShapeEnvEvents } from '../../symbols/index.ts'
import type { Expr, ShapeEnv, ShapeEnvEvent, SymbolExpr } from '../../symbols/index.ts'
import { And, FALSE, Int, Not, Or, TRUE, compare, formulaText, number, sameInt } from './migrateGradualTypes/z3Types.ts'
import { solve } from './migrateGradualTypes/index.ts'
import type { Formula, IntTerm, SolverOptions } from './migrateGradualTypes/index.ts'

/** What a check found: it holds for all values, or nothing was found against it in the time that a search has. A refutation is an error. */
export type Verdict = 'proved' | 'unknown'

/**
 * Values were found for which the guards hold and a question of the trace has another answer.
 *
 * Fix: the message has the values and the questions. `bisect` finds the call that lost it.
 */
export class ValidationException extends ArgumentError {
  /** The values, by symbol. */
  readonly model: ReadonlyMap<string, number>

  constructor(
    model: ReadonlyMap<string, number>,
    { assertions, targets, failed }: Readonly<Record<'assertions' | 'targets' | 'failed', readonly Formula[]>>,
  ) {
    const lines = (list: readonly string[]): string =>
      list
        .toSorted()
        .map((text) => `  ==> ${text}`)
        .join('\n')
    const values = lines([...model].map(([name, value]) => `${name}: ${value}`))
    const texts = (list: readonly Formula[]): string => lines(list.map(formulaText))
    super(
      `translation validation failed.\n\nModel:\n${values}\n\nAssertions:\n${texts(assertions)}\n\nTarget Expressions:\n${texts(targets)}\n\nFailed Source Expressions:\n${texts(failed)}`,
    )
    this.model = model
  }
}

/** Expressions as formulas. Operations that integers alone cannot express are refused; `sides` gets what the variables mean that stand for parts. */
class Translation {
  readonly #names: ReadonlySet<SymbolExpr>
  readonly sides: Formula[] = []
  #parts = 0

  constructor(names: ReadonlySet<SymbolExpr>) {
    this.#names = names
  }

  formula(expr: Expr): Formula {
    const { op, args } = expr
    if (op === 'boolean') return expr.value ? TRUE : FALSE
    if (op === 'And') return And(...args.map((arg) => this.formula(arg)))
    if (op === 'Or') return Or(...args.map((arg) => this.formula(arg)))
    const [first, second] = args
    if (op === 'Not' && first !== undefined) return Not(this.formula(first))
    if (first === undefined || second === undefined) throw new ArgumentError(`expected boolean expression. Got: ${textOf(expr)}`)
    const sides = (): readonly [IntTerm, IntTerm] => [this.#term(first), this.#term(second)]
    if (op === 'Eq') return sameInt(...sides())
    const [a, b] = op === 'Ne' || op === 'Lt' || op === 'Le' || op === 'Gt' || op === 'Ge' ? sides() : []
    if (a === undefined || b === undefined) throw new ArgumentError(`expected boolean expression. Got: ${textOf(expr)}`)
    if (op === 'Ne') return compare(a, '!=', b)
    return op === 'Lt' ? compare(a, '<', b) : op === 'Le' ? compare(a, '<=', b) : op === 'Gt' ? compare(b, '<', a) : compare(b, '<=', a)
  }

  #term(expr: Expr): IntTerm {
    const { op, args } = expr
    if (op === 'symbol') return this.#variable(expr)
    if (op === 'number' && expr.value.q === 1n) return number(Number(expr.value.p))
    const [first, second] = args
    if (op === 'Add' || op === 'Mul') return args.map((arg) => this.#term(arg)).reduce((lhs, rhs) => ({ op: op === 'Add' ? '+' : '*', lhs, rhs }))
    if (first !== undefined && second !== undefined) {
      if ((op === 'Pow' || op === 'PowByNatural') && second.op === 'number' && second.value.q === 1n && second.value.p > 0n)
        return this.#power(first, Number(second.value.p))
      if (op === 'Max' || op === 'Min')
        return this.#extreme(
          op,
          args.map((arg) => this.#term(arg)),
        )
      // Z3's quotient is rounded as Python's for divisors above 0.
      if ((op === 'FloorDiv' || op === 'CleanDiv' || op === 'Mod' || op === 'PythonMod') && factsOf(second).positive)
        return { op: op === 'Mod' || op === 'PythonMod' ? '%' : '/', lhs: this.#term(first), rhs: this.#term(second) }
    }
    throw new UnsupportedError(`unhandled operator: ${op}`)
  }

  #variable(of: SymbolExpr): IntTerm {
    if (!this.#names.has(of)) throw new ArgumentError(`Z3 variable not found for: ${of.name}`)
    return Int(of.name)
  }

  #power(base: Expr, exponent: number): IntTerm {
    return Array.from({ length: exponent }, () => this.#term(base)).reduce((lhs, rhs) => ({ op: '*', lhs, rhs }))
  }

  /** A variable that is at least (at most) each, and one of them. */
  #extreme(op: 'Max' | 'Min', terms: readonly IntTerm[]): IntTerm {
    const found = Int(`${op.toLowerCase()}!${this.#parts++}`)
    const bounds = terms.map((term) => (op === 'Max' ? compare(term, '<=', found) : compare(found, '<=', term)))
    this.sides.push(...bounds, Or(...terms.map((term) => sameInt(found, term))))
    return found
  }
}

/**
 * Checks that targets imply sources: what is compared with other inputs, and what the program asked. With the package z3-solver it proves or refutes; without it a search may find neither,
 * and says `unknown`. PyTorch's TranslationValidator.
 *
 *     const validator = new TranslationValidator()
 *     validator.addVar(size)
 *     validator.addSourceExpr(asked)
 *     validator.addTargetExpr(compared)
 *     await validator.validate() // 'proved', 'unknown', or a ValidationException with the values
 */
export class TranslationValidator {
  readonly #names = new Set<SymbolExpr>()
  readonly #translation = new Translation(this.#names)
  readonly #sources = new Map<string, Formula>()
  readonly #targets = new Map<string, Formula>()
  readonly #assertions = new Map<string, Formula>()

  /** Makes a symbol known. One that is positive stays so. */
  addVar(of: SymbolExpr): void {
    if (!of.integer) throw new UnsupportedError(`unsupported type for Z3 variable: ${of.name} is no integer.`)
    if (this.#names.has(of)) return
    this.#names.add(of)
    if (of.positive) this.#keep(this.#targets, compare(number(0), '<', Int(of.name)))
  }

  /** What must follow. Throws ArgumentError for a symbol that is not known. */
  addSourceExpr(expr: Expr): void {
    this.#keep(this.#sources, this.#translation.formula(expr))
  }
  /** What is checked. */
  addTargetExpr(expr: Expr): void {
    this.#keep(this.#targets, this.#translation.formula(expr))
  }
  /** What is true anyway. */
  addAssertion(expr: Expr): void {
    this.#keep(this.#assertions, this.#translation.formula(expr))
  }

  #keep(list: Map<string, Formula>, formula: Formula): void {
    list.set(formulaText(formula), formula)
  }

  /**
   * Looks for values for which the targets hold and a source does not.
   *
   * @throws ValidationException if there are some.
   */
  async validate(options: SolverOptions = {}): Promise<Verdict> {
    checkCount('TranslationValidator.validate', arguments, 1)
    const [sources, targets, assertions] = [this.#sources, this.#targets, this.#assertions].map((list) => [...list.values()])
    if (sources === undefined || targets === undefined || assertions === undefined || sources.length === 0 || targets.length === 0) return 'proved'
    const known = [...targets, ...assertions, ...this.#translation.sides]
    const answer = await solve(And(...known, Not(And(...sources))), options)
    if (answer.status === 'unsat') return 'proved'
    if (answer.status === 'unknown') return 'unknown'
    const failed: Formula[] = []
    for (const source of sources) if ((await solve(And(...known, Not(source)), options)).status === 'sat') failed.push(source)
    const values = new Map([...this.#names].map(({ name }) => [name, answer.model?.int(Int(name)) ?? 0]))
    throw new ValidationException(values, { assertions, targets, failed })
  }
}

/**
 * Checks an environment: that what it compares with other inputs (ranges, equal sizes, the guards that they do not imply) implies everything that was asked of it. Questions that integers
 * cannot express are left out, and make the verdict `unknown`.
 *
 * @throws ValidationException if it does not.
 */
export async function validateShapeEnv(env: ShapeEnv, options: SolverOptions = {}): Promise<Verdict> {
  checkCount('validateShapeEnv', arguments, 2)
  const validator = new TranslationValidator()
  for (const of of [...env.values.keys(), ...env.ranges.keys()]) if (of.integer) validator.addVar(of)
  let isWhole = true
  const add = (run: () => void): void => {
    try {
      run()
    } catch (error) {
      if (!(error instanceof UnsupportedError)) throw error
      isWhole = false
    }
  }
  for (const { expr } of env.guards) add(() => validator.addSourceExpr(expr))
  for (const expr of checkedFacts(env)) add(() => validator.addTargetExpr(expr))
  const verdict = await validator.validate(options)
  return isWhole ? verdict : 'unknown'
}

/**
 * The call after which guards no longer say what was asked.
 *
 * Fix: the message names it; what it learnt, or what was simplified with it, is wrong.
 */
export class BisectValidationException extends ArgumentError {
  readonly event: ShapeEnvEvent
  constructor(event: ShapeEnvEvent, cause: ValidationException) {
    super(`translation validation failed when evaluating: ${event.args[0] ?? event.name}\n\n${cause.message}`, { cause })
    this.event = event
  }
}

/**
 * Finds the first recorded call after which {@link validateShapeEnv} fails, by halving. PyTorch's `bisect`.
 *
 * @throws BisectValidationException with that call. Nothing if the environment is right.
 */
export async function bisect(env: RecordingShapeEnv, validate: (env: ShapeEnv) => Promise<unknown> = validateShapeEnv): Promise<void> {
  checkCount('bisect', arguments, 2)
  if (!(env instanceof RecordingShapeEnv)) throw new ArgumentError("bisect: argument 'env' must be a RecordingShapeEnv, which knows its events.")
  const { events } = env
  const failure = async (count: number): Promise<ValidationException | null> => {
    try {
      await validate(replayShapeEnvEvents(events.slice(0, count)))
      return null
    } catch (error) {
      if (error instanceof ValidationException) return error
      throw error
    }
  }
  let found = await failure(events.length)
  if (found === null) return
  let [right, wrong] = [1, events.length]
  while (right < wrong) {
    const middle = Math.floor((right + wrong) / 2)
    const failed = await failure(middle)
    if (failed === null) right = middle + 1
    else [wrong, found] = [middle, failed]
  }
  const event = events[wrong - 1]
  if (event !== undefined) throw new BisectValidationException(event, found)
}
