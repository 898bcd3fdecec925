// Reads a project into a model.
import { join } from 'node:path'
import type * as ts from 'typescript6'
import { VERSION } from '../../version.ts'
import type { Compiler } from '../compiler.ts'
import { headerOf, mergeDocs, parseDoc } from '../docComment.ts'
import { byText } from '../model.ts'
import type { Call, Doc, Model, Module, ProgramSymbol, TestUse, Throw, Visibility } from '../model.ts'
import type { Project } from '../project.ts'
import { Declarations } from './declarations.ts'
import type { Declared } from './declarations.ts'
import { exportsOf, importsOf } from './links.ts'
import { idOf } from './program.ts'
import type { Program } from './program.ts'
import { signaturesOf } from './signatures.ts'
import { readTests, sortedTests } from './testUses.ts'
import { placesIn } from './places.ts'
import { hashOf, normalized } from './tokens.ts'
import { runnableNames, usesOf } from './uses.ts'

export { hashOf, normalized } from './tokens.ts'

/** A model and the texts of its modules, as it sees them. */
export interface ReadModel {
  readonly model: Model
  readonly sources: ReadonlyMap<string, string>
}

/** Reads a project. The order of its lists makes no difference. */
export function readModel(ts: Compiler, unsorted: Project): ReadModel {
  const project = { ...unsorted, sources: unsorted.sources.toSorted(byText), tests: unsorted.tests.toSorted(byText) }
  const { root, sources, tests } = project
  const compiled = ts.createProgram({ rootNames: [...sources, ...tests].map((path) => join(root, path)), options: project.options })
  const fileOf = (path: string): ts.SourceFile | undefined => compiled.getSourceFile(join(root, path))
  const declarations = new Declarations()
  const program: Program = { ts, checker: compiled.getTypeChecker(), project, declarations, fileOf }
  const files = sources.flatMap((path) => {
    const file = fileOf(path)
    return file === undefined ? [] : [{ path, file }]
  })
  for (const { path, file } of files) declarations.addFile(ts, file, path)

  const { modules, calls, throws } = readModules(program, files)
  const symbols = readSymbols(program, modules, throws)
  const generator = `tensorfx ${VERSION}, TypeScript ${ts.version}`
  return {
    model: { schema: 1, generator, name: project.name, description: project.description, modules: withImporters(modules), symbols, calls },
    sources: new Map(files.map(({ path, file }) => [path, normalized(file.text)])),
  }
}

/** The modules, without those that import them, and what their functions do. */
function readModules(
  program: Program,
  files: readonly { readonly path: string; readonly file: ts.SourceFile }[],
): { readonly modules: readonly Module[]; readonly calls: readonly Call[]; readonly throws: ReadonlyMap<string, readonly Throw[]> } {
  const names = runnableNames(program)
  const throws = new Map<string, readonly Throw[]>()
  const calls: Call[] = []
  const modules = files.map(({ path, file }): Module => {
    const uses = usesOf(program, path, file, names)
    for (const [id, thrown] of uses.throws) throws.set(id, thrown)
    calls.push(...uses.calls)
    const text = normalized(file.text)
    return {
      ...{ path, lines: text === '' ? 0 : text.replace(/\n$/, '').split('\n').length, hash: hashOf(text), header: headerOf(text) },
      ...{
        entries: program.project.entries.get(path) ?? [],
        imports: importsOf(program, path, file),
        importers: [],
        exports: exportsOf(program, file),
      },
      calls: { total: uses.total, unresolved: uses.unresolved },
    }
  })
  return { modules, calls, throws }
}

