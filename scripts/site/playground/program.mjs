// A program of the playground: TypeScript as the guides have it, made into a function that the worker can call. Types go, imports become properties of the package's entries, and what
// the program declares at its top is handed out, so that its graphs and models can be shown. Lines stay where they are.
import { parse } from 'acorn'
import MagicString from 'magic-string'
import { transform } from 'sucrase'

/** The names that a pattern declares. */
function namesIn(pattern) {
  switch (pattern.type) {
    case 'Identifier':
      return [pattern.name]
    case 'ObjectPattern':
      return pattern.properties.flatMap((one) => namesIn(one.type === 'RestElement' ? one.argument : one.value))
    case 'ArrayPattern':
      return pattern.elements.flatMap((one) => (one === null ? [] : namesIn(one)))
    case 'AssignmentPattern':
      return namesIn(pattern.left)
    case 'RestElement':
      return namesIn(pattern.argument)
    default:
      return []
  }
}

const declared = (statement) =>
  statement.type === 'VariableDeclaration'
    ? statement.declarations.flatMap(({ id }) => namesIn(id))
    : (statement.type === 'FunctionDeclaration' || statement.type === 'ClassDeclaration') && statement.id !== null
      ? [statement.id.name]
      : []

/** An import as a declaration of constants. */
function constantsOf({ source, specifiers }) {
  const module = `require(${JSON.stringify(source.value)})`
  const whole = specifiers.find(({ type }) => type === 'ImportNamespaceSpecifier')
  const single = specifiers.filter(({ type }) => type !== 'ImportNamespaceSpecifier')
  const nameOf = ({ type, imported }) => (type === 'ImportDefaultSpecifier' ? 'default' : (imported.name ?? JSON.stringify(imported.value)))
  const parts = [
    ...(whole === undefined ? [] : [`const ${whole.local.name} = ${module}`]),
    ...(single.length === 0 ? [] : [`const { ${single.map((one) => `${nameOf(one)}: ${one.local.name}`).join(', ')} } = ${module}`]),
  ]
  return parts.length === 0 ? module : parts.join('; ')
}

/** JavaScript of a program: `(require, show) => …`, which resolves once the program has run; `show` is given what it declares. */
export function programOf(source) {
  const { code } = transform(source, { transforms: ['typescript'], disableESTransforms: true, keepUnusedImports: false })
  const tree = parse(code, { ecmaVersion: 'latest', sourceType: 'module' })
  const text = new MagicString(code)
  const names = []
  // Imports are seen before anything runs.
  const imports = []
  for (const statement of tree.body) {
    switch (statement.type) {
      case 'ImportDeclaration':
        imports.push(constantsOf(statement))
        text.overwrite(statement.start, statement.end, code.slice(statement.start, statement.end).replaceAll(/[^\n]/g, ''))
        break
      case 'ExportNamedDeclaration':
        if (statement.declaration === null) text.overwrite(statement.start, statement.end, '')
        else {
          text.remove(statement.start, statement.declaration.start)
          names.push(...declared(statement.declaration))
        }
        break
      case 'ExportDefaultDeclaration':
        text.overwrite(statement.start, statement.declaration.start, 'const model = ')
        names.push('model')
        break
      default:
        names.push(...declared(statement))
    }
  }
  return `(async (require, show) => { 'use strict'; ${imports.join('; ')}; ${text.toString()}\nshow({ ${[...new Set(names)].join(', ')} })\n})\n//# sourceURL=playground.ts`
}
