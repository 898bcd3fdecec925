// A model with what its pages ask for: symbols by module, callers, where everything is.
import { byText, folderOf } from '../model.ts'
import type { Call, Model, Module, ProgramSymbol } from '../model.ts'
import type { Resolve } from './markdownText.ts'
import type { Target } from './page.ts'

/** Makes a map of lists. */
export function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}

/** The id of the declaration around a member; null at the top of a module. */
export function parentOf({ id, name }: ProgramSymbol): string | null {
  const dot = name.lastIndexOf('.', name.endsWith(']') ? name.indexOf('[') : name.length)
  return dot < 0 ? null : id.slice(0, id.length - name.length + dot)
}

export class Lookup {
  readonly model: Model
  readonly modules: ReadonlyMap<string, Module>
  readonly symbols: ReadonlyMap<string, ProgramSymbol>
  readonly inFolder: ReadonlyMap<string, readonly Module[]>
  readonly members: ReadonlyMap<string, readonly ProgramSymbol[]>
  readonly byModule: ReadonlyMap<string, readonly ProgramSymbol[]>
  readonly callers: ReadonlyMap<string, readonly Call[]>
  readonly calls: ReadonlyMap<string, readonly Call[]>
  /** What extends or implements a class or interface. */
  readonly heirs: ReadonlyMap<string, readonly string[]>
  /** The address of a line of a source elsewhere, with {path} and {line} in it; null without one. */
  readonly sourceUrl: string | null
  readonly #pages: ReadonlyMap<string, string>
  readonly #anchors: ReadonlyMap<string, string>
  readonly #byName = new Map<string, string | null>()

  constructor(model: Model, sourceUrl: string | null) {
    this.model = model
    this.sourceUrl = sourceUrl
    this.modules = new Map(model.modules.map((module) => [module.path, module]))
    this.symbols = new Map(model.symbols.map((symbol) => [symbol.id, symbol]))
    this.inFolder = groupBy(model.modules, ({ path }) => folderOf(path))
    this.byModule = groupBy(model.symbols, ({ module }) => module)
    this.members = groupBy(model.symbols, (symbol) => parentOf(symbol) ?? '')
    this.callers = groupBy(
      model.calls.filter(({ kind }) => kind !== 'dynamic'),
      ({ to }) => to,
    )
    this.calls = groupBy(model.calls, ({ from }) => from)
    const heirs = groupBy(
      model.symbols.flatMap(({ id, heritage }) => heritage.map((of) => [of, id] as const)),
      ([of]) => of,
    )
    this.heirs = new Map([...heirs].map(([of, pairs]) => [of, pairs.map(([, id]) => id)]))
    this.#pages = pageNames(model)
    this.#anchors = anchors(this.byModule)
    for (const { id, name, visibility, entries } of model.symbols) {
      if (visibility !== 'public') continue
      // A name that two modules export leads nowhere.
      for (const key of new Set([name, ...entries.map((entry) => entry.slice(entry.indexOf('#') + 1))]))
        this.#byName.set(key, this.#byName.has(key) && this.#byName.get(key) !== id ? null : id)
    }
  }

  /** The folders of the modules, with those above them. */
  get folders(): readonly string[] {
    const found = new Set([''])
    for (const { path } of this.model.modules) for (let at = folderOf(path); at !== ''; at = folderOf(at)) found.add(at)
    return [...found].toSorted(byText)
  }

  pageOf(path: string): string {
    return this.#pages.get(path) ?? `modules/${path}`
  }

  folderPage(folder: string): string {
    return this.#pages.get(`${folder}/`) ?? `modules/${folder === '' ? '' : `${folder}/`}index`
  }

