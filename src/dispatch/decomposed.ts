// Runs an operator as the operators that it is composed of. What they find wrong is said of the operator that was called, which is the one that the program's author knows.
import { ArgumentError, DTypeError, ShapeError, UnsupportedError } from '../errors/index.ts'
import { allocating } from '../kernels/index.ts'
import { observed } from './observed.ts'
import type { OperatorObserver } from './observed.ts'
import { NumbersNeeded } from '../tensor/index.ts'
import type { Arg, Result } from './op.ts'

/** The error of an operator that read numbers of a tensor whose sizes are symbols. */
export const withoutShapeRule = (qualname: string, cause: NumbersNeeded): UnsupportedError =>
  new UnsupportedError(`${qualname} has no rule for symbolic sizes yet (see npx tensorfx ops --symbolic): trace it with sizes that are numbers.`, {
    cause,
  })

/** Calls a decomposition of the operator `qualname`. */
export function decomposed(qualname: string, decompose: (...args: readonly Arg[]) => Result, args: readonly Arg[]): Result {
  const outer = allocating.composite
  allocating.composite = outer ?? qualname
  try {
    const { observer } = observed
    return observer === null ? decompose(...args) : callObserved(observer, qualname, decompose, args)
  } catch (error) {
    if (error instanceof NumbersNeeded) throw withoutShapeRule(qualname, error)
    if (error instanceof ShapeError || error instanceof ArgumentError || error instanceof DTypeError)
      error.message = error.message.replace(/^torch(?:\.\w+)+(?=: | \()/, qualname) // `torch.amax: dim 4 …` becomes `torch.softmax: dim 4 …`.
    throw error
  } finally {
    allocating.composite = outer
  }
}

function callObserved(observer: OperatorObserver, qualname: string, decompose: (...args: readonly Arg[]) => Result, args: readonly Arg[]): Result {
  observer.beginComposite(qualname)
  try {
    return decompose(...args)
  } finally {
    observer.endComposite()
  }
}
