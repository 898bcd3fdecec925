// `tensorfx ops`: the operators, and what PyTorch has that tensorfx lacks.
import { ArgumentError } from '../errors/index.ts'
import { installTensors } from '../install/tensors.ts'
import { coreOperators } from './coreAten.ts'
import type { Line, Result } from './line.ts'
import { missingNames } from './missingNames.ts'
import { operatorRows } from './operatorTable.ts'

/** Rows of text under each other in columns. */
function aligned(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

/** The operator table, a line for each operator whose name contains `text`. */
function operatorTable(text: string): string {
  const rows = operatorRows().filter(({ name, torchName }) => name.includes(text) || torchName.includes(text))
  const head = ['operator', 'in PyTorch', 'how', 'gradient', 'compiled', 'dtypes', 'schema']
  const cells = rows.map((row) => [row.name, row.torchName, row.how, row.gradient, row.compiled, row.dtypes, row.schema])
  return [...aligned([head, ...cells]), `${rows.length} operators`].join('\n')
}

/** What torch, its tensors and core ATen have that tensorfx lacks. */
function missingOperators(): string {
  const operators = coreOperators()
  const missing = operators.filter(({ here }) => here === null)
  const names = missingNames()
  const lines = aligned([
    ...names.map(({ name, reason }) => [name, reason]),
    ...missing.map(({ aten, reason }) => [`aten.${aten}`, reason ?? 'not written yet']),
  ])
  return [
    ...lines,
    `${names.length} functions of torch and methods of its tensors`,
    `${missing.length} of the ${operators.length} operators of core ATen`,
  ].join('\n')
}

/** Runs `tensorfx ops`. */
export function listOperators({ operands, options }: Line): Result {
  if (operands.length > 1) throw new ArgumentError(`expected one text, got ${operands.length}.`)
  installTensors()
  return { text: options.has('--missing') ? missingOperators() : operatorTable(operands[0] ?? ''), code: 0 }
}
