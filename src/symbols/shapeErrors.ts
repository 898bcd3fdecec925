// The errors of shape environments.
import { ArgumentError, UnsupportedError } from '../errors/index.ts'

/**
 * What was promised of a size does not hold: a dimension that was marked as dynamic turned out to be one number, or the program needs more than the given range allows.
 *
 * Fix: the message lists the dimensions with what was found. Remove the mark, widen or narrow the range, or change the program at the line that needs the number.
 */
export class ConstraintViolationError extends ArgumentError {}

/**
 * The program asks for the value of a size that depends on data, while only its expression is known.
 *
 * Fix: state what is true of the size with `check`, or ask with `guardOrFalse`, `guardOrTrue` or `staticallyKnownTrue`, which do not need the value.
 */
export class GuardOnDataDependentError extends UnsupportedError {}
