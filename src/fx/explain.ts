// Errors from graphs say which node was running, and where in the user's program it came from.
import { codeFrame } from '../provenance/index.ts'
import type { Node } from './node.ts'
import { modulePath, originOf } from './origin.ts'

/** Errors whose message already says where they came from: an error that passes through nested graphs is explained by the innermost. */
const explained = new WeakSet<Error>()

/** Claims an error for explanation: true the first time. */
export function claimError(error: unknown): error is Error {
  if (!(error instanceof Error) || explained.has(error)) return false
  explained.add(error)
  return true
}

/** Puts the node, the module's path and the user's line in front of an error's message; then `more`, if there is any. */
export function explainError(error: Error, node: Node, more: readonly string[] = []): void {
  const path = modulePath(node)
  const frame = originOf(node)
  const source = frame === null ? null : codeFrame(frame, 1)
  const lines = [
    `While executing ${node.formatNode()}${path === null || path === '' ? '' : ` in module '${path}'`}`,
    ...(frame === null ? [] : [`  from ${frame.file}:${frame.line} in ${frame.fn}`]),
    ...(source === null ? [] : [source.replace(/^/gm, '  ')]),
    ...more,
  ]
  setMessage(error, `${lines.join('\n')}\n${error.message}`)
}

/** The generated lines around the one (from 1) that failed, marked as PyTorch does. */
export function markLine(source: string, line: number): string[] {
  const lines = source.split('\n')
  return [
    `Call using an FX-traced Module, line ${line} of the traced Module's generated forward function:`,
    ...lines.slice(Math.max(0, line - 2), line),
    `${'~'.repeat(lines[line - 1]?.length ?? 0)}~~~ <--- HERE`,
    ...lines.slice(line, line + 2),
  ]
}

/** Sets the message also in the text that engines print, which was made when the error was. */
export function setMessage(error: Error, message: string): void {
  const before = error.message
  const stack = error.stack
  try {
    error.message = message
    if (stack !== undefined && before !== '' && stack.includes(before)) error.stack = stack.replace(before, () => message)
  } catch {
    // Some errors of the host (a DOMException) cannot be changed; they stay as they are.
  }
}
