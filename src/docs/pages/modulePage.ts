// The page of a module: what it is, its exports, what is inside, what it imports and who imports it, its errors and tests, related modules.
import { baseOf, byText, folderOf } from '../model.ts'
import type { Module, ProgramSymbol } from '../model.ts'
import { few, groupBy, parentOf, relatedTo } from './lookup.ts'
import type { Lookup } from './lookup.ts'
import { firstSentence, parseInline, parseMarkdown } from './markdownText.ts'
import { code, heading, joined, link, list, soft, table, text } from './page.ts'
import type { Block, Inline, Page } from './page.ts'
import { symbolBlocks } from './symbolBlocks.ts'

/** The pages above a module or folder. */
export function crumbsOf(lookup: Lookup, path: string): Page['crumbs'] {
  const folders: string[] = []
  for (let at = folderOf(path); at !== ''; at = folderOf(at)) folders.unshift(at)
  return [{ text: 'modules', page: lookup.folderPage('') }, ...folders.map((folder) => ({ text: baseOf(folder), page: lookup.folderPage(folder) }))]
}

/** The first sentence about a symbol, with its links. */
export const summaryOf = (lookup: Lookup, symbol: ProgramSymbol): readonly Inline[] =>
  symbol.doc === null ? [] : parseInline(firstSentence(symbol.doc.text), lookup.namesIn(symbol))

/** What a module is for: its header, or the doc of its only or default export. */
export function purposeOf(lookup: Lookup, { path, header, exports }: Module): string | null {
  if (header !== null) return header
  const own = exports.filter(({ symbol }) => symbol?.startsWith(`${path}#`) === true)
  const one = own.find(({ name }) => name === 'default' || name === 'module.exports') ?? (own.length === 1 ? own[0] : undefined)
  const doc = one?.symbol === undefined || one.symbol === null ? null : (lookup.symbols.get(one.symbol)?.doc ?? null)
  return doc === null || doc.text === '' ? null : doc.text
}

/** The name of a symbol as a link to where it is described. */
export function nameLink(lookup: Lookup, id: string, shown?: string): Inline {
  const target = lookup.targetOf(id)
  const name = code(shown ?? lookup.symbols.get(id)?.name ?? id)
  return target === null ? name : link(target, name)
}

const moduleLink = (lookup: Lookup, path: string): Inline => (lookup.modules.has(path) ? link({ page: lookup.pageOf(path) }, code(path)) : code(path))

/** The page of a module. */
export function modulePage(lookup: Lookup, module: Module): Page {
  const { path, lines, entries, hash, calls } = module
  const symbols = lookup.byModule.get(path) ?? []
  const tops = symbols.filter((symbol) => parentOf(symbol) === null || !lookup.symbols.has(parentOf(symbol) ?? ''))
  const exported = new Set(module.exports.flatMap(({ symbol }) => (symbol === null ? [] : [symbol])))
  const [own, inside] = [tops.filter(({ id }) => exported.has(id)), tops.filter(({ id }) => !exported.has(id))]
  const passedOn = module.exports.filter(({ symbol }) => symbol === null || !symbol.startsWith(`${path}#`))
  const purpose = purposeOf(lookup, module)
  const unresolved = calls.total === 0 ? 0 : calls.unresolved / calls.total
  const about: readonly (readonly Inline[])[] = [
    [`${lines} lines`],
    ...(entries.length === 0
      ? []
      : [
          [
            `exported as `,
            ...joined(
              entries.map((entry) => [code(entry)]),
              ', ',
            ),
          ],
        ]),
    [link(lookup.lineTarget(path, 1), 'source')],
    [soft(hash)],
    ...(unresolved > 0.1 ? [[soft(`the callee of ${Math.round(100 * unresolved)}% of its calls is unknown, since it has no types`)]] : []),
  ]
  const blocks: Block[] = [text(...joined(about, ' · ')), ...(purpose === null ? [] : parseMarkdown(purpose, (name) => lookup.resolve(path, name)))]
  if (own.length > 1 || (own.length > 0 && own[0]?.doc?.text !== purpose))
    blocks.push(
      heading(2, '.glance', 'At a glance'),
      table(
        ['name', 'kind', 'what it is'],
        own.map((symbol) => [[nameLink(lookup, symbol.id)], [symbol.kind], summaryOf(lookup, symbol)]),
      ),
    )
  if (own.length > 0) blocks.push(heading(2, '.exports', 'Exports'), ...own.flatMap((symbol) => withMembers(lookup, symbol)))
  if (passedOn.length > 0) blocks.push(heading(2, '.passed-on', 'Passes on'), ...passedOnBlocks(lookup, passedOn))
  if (inside.length > 0) blocks.push(heading(2, '.inside', 'Inside'), insideTable(lookup, inside))
  blocks.push(...importBlocks(lookup, module), ...testBlocks(lookup, symbols), ...relatedBlocks(lookup, module))
  return { path: lookup.pageOf(path), title: path, crumbs: crumbsOf(lookup, path), blocks }
}

