// Which tests name which symbols: by an imported name, or as a member of one (`nn.Linear`). What a test calls on values of its own is not resolved, since that takes most of the time
// of a type check: tests are parsed, and only the names that they import are looked up. A test is a call of `it` or `test` (Vitest, Jest, Mocha, node:test, Playwright) with a title;
// groups are calls of `describe` or `suite`.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type * as ts from 'typescript6'
import type { Compiler } from '../compiler.ts'
import { byText } from '../model.ts'
import type { TestUse } from '../model.ts'
import type { Project } from '../project.ts'
import { behind, idOf, lineOf, pathIn } from './program.ts'
import type { Program } from './program.ts'
import { hashOf, normalized } from './tokens.ts'

const GROUP = /(?:describe|suite|context)\b/y
const TEST = /(?:it|test|specify)\b/y

/** What is read of a test file. */
export interface TestFacts {
  /** Of its text. */
  readonly hash: string
  /** The sources that it imports. */
  readonly deps: readonly string[]
  /** The symbols that its tests name. */
  readonly uses: readonly { readonly id: string; readonly line: number; readonly title: string }[]
}

/** A name that a file imports: `*` is the module itself. */
interface Imported {
  readonly from: string
  readonly name: string
}

/** A test file that was parsed: which names its tests say, as `a.b.c` with an imported first name. */
interface ParsedTest {
  readonly path: string
  readonly hash: string
  readonly deps: readonly string[]
  /** By the name in the file. */
  readonly imported: ReadonlyMap<string, Imported>
  readonly tests: readonly { readonly line: number; readonly title: string; readonly names: ReadonlySet<string> }[]
}

export class TestReader {
  readonly #ts: Compiler
  readonly #project: Project
  readonly #known: ReadonlySet<string>
  readonly #resolutions: ts.ModuleResolutionCache

  constructor(compiler: Compiler, project: Project) {
    this.#ts = compiler
    this.#project = project
    this.#known = new Set(project.sources)
    this.#resolutions = compiler.createModuleResolutionCache(project.root, (name) => name, project.options)
  }

  /** Parses a test file. */
  read(path: string): ParsedTest {
    const ts = this.#ts
    const text = readFileSync(join(this.#project.root, path), 'utf8')
    const how = { languageVersion: ts.ScriptTarget.ESNext, jsDocParsingMode: ts.JSDocParsingMode.ParseNone }
    const file = ts.createSourceFile(path, text, how, true)
    const imported = new Map<string, Imported>()
    for (const [local, { from, name }] of importedNames(ts, file)) {
      const source = this.#sourceOf(path, from)
      if (source !== null) imported.set(local, { from: source, name })
    }
    const deps = [...new Set([...imported.values()].map(({ from }) => from))].toSorted(byText)
    return { path, hash: hashOf(normalized(text)), deps, imported, tests: testsIn(ts, file, imported) }
  }

  /** The source that a specifier leads to; null for packages and for other tests. */
  #sourceOf(path: string, specifier: string): string | null {
    const { root, options } = this.#project
    const { resolvedModule } = this.#ts.resolveModuleName(specifier, join(root, path), options, this.#ts.sys, this.#resolutions)
    const found = resolvedModule === undefined ? null : pathIn(root, resolvedModule.resolvedFileName)
    return found !== null && this.#known.has(found) ? found : null
  }

  /** Looks up the names of a parsed file in a program that has the sources which it imports. */
  resolve(program: Program, { hash, deps, imported, tests }: ParsedTest): TestFacts {
    const members = new Members(program, imported)
    const uses = tests.flatMap(({ line, title, names }) => {
      const ids = new Set<string>()
      for (const name of names) for (const symbol of members.of(name)) ids.add(idOf(program, symbol) ?? '')
      ids.delete('')
      return [...ids].toSorted(byText).map((id) => ({ id, line, title }))
    })
    return { hash, deps, uses }
  }
}

/** The symbols of names such as `nn.functional.relu`. */
class Members {
  readonly #program: Program
  readonly #imported: ReadonlyMap<string, Imported>
  readonly #found = new Map<string, ts.Symbol | undefined>()

  constructor(program: Program, imported: ReadonlyMap<string, Imported>) {
    this.#program = program
    this.#imported = imported
  }

  /** What each part of a name stands for. */
  of(name: string): readonly ts.Symbol[] {
    const parts = name.split('.')
    return parts.flatMap((_, i) => this.#symbol(parts.slice(0, i + 1)) ?? [])
  }

  #symbol(parts: readonly string[]): ts.Symbol | undefined {
    const key = parts.join('.')
    if (!this.#found.has(key)) {
      const above = parts.length === 1 ? undefined : this.#symbol(parts.slice(0, -1))
      const last = parts.at(-1) ?? ''
      this.#found.set(key, parts.length === 1 ? this.#root(key) : above === undefined ? undefined : this.#member(above, last))
    }
    return this.#found.get(key)
  }

  #root(local: string): ts.Symbol | undefined {
    const { checker, fileOf } = this.#program
    const { from, name } = this.#imported.get(local) ?? { from: '', name: '' }
    const file = fileOf(from)
    const module = file === undefined ? undefined : checker.getSymbolAtLocation(file)
    if (module === undefined) return undefined
    // `module.exports = …` is the module.
    const whole = [...(module.exports ?? [])].find(([key]) => String(key) === 'export=')?.[1]
    const own = whole === undefined ? module : behind(this.#program, whole)
    if (name === '*') return own
    return this.#member(module, name) ?? (whole === undefined ? undefined : name === 'default' ? own : this.#member(own, name))
  }