/** The symbols, by module and line. */
function readSymbols(program: Program, modules: readonly Module[], throws: ReadonlyMap<string, readonly Throw[]>): readonly ProgramSymbol[] {
  const { ts, declarations, project } = program
  const uses = new Map<string, TestUse[]>()
  const lastNames = new Set([...declarations.all.values()].map(({ name }) => name.slice(name.lastIndexOf('.') + 1)))
  for (const path of project.tests) readTests(program, path, lastNames, uses)
  const exported = exportedBy(modules)
  const placeOf = placesIn(ts)
  return [...declarations.all.values()]
    .map((declared): ProgramSymbol => {
      const { id, module, name, kind } = declared
      const doc = docOf(program, declared)
      return {
        ...{
          id,
          module,
          name,
          kind,
          doc,
          visibility: visibilityOf(declared, doc, exported, declarations.all),
          entries: exported.entries.get(id) ?? [],
        },
        ...{ signatures: signaturesOf(program, declared), isRunnable: declared.nodes.some((node) => isRunnable(program, node)) },
        ...placeOf(declared),
        ...{ heritage: heritageOf(program, declared), throws: throws.get(id) ?? [], tests: sortedTests(uses.get(id) ?? []) },
      }
    })
    .toSorted((a, b) => byText(a.module, b.module) || a.line - b.line || byText(a.id, b.id))
}

/** Which symbols modules and entries export. */
interface Exported {
  readonly byModule: ReadonlySet<string>
  readonly entries: ReadonlyMap<string, readonly string[]>
}

function exportedBy(modules: readonly Module[]): Exported {
  const byModule = new Set<string>()
  const entries = new Map<string, string[]>()
  for (const { exports, entries: names } of modules)
    for (const { name, symbol } of exports) {
      if (symbol === null) continue
      byModule.add(symbol)
      if (names.length > 0) entries.set(symbol, [...(entries.get(symbol) ?? []), ...names.map((entry) => `${entry}#${name}`)])
    }
  return { byModule, entries: new Map([...entries].map(([id, names]) => [id, [...new Set(names)].toSorted(byText)])) }
}

function visibilityOf({ id, name, isHidden }: Declared, doc: Doc | null, { byModule, entries }: Exported, all: Declarations['all']): Visibility {
  if (isHidden || doc?.tags.some((tag) => tag.name === 'private') === true) return 'private'
  const isInternal = doc?.tags.some((tag) => tag.name === 'internal') === true
  if (entries.has(id)) return isInternal ? 'internal' : 'public'
  const dot = name.lastIndexOf('.', name.endsWith(']') ? name.indexOf('[') : name.length)
  const parent = dot < 0 ? undefined : all.get(id.slice(0, id.length - name.length + dot))
  if (parent !== undefined) {
    const inherited = visibilityOf(parent, null, { byModule, entries }, all)
    return inherited === 'public' && isInternal ? 'internal' : inherited
  }
  return byModule.has(id) ? 'internal' : 'private'
}

/** The modules with those that import them. */
function withImporters(modules: readonly Module[]): readonly Module[] {
  const importers = new Map<string, { path: string; isType: boolean }[]>()
  for (const { path, imports } of modules)
    for (const { from, isPackage, isType } of imports)
      if (!isPackage && from !== path) importers.set(from, [...(importers.get(from) ?? []), { path, isType }])
  return modules.map((module) => ({ ...module, importers: importers.get(module.path) ?? [] }))
}

function isRunnable({ ts }: Program, node: ts.Node): boolean {
  const value =
    ts.isVariableDeclaration(node) || ts.isPropertyDeclaration(node) || ts.isPropertyAssignment(node)
      ? node.initializer
      : ts.isBinaryExpression(node)
        ? node.right
        : ts.isExportAssignment(node)
          ? node.expression
          : node
  return value !== undefined && ts.isFunctionLike(value) && 'body' in value && value.body !== undefined
}

/** The doc comments of all its nodes. */
function docOf({ ts }: Program, { nodes, file }: Declared): Doc | null {
  const comments = nodes.flatMap((node) => {
    const found = ts.getJSDocCommentsAndTags(node).filter((part) => ts.isJSDoc(part))
    // Of several comments the one next to the declaration is meant.
    const last = found.at(-1)
    return last === undefined ? [] : [last.getText(file)]
  })
  return mergeDocs([...new Set(comments)].map(parseDoc))
}

function heritageOf(program: Program, { nodes }: Declared): readonly string[] {
  const { ts, checker } = program
  const ids = nodes.flatMap((node) =>
    ts.isClassLike(node) || ts.isInterfaceDeclaration(node)
      ? (node.heritageClauses ?? []).flatMap(({ types }) => types.map(({ expression }) => idOf(program, checker.getSymbolAtLocation(expression))))
      : [],
  )
  return [...new Set(ids.filter((id) => id !== null))]
}