/** A symbol and its members. Hidden members are only listed. */
export function withMembers(lookup: Lookup, symbol: ProgramSymbol): readonly Block[] {
  const members = lookup.members.get(symbol.id) ?? []
  const [seen, hidden] = [members.filter(({ visibility }) => visibility !== 'private'), members.filter(({ visibility }) => visibility === 'private')]
  // Members of namespaces have members, too.
  const level = (depth: number): number => Math.min(6, 4 + depth)
  const below = (of: ProgramSymbol, depth: number): readonly Block[] => [
    ...symbolBlocks(lookup, of, level(depth)),
    ...(lookup.members.get(of.id) ?? []).flatMap((member) => below(member, depth + 1)),
  ]
  return [
    ...symbolBlocks(lookup, symbol, 3),
    ...seen.flatMap((member) => below(member, 0)),
    ...(hidden.length === 0 ? [] : [insideTable(lookup, hidden)]),
  ]
}

/** Symbols that their module keeps for itself: a row each, with their members. */
function insideTable(lookup: Lookup, symbols: readonly ProgramSymbol[]): Block {
  const all = (symbol: ProgramSymbol): readonly ProgramSymbol[] => [symbol, ...(lookup.members.get(symbol.id) ?? []).flatMap(all)]
  return table(
    ['inside', 'kind', 'what it is'],
    symbols
      .flatMap(all)
      .map((symbol) => [
        [{ kind: 'anchor', id: lookup.anchorOf(symbol.id), text: [link(lookup.lineTarget(symbol.module, symbol.line), code(symbol.name))] }],
        [symbol.kind],
        [
          ...summaryOf(lookup, symbol),
          ...(symbol.throws.length === 0 ? [] : [' ', soft(`throws ${few([...new Set(symbol.throws.map(({ error }) => error ?? 'again'))])}`)]),
        ],
      ]),
  )
}

function passedOnBlocks(lookup: Lookup, exports: Module['exports']): readonly Block[] {
  const groups = [...groupBy(exports, ({ symbol }) => (symbol === null ? '' : (lookup.symbols.get(symbol)?.module ?? '')))].toSorted((a, b) =>
    byText(a[0], b[0]),
  )
  return groups.map(([from, names]) => {
    const links = names.map(({ name, symbol }): readonly Inline[] => [symbol === null ? code(name) : nameLink(lookup, symbol, name)])
    return text(...(from === '' ? ['from elsewhere: '] : ['from ', moduleLink(lookup, from), ': ']), ...joined(links, ', '))
  })
}

function importBlocks(lookup: Lookup, { imports, importers }: Module): readonly Block[] {
  const [packages, modules] = [imports.filter(({ isPackage }) => isPackage), imports.filter(({ isPackage }) => !isPackage)]
  const row = ({ from, names, isType }: Module['imports'][number]): readonly Inline[] => [
    moduleLink(lookup, from),
    ...(names.length === 0
      ? [' for its effects']
      : [
          ': ',
          ...joined(
            names.map((name) => [code(name)]),
            ', ',
          ),
        ]),
    ...(isType ? [' ', soft('types only')] : []),
  ]
  return [
    ...(modules.length === 0 ? [] : [heading(2, '.imports', 'Imports'), list(modules.map(row))]),
    ...(packages.length === 0 ? [] : [heading(2, '.packages', 'Packages'), list(packages.map(row))]),
    ...(importers.length === 0
      ? []
      : [
          heading(2, '.importers', 'Imported by'),
          text(
            ...joined(
              importers.map(({ path, isType }) => [moduleLink(lookup, path), ...(isType ? [' ', soft('types only')] : [])]),
              ', ',
            ),
          ),
        ]),
  ]
}

function testBlocks(lookup: Lookup, symbols: readonly ProgramSymbol[]): readonly Block[] {
  const uses = symbols.flatMap(({ id, tests }) => tests.map((test) => ({ id, file: test.file, line: test.line })))
  const files = [...groupBy(uses, ({ file }) => file)].toSorted((a, b) => b[1].length - a[1].length || byText(a[0], b[0]))
  if (files.length === 0) return []
  const rows = files.slice(0, 12).map(([file, of]): readonly (readonly Inline[])[] => {
    const at = code(file)
    const ids = [...new Set(of.map(({ id }) => id))]
    return [
      [lookup.sourceUrl === null ? at : link(lookup.lineTarget(file, 1), at)],
      [String(new Set(of.map(({ line }) => line)).size)],
      [
        ...joined(
          ids.slice(0, 6).map((id) => [nameLink(lookup, id)]),
          ', ',
        ),
        ...(ids.length > 6 ? [soft(` and ${ids.length - 6} more`)] : []),
      ],
    ]
  })
  return [
    heading(2, '.tests', 'Tests'),
    table(['file', 'tests', 'names'], rows),
    ...(files.length > 12 ? [text(soft(`and ${files.length - 12} more files`))] : []),
  ]
}

function relatedBlocks(lookup: Lookup, module: Module): readonly Block[] {
  const related = relatedTo(lookup, module)
  return related.length === 0
    ? []
    : [heading(2, '.related', 'Related'), list(related.map(({ path, reason }) => [moduleLink(lookup, path), ': ', reason]))]
}
