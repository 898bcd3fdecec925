// Which tests name which symbols: by an imported name, or as a member of one (`nn.Linear`). What a test calls on values of its own is not resolved, since that takes most of the time
// of a type check. A test is a call of `it` or `test` (Vitest, Jest, Mocha, node:test, Playwright) with a title; groups are calls of `describe` or `suite`.
import type * as ts from 'typescript6'
import { byText } from '../model.ts'
import type { TestUse } from '../model.ts'
import { idOf, lineOf } from './program.ts'
import type { Program } from './program.ts'

const GROUP = /^(?:describe|suite|context)\b/
const TEST = /^(?:it|test|specify)\b/

/** Adds the tests of a file to what is known of each symbol. `names`: the last names of all symbols, so that other identifiers need no look-up. */
export function readTests(program: Program, path: string, names: ReadonlySet<string>, into: Map<string, TestUse[]>): void {
  const { ts, checker } = program
  const file = program.fileOf(path)
  if (file === undefined) return
  /** The title of a call that is a test or a group; null for others. */
  const titleOf = (node: ts.CallExpression, kind: RegExp): string | null => {
    const callee = node.expression.getText(file)
    const [first] = node.arguments
    if (!kind.test(callee) || first === undefined) return null
    if (ts.isStringLiteralLike(first)) return first.text
    return ts.isTemplateExpression(first) ? first.getText(file).slice(1, -1) : null
  }
  const imported = importedNames(program, file)
  /** The first name of `a.b.c`; '' where it is no name. */
  const rootOf = (node: ts.Identifier): string => {
    let at: ts.Node = node
    while (ts.isPropertyAccessExpression(at.parent) && at.parent.name === at) {
      at = at.parent.expression
      while (ts.isPropertyAccessExpression(at)) at = at.expression
    }
    return ts.isIdentifier(at) ? at.text : ''
  }
  const visit = (node: ts.Node, titles: readonly string[], test: TestUse | null): void => {
    let [inner, current] = [titles, test]
    if (ts.isCallExpression(node)) {
      const group = titleOf(node, GROUP)
      const title = group === null ? titleOf(node, TEST) : null
      if (group !== null) inner = [...titles, group]
      if (title !== null) current = { file: path, line: lineOf(file, node.getStart(file)), title: [...titles, title].join(' > ') }
    } else if (current !== null && ts.isIdentifier(node) && imported.has(rootOf(node)) && (imported.has(node.text) || names.has(node.text))) {
      const id = idOf(program, checker.getSymbolAtLocation(node))
      if (id !== null) add(into, id, current)
    }
    ts.forEachChild(node, (child) => visit(child, inner, current))
  }
  visit(file, [], null)
}

/** The names that a file imports. */
function importedNames({ ts }: Program, file: ts.SourceFile): ReadonlySet<string> {
  const names = new Set<string>()
  for (const statement of file.statements) {
    if (ts.isImportDeclaration(statement)) {
      const { name, namedBindings: bindings } = statement.importClause ?? {}
      if (name !== undefined) names.add(name.text)
      if (bindings !== undefined && ts.isNamespaceImport(bindings)) names.add(bindings.name.text)
      else if (bindings !== undefined) for (const element of bindings.elements) names.add(element.name.text)
    } else if (ts.isVariableStatement(statement)) {
      for (const { name, initializer } of statement.declarationList.declarations) {
        if (initializer === undefined || !initializer.getText(file).includes('require(')) continue
        if (ts.isIdentifier(name)) names.add(name.text)
        else for (const element of name.elements) if (ts.isBindingElement(element) && ts.isIdentifier(element.name)) names.add(element.name.text)
      }
    }
  }
  return names
}

function add(into: Map<string, TestUse[]>, id: string, test: TestUse): void {
  const known = into.get(id)
  if (known === undefined) into.set(id, [test])
  else if (known.at(-1) !== test) known.push(test)
}

/** The tests of a symbol in order, each once. */
export const sortedTests = (tests: readonly TestUse[]): readonly TestUse[] =>
  tests
    .toSorted((a, b) => byText(a.file, b.file) || a.line - b.line || byText(a.title, b.title))
    .filter(({ file, line, title }, i, all) => file !== all[i - 1]?.file || line !== all[i - 1]?.line || title !== all[i - 1]?.title)
