// PassListManager: runs a list of functions one after the other, in an order that satisfies constraints. PyTorch's torch.fx.passes.pass_manager, which is older than
// torch.fx.passes.infra.pass_manager (passManager.ts here): a pass is any function, and nothing is repeated or linted.
import { checkArgument, checkArray, checkCallable, checkCount, isObject, withName } from '../../../protocol/index.ts'
import { ArgumentError } from '../../../errors/index.ts'
import { checkOrder } from './passManager.ts'

/** A pass of a {@link PassListManager}: takes a value and returns it or another one. */
export type ListedPass<T> = (value: T) => T

/** Whether `a` may run before `b`. */
export type ListedPassConstraint<T> = (a: ListedPass<T>, b: ListedPass<T>) => boolean

/** What the wrappers below wrap. */
const wrapped = new WeakMap<object, object>()

/** Gives a wrapper the name of what it wraps, and notes what that is. */
function wrapping<W extends object>(wrapper: W, base: { readonly name: string }): W {
  wrapped.set(wrapper, base)
  return withName(wrapper, base.name)
}

/** The function inside all wrappers. */
function unwrap(pass: object): object {
  let inner = pass
  for (let next = wrapped.get(inner); next !== undefined; next = wrapped.get(inner)) inner = next
  return inner
}

/** Makes a pass of a function that changes its first argument and returns something else. PyTorch's inplace_wrapper. */
export function inplaceWrapper<T, R extends readonly unknown[]>(fn: (value: T, ...rest: R) => unknown): (value: T, ...rest: R) => T {
  checkCount('inplaceWrapper', arguments, 1)
  checkCallable('inplaceWrapper', 'fn', fn)
  const pass = (value: T, ...rest: R): T => {
    fn(value, ...rest)
    return value
  }
  return wrapping(pass, fn)
}

/** A pass that logs what it returned. `log` gets the text; default console.info. PyTorch's log_hook, which takes a level instead. */
export function logHook<T>(pass: ListedPass<T>, log: (text: string) => void = (text) => console.info(text)): ListedPass<T> {
  checkCount('logHook', arguments, 2)
  checkCallable('logHook', 'pass', pass)
  const logged = (value: T): T => {
    const result = pass(value)
    log(`Ran pass ${pass.name}\t Return value: ${String(result)}`)
    return result
  }
  return wrapping(logged, pass)
}

/**
 * A pass that runs `pass` `nIter` times, or as long as `predicate` of the value is true. PyTorch's loop_pass.
 * @throws ArgumentError unless exactly one of them is given, and, when it runs, for an `nIter` that is not a whole number above 0.
 */
export function loopPass<T>(pass: ListedPass<T>, options: { readonly nIter?: number; readonly predicate?: (value: T) => boolean }): ListedPass<T> {
  checkCount('loopPass', arguments, 2)
  checkCallable('loopPass', 'pass', pass)
  checkArgument(isObject(options), 'loopPass', 'options', 'an object such as { nIter: 3 }', options)
  const { nIter, predicate } = options
  if ((nIter === undefined) === (predicate === undefined))
    throw new ArgumentError('loopPass: exactly one of the options nIter and predicate must be given.')
  const looped = (value: T): T => {
    let result = value
    if (predicate !== undefined) {
      while (predicate(result)) result = pass(result)
      return result
    }
    if (nIter === undefined || !Number.isInteger(nIter) || nIter < 1)
      throw new ArgumentError(`loop_pass must be given positive int n_iter (given ${String(nIter)}) xor predicate (given None)`)
    for (let i = 0; i < nIter; i++) result = pass(result)
    return result
  }
  return wrapping(looped, pass)
}

/** The constraint that `these` runs before `those`, also inside the wrappers of this file. PyTorch's these_before_those_pass_constraint. */
export const theseBeforeThosePassConstraint =
  <T>(these: ListedPass<T>, those: ListedPass<T>): ListedPassConstraint<T> =>
  (a, b) =>
    unwrap(a) !== unwrap(those) || unwrap(b) !== unwrap(these)

/**
 * Runs a list of functions, each on the result of the one before it. PyTorch's torch.fx.passes.pass_manager.PassManager.
 *
 *     const manager = new PassListManager([double, increment], [thisBeforeThatPassConstraint(double, increment)])
 *     manager.run(5)
 */
export class PassListManager<T> {
  readonly passes: ListedPass<T>[]
  readonly constraints: ListedPassConstraint<T>[]
  #validated = false

  constructor(passes: readonly ListedPass<T>[] = [], constraints: readonly ListedPassConstraint<T>[] = []) {
    checkCount('PassListManager', arguments, 2)
    checkArray('PassListManager', 'passes', passes)
    checkArray('PassListManager', 'constraints', constraints)
    this.passes = [...passes]
    this.constraints = [...constraints]
  }

  /** A manager for these passes. PyTorch's build_from_passlist. */
  static buildFromPasslist<T>(passes: readonly ListedPass<T>[]): PassListManager<T> {
    checkCount('buildFromPasslist', arguments, 1)
    return new PassListManager(passes)
  }

  /** Adds a pass to the end of the list. */
  addPass(pass: ListedPass<T>): void {
    this.passes.push(pass)
    this.#validated = false
  }

  /** Adds a constraint on the order of passes. */
  addConstraint(constraint: ListedPassConstraint<T>): void {
    this.constraints.push(constraint)
    this.#validated = false
  }

  /** Removes the passes with these names; null removes none. PyTorch's remove_pass. */
  removePass(names: readonly string[] | null): void {
    if (names === null) return
    const unwanted = new Set(names)
    this.passes.splice(0, Infinity, ...this.passes.filter((pass) => !unwanted.has(pass.name)))
    this.#validated = false
  }

  /** Replaces the passes that have the name of `target`. PyTorch's replace_pass. */
  replacePass(target: ListedPass<T>, replacement: ListedPass<T>): void {
    this.passes.splice(0, Infinity, ...this.passes.map((pass) => (pass.name === target.name ? replacement : pass)))
    this.#validated = false
  }

  /** Checks every constraint, unless that was done since the last change. @throws GraphError if the order violates one. */
  validate(): void {
    if (this.#validated) return
    checkOrder(this.passes, this.constraints, (pass) => pass.name)
    this.#validated = true
  }

  /** Runs the passes. PyTorch's __call__. @throws GraphError if the order violates a constraint. */
  run(value: T): T {
    this.validate()
    return this.passes.reduce((result, pass) => pass(result), value)
  }
}
