// All pages of a program, and the files that they are written to.
import { byText } from '../model.ts'
import type { Model, ProgramSymbol } from '../model.ts'
import { PAGE_SCRIPT } from '../generated/page.ts'
import { htmlPage, siteStyle } from '../write/html.ts'
import type { SiteFrame } from '../write/html.ts'
import { addressOf, markdownPage } from '../write/markdown.ts'
import { folderPage } from './folderPage.ts'
import { errorsPage, kindsPage, namesPage, startPage } from './indexPages.ts'
import { parentOf } from './lookup.ts'
import type { Lookup } from './lookup.ts'
import { firstSentence } from './markdownText.ts'
import { crumbsOf, modulePage, purposeOf } from './modulePage.ts'
import { linksOf, text } from './page.ts'
import type { Page, PageLinks } from './page.ts'

export type Format = 'html' | 'md' | 'json'

/** What is written. */
export interface SiteOptions {
  readonly formats: readonly Format[]
  /** The address of a line of a source elsewhere, such as `https://example.com/blob/main/{path}#L{line}`; null: sources have pages of their own. */
  readonly sourceUrl: string | null
}

/** A page as its files, by their paths, and what it links. */
export interface WrittenPage {
  readonly files: readonly (readonly [path: string, text: string])[]
  readonly links: PageLinks
}

/** One of several parts of equal size, from 0. */
export interface Part {
  readonly index: number
  readonly of: number
}

/** What makes each page of a program, in order. */
function pageMakers(lookup: Lookup, sources: ReadonlyMap<string, string>): readonly (() => Page)[] {
  const { model, sourceUrl } = lookup
  return [
    () => startPage(lookup),
    () => namesPage(lookup),
    () => kindsPage(lookup),
    () => errorsPage(lookup),
    ...lookup.folders.map((folder) => () => folderPage(lookup, folder)),
    ...model.modules.map((module) => () => modulePage(lookup, module)),
    ...(sourceUrl === null
      ? model.modules.map(
          ({ path }) =>
            () =>
              sourcePage(lookup, path, sources.get(path) ?? ''),
        )
      : []),
  ]
}

/**
 * Writes the pages of a program, or a part of them: every second of two parts. `sources`: the texts of its modules, which have pages unless their lines have an address elsewhere. A
 * model alone has no pages.
 */
export function writePages(
  lookup: Lookup,
  sources: ReadonlyMap<string, string>,
  { formats }: Pick<SiteOptions, 'formats'>,
  { index, of }: Part = { index: 0, of: 1 },
): readonly WrittenPage[] {
  if (formats.every((format) => format === 'json')) return []
  const frame = frameOf(lookup)
  return pageMakers(lookup, sources)
    .filter((_, i) => i % of === index)
    .map((make) => {
      const page = make()
      const files: (readonly [string, string])[] = []
      if (formats.includes('html')) files.push([`${page.path}.html`, htmlPage(page, frame)])
      if (formats.includes('md') && page.isSource !== true) files.push([`${page.path}.md`, markdownPage(page)])
      return { files, links: linksOf(page) }
    })
}

const frameOf = (lookup: Lookup): SiteFrame => ({
  name: lookup.model.name,
  generator: `Written by ${lookup.model.generator}`,
  menu: [
    { text: 'Modules', page: lookup.folderPage('') },
    { text: 'A–Z', page: 'names' },
    { text: 'Kinds', page: 'kinds' },
    { text: 'Errors', page: 'errors' },
  ],
})

/** The page of a source, with an anchor for each line. */
export function sourcePage(lookup: Lookup, path: string, source: string): Page {
  const module = lookup.pageOf(path)
  return {
    ...{ path: lookup.sourcePage(path), title: path, isSource: true },
    crumbs: [...crumbsOf(lookup, path), { text: 'documentation of this module', page: module }],
    blocks:
      source === ''
        ? [text('This file is empty.'), { kind: 'source', text: '', from: 1, hasAnchors: true }]
        : [{ kind: 'source', text: source.replace(/\n$/, ''), from: 1, hasAnchors: true }],
  }
}

/** A link that leads nowhere, or a place that a page has twice. */
export interface LinkFinding {
  readonly rule: 'dead-link' | 'duplicate-anchor'
  readonly page: string
  readonly target: string
}