  sourcePage(path: string): string {
    return this.pageOf(path).replace(/^modules\//, 'source/')
  }

  anchorOf(id: string): string {
    return this.#anchors.get(id) ?? ''
  }

  /** Where a symbol is described. */
  targetOf(id: string): Target | null {
    const symbol = this.symbols.get(id)
    return symbol === undefined ? null : { page: this.pageOf(symbol.module), anchor: this.anchorOf(id) }
  }

  /** Where a line of a source is. */
  lineTarget(path: string, line: number): Target {
    if (this.sourceUrl !== null)
      return { url: this.sourceUrl.replaceAll('{path}', path.split('/').map(encodeURIComponent).join('/')).replaceAll('{line}', String(line)) }
    return { page: this.sourcePage(path), anchor: `L${line}` }
  }

  /** Where a name in the text of a module leads: to its own symbols, those it imports, and public ones. */
  resolve(module: string, name: string): Target | null {
    const bare = name
      .replace(/\(.*\)$/, '')
      .replace(/^new /, '')
      .replace('#', '.')
    if (!/^[\w$.]+$/.test(bare)) return null
    const own = this.targetOf(`${module}#${bare}`)
    if (own !== null) return own
    for (const { from, names } of this.modules.get(module)?.imports ?? []) {
      if (!names.includes(bare.split('.')[0] ?? '')) continue
      const exported = this.modules.get(from)?.exports.find((one) => one.name === bare.split('.')[0])?.symbol
      const id = exported === undefined || exported === null ? null : `${exported}${bare.slice(bare.split('.')[0]?.length ?? 0)}`
      const target = id === null ? null : this.targetOf(id)
      if (target !== null) return target
    }
    const id = this.#byName.get(bare)
    return id === undefined || id === null ? null : this.targetOf(id)
  }

  /** Where names in the doc of a symbol lead. Its tags may name members of the declaration around it, too, and those that it inherits. */
  namesIn(symbol: ProgramSymbol): Resolve {
    return (name, of) =>
      this.resolve(symbol.module, name) ?? (of === 'tag' ? (this.#member(symbol.id, name) ?? this.#member(parentOf(symbol), name)) : null)
  }

  /** Where a member of a class or interface is described, or the one that it inherits. */
  #member(id: string | null, name: string, depth = 0): Target | null {
    if (id === null || depth > 8) return null
    const own = this.targetOf(`${id}.${name.replace(/\(.*\)$/, '')}`)
    if (own !== null) return own
    for (const base of this.symbols.get(id)?.heritage ?? []) {
      const inherited = this.#member(base, name, depth + 1)
      if (inherited !== null) return inherited
    }
    return null
  }
}

/** The pages of modules and folders. Names that differ in case alone get a number, since file systems may not tell them apart. */
function pageNames({ modules }: Model): ReadonlyMap<string, string> {
  const pages = new Map<string, string>()
  const taken = new Set<string>()
  const give = (key: string, wanted: string): void => {
    let name = wanted
    for (let i = 2; taken.has(name.toLowerCase()); i++) name = `${wanted}~${i}`
    taken.add(name.toLowerCase())
    pages.set(key, name)
  }
  const folders = new Set([''])
  for (const { path } of modules) for (let at = folderOf(path); at !== ''; at = folderOf(at)) folders.add(at)
  for (const folder of [...folders].toSorted(byText)) give(`${folder}/`, `modules/${folder === '' ? '' : `${folder}/`}index`)
  for (const { path } of modules) give(path, `modules/${path}`)
  return pages
}

/** An anchor for each symbol: `Class-member`, with its case. Structural anchors of pages begin with a dot. */
function anchors(byModule: ReadonlyMap<string, readonly ProgramSymbol[]>): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const symbols of byModule.values()) {
    const taken = new Set<string>()
    for (const { id, name } of symbols) {
      const wanted = name
        .replaceAll(/[[\]\s]/g, '')
        .replaceAll('.', '-')
        .replaceAll('#', '~')
      let anchor = wanted
      for (let i = 2; taken.has(anchor); i++) anchor = `${wanted}~${i}`
      taken.add(anchor)
      found.set(id, anchor)
    }
  }
  return found
}

/** The paths of those that import a module, which are asked for again and again. */
const importerPaths = new WeakMap<Module, ReadonlySet<string>>()

function importersOf(module: Module): ReadonlySet<string> {
  const paths = importerPaths.get(module) ?? new Set(module.importers.map(({ path }) => path))
  importerPaths.set(module, paths)
  return paths
}

/** Related modules: the weight of imports, shared importers and a shared folder, with the strongest reasons in words. */
export function relatedTo({ modules, inFolder }: Lookup, module: Module, limit = 6): readonly { readonly path: string; readonly reason: string }[] {
  const mine = importersOf(module)
  const candidates = new Set([...module.imports.map(({ from }) => from), ...module.importers.map(({ path }) => path)])
  /** How many modules import both. */
  const both = new Map<string, number>()
  for (const path of mine)
    for (const { from } of modules.get(path)?.imports ?? []) {
      candidates.add(from)
      if (from !== path) both.set(from, (both.get(from) ?? 0) + 1)
    }
  for (const { path } of inFolder.get(folderOf(module.path)) ?? []) candidates.add(path)
  candidates.delete(module.path)
  const scored = [...candidates].flatMap((path) => {
    const other = modules.get(path)
    if (other === undefined) return []
    const imported = module.imports.find(({ from }) => from === path)
    const importer = module.importers.find((one) => one.path === path)
    const shared = both.get(path) ?? 0
    const cosine = shared === 0 ? 0 : shared / Math.sqrt(mine.size * importersOf(other).size)
    const reasons = [
      ...(imported === undefined
        ? []
        : [[imported.isType ? 1 : 3, imported.isType ? 'this module uses its types' : `this module imports ${few(imported.names)}`] as const]),
      ...(importer === undefined
        ? []
        : [[importer.isType ? 1 : 3, importer.isType ? 'it uses types of this module' : 'it imports this module'] as const]),
      ...(shared === 0 ? [] : [[4 * cosine, `${shared} ${shared === 1 ? 'module imports' : 'modules import'} both`] as const]),
      ...(folderOf(path) === folderOf(module.path) ? [[0.5, 'same folder'] as const] : []),
    ].toSorted((a, b) => b[0] - a[0])
    const weight = reasons.reduce((sum, [points]) => sum + points, 0)
    return weight === 0
      ? []
      : [
          {
            path,
            weight,
            reason: reasons
              .slice(0, 2)
              .map(([, words]) => words)
              .join('; '),
          },
        ]
  })
  return scored.toSorted((a, b) => b.weight - a.weight || byText(a.path, b.path)).slice(0, limit)
}

/** Some names, and how many more there are. */
export const few = (names: readonly string[], limit = 4): string =>
  names.length === 0 ? 'it' : `${names.slice(0, limit).join(', ')}${names.length > limit ? ` and ${names.length - limit} more` : ''}`
