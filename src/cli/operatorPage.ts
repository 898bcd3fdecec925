// The text of docs/operators.md: the operator table, by namespace, and where the operators of core ATen are.
import type { OpDef } from '../dispatch/index.ts'
import { coreOperators } from './coreAten.ts'
import { DTYPE_WORDS, dtypesOf } from './operatorDtypes.ts'
import { operatorRows } from './operatorTable.ts'
import type { OperatorRow } from './operatorTable.ts'

const code = (text: string): string => `\`${text}\``

/** A table in Markdown. Its columns are aligned, as the formatter would. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows].map((row) => row.map((cell) => cell.replaceAll('|', '\\|')))
  const widths = head.map((_, column) => Math.max(3, ...all.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]): string => `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`
  const [first = [], ...rest] = all
  return [line(first), line(widths.map((width) => '-'.repeat(width))), ...rest.map(line)].join('\n')
}

const namespaceOf = ({ torchName }: OperatorRow): string => torchName.slice(0, torchName.lastIndexOf('.'))

const HEADINGS: Readonly<Record<string, string>> = {
  torch: 'torch',
  'torch.Tensor': 'Methods of tensors only',
  'torch.nn.functional': 'torch.nn.functional',
  'torch.linalg': 'torch.linalg',
  'torch.fft': 'torch.fft',
  'torch.special': 'torch.special',
  'torch.ops.tensorfx': 'Internal operators, which graphs of makeFx and compile show',
}

/** The text of the page. `dtypes` says what an operator takes. */
export function operatorPage(dtypes: (op: OpDef) => string = dtypesOf): string {
  const rows = operatorRows(dtypes).filter((row) => HEADINGS[namespaceOf(row)] !== undefined)
  const sections = Object.entries(HEADINGS).map(([namespace, heading]) => {
    const inside = rows.filter((row) => namespaceOf(row) === namespace).toSorted((a, b) => (a.name < b.name ? -1 : 1))
    const short = (name: string): string => code(name.slice(namespace.length + 1))
    const cells = inside.map((row) => [short(row.name), short(row.torchName), row.dtypes, row.gradient, row.how, row.compiled])
    return `## ${heading}\n\n${table(['operator', 'in PyTorch', 'dtypes', 'gradient', 'eager', 'compiled'], cells)}`
  })
  const core = coreOperators()
  const missing = core.filter(({ here }) => here === null)
  const renamed = core.filter(({ aten, here }) => here !== null && here.slice(here.lastIndexOf('.') + 1) !== aten)
  return `# Operators

The ${rows.length} operators of tensorfx. \`npx tensorfx ops\` prints this table with the schemas, \`npx tensorfx ops conv\` a part of it, and \`npm run docs:operators\` writes
this page. \`npm run site\` writes a page for each operator, with its arguments, errors, declaration, tests and an example.

- **dtypes**: what the operator takes: \`all\`, or ${Object.entries(DTYPE_WORDS)
    .map(([word, meaning]) => `\`${word}\` (${meaning})`)
    .join(', ')}.
- **gradient**: by a derivative of its own (\`yes\`), through the operators that it is made of, or none.
- **eager**: computed as one element for each element (\`pointwise\`), as a \`reduction\`, by a \`kernel\` of its own, as a \`view\`, or from other operators (\`composite\`).
- **compiled**: into loops with the operators around it (\`fused\`), by a kernel that takes pointwise operators after it (\`template\`), as the operators that it is made of
  (\`its parts\`), or by the \`eager kernel\`.

${sections.join('\n\n')}

## Core ATen

Core ATen is the set of ${core.length} operators to which PyTorch decomposes every model that it exports. \`npx tensorfx ops --missing\` lists what is not here, after the functions of torch and the methods of tensors that are missing:

${table(
  ['operator', 'why'],
  missing.map(({ aten, reason }) => [code(`aten.${aten}`), reason ?? 'not written yet']),
)}

These have another name here:

${table(
  ['operator', 'here'],
  renamed.map(({ aten, here }) => [code(`aten.${aten}`), code(here ?? '')]),
)}
`
}
