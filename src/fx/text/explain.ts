// Adds to the message of an error which node was running and where in the user's program that node came from.
import { codeFrame, parseStack } from '../../provenance/index.ts'
import type { GeneratedCode } from '../graph/graphText.ts'
import type { Node } from '../graph/node.ts'
import { modulePath, originOf } from '../graph/origin.ts'

/** Errors that are already explained. An error that passes through nested graphs is explained only by the innermost one. */
const explained = new WeakSet<Error>()

/** Whether the caller should explain an error: true only the first time it is asked about that error. */
export function claimError(error: unknown): error is Error {
  if (!(error instanceof Error) || explained.has(error)) return false
  explained.add(error)
  return true
}

/** Puts the node, the module's path, the user's line and then `more` before the message of an error. */
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

/** A line of generated code in a stack trace: its number (from 1), and whether it is above all of the user's own frames. */
interface FailedLine {
  readonly line: number
  readonly isInnermost: boolean
}

/** The line of the generated code with that file name in the stack of an error; null if it is not in the stack. */
export function failedLine(stack: string, file: string, code: GeneratedCode): FailedLine | null {
  const at = stack.indexOf(`${file}:`)
  if (at >= 0) {
    const line = Number.parseInt(stack.slice(at + file.length + 1), 10)
    return { line, isInnermost: parseStack(stack.slice(0, at)).length === 0 }
  }
  // Node with --enable-source-maps shows the user's line instead of the generated one, above the call in graphModule.ts.
  const lines = stack.split('\n')
  const caller = lines.findIndex((line) => /GraphModule\.forward .*[\\/]fx[\\/]run[\\/]graphModule\.[jt]s/.test(line))
  const [shown] = parseStack(lines[caller - 1] ?? '')
  if (shown === undefined) return null
  for (const [line, node] of code.lineMap) {
    const origin = originOf(node)
    if (origin !== null && origin.file === shown.file && origin.line === shown.line && origin.column === shown.column)
      return { line, isInnermost: parseStack(lines.slice(0, caller - 1).join('\n')).length === 0 }
  }
  return null
}

/** The generated lines around the failed one (from 1), marked as in PyTorch. */
export function markLine(source: string, line: number): string[] {
  const lines = source.split('\n')
  return [
    `Call using an FX-traced Module, line ${line} of the traced Module's generated forward function:`,
    ...lines.slice(Math.max(0, line - 2), line),
    `${'~'.repeat(lines[line - 1]?.length ?? 0)}~~~ <--- HERE`,
    ...lines.slice(line, line + 2),
  ]
}

/** Sets the message, also in the stack text, which the engine made when the error was created. */
export function setMessage(error: Error, message: string): void {
  const before = error.message
  const stack = error.stack
  try {
    error.message = message
    if (stack !== undefined && before !== '' && stack.includes(before)) error.stack = stack.replace(before, () => message)
  } catch {
    // The properties of some host errors (DOMException) are read-only; these errors stay unchanged.
  }
}

/** Adds the node that an interpreter was running to the message of an error. */
export function explainInterpreted(error: unknown, node: Node): void {
  if (!claimError(error)) return
  const trace = node.stackTrace
  const original = trace === null ? '' : `\nOriginal traceback:\n${String(trace)}`
  setMessage(error, `${error.message}\n\nWhile executing ${node.formatNode()}${original}`)
}
