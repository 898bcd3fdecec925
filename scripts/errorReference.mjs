// npm run docs:errors: writes docs/errors.md from the error classes: the code and the message's beginning from the constructor, the meaning and the fix from the doc
// comment, and where to import the class from the public surface. A test compares the page with the sources.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parse } from '@babel/parser'

const root = fileURLToPath(new URL('..', import.meta.url))
const BASE = 'TensorfxError'

/** The text of a doc comment: the lines of a paragraph joined, the paragraphs apart. */
const paragraphs = (comment) =>
  comment
    .split('\n')
    .map((line) => line.replace(/^\s*\*? ?/, '').trim())
    .join('\n')
    .split(/\n\n+/)
    .map((text) => text.replaceAll('\n', ' ').replace(/^\*/, '').trim())
    .filter((text) => text !== '')

/** The first argument of the call of super in a class, if it is a string; otherwise null. */
function codeOf(body) {
  const constructor = body.find((member) => member.kind === 'constructor')
  for (const { expression } of constructor?.body.body ?? [])
    if (expression?.type === 'CallExpression' && expression.callee.type === 'Super' && expression.arguments[0]?.type === 'StringLiteral')
      return expression.arguments[0].value
  return null
}

/** Every error class of the sources, in the order of their codes. A meaning or fix that the comment lacks is null. */
export function errorClasses() {
  const surface = join(root, 'test/goldens/public-surface')
  // The front door has most of them, and comes first.
  const entries = ['tensorfx.txt', ...readdirSync(surface).filter((file) => file !== 'tensorfx.txt')].map((file) => [
    file.replace(/\.txt$/, '').replaceAll('.', '/'),
    readFileSync(join(surface, file), 'utf8').split('\n'),
  ])
  const found = []
  for (const name of readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((n) => n.endsWith('.ts'))) {
    const text = readFileSync(join(root, 'src', name), 'utf8')
    if (!text.includes(`extends ${BASE}`)) continue
    for (const statement of parse(text, { sourceType: 'module', plugins: ['typescript'] }).program.body) {
      const { declaration } = statement
      if (declaration?.type !== 'ClassDeclaration' || declaration.superClass?.name !== BASE) continue
      const doc = paragraphs(statement.leadingComments?.at(-1)?.value ?? '')
      const [meaning = null] = doc
      const fix = doc.find((text) => text.startsWith('Fix: '))?.slice('Fix: '.length) ?? null
      const className = declaration.id.name
      const from = entries.find(([, lines]) => lines.includes(`class ${className} extends ${BASE}`))?.[0] ?? null
      found.push({ name: className, code: codeOf(declaration.body.body), meaning, fix, from, file: `src/${name}` })
    }
  }
  return found.toSorted((a, b) => (String(a.code) < String(b.code) ? -1 : 1))
}

/** The text of docs/errors.md. */
export function errorPage() {
  const sentence = (text) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
  const sections = errorClasses().map(
    ({ name, code, meaning, fix, from }) => `## ${code}

\`${name}\`, from \`${from}\`. ${meaning}

**Fix.** ${sentence(fix)}
`,
  )
  return `# Errors

Every error that tensorfx throws is a \`${BASE}\`. Its \`code\` does not change between versions, and \`page\` leads to its section of this page; Node prints both below the stack. \`stack\` begins with the code around your line
and your frames; those of tensorfx follow. The message says what was wrong, with the value
and what to do. This page says for each code what it means in general. It is written by \`npm run docs:errors\` from the classes.

\`\`\`ts
import { TensorfxError, torch } from 'tensorfx'

try {
  torch.ones([2, 3]).matmul(torch.ones([2, 3]))
} catch (error) {
  if (error instanceof TensorfxError) console.log(error.code) // TFX_SHAPE
}
\`\`\`

${sections.join('\n')}`
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) writeFileSync(join(root, 'docs/errors.md'), errorPage())
