// Runs an operator as the operators that it is composed of. What they find wrong is said of the operator that was called, which is the one that the program's author knows.
import { ArgumentError, DTypeError, ShapeError } from '../errors/index.ts'
import type { Arg, Result } from './op.ts'

/** Calls a decomposition of the operator `qualname`. */
export function decomposed(qualname: string, decompose: (...args: readonly Arg[]) => Result, args: readonly Arg[]): Result {
  try {
    return decompose(...args)
  } catch (error) {
    if (error instanceof ShapeError || error instanceof ArgumentError || error instanceof DTypeError) rename(error, qualname)
    throw error
  }
}

/** `torch.amax: dim 4 …` becomes `torch.softmax: dim 4 …`. */
function rename(error: Error, qualname: string): void {
  const said = error.message
  error.message = said.replace(/^torch(?:\.\w+)+(?=: | \()/, qualname)
  // The stack was written with the first message.
  if (error.message !== said && error.stack !== undefined) error.stack = error.stack.replace(said, () => error.message)
}
