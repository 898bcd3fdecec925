// Operators that write into their arguments, which a tracer may refuse to record.
import { effectsOf, targetInfo } from '../protocol/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import type { Opcode, Target } from './node.ts'
import { TraceError } from './traceError.ts'

/** Throws TraceError for a call that writes into its arguments. */
export function refuseMutation(op: Opcode, target: Target): void {
  const info = op === 'call_function' ? targetInfo(target) : undefined
  const method = op === 'call_method' && /[^_]_$/.test(target as string)
  if (!method && (op !== 'call_function' || effectsOf(target as TargetFunction) !== 'mutates')) return
  throw new TraceError(
    `Tried to trace mutable operation ${info?.schema?.text ?? info?.name ?? String(target)}. FX only supports functional code, so operations that mutate operands in-place (e.g. via \`out\` arguments) are not supported`,
    'Use the operator without the trailing underscore, or trace with checkMutableOperations = false.',
  )
}
