// What a module imports and exports.
import type * as ts from 'typescript6'
import { byText } from '../model.ts'
import type { Export, Import } from '../model.ts'
import { behind, idOf, pathIn } from './program.ts'
import type { Program } from './program.ts'

/** What a module exports, by name: its own, and what it passes on. */
export function exportsOf(program: Program, file: ts.SourceFile): readonly Export[] {
  const { ts, checker } = program
  const module = checker.getSymbolAtLocation(file)
  if (module === undefined) return []
  const found = new Map<string, string | null>()
  for (const symbol of checker.getExportsOfModule(module))
    if (symbol.name !== 'prototype' && symbol.name !== '__esModule') found.set(symbol.name, idOf(program, symbol))
  const whole = [...(module.exports ?? [])].find(([name]) => String(name) === 'export=')?.[1]
  const id = whole === undefined ? null : idOf(program, whole)
  if (id !== null) found.set('module.exports', id)
  // `module.exports = { a, b }` exports the properties.
  const value = whole?.declarations?.find((node) => ts.isBinaryExpression(node))
  if (whole !== undefined && value !== undefined && ts.isObjectLiteralExpression(value.right))
    for (const property of checker.getPropertiesOfType(checker.getTypeOfSymbol(whole))) found.set(property.name, idOf(program, property))
  return [...found].map(([name, symbol]) => ({ name, symbol })).toSorted((a, b) => byText(a.name, b.name))
}

/** One import: where it comes from, and its names. */
interface Found {
  readonly specifier: ts.Expression
  readonly names: readonly string[]
  readonly isType: boolean
}

/** The import that a node is; null for others. */
function importOf({ ts }: Program, node: ts.Node, file: ts.SourceFile): Found | null {
  if (ts.isImportDeclaration(node)) {
    const { importClause: clause, moduleSpecifier: specifier } = node
    if (clause === undefined) return { specifier, names: [], isType: false }
    const { name, namedBindings: bindings } = clause
    const elements = bindings !== undefined && ts.isNamedImports(bindings) ? bindings.elements : []
    const rest =
      bindings === undefined ? [] : ts.isNamespaceImport(bindings) ? ['*'] : elements.map((element) => (element.propertyName ?? element.name).text)
    const isType = clause.isTypeOnly || (name === undefined && elements.length > 0 && elements.every((element) => element.isTypeOnly))
    return { specifier, names: [...(name === undefined ? [] : ['default']), ...rest], isType }
  }
  if (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined) {
    const { exportClause: clause } = node
    const names =
      clause === undefined || ts.isNamespaceExport(clause) ? ['*'] : clause.elements.map((element) => (element.propertyName ?? element.name).text)
    return { specifier: node.moduleSpecifier, names, isType: node.isTypeOnly }
  }
  if (ts.isImportEqualsDeclaration(node) && ts.isExternalModuleReference(node.moduleReference))
    return { specifier: node.moduleReference.expression, names: ['*'], isType: node.isTypeOnly }
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument) && ts.isStringLiteral(node.argument.literal))
    return { specifier: node.argument.literal, names: node.qualifier === undefined ? ['*'] : [node.qualifier.getText(file)], isType: true }
  if (!ts.isCallExpression(node)) return null
  const isRequire = ts.isIdentifier(node.expression) && node.expression.text === 'require'
  const [specifier] = node.arguments
  if (specifier === undefined || !(isRequire || node.expression.kind === ts.SyntaxKind.ImportKeyword)) return null
  const { parent } = node
  const names =
    ts.isVariableDeclaration(parent) && ts.isObjectBindingPattern(parent.name)
      ? parent.name.elements.map((element) => (element.propertyName ?? element.name).getText(file))
      : ts.isPropertyAccessExpression(parent)
        ? [parent.name.text]
        : ['*']
  return { specifier, names, isType: false }
}

/** What may be an import within a statement: `import('…')`, as a value or a type, `require('…')`, and what `declare module` holds. */
const INNER_IMPORT = /\b(?:import|require)\s*\(|\b(?:declare|module|namespace)\b[^\n{]*\{/

/** The imports of a module, by where they come from: modules of the project first. Imports from one module are one. */
export function importsOf(program: Program, path: string, file: ts.SourceFile): readonly Import[] {
  const { ts, checker, project } = program
  const found = new Map<string, { isPackage: boolean; names: Set<string>; isType: boolean }>()
  const hasInner = INNER_IMPORT.test(file.text)
  const visit = (node: ts.Node): void => {
    const one = importOf(program, node, file)
    if (one !== null && ts.isStringLiteralLike(one.specifier)) {
      const { text } = one.specifier
      const symbol = checker.getSymbolAtLocation(one.specifier)
      const target = (symbol === undefined ? undefined : behind(program, symbol))?.declarations?.find((declared) => ts.isSourceFile(declared))
      const inProject = target === undefined ? null : pathIn(project.root, target.getSourceFile().fileName)
      const isInside = inProject !== null && !inProject.startsWith('..') && !inProject.includes('node_modules/')
      const from = isInside ? inProject : text.startsWith('.') ? resolved(path, text) : text
      const known = found.get(from)
      if (known === undefined) found.set(from, { isPackage: !isInside && !text.startsWith('.'), names: new Set(one.names), isType: one.isType })
      else {
        for (const name of one.names) known.names.add(name)
        known.isType &&= one.isType
      }
    }
    if (hasInner) ts.forEachChild(node, visit)
  }
  for (const statement of file.statements) visit(statement)
  return [...found]
    .map(([from, { isPackage, names, isType }]) => ({ from, isPackage, names: [...names].toSorted(byText), isType }))
    .toSorted((a, b) => Number(a.isPackage) - Number(b.isPackage) || byText(a.from, b.from))
}

/** The path that a relative specifier names from a module. */
function resolved(path: string, specifier: string): string {
  const parts = path.split('/').slice(0, -1)
  for (const part of specifier.split('/')) {
    if (part === '..') parts.pop()
    else if (part !== '.') parts.push(part)
  }
  return parts.join('/')
}
