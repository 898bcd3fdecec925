// PassManager: runs passes in an order that respects constraints, until nothing changes. PyTorch's torch.fx.passes.infra.pass_manager.
import { ArgumentError, messageOf } from '../../../errors/index.ts'
import { isVerifying, runPasses } from '../../../pipeline/index.ts'
import type { Pass, PassObserver } from '../../../pipeline/index.ts'
import { checkCount, isFunction, checkOptions } from '../../../protocol/index.ts'
import { GraphError } from '../../graph/errors.ts'
import type { GraphModule } from '../../run/graphModule.ts'
import { Dependencies, FirstReady } from '../nodes/order.ts'
import { PassResult, asPass, graphFacts, passName } from './pass.ts'
import type { PassBase } from './pass.ts'

/** A pass of a PassManager. A function must return a PassResult; see passResultWrapper. */
export type ManagedPass = Pass<GraphModule> | PassBase | ((gm: GraphModule) => PassResult)

/** Whether `a` may run before `b`. */
export type PassConstraint = (a: ManagedPass, b: ManagedPass) => boolean

/** Checks a module between passes. Throws if something is wrong. */
export type PassCheck = (gm: GraphModule) => void

/** Options of {@link PassManager}. */
export interface PassManagerOptions {
  readonly passes?: readonly ManagedPass[]
  readonly constraints?: readonly PassConstraint[]
  /** The maximal number of times that the whole list runs. Default 1. */
  readonly steps?: number
  /** Run the checks after each pass, too. Default false. */
  readonly runChecksAfterEachPass?: boolean
  /** Called before and after each pass: timing, logging, snapshots. */
  readonly observers?: readonly PassObserver<GraphModule>[]
}

/** The constraint that `first` runs before `then`, for both kinds of pass managers. PyTorch's this_before_that_pass_constraint. */
export const thisBeforeThatPassConstraint =
  (first: object, then: object): ((a: unknown, b: unknown) => boolean) =>
  (a, b) =>
    a !== then || b !== first

/** Throws GraphError for the first two passes whose order violates a constraint. */
export function checkOrder<P>(passes: readonly P[], constraints: readonly ((a: P, b: P) => boolean)[], nameOf: (pass: P) => string): void {
  for (const [i, a] of passes.entries())
    for (const [k, b] of passes.entries()) {
      if (k <= i || constraints.every((constraint) => constraint(a, b))) continue
      throw new GraphError(
        `pass schedule constraint violated. Expected ${nameOf(b)} before ${nameOf(a)} but found ${nameOf(a)} at index ${i} and ${nameOf(b)} at index ${k} in pass list.`,
      )
    }
}

/** Runs passes over a module. */
export class PassManager {
  passes: ManagedPass[]
  readonly constraints: PassConstraint[]
  readonly #checks: PassCheck[] = []
  readonly #steps: number
  readonly #checkEach: boolean
  readonly #observers: readonly PassObserver<GraphModule>[]
  #solved = false

  constructor(options: PassManagerOptions = {}) {
    checkCount('PassManager', arguments, 1)
    checkOptions('PassManager', options, { passes: true, constraints: true, steps: 'number', runChecksAfterEachPass: 'boolean', observers: true })
    this.passes = [...(options.passes ?? [])]
    this.constraints = [...(options.constraints ?? [])]
    this.#steps = options.steps ?? 1
    this.#checkEach = options.runChecksAfterEachPass ?? false
    this.#observers = options.observers ?? []
    if (!Number.isInteger(this.#steps) || this.#steps < 1)
      throw new ArgumentError(`PassManager: option 'steps' must be a whole number of at least 1, got ${String(options.steps)}.`)
  }

  /** Adds a pass to the end of the list. */
  addPass(pass: ManagedPass): void {
    this.passes.push(pass)
    this.#solved = false
  }

  /** Adds a constraint on the order of passes. */
  addConstraint(constraint: PassConstraint): void {
    this.constraints.push(constraint)
    this.#solved = false
  }

  /** Adds a check that runs before the passes, and after each pass if the option says so. Throws ArgumentError unless it takes exactly one argument. */
  addChecks(check: PassCheck): void {
    if (!isFunction(check) || check.length !== 1) throw new ArgumentError('PassManager check function should only take in one variable, a module')
    this.#checks.push(check)
  }

  /** Throws GraphError if the current order violates a constraint. */
  validateConstraints(): void {
    checkOrder(this.passes, this.constraints, (pass) => passName(pass))
  }

  /** Sorts the passes so that no constraint is violated. Throws GraphError if that is impossible. */
  solveConstraints(): void {
    this.passes = this.constraints.length === 0 ? this.passes : sorted(this.passes, this.constraints)
    this.#solved = true
  }

  /** Runs the passes. The result says whether any of them changed something. Throws GraphError, which names the pass and those before it, if a pass fails. */
  run(gm: GraphModule): PassResult {
    if (!this.#solved) this.solveConstraints()
    this.#check(gm)
    let module = gm
    let changed = false
    for (let step = 0; step < this.#steps; step++) {
      const result = this.#runAll(module)
      module = result.graphModule
      changed ||= result.modified
      if (!result.modified) break
    }
    return new PassResult(module, changed)
  }

  #runAll(gm: GraphModule): PassResult {
    const started: string[] = []
    const own: PassObserver<GraphModule> = {
      before: (pass) => void started.push(pass.name),
      after: (_pass, module) => {
        module.recompile()
        if (this.#checkEach) this.#check(module)
      },
    }
    const lint = (module: GraphModule): void => module.graph.lint()
    try {
      const observers = [own, ...this.#observers]
      const { value, changed } = runPasses(this.passes.map(strict), gm, { observers, verify: isVerifying() && lint }, graphFacts)
      return new PassResult(value, changed)
    } catch (error) {
      const message = `An error occurred when running the '${started.at(-1)}' pass after the following passes: [${started.slice(0, -1).join(', ')}]`
      throw new GraphError(`${message}: ${messageOf(error)}`, { cause: error })
    }
  }

  #check(gm: GraphModule): void {
    for (const check of this.#checks) check(gm)
  }
}

/** A pass that throws if it is a function and does not return a PassResult. */
function strict(pass: ManagedPass): Pass<GraphModule> {
  if (!isFunction(pass)) return asPass(pass)
  const checked = (gm: GraphModule): PassResult => {
    const result: unknown = pass(gm)
    if (result instanceof PassResult) return result
    throw new ArgumentError(`The result of the pass ${pass.name} should be type PassResult. Please wrap it with passResultWrapper()`)
  }
  return asPass(checked, pass.name)
}

function sorted(passes: readonly ManagedPass[], constraints: readonly PassConstraint[]): ManagedPass[] {
  // A pass can be in the list several times.
  const runs = passes.map((pass) => ({ pass }))
  const needs = new Dependencies(runs)
  for (const a of runs)
    for (const b of runs) if (a.pass !== b.pass && constraints.some((constraint) => !constraint(a.pass, b.pass))) needs.require(a, b)
  const { order, cyclic } = needs.order(new FirstReady())
  if (cyclic.length > 0)
    throw new GraphError(`Circular dependency detected within the following passes: [${cyclic.map(({ pass }) => passName(pass)).join(', ')}]`)
  return order.map(({ pass }) => pass)
}
