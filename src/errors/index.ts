// The errors of tensorfx. Each has a stable `code`, and a message that says what happened, where, and what to do. Rooms define subclasses next to the code that throws
// them; this file has the base class and the classes that several rooms share.

import { recordStack } from './stack.ts'

export { DEEP, host, recordedStack, setStackText } from './stack.ts'

/**
 * The base class of all errors that tensorfx throws. `code` does not change between versions, so programs can compare it. `stack` shows the code around the
 * program's innermost line and the program's frames; those of tensorfx follow. `page` is where the package says what the code means and how to mend it; Node prints both
 * below the stack.
 */
export class TensorfxError extends Error {
  readonly code: string
  readonly page: string

  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = new.target.name
    this.code = code
    this.page = `tensorfx/docs/errors.md#${code.toLowerCase()}`
    recordStack(this, new.target)
  }
}

/**
 * An invalid argument. The message names the function, the argument, its value and what to pass instead.
 *
 * Fix: pass what the message names. If the argument comes from elsewhere, print it before the call.
 */
export class ArgumentError extends TensorfxError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('TFX_ARGUMENT', message, options)
  }
}

/**
 * A name that does not exist, such as `torch.zeros_like` for `torch.zerosLike`. The message names what to write instead.
 *
 * Fix: write the name that the message gives. `'name' in object` tests for a name without an error.
 */
export class UnknownNameError extends TensorfxError {
  constructor(message: string) {
    super('TFX_UNKNOWN_NAME', message)
  }
}

/**
 * Shapes that do not match. The message names the operator, the argument and both shapes.
 *
 * Fix: print `x.shape` before the call, and bring the shapes together with `reshape`, `unsqueeze`, `expand` or `transpose`.
 */
export class ShapeError extends TensorfxError {
  constructor(message: string) {
    super('TFX_SHAPE', message)
  }
}

/**
 * Dtypes that do not match. The message names the operator, the argument and both dtypes.
 *
 * Fix: convert one of the tensors, `x.to('float32')`, or create it with the `dtype` option.
 */
export class DTypeError extends TensorfxError {
  constructor(message: string) {
    super('TFX_DTYPE', message)
  }
}

/**
 * `torch.testing.assertClose` found values that differ. The message says how many elements, by how much at most, and where.
 *
 * Fix: if the difference is only rounding, pass `rtol` and `atol`; otherwise look at the element that the message names.
 */
export class NotCloseError extends TensorfxError {
  constructor(message: string) {
    super('TFX_NOT_CLOSE', message)
  }
}

/**
 * Something that tensorfx does not support, by design or so far. The message says what to use instead.
 *
 * Fix: use what the message offers instead; docs/differences-from-pytorch.md lists what is different by design.
 */
export class UnsupportedError extends TensorfxError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('TFX_UNSUPPORTED', message, options)
  }
}

/**
 * A bug in tensorfx: an invariant was violated.
 *
 * Fix: nothing in your program is wrong. Report the message, its stack and the smallest program that shows it.
 */
export class InternalError extends TensorfxError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('TFX_INTERNAL', `${message} (this is a bug in tensorfx, please report it)`, options)
  }
}

/** What was thrown, as a sentence: the message of an error, and any other value as a string. */
export const messageOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown))

/** A value that cannot be missing here. Throws InternalError, which says `what` was expected, if it is. */
export function present<T>(value: T | null | undefined, what: string): T {
  if (value === undefined || value === null) throw new InternalError(`${what} is missing`)
  return value
}
