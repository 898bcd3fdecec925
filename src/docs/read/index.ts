// Reads a project into a model: the facts of its modules and tests, put together.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { VERSION } from '../../version.ts'
import type { Compiler } from '../compiler.ts'
import { byText } from '../model.ts'
import type { Doc, Model, Module, ProgramSymbol, TestUse, Visibility } from '../model.ts'
import type { Project } from '../project.ts'
import { readFacts } from './facts.ts'
import type { Facts, ModuleFacts, OwnSymbol } from './facts.ts'
import { sortedTests } from './testUses.ts'
import { normalized } from './tokens.ts'

export { hashOf, normalized } from './tokens.ts'

/** A model and the texts of its modules, as it sees them. */
export interface ReadModel {
  readonly model: Model
  readonly sources: ReadonlyMap<string, string>
}

/** Reads a whole project. The order of its lists makes no difference. */
export const readModel = (ts: Compiler, project: Project): ReadModel => modelOf(ts, project, readFacts(ts, project, project))

/** Puts the facts of a project together. */
export function modelOf(ts: Compiler, project: Project, { sources, tests }: Pick<Facts, 'sources' | 'tests'>): ReadModel {
  const facts = project.sources.toSorted(byText).flatMap((path) => sources[path] ?? [])
  const modules = facts.map(({ module }): Omit<Module, 'importers'> => ({ ...module, entries: project.entries.get(module.path) ?? [] }))
  const generator = `tensorfx ${VERSION}, TypeScript ${ts.version}`
  return {
    model: {
      ...{ schema: 1, generator, name: project.name, description: project.description },
      ...{ modules: withImporters(modules), symbols: symbolsOf(facts, modules, tests), calls: facts.flatMap(({ calls }) => calls) },
    },
    sources: new Map(facts.map(({ module: { path } }) => [path, normalized(readFileSync(join(project.root, path), 'utf8'))])),
  }
}

/** The symbols, by module and line. */
function symbolsOf(facts: readonly ModuleFacts[], modules: readonly Omit<Module, 'importers'>[], tests: Facts['tests']): readonly ProgramSymbol[] {
  const uses = new Map<string, TestUse[]>()
  for (const [file, test] of Object.entries(tests))
    for (const { id, line, title } of test.uses) {
      const known = uses.get(id)
      if (known === undefined) uses.set(id, [{ file, line, title }])
      else known.push({ file, line, title })
    }
  const exported = exportedBy(modules)
  const own = facts.flatMap(({ symbols }) => symbols)
  const byId = new Map(own.map((symbol) => [symbol.id, symbol]))
  return own.map(({ id, module, name, kind, doc, signatures, isRunnable, line, endLine, hash, heritage, throws, isHidden }): ProgramSymbol => ({
    id,
    module,
    name,
    kind,
    doc,
    visibility: visibilityOf({ id, name, isHidden }, doc, exported, byId),
    entries: exported.entries.get(id) ?? [],
    signatures,
    isRunnable,
    line,
    endLine,
    hash,
    heritage,
    throws,
    tests: sortedTests(uses.get(id) ?? []),
  }))
}

/** Which symbols modules and entries export. */
interface Exported {
  readonly byModule: ReadonlySet<string>
  readonly entries: ReadonlyMap<string, readonly string[]>
}

function exportedBy(modules: readonly Omit<Module, 'importers'>[]): Exported {
  const byModule = new Set<string>()
  const entries = new Map<string, Set<string>>()
  for (const { exports, entries: names } of modules)
    for (const { name, symbol } of exports) {
      if (symbol === null) continue
      byModule.add(symbol)
      if (names.length === 0) continue
      const known = entries.get(symbol) ?? new Set()
      for (const entry of names) known.add(`${entry}#${name}`)
      entries.set(symbol, known)
    }
  return { byModule, entries: new Map([...entries].map(([id, names]) => [id, [...names].toSorted(byText)])) }
}

function visibilityOf(
  { id, name, isHidden }: Pick<OwnSymbol, 'id' | 'name' | 'isHidden'>,
  doc: Doc | null,
  { byModule, entries }: Exported,
  all: ReadonlyMap<string, OwnSymbol>,
): Visibility {
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
function withImporters(modules: readonly Omit<Module, 'importers'>[]): readonly Module[] {
  const importers = new Map<string, { path: string; isType: boolean }[]>()
  for (const { path, imports } of modules)
    for (const { from, isPackage, isType } of imports) {
      if (isPackage || from === path) continue
      const known = importers.get(from)
      if (known === undefined) importers.set(from, [{ path, isType }])
      else known.push({ path, isType })
    }
  return modules.map(({ path, lines, hash, header, entries, imports, exports, calls }) => ({
    ...{ path, lines, hash, header, entries, imports, importers: importers.get(path) ?? [], exports, calls },
  }))
}
