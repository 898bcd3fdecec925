// Decides formulas: with Z3, if the optional package z3-solver is installed, and otherwise with the built-in solver.
import { ArgumentError, InternalError, UnsupportedError, messageOf } from '../../../../errors/index.ts'
import { checkOptions, isFunction, valueText } from '../../../../protocol/index.ts'
import { search } from './integerSearch.ts'
import type { Model } from './model.ts'
import { runZ3 } from './smtLib.ts'
import type { SmtAnswer, SmtSolver } from './smtLib.ts'
import { And } from '../z3Types.ts'
import type { Formula } from '../z3Types.ts'

/** What decides: `z3` is the package z3-solver, `search` needs no package, and `auto` is Z3 if it is installed. */
export type SolverChoice = 'auto' | 'z3' | 'search'

/** Options of {@link solve}. */
export interface SolverOptions {
  /** Default 'auto'. */
  readonly solver?: SolverChoice
}

/** The answer of a solver. */
export interface SolverResult {
  /** Whether there are values that make the formula true: 'sat' or 'unsat'; 'unknown' if the solver could not decide. */
  readonly status: 'sat' | 'unsat' | 'unknown'
  /** What answered. */
  readonly solver: 'z3' | 'search'
  /** The values, for 'sat'. */
  readonly model: Model | null
}

let loaded: Promise<SmtSolver> | null = null

/** Loads Z3 once. Its threads do not keep the process alive. */
async function load(): Promise<SmtSolver> {
  try {
    const { init, Z3_ast_print_mode: printModes, Z3_lbool: answers } = await import('z3-solver')
    const { Z3, em } = await init()
    releaseThreads(em)
    // A context of its own for each formula: the answer to a question does not depend on those before it.
    const run = async (assertions: string): Promise<SmtAnswer> => {
      const config = Z3.mk_config()
      const context = Z3.mk_context(config)
      Z3.del_config(config)
      try {
        // Not eval_smtlib2_string: its thread reads the script from memory of the caller, which is overwritten now and then before it was read.
        const solver = Z3.mk_solver(context)
        Z3.solver_inc_ref(context, solver)
        Z3.solver_from_string(context, solver, assertions)
        const error = Z3.get_error_code(context)
        if (error !== 0) throw new InternalError(`solve: Z3 rejected the assertions: ${Z3.get_error_msg(context, error)}`)
        const answer = await Z3.solver_check(context, solver)
        if (answer !== answers.Z3_L_TRUE) return { status: answer === answers.Z3_L_FALSE ? 'unsat' : 'unknown' }
        Z3.set_ast_print_mode(context, printModes.Z3_PRINT_SMTLIB2_COMPLIANT)
        return { status: 'sat', definitions: Z3.model_to_string(context, Z3.solver_get_model(context, solver)) }
      } finally {
        Z3.del_context(context)
      }
    }
    let last: Promise<unknown> = Promise.resolve()
    // Z3 answers one question at a time.
    return (assertions) => {
      const answer = last.then(() => run(assertions))
      last = answer.catch(() => null)
      return answer
    }
  } catch (error) {
    loaded = null
    const why = messageOf(error)
    throw new UnsupportedError(`solve: Z3 could not be loaded. Install it: npm install z3-solver, or choose { solver: 'search' }. (${why})`, {
      cause: error,
    })
  }
}

/** Lets the process end while Emscripten's worker threads wait for work. Outside Node they have no `unref`. */
function releaseThreads(module: unknown): void {
  const threads: unknown = Reflect.get(Object(module), 'PThread')
  for (const list of ['unusedWorkers', 'runningWorkers']) {
    const workers: unknown = Reflect.get(Object(threads), list)
    if (!Array.isArray(workers)) continue
    for (const worker of workers as readonly unknown[]) {
      const unref: unknown = Reflect.get(Object(worker), 'unref')
      if (isFunction(unref)) Reflect.apply(unref, worker, [])
    }
  }
}

/** Whether Z3 can be used here: the package z3-solver is installed, and threads are allowed. PyTorch's HAS_Z3. */
export async function hasZ3(): Promise<boolean> {
  try {
    await (loaded ??= load())
    return true
  } catch {
    return false
  }
}

/**
 * Finds values that make a formula true. Without Z3 a search over ranks and integers answers, which knows the formulas of {@link transformAllConstraints} well and may say
 * 'unknown' of others.
 * @throws UnsupportedError for `solver: 'z3'` if z3-solver is not installed.
 */
export async function solve(formula: Formula, options: SolverOptions = {}): Promise<SolverResult> {
  checkOptions('solve', options, { solver: true })
  const { solver = 'auto' } = options
  if (!['auto', 'z3', 'search'].includes(solver)) throw new ArgumentError(`solve: solver must be 'auto', 'z3' or 'search', got ${valueText(solver)}.`)
  if (solver === 'search' || (solver === 'auto' && !(await hasZ3()))) return { ...search(formula), solver: 'search' }
  return { ...(await runZ3(await (loaded ??= load()), formula)), solver: 'z3' }
}

/**
 * Formulas that are added one by one; z3.Solver.
 *
 *     const solver = new Solver()
 *     solver.add(transformAllConstraints(gm), sameTensor(Const(1), tensor(D(1, 4), D(1, 3))))
 *     (await solver.check()).status  // 'sat'
 */
export class Solver {
  readonly #options: SolverOptions
  #formulas: readonly Formula[] = []

  constructor(options: SolverOptions = {}) {
    this.#options = options
  }

  /** Adds formulas, all of which must be true. */
  add(...formulas: readonly Formula[]): void {
    this.#formulas = [...this.#formulas, ...formulas]
  }

  /** Finds values that make all formulas true. */
  check(): Promise<SolverResult> {
    return solve(And(...this.#formulas), this.#options)
  }
}
