// What is read of each source and test by itself. It depends on the texts of the module and of those that it imports, however far away, but on no other module and no order, so that
// it can be kept, and read in several threads.
import { join } from 'node:path'
import type * as ts from 'typescript6'
import type { Compiler } from '../compiler.ts'
import { headerOf, mergeDocs, parseDoc } from '../docComment.ts'
import { byText } from '../model.ts'
import type { Call, Doc, Module, ProgramSymbol } from '../model.ts'
import type { Project } from '../project.ts'
import { Declarations } from './declarations.ts'
import type { Declared } from './declarations.ts'
import { exportsOf, importsOf } from './links.ts'
import { placesIn } from './places.ts'
import { hostOf, idOf, pathIn } from './program.ts'
import type { Program } from './program.ts'
import { isAmbient, shapeOf } from './shape.ts'
import { signaturesOf } from './signatures.ts'
import { TestReader } from './testUses.ts'
import type { TestFacts } from './testUses.ts'
import { Tokens, hashOf, normalized } from './tokens.ts'
import { runnableNames, usesOf } from './uses.ts'

/** A symbol without what depends on the modules that import it. */
export interface OwnSymbol extends Omit<ProgramSymbol, 'visibility' | 'entries' | 'tests'> {
  /** Whether it is meant for its class or module alone: `private`, `#name`. */
  readonly isHidden: boolean
}

/** What is read of a module. */
export interface ModuleFacts {
  readonly module: Omit<Module, 'entries' | 'importers'>
  readonly symbols: readonly OwnSymbol[]
  readonly calls: readonly Call[]
  /** The hash of all that other modules can see of it. */
  readonly shape: string
  /** Whether it may declare something for modules that do not import it. */
  readonly isAmbient: boolean
}

/** What is read of some sources and tests, by path. */
export interface Facts {
  readonly sources: Readonly<Record<string, ModuleFacts>>
  readonly tests: Readonly<Record<string, TestFacts>>
  /** The files outside of the sources that the compiler read: declarations of packages and of the language. */
  readonly outside: readonly string[]
}

/** What to read. */
export interface FactsWanted {
  readonly sources: readonly string[]
  readonly tests: readonly string[]
}

/** Reads some sources and tests of a project. The order of its lists makes no difference. */
export function readFacts(ts: Compiler, project: Project, wanted: FactsWanted): Facts {
  const { root, options } = project
  const known = new Set(project.sources)
  const tests = new TestReader(ts, project)
  const drafts = wanted.tests.map((path) => tests.read(path))
  // Whatever is wanted, the program is the same, so that the compiler writes types in the same way.
  const roots = project.sources.toSorted(byText).map((path) => join(root, path))
  const settings = { ...options, stableTypeOrdering: true }
  const documented = new Set(wanted.sources)
  const host = hostOf(ts, settings, (file) => documented.has(pathIn(root, file)))
  const compiled = ts.createProgram({ rootNames: roots, options: settings, host })
  // The checker gives nodes their parents.
  const checker = compiled.getTypeChecker()
  const declarations = new Declarations()
  const outside: string[] = []
  for (const file of compiled.getSourceFiles()) {
    const path = pathIn(root, file.fileName)
    if (known.has(path)) declarations.addFile(ts, file, path)
    else outside.push(file.fileName)
  }
  const fileOf = (path: string): ts.SourceFile | undefined => compiled.getSourceFile(join(root, path))
  const program: Program = { ts, checker, project, declarations, fileOf }
  const names = runnableNames(program)
  const byModule = new Map<string, Declared[]>()
  for (const declared of declarations.all.values()) {
    const of = byModule.get(declared.module)
    if (of === undefined) byModule.set(declared.module, [declared])
    else of.push(declared)
  }
  const sources = wanted.sources.flatMap((path) => {
    const file = fileOf(path)
    return file === undefined ? [] : [[path, factsOf(program, { path, file, declared: byModule.get(path) ?? [], names })] as const]
  })
  return {
    sources: Object.fromEntries(sources),
    tests: Object.fromEntries(drafts.map((draft) => [draft.path, tests.resolve(program, draft)])),
    outside: outside.toSorted(byText),
  }
}

/** A module of a program, with its declarations. */
interface Read {
  readonly path: string
  readonly file: ts.SourceFile
  readonly declared: readonly Declared[]
  readonly names: ReturnType<typeof runnableNames>
}

function factsOf(program: Program, { path, file, declared, names }: Read): ModuleFacts {
  const { ts } = program
  const uses = usesOf(program, path, file, names)
  const tokens = new Tokens(ts, file)
  const placeOf = placesIn(ts, () => tokens)
  const text = normalized(file.text)
  const symbols = declared
    .map((one): OwnSymbol => {
      const { id, module, name, kind, isHidden } = one
      return {
        ...{ id, module, name, kind, isHidden, doc: docOf(program, one), signatures: signaturesOf(program, one) },
        ...{ isRunnable: one.nodes.some((node) => isRunnable(program, node)), ...placeOf(one) },
        ...{ heritage: heritageOf(program, one), throws: uses.throws.get(id) ?? [] },
      }
    })
    .toSorted((a, b) => a.line - b.line || byText(a.id, b.id))
  const lines = text === '' ? 0 : text.replace(/\n$/, '').split('\n').length
  return {
    module: {
      ...{ path, lines, hash: hashOf(text), header: headerOf(text) },
      ...{ imports: importsOf(program, path, file), exports: exportsOf(program, file), calls: { total: uses.total, unresolved: uses.unresolved } },
    },
    symbols,
    calls: uses.calls,
    shape: shapeOf(ts, file, tokens),
    isAmbient: isAmbient(text),
  }
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
