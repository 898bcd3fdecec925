// The generated types of operators: src/ops/generated/signatures.ts, the functions of those whose schema says all, and src/ops/generated/methods.ts, the methods of
// Tensor. A call form that says more than the schema (several forms, texts of a fixed set, `view(2, 3)`) is the type that the constant is declared with.
import { readFileSync } from 'node:fs'
import { asMethod, signatureOf, signaturesIn, typeNamesIn } from './signatures.mjs'

/** How an operator is called, by its schema or by the type that its constant is declared with. */
function signatureFor(op) {
  return op.type === null ? signatureOf(op) : { calls: signaturesIn(op.type, typesOf(op)), interfaces: [] }
}

/** The text in which the types of an operator's file are declared: its own, and those of the file that it imports its type from. */
function typesOf({ type, file }) {
  const text = readFileSync(file, 'utf8')
  const name = /^\w+/.exec(type)?.[0]
  const from = name === undefined ? undefined : importsOf(text).get(name)
  return from === undefined ? text : readFileSync(new URL(from, `file://${file}`), 'utf8')
}

/** Where a file imports names from. */
const importsOf = (text) =>
  new Map(
    [...text.matchAll(/^import (?:type )?\{(.*?)\} from '(.*?)'/gms)].flatMap(([, names, from]) =>
      names.split(',').map((name) => [name.trim(), from]),
    ),
  )

const called = ({ parameters, result }) => `(${parameters.join(', ')}) => ${result}`

/** The functions of the operators whose constants are declared as `Op['name']`. */
export function signaturesText(operators) {
  const own = operators.filter((op) => op.type === null).map((op) => ({ ...op, ...signatureFor(op) }))
  return [
    '// How operators are called, by the names of their constants, from their schemas.',
    "import type { DType } from '../../kernels/index.ts'",
    "import type { Size } from '../../protocol/index.ts'",
    "import type { ComplexNumber, Generator, Tensor } from '../../tensor/index.ts'",
    "import type { OpFunction } from '../define/declaration.ts'",
    '',
    ...own.flatMap(({ constant, interfaces }) => interfaces.map((text) => `/** The options of {@link Op.${constant}}. */\n${text}`)),
    '',
    'export interface Op {',
    ...own.map(({ constant, calls: [call] }) => `  readonly ${constant}: OpFunction<${called(call)}>`),
    '}',
  ]
}

/** The first paragraph of a doc comment, as a line. */
const summaryOf = (doc) =>
  doc
    .replaceAll(/^ *\* ?/gm, '')
    .trim()
    .split('\n\n')[0]
    .replaceAll('\n', ' ')

/**
 * The methods of Tensor. `forms` are the in-place forms, `aliases` the other names of operators: both with the operator that they stand for as `of`.
 * `pathTo` gives the import path of a file.
 */
export function methodsText(operators, forms, aliases, pathTo) {
  const imports = new Map([
    ['Tensor', '../../tensor/index.ts'],
    ['DType', '../../kernels/index.ts'],
    ['Generator', '../../tensor/index.ts'],
    ['ComplexNumber', '../../tensor/index.ts'],
    ['Size', '../../protocol/index.ts'],
  ])
  const methods = [
    ...operators.filter((op) => op.method).map((op) => ({ name: op.name, doc: summaryOf(op.doc), of: op })),
    ...forms.map(({ name, of }) => ({
      name,
      doc: `\`torch.${of.name}\`, written into this tensor. PyTorch's \`Tensor.${name}\`.`,
      of,
      result: 'Tensor',
    })),
    ...aliases.map(({ name, of }) => ({ name, doc: `Another name of \`${of.name}\`: ${summaryOf(of.doc)}`, of })),
  ]
  const lines = methods.flatMap(({ name, doc, of, result }) => {
    const { calls } = signatureFor(of)
    return calls.map(asMethod).map((call) => {
      const text = `${name}(${call.parameters.join(', ')}): ${result ?? call.result}`
      for (const type of typeNamesIn(text)) addImport(imports, type, of, pathTo)
      return `    /** ${doc} */\n    ${text}`
    })
  })
  const paths = [...new Set(imports.values())].sort()
  return [
    '// The methods of Tensor that operators have.',
    ...paths.map((path) => `import type { ${[...imports].flatMap(([name, from]) => (from === path ? [name] : [])).join(', ')} } from '${path}'`),
    '',
    "declare module '../../tensor/tensor.ts' {",
    '  interface Tensor {',
    ...lines,
    '  }',
    '}',
  ]
}

/** Types of TypeScript itself that signatures use. */
const BUILT_IN = new Set(['Exclude', 'Omit', 'Pick'])

function addImport(imports, type, op, pathTo) {
  if (BUILT_IN.has(type) || imports.has(type)) return
  if (op.type === null) {
    imports.set(type, './signatures.ts')
    return
  }
  const text = readFileSync(op.file, 'utf8')
  const from = importsOf(text).get(type)
  if (from !== undefined) imports.set(type, pathTo(new URL(from, `file://${op.file}`).pathname))
  else if (new RegExp(`^export (?:interface|type) ${type}\\b`, 'm').test(text)) imports.set(type, pathTo(op.file))
  else throw new Error(`${op.file}: the method of ${op.constant} uses the type ${type}, which is not exported from there. Export it.`)
}