/** Follows every link of some pages. */
export function checkLinks(links: readonly PageLinks[]): readonly LinkFinding[] {
  const places = new Map(links.map(({ path, ids }) => [path, new Set(ids)]))
  return links.flatMap(({ path, ids, targets }): readonly LinkFinding[] => {
    const seen = new Set<string>()
    const twice = ids.filter((id) => seen.size === seen.add(id).size)
    const dead = targets.flatMap((target) => {
      if ('url' in target) return []
      const isThere = target.anchor === undefined ? places.has(target.page) : places.get(target.page)?.has(target.anchor) === true
      return isThere ? [] : [`${target.page}${target.anchor === undefined ? '' : `#${target.anchor}`}`]
    })
    return [
      ...twice.map((target) => ({ rule: 'duplicate-anchor' as const, page: path, target })),
      ...dead.map((target) => ({ rule: 'dead-link' as const, page: path, target })),
    ]
  })
}

/** JSON that a script element may hold. */
const scriptJson = (value: unknown): string => JSON.stringify(value).replaceAll('<', String.raw`\u003c`)

/** The names under which the entries of a package export a symbol; its own name where none does, and for members. */
export function exportedNames({ name, entries }: Pick<ProgramSymbol, 'name' | 'entries'>): readonly string[] {
  const names = name.includes('.') ? [] : entries.map((entry) => entry.slice(entry.indexOf('#') + 1))
  const shown = names.map((one) => (one === 'default' || one === 'module.exports' ? name : one))
  return shown.length === 0 ? [name] : [...new Set(shown)]
}

/** The index of the search: every name that a module exports, with its members, and every module. */
function searchIndex(lookup: Lookup): string {
  const address = (page: string, anchor?: string): string => addressOf('', anchor === undefined ? { page } : { page, anchor }, '.html')
  const symbols = lookup.model.symbols
    .filter((symbol) => symbol.visibility !== 'private' || parentOf(symbol) === null)
    .flatMap((symbol) => {
      const { id, kind, module, doc, visibility } = symbol
      const about = [
        kind,
        address(lookup.pageOf(module), lookup.anchorOf(id)),
        firstSentence(doc?.text ?? '').slice(0, 140),
        visibility === 'public' ? 1 : 0,
      ]
      return exportedNames(symbol).map((name) => [name, ...about])
    })
  const modules = lookup.model.modules.map((module) => [
    module.path,
    'module',
    address(lookup.pageOf(module.path)),
    firstSentence(purposeOf(lookup, module) ?? '').slice(0, 140),
    0,
  ])
  return `window.searchIndex = ${scriptJson([...symbols, ...modules]).replaceAll('],[', '],\n[')}\n`
}

/** What language models and other programs read first: every page with a sentence. */
function llmsText(lookup: Lookup, end: string): string {
  const { name, description, modules } = lookup.model
  const rows = modules.map((module) => {
    const purpose = firstSentence(purposeOf(lookup, module) ?? '')
    return `- [${module.path}](${addressOf('', { page: lookup.pageOf(module.path) }, end)})${purpose === '' ? '' : `: ${purpose}`}`
  })
  return `# ${name}\n\n${description === '' ? '' : `> ${description.replaceAll('\n', ' ')}\n\n`}The model of the program is in model.json.\n\n## Modules\n\n${rows.join('\n')}\n`
}

/** The files of a site by their paths. */
export function filesOf(lookup: Lookup, pages: readonly WrittenPage[], { formats }: Pick<SiteOptions, 'formats'>): ReadonlyMap<string, string> {
  const files = new Map(pages.flatMap((page) => page.files))
  if (formats.includes('html')) {
    files.set('site.css', siteStyle())
    files.set('site.js', `${PAGE_SCRIPT}\n`)
    files.set('search.js', searchIndex(lookup))
  }
  files.set('model.json', modelText(lookup.model))
  files.set('llms.txt', llmsText(lookup, formats.includes('md') ? '.md' : '.html'))
  return new Map([...files].toSorted((a, b) => byText(a[0], b[0])))
}

/** The model as JSON, with a line for each module, symbol and call, so that versions can be compared. */
export function modelText(model: Model): string {
  const rows = (items: readonly unknown[]): string => (items.length === 0 ? '[]' : `[\n${items.map((item) => JSON.stringify(item)).join(',\n')}\n]`)
  const { modules, symbols, calls, ...head } = model
  return `${JSON.stringify(head).slice(0, -1)},\n"modules":${rows(modules)},\n"symbols":${rows(symbols)},\n"calls":${rows(calls)}}\n`
}
