// Errors of compile.
import { TensorfxError } from '../../errors/index.ts'
import { nearest, valueText } from '../../protocol/index.ts'
import type { BreakReason } from './breaks.ts'

/** What the debugger attaches to an error for which it wrote a script, or could not. */
export interface Dumped {
  readonly minifierPath: string | null
  /** Why there is no script. */
  readonly dumpProblem: string | null
}

function dumpedFor(cause: unknown): Dumped {
  const text = (key: keyof Dumped): string | null => {
    const value: unknown = cause instanceof Error ? Reflect.get(cause, key) : null
    return typeof value === 'string' ? value : null
  }
  return { minifierPath: text('minifierPath'), dumpProblem: text('dumpProblem') }
}

/** What a message says of the script. */
export function dumpText({ minifierPath, dumpProblem }: Dumped): string {
  if (minifierPath !== null)
    return `\nMinifier script written to ${minifierPath}. Run this script to find the smallest traced graph which reproduces this error.`
  if (dumpProblem !== null) return `\nThe script that reproduces this error could not be written: ${dumpProblem}`
  return '\nSet TENSORFX_REPRO_AFTER=dynamo (or aot) to get a script that reproduces this error.'
}

/**
 * A backend threw while it compiled a graph; `cause` is what it threw. PyTorch's BackendCompilerFailed.
 *
 * Fix: set `TENSORFX_REPRO_AFTER=dynamo` for a script that reproduces it, or use another backend (`{ backend: 'eager' }`) until it is repaired.
 */
export class BackendCompilerFailed extends TensorfxError {
  /** The script that the debugger wrote, or null. */
  readonly minifierPath: string | null

  constructor(backend: string, cause: unknown) {
    const inner = cause instanceof Error ? `${cause.name}: ${cause.message}` : typeof cause === 'string' ? cause : valueText(cause)
    const dumped = dumpedFor(cause)
    super(
      'TFX_BACKEND_COMPILER_FAILED',
      `backend='${backend}' raised:\n${inner}${dumpText(dumped)}\nTo fall back to eager instead, set config.suppressErrors = true.`,
      { cause },
    )
    this.minifierPath = dumped.minifierPath
  }
}

/** Backends of tensorfx that an entry of their own registers. */
const ELSEWHERE: ReadonlyMap<string, string> = new Map([['webgpu', "'tensorfx/webgpu'"]])

/**
 * The name of a backend that is not registered.
 *
 * Fix: use one of the names in the message, register yours with `registerBackend`, or pass the backend itself.
 */
export class InvalidBackend extends TensorfxError {
  constructor(name: string, known: readonly string[]) {
    const near = nearest(name, known)
    const module = ELSEWHERE.get(name)
    const meant = near === null ? '' : ` Did you mean '${near}'?`
    const hint = module === undefined ? meant : ` Import ${module} first, which registers it.`
    super(
      'TFX_INVALID_BACKEND',
      `Invalid backend: '${name}'.${hint} Registered are ${known.join(', ')}. Register your own with registerBackend(name, fn).`,
    )
  }
}

/**
 * `compile(fn, { fullgraph: true })` met a graph break.
 *
 * Fix: move the read that the message shows out of the function, or compile without `fullgraph`.
 */
export class FullGraphError extends TensorfxError {
  constructor(reason: BreakReason) {
    super(
      'TFX_FULLGRAPH',
      `graph break in a function compiled with fullgraph: ${reason.reason}\n${String(reason.userStack)}Move the read out of the function, or compile without fullgraph.`,
    )
  }
}

/**
 * A tensor left a compiled function in a way that compile cannot see, and can no longer be computed.
 *
 * Fix: return the tensor from the compiled function.
 */
export class EscapedTensorError extends TensorfxError {
  constructor(shape: readonly number[]) {
    super(
      'TFX_ESCAPED',
      `a tensor of shape [${shape.join(', ')}] was made inside a compiled function and kept outside of it, and the tensors that it was computed from have been modified since. Return it from the function. (From the next call on its value is kept.)`,
    )
  }
}
