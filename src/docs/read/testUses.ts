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
/** What a text with a test has: helpers of tests need not be parsed. */
const MAY_TEST = /\b(?:it|test|specify)\s*(?:[(.<`[!?]|\/[/*])/

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
    const hash = hashOf(normalized(text))
    if (!MAY_TEST.test(text)) return { path, hash, deps: [], imported: new Map(), tests: [] }
    const how = { languageVersion: ts.ScriptTarget.ESNext, jsDocParsingMode: ts.JSDocParsingMode.ParseNone }
    const file = ts.createSourceFile(path, text, how)
    const imported = new Map<string, Imported>()
    for (const [local, { from, name }] of importedNames(ts, file)) {
      const source = this.#sourceOf(path, from)
      if (source !== null) imported.set(local, { from: source, name })
    }
    const deps = [...new Set([...imported.values()].map(({ from }) => from))].toSorted(byText)
    return { path, hash, deps, imported, tests: imported.size === 0 ? [] : testsIn(ts, file, imported) }
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

/** A function or block: where a name may be declared anew. */
interface Scope {
  readonly around: Scope | null
  /** The names of imports that mean something else here. */
  readonly hides: Set<string>
}

/** A name that a test says, with the scopes around it. */
interface Said {
  readonly names: Set<string>
  /** `a` of `a.b.c`. */
  readonly first: string
  readonly whole: string
  readonly scope: Scope | null
}

/** The tests of a file and the names that they say. */
const testsIn = (ts: Compiler, file: ts.SourceFile, imported: ReadonlyMap<string, Imported>): ParsedTest['tests'] => {
  const finder = new TestFinder(ts, file, imported)
  finder.visit(file, [], null, null)
  // Blocks may declare a name after a test has said it.
  for (const { names, first, whole, scope } of finder.said) if (!isHidden(first, scope)) names.add(whole)
  return finder.tests
}

function isHidden(name: string, scope: Scope | null): boolean {
  for (let at = scope; at !== null; at = at.around) if (at.hides.has(name)) return true
  return false
}

/** Finds tests and names from the top of a file down, so that its nodes need no parents. */
class TestFinder {
  readonly tests: { readonly line: number; readonly title: string; readonly names: Set<string> }[] = []
  readonly said: Said[] = []
  readonly #ts: Compiler
  readonly #file: ts.SourceFile
  readonly #imported: ReadonlyMap<string, Imported>

  constructor(compiler: Compiler, file: ts.SourceFile, imported: ReadonlyMap<string, Imported>) {
    this.#ts = compiler
    this.#file = file
    this.#imported = imported
  }

  visit(node: ts.Node, titles: readonly string[], names: Set<string> | null, scope: Scope | null): void {
    const ts = this.#ts
    if (ts.isIdentifier(node)) return this.#say([node.text], names, scope)
    if (node.kind <= ts.SyntaxKind.LastToken) return
    this.#declare(node, scope)
    const inside = isScope(ts, node) ? { around: scope, hides: new Set<string>() } : scope
    if (ts.isPropertyAccessExpression(node)) return this.#member(node, titles, names, inside)
    // The name of a property is no use of the import of the same name.
    if (ts.isPropertyAssignment(node) && ts.isIdentifier(node.name)) return this.visit(node.initializer, titles, names, inside)
    let [inner, current] = [titles, names]
    if (ts.isCallExpression(node)) {
      const group = this.#titleOf(node, GROUP)
      const title = group === null ? this.#titleOf(node, TEST) : null
      if (group !== null) inner = [...titles, group]
      if (title !== null) {
        current = new Set()
        this.tests.push({ line: lineOf(this.#file, node.getStart(this.#file)), title: [...titles, title].join(' > '), names: current })
      }
    }
    ts.forEachChild(node, (child) => this.visit(child, inner, current, inside))
  }

  /** `a.b.c`: one name, if it begins with one. */
  #member(node: ts.PropertyAccessExpression, titles: readonly string[], names: Set<string> | null, scope: Scope | null): void {
    const ts = this.#ts
    let parts: string[] = []
    let at: ts.Expression = node
    for (; ts.isPropertyAccessExpression(at); at = at.expression) {
      if (ts.isIdentifier(at.name)) parts.push(at.name.text)
      else parts = []
    }
    if (ts.isIdentifier(at)) this.#say([at.text, ...parts.toReversed()], names, scope)
    else this.visit(at, titles, names, scope)
  }

  #say(parts: readonly string[], names: Set<string> | null, scope: Scope | null): void {
    const [first = ''] = parts
    if (names !== null && this.#imported.has(first)) this.said.push({ names, first, whole: parts.join('.'), scope })
  }

  /** Notes a name of an import that a function or block declares anew. */
  #declare(node: ts.Node, scope: Scope | null): void {
    const ts = this.#ts
    const isDeclared =
      ts.isParameter(node) ||
      ts.isVariableDeclaration(node) ||
      ts.isBindingElement(node) ||
      ts.isFunctionDeclaration(node) ||
      ts.isClassDeclaration(node)
    if (isDeclared && node.name !== undefined && ts.isIdentifier(node.name) && this.#imported.has(node.name.text)) scope?.hides.add(node.name.text)
  }

  /** The title of a call that is a test or a group; null for others. */
  #titleOf(node: ts.CallExpression, kind: RegExp): string | null {
    const ts = this.#ts
    const [first] = node.arguments
    if (first === undefined) return null
    kind.lastIndex = node.expression.getStart(this.#file)
    if (!kind.test(this.#file.text)) return null
    if (ts.isStringLiteralLike(first)) return first.text
    return ts.isTemplateExpression(first) ? first.getText(this.#file).slice(1, -1) : null
  }
}

const isScope = (ts: Compiler, node: ts.Node): boolean =>
  ts.isFunctionLike(node) || ts.isBlock(node) || ts.isForStatement(node) || ts.isForOfStatement(node)

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
