// Errors of compile.
import { TensorfxError } from '../errors/index.ts'
import { nearest } from '../protocol/index.ts'
import type { BreakReason } from './explain.ts'

/** The path that the debugger attached to an error, or null. */
function pathOf(cause: unknown): string | null {
  const path: unknown = cause instanceof Error ? Reflect.get(cause, 'minifierPath') : null
  return typeof path === 'string' ? path : null
}

/** A backend threw while it compiled a graph; `cause` is what it threw. PyTorch's BackendCompilerFailed. */
export class BackendCompilerFailed extends TensorfxError {
  /** The script that the debugger wrote, or null. */
  readonly minifierPath: string | null

  constructor(backend: string, cause: unknown) {
    const inner = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause)
    const path = pathOf(cause)
    const dumped =
      path === null
        ? '\nSet TENSORFX_REPRO_AFTER=dynamo (or aot) to get a script that reproduces this error.'
        : `\nMinifier script written to ${path}. Run this script to find the smallest traced graph which reproduces this error.`
    super(
      'TFX_BACKEND_COMPILER_FAILED',
      `backend='${backend}' raised:\n${inner}${dumped}\nTo fall back to eager instead, set config.suppressErrors = true.`,
      { cause },
    )
    this.minifierPath = path
  }
}

/** The name of a backend that is not registered. */
export class InvalidBackend extends TensorfxError {
  constructor(name: string, known: readonly string[]) {
    const near = nearest(name, known)
    const hint = near === null ? '' : ` Did you mean '${near}'?`
    super(
      'TFX_INVALID_BACKEND',
      `Invalid backend: '${name}'.${hint} Registered are ${known.join(', ')}. Register your own with registerBackend(name, fn).`,
    )
  }
}

/** compile(fn, { fullgraph: true }) met a graph break. */
export class FullGraphError extends TensorfxError {
  constructor(reason: BreakReason) {
    super(
      'TFX_FULLGRAPH',
      `graph break in a function compiled with fullgraph: ${reason.reason}\n${String(reason.userStack)}Move the read out of the function, or compile without fullgraph.`,
    )
  }
}

/** A tensor left a compiled function in a way that compile cannot see, and can no longer be computed. */
export class EscapedTensorError extends TensorfxError {
  constructor(shape: readonly number[]) {
    super(
      'TFX_ESCAPED',
      `a tensor of shape [${shape.join(', ')}] was made inside a compiled function and kept outside of it, and the tensors that it was computed from have been modified since. Return it from the function. (From the next call on its value is kept.)`,
    )
  }
}
