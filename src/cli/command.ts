// What the `tensorfx` command prints, by its arguments.
import type { OpDef } from '../dispatch/index.ts'
import { allOps } from '../ops/index.ts'
import { VERSION } from '../version.ts'

const USAGE = `tensorfx ${VERSION}
usage: tensorfx ops [text]   lists the operators whose name contains the text
       tensorfx --version`

/** What computes an operator. */
function implementationOf(op: OpDef): string {
  if (op.functional !== null) return 'in place'
  if (op.pointwise !== null) return 'pointwise'
  if (op.reduction !== null) return 'reduction'
  if (op.tags.has('view')) return 'view'
  return op.kernel !== null ? 'kernel' : 'composite'
}

/** Whether an operator has a gradient. */
function gradientOf(op: OpDef): string {
  if (op.derivative !== null || (op.functional !== null && op.functional.derivative !== null)) return 'yes'
  return implementationOf(op) === 'composite' ? 'through its parts' : 'no'
}

/** The operator table, a line for each operator whose qualified name contains `text`. */
function operatorTable(text: string): string {
  const ops = allOps().filter((op) => op.qualname.includes(text))
  const rows = [['operator', 'how', 'gradient', 'schema'], ...ops.map((op) => [op.qualname, implementationOf(op), gradientOf(op), op.schema.text])]
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const lines = rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
  return [...lines, `${ops.length} operators`].join('\n')
}

/** Runs the command: what it prints, and its exit code. */
export function runCommand(words: readonly string[]): { readonly text: string; readonly code: number } {
  const [command, argument] = words
  if (command === 'ops') return { text: operatorTable(argument ?? ''), code: 0 }
  if (command === '--version') return { text: VERSION, code: 0 }
  return { text: USAGE, code: command === undefined || command === '--help' ? 0 : 1 }
}
