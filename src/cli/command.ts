// What the `tensorfx` command prints, by its arguments.
import { VERSION } from '../version.ts'
import { nearest } from '../protocol/index.ts'
import { coreOperators } from './coreAten.ts'
import { operatorRows } from './operatorTable.ts'

const USAGE = `tensorfx ${VERSION}
usage: tensorfx ops [text]     lists the operators whose name, here or in PyTorch, contains the text
       tensorfx ops --missing  lists the operators of PyTorch's core ATen that tensorfx lacks, and why
       tensorfx compare FOLDER --backends A,B   runs a saved graph node by node on several backends (--help lists the options)
       tensorfx minify MODEL --run COMMAND   shrinks a saved graph while a command fails (--help lists the options)
       tensorfx repro pack|run FILE   a failing graph as one file that can be sent, and its run (--help lists the options)
       tensorfx --version`

/** The words that a command begins with. */
const COMMANDS = ['ops', 'compare', 'minify', 'repro', '--version', '--help']

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

/** What core ATen has that tensorfx lacks. */
function missingOperators(): string {
  const operators = coreOperators()
  const missing = operators.filter(({ here }) => here === null)
  const lines = aligned(missing.map(({ aten, reason }) => [`aten.${aten}`, reason ?? 'not written yet']))
  return [...lines, `${missing.length} of the ${operators.length} operators of core ATen`].join('\n')
}

/** Runs the command: what it prints, and its exit code. */
export function runCommand(words: readonly string[]): { readonly text: string; readonly code: number } {
  const [command, argument] = words
  if (command === 'ops' && argument === '--missing') return { text: missingOperators(), code: 0 }
  if (command === 'ops' && !argument?.startsWith('--')) return { text: operatorTable(argument ?? ''), code: 0 }
  if (command === '--version') return { text: VERSION, code: 0 }
  if (command === undefined || command === '--help' || command === '-h') return { text: USAGE, code: 0 }
  const unknown = command === 'ops' ? argument : command
  const near = nearest(unknown ?? '', command === 'ops' ? ['--missing'] : COMMANDS)
  return { text: `unknown command '${words.join(' ')}'.${near === null ? '' : ` Did you mean '${near}'?`}\n${USAGE}`, code: 1 }
}
