// `tensorfx ops`: the operators, and what PyTorch has that tensorfx lacks.
import { ArgumentError } from '../errors/index.ts'
import { installTensors } from '../install/tensors.ts'
import { coreOperators } from './coreAten.ts'
import type { Line, Result } from './line.ts'
import { missingNames } from './missingNames.ts'
import { operatorRows } from './operatorTable.ts'
import { PLAIN, aligned } from './terminal.ts'
import type { Terminal } from './terminal.ts'
import { withoutShapeRule } from './withoutShapeRule.ts'

/** The operator table, a line for each operator whose name contains `text`. */
function operatorTable(text: string, terminal: Terminal): Result {
  const rows = operatorRows().filter(({ name, torchName }) => name.includes(text) || torchName.includes(text))
  const head = ['operator', 'in PyTorch', 'how', 'gradient', 'compiled', 'dtypes', 'schema']
  const cells = rows.map((row) => [row.name, row.torchName, row.how, row.gradient, row.compiled, row.dtypes, row.schema])
  return { text: [...aligned([head, ...cells], terminal), `${rows.length} operators`].join('\n'), code: 0, data: rows }
}

/** What torch, its tensors and core ATen have that tensorfx lacks. */
function missingOperators(terminal: Terminal): Result {
  const operators = coreOperators()
  const missing = operators.filter(({ here }) => here === null)
  const names = missingNames()
  const rows = [...names, ...missing.map(({ aten, reason }) => ({ name: `aten.${aten}`, reason: reason ?? 'not written yet' }))]
  const lines = aligned(
    rows.map(({ name, reason }) => [name, reason]),
    terminal,
  )
  const text = [
    ...lines,
    `${names.length} functions of torch and methods of its tensors`,
    `${missing.length} of the ${operators.length} operators of core ATen`,
  ].join('\n')
  return { text, code: 0, data: rows }
}

/** The operators that a trace with symbolic sizes refuses. */
function symbolicOperators(): Result {
  const text = [...withoutShapeRule, `${withoutShapeRule.length} operators have no rule for symbolic sizes`].join('\n')
  return { text, code: 0, data: withoutShapeRule.map((name) => ({ name })) }
}

/** Runs `tensorfx ops`. */
export function listOperators({ operands, options }: Line, terminal: Terminal = PLAIN): Result {
  if (operands.length > 1) throw new ArgumentError(`expected one text, got ${operands.length}.`)
  installTensors()
  if (options.has('--symbolic')) return symbolicOperators()
  return options.has('--missing') ? missingOperators(terminal) : operatorTable(operands[0] ?? '', terminal)
}
