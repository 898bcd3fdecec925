// npm run docs:api, before typedoc: writes docs/api/operators, from which each operator gets a page of its own. In the sources an operator is a constant, a function that
// also has its definition; for the reference it is declared again, with its comment, as a function. What this writes is not committed.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { findOperators } from './generateOps.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = join(root, 'docs/api/operators')

/** The namespaces whose operators are called as functions. Those of torch.Tensor are methods only, on its page. */
const NAMESPACES = ['torch', 'torch.nn.functional', 'torch.linalg', 'torch.special']

/** The declaration of an operator. `@function` makes typedoc show the constant as what it is called as; after an example it would be part of it. */
function declarationOf({ constant, name, doc, file }) {
  const path = relative(folder, file).replaceAll('\\', '/')
  const lines = doc.trimEnd().split('\n')
  const at = lines.findIndex((line) => /^\s*\*?\s*@/.test(line))
  lines.splice(at < 0 ? lines.length : at, 0, ' * @function')
  const type = `typeof import('${path}').${constant}`
  // `var` cannot be the name of a constant, but that of an export.
  const declaration =
    name === 'var' ? `declare const ${constant}: ${type}\nexport { ${constant} as ${name} }` : `export declare const ${name}: ${type}`
  return `/**${lines.join('\n')}\n */\n${declaration}`
}

/** The files by name. */
export function operatorPages() {
  const operators = findOperators()
  return new Map(
    NAMESPACES.map((namespace) => {
      const header = `// Written by scripts/operatorPages.mjs; not committed.\n/**\n * The operators of \`${namespace}\`, each with a page of its own.\n * @module operators of ${namespace}\n */`
      const declarations = operators.filter((op) => op.namespace === namespace).map(declarationOf)
      return [`${namespace}.ts`, `${[header, ...declarations].join('\n\n')}\n`]
    }),
  )
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const [name, text] of operatorPages()) writeFileSync(join(folder, name), text)
}
