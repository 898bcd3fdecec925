// Errors from graphs say which node was running, and where in the user's program it came from.
import { codeFrame, parseStack } from '../provenance/index.ts'
import type { GeneratedCode } from './generatedCode.ts'
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

/** A line of generated code in a stack: its number (from 1), and whether no code of the user stands above it. */
interface FailedLine {
  readonly line: number
  readonly isInnermost: boolean
}

/** Where generated code with that file name was when an error with this stack was made; null when it is not in the stack. */
export function failedLine(stack: string, file: string, code: GeneratedCode): FailedLine | null {
  const at = stack.indexOf(`${file}:`)
  if (at >= 0) {
    const line = Number.parseInt(stack.slice(at + file.length + 1), 10)
    return { line, isInnermost: parseStack(stack.slice(0, at)).length === 0 }
  }
  // Node with --enable-source-maps shows the user's line in place of the generated one, above the call in graphModule.ts.
  const lines = stack.split('\n')
  const caller = lines.findIndex((line) => /GraphModule\.forward .*[\\/]fx[\\/]graphModule\.[jt]s/.test(line))
  const [shown] = parseStack(lines[caller - 1] ?? '')
  if (shown === undefined) return null
  for (const [line, node] of code.lineMap) {
    const origin = originOf(node)
    if (origin !== null && origin.file === shown.file && origin.line === shown.line && origin.column === shown.column)
      return { line, isInnermost: parseStack(lines.slice(0, caller - 1).join('\n')).length === 0 }
  }
  return null
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
