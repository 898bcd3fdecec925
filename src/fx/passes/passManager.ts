// PassManager: passes in an order that respects constraints, run until nothing changes. PyTorch's torch.fx.passes.infra.pass_manager.
import { ArgumentError } from '../../errors/index.ts'
import { GraphError } from '../errors.ts'
import type { GraphModule } from '../graphModule.ts'
import { PassBase, PassResult } from './passBase.ts'
import type { Pass } from './passBase.ts'

/** A pass: a function or an object. */
export type AnyPass = Pass | PassBase

/** Whether `a` may run before `b`. */
export type PassConstraint = (a: AnyPass, b: AnyPass) => boolean

/** Looks at a module between passes; throws when something is wrong. */
export type PassCheck = (gm: GraphModule) => void

/** Options of {@link PassManager}. */
export interface PassManagerOptions {
  readonly passes?: readonly AnyPass[]
  readonly constraints?: readonly PassConstraint[]
  /** How often at most the whole list runs. Default 1. */
  readonly steps?: number
  /** Run the checks also after each pass. Default false. */
  readonly runChecksAfterEachPass?: boolean
}

/** `first` must run before `then`. PyTorch's this_before_that_pass_constraint. */
export const thisBeforeThatPassConstraint =
  (first: AnyPass, then: AnyPass): PassConstraint =>
  (a, b) =>
    a !== then || b !== first

const nameOf = (pass: AnyPass): string => (pass instanceof PassBase ? pass.constructor.name : pass.name)

/** Runs passes over a module. */
export class PassManager {
  passes: AnyPass[]
  readonly constraints: PassConstraint[]
  readonly #checks: PassCheck[] = []
  readonly #steps: number
  readonly #checkEach: boolean
  #solved = false

  constructor(options: PassManagerOptions = {}) {
    this.passes = [...(options.passes ?? [])]
    this.constraints = [...(options.constraints ?? [])]
    this.#steps = options.steps ?? 1
    this.#checkEach = options.runChecksAfterEachPass ?? false
    if (!Number.isInteger(this.#steps) || this.#steps < 1)
      throw new ArgumentError(`PassManager: option 'steps' must be a whole number of at least 1, got ${String(options.steps)}.`)
  }

  addPass(pass: AnyPass): void {
    this.passes.push(pass)
    this.#solved = false
  }

  addConstraint(constraint: PassConstraint): void {
    this.constraints.push(constraint)
    this.#solved = false
  }

  /** A check that runs before the passes (and after each, if asked for). It takes the module and nothing else. */
  addChecks(check: PassCheck): void {
    if (typeof check !== 'function' || check.length !== 1)
      throw new ArgumentError('PassManager check function should only take in one variable, a module')
    this.#checks.push(check)
  }

  /** Throws GraphError when the present order breaks a constraint. */
  validateConstraints(): void {
    this.passes.forEach((a, i) => {
      this.passes.slice(i + 1).forEach((b, k) => {
        if (this.constraints.every((constraint) => constraint(a, b))) return
        throw new GraphError(
          `pass schedule constraint violated. Expected ${nameOf(b)} before ${nameOf(a)} but found ${nameOf(a)} at index ${i} and ${nameOf(b)} at index ${i + 1 + k} in pass list.`,
        )
      })
    })
  }

  /** Brings the passes into an order that breaks no constraint. Throws GraphError when there is none. */
  solveConstraints(): void {
    this.passes = this.constraints.length === 0 ? this.passes : sorted(this.passes, this.constraints)
    this.#solved = true
  }

  /** Runs the passes. The result says whether any of them changed something. */
  run(gm: GraphModule): PassResult {
    if (!this.#solved) this.solveConstraints()
    this.#check(gm)
    let module = gm
    let changed = false
    for (let step = 0; step < this.#steps; step++) {
      let modified = false
      this.passes.forEach((pass, i) => {
        const result = this.#runOne(pass, i, module)
        module = result.graphModule
        modified ||= result.modified
      })
      changed ||= modified
      if (!modified) break
    }
    return new PassResult(module, changed)
  }

  #runOne(pass: AnyPass, index: number, gm: GraphModule): PassResult {
    try {
      const result = pass instanceof PassBase ? pass.run(gm) : pass(gm)
      if (!(result instanceof PassResult))
        throw new ArgumentError(`The result of the pass ${nameOf(pass)} should be type PassResult. Please wrap it with passResultWrapper()`)
      result.graphModule.recompile()
      if (this.#checkEach) this.#check(result.graphModule)
      return result
    } catch (error) {
      const before = this.passes.slice(0, index).map(nameOf)
      const message = `An error occurred when running the '${nameOf(pass)}' pass after the following passes: [${before.join(', ')}]`
      throw new GraphError(`${message}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
    }
  }

  #check(gm: GraphModule): void {
    for (const check of this.#checks) check(gm)
  }
}

function sorted(passes: readonly AnyPass[], constraints: readonly PassConstraint[]): AnyPass[] {
  const after = new Map<AnyPass, AnyPass[]>(passes.map((p) => [p, []]))
  const waiting = new Map<AnyPass, number>(passes.map((p) => [p, 0]))
  for (const a of passes)
    for (const b of passes)
      for (const constraint of constraints) {
        if (a === b || constraint(a, b)) continue
        after.get(b)?.push(a)
        waiting.set(a, (waiting.get(a) as number) + 1)
      }
  const order = passes.filter((p) => waiting.get(p) === 0)
  for (let i = 0; i < order.length; i++)
    for (const next of after.get(order[i] as AnyPass) ?? []) {
      const left = (waiting.get(next) as number) - 1
      waiting.set(next, left)
      if (left === 0) order.push(next)
    }
  const circle = passes.filter((p) => waiting.get(p) !== 0)
  if (circle.length > 0) throw new GraphError(`Circular dependency detected within the following passes: [${circle.map(nameOf).join(', ')}]`)
  return order
}