  #member(above: ts.Symbol, name: string): ts.Symbol | undefined {
    const { ts, checker } = this.#program
    const real = behind(this.#program, above)
    const exported = (real.flags & ts.SymbolFlags.Module) === 0 ? undefined : checker.getExportsOfModule(real).find((symbol) => symbol.name === name)
    return exported ?? checker.getPropertyOfType(checker.getTypeOfSymbol(real), name)
  }
}

/** The tests of a file and the names that they say. */
function testsIn(ts: Compiler, file: ts.SourceFile, imported: ReadonlyMap<string, Imported>): ParsedTest['tests'] {
  const tests: { readonly line: number; readonly title: string; readonly names: Set<string> }[] = []
  /** The title of a call that is a test or a group; null for others. */
  const titleOf = (node: ts.CallExpression, kind: RegExp): string | null => {
    const [first] = node.arguments
    if (first === undefined) return null
    kind.lastIndex = node.expression.getStart(file)
    if (!kind.test(file.text)) return null
    if (ts.isStringLiteralLike(first)) return first.text
    return ts.isTemplateExpression(first) ? first.getText(file).slice(1, -1) : null
  }
  const hidden = hidingScopes(ts, file, imported)
  const isHidden = (node: ts.Identifier): boolean => {
    const scopes = hidden.get(node.text)
    if (scopes === undefined) return false
    let at: ts.Node = node
    while (!scopes.has(at) && !ts.isSourceFile(at)) at = at.parent
    return scopes.has(at)
  }
  const visit = (node: ts.Node, titles: readonly string[], names: Set<string> | null): void => {
    let [inner, current] = [titles, names]
    if (ts.isCallExpression(node)) {
      const group = titleOf(node, GROUP)
      const title = group === null ? titleOf(node, TEST) : null
      if (group !== null) inner = [...titles, group]
      if (title !== null) {
        current = new Set()
        tests.push({ line: lineOf(file, node.getStart(file)), title: [...titles, title].join(' > '), names: current })
      }
    } else if (current !== null && ts.isIdentifier(node) && imported.has(node.text) && !isMemberName(ts, node) && !isHidden(node))
      current.add(wholeName(ts, node))
    ts.forEachChild(node, (child) => visit(child, inner, current))
  }
  visit(file, [], null)
  return tests
}

/** Whether an identifier names a member or a property, which is no use of the import of the same name. */
const isMemberName = (ts: Compiler, node: ts.Identifier): boolean =>
  (ts.isPropertyAccessExpression(node.parent) || ts.isPropertyAssignment(node.parent)) && node.parent.name === node

/** `a.b.c` around its first name. */
function wholeName(ts: Compiler, node: ts.Identifier): string {
  let name = node.text
  for (
    let at: ts.Node = node;
    ts.isPropertyAccessExpression(at.parent) && at.parent.expression === at && ts.isIdentifier(at.parent.name);
    at = at.parent
  )
    name += `.${at.parent.name.text}`
  return name
}

/** Where a name of an import means something else: the functions and blocks that declare it anew. */
function hidingScopes(ts: Compiler, file: ts.SourceFile, imported: ReadonlyMap<string, Imported>): ReadonlyMap<string, ReadonlySet<ts.Node>> {
  const found = new Map<string, Set<ts.Node>>()
  const visit = (node: ts.Node): void => {
    const isDeclared =
      ts.isParameter(node) ||
      ts.isVariableDeclaration(node) ||
      ts.isBindingElement(node) ||
      ts.isFunctionDeclaration(node) ||
      ts.isClassDeclaration(node)
    if (isDeclared && node.name !== undefined && ts.isIdentifier(node.name) && imported.has(node.name.text)) {
      const { text } = node.name
      let scope = node.parent
      while (!ts.isFunctionLike(scope) && !ts.isBlock(scope) && !ts.isSourceFile(scope) && !ts.isForStatement(scope) && !ts.isForOfStatement(scope))
        scope = scope.parent
      if (!ts.isSourceFile(scope)) found.set(text, (found.get(text) ?? new Set()).add(scope))
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  return found
}

/** The names that a file imports, and from where. */
function importedNames(ts: Compiler, file: ts.SourceFile): ReadonlyMap<string, Imported> {
  const names = new Map<string, Imported>()
  for (const statement of file.statements) {
    if (ts.isImportDeclaration(statement) && ts.isStringLiteralLike(statement.moduleSpecifier)) {
      const from = statement.moduleSpecifier.text
      const { name, namedBindings: bindings } = statement.importClause ?? {}
      if (name !== undefined) names.set(name.text, { from, name: 'default' })
      if (bindings !== undefined && ts.isNamespaceImport(bindings)) names.set(bindings.name.text, { from, name: '*' })
      else if (bindings !== undefined)
        for (const element of bindings.elements) names.set(element.name.text, { from, name: (element.propertyName ?? element.name).text })
    } else if (ts.isVariableStatement(statement)) {
      for (const { name, initializer } of statement.declarationList.declarations) {
        const [, from, member] = /\brequire\(\s*['"]([^'"]+)['"]\s*\)(?:\.(\w+))?/.exec(initializer?.getText(file) ?? '') ?? []
        if (from === undefined) continue
        if (ts.isIdentifier(name)) names.set(name.text, { from, name: member ?? '*' })
        else
          for (const element of name.elements)
            if (ts.isBindingElement(element) && ts.isIdentifier(element.name))
              names.set(element.name.text, { from, name: (element.propertyName ?? element.name).getText(file) })
      }
    }
  }
  return names
}

/** The tests of a symbol in order, each once. */
export const sortedTests = (tests: readonly TestUse[]): readonly TestUse[] =>
  tests
    .toSorted((a, b) => byText(a.file, b.file) || a.line - b.line || byText(a.title, b.title))
    .filter(({ file, line, title }, i, all) => file !== all[i - 1]?.file || line !== all[i - 1]?.line || title !== all[i - 1]?.title)
