// Every error that tensorfx throws is one of these classes: a stable `code`, and a message that says what happened, where, and what to do.
// Rooms add their own subclasses next to the code that throws them; this file holds the base and the classes that several rooms share.

/** Base class of every error thrown by tensorfx. `code` is stable across versions and safe to match on. */
export class TensorfxError extends Error {
  readonly code: string

  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = new.target.name
    this.code = code
  }
}

/** A user error: a bad argument. The message names the operator or function, the argument, what was wrong and what to do. */
export class ArgumentError extends TensorfxError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('TFX_ARGUMENT', message, options)
  }
}

/** A user error: shapes that do not fit. The message names the operator, the argument and both shapes. */
export class ShapeError extends TensorfxError {
  constructor(message: string) {
    super('TFX_SHAPE', message)
  }
}

/** A user error: dtypes that do not fit. The message names the operator, the argument and both dtypes. */
export class DTypeError extends TensorfxError {
  constructor(message: string) {
    super('TFX_DTYPE', message)
  }
}

/** Something that tensorfx does not do, on purpose or not yet; the message says which and what to use instead. */
export class UnsupportedError extends TensorfxError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('TFX_UNSUPPORTED', message, options)
  }
}

/** A bug in tensorfx: an invariant did not hold. */
export class InternalError extends TensorfxError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('TFX_INTERNAL', `${message} (this is a bug in tensorfx, please report it)`, options)
  }
}
