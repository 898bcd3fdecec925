// Writes a walk: its page in each form that is asked for, what pages in HTML need beside it, and what the walk was made from.
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { loadCompiler } from '../compiler.ts'
import { PAGE_SCRIPT } from '../generated/page.ts'
import { moduleOf, nameOf } from '../model.ts'
import type { Model } from '../model.ts'
import { Lookup } from '../pages/lookup.ts'
import type { Page } from '../pages/page.ts'
import { sourcePage } from '../pages/site.ts'
import { readProject } from '../project.ts'
import type { ProjectOptions } from '../project.ts'
import { readModel } from '../read/index.ts'
import { htmlPage, siteStyle } from '../write/html.ts'
import { markdownPage } from '../write/markdown.ts'
import { anchorOf, flowPage, sourceOf } from './flowPage.ts'
import { observe } from './observe.ts'
import { readProse, readWalk, walkFile } from './savedWalk.ts'
import type { SavedCard, SavedWalk } from './savedWalk.ts'
import { findFunction, walk } from './walk.ts'
import type { Walk, WalkOptions } from './walk.ts'

/** What {@link writeFlow} is asked for. */
export interface FlowOptions extends WalkOptions, Omit<ProjectOptions, 'out'> {
  /** The folder of the walks. */
  readonly out: string
  readonly formats: readonly ('html' | 'md' | 'json')[]
  readonly sourceUrl: string | null
  /** A command to observe; null: what was observed before, if anything was. */
  readonly command: string | null
}

/** Writes the walk from a function. Returns it, and the files. Throws ArgumentError for a function that is not there, and a command that fails or does not call it. */
export function writeFlow(folder: string, target: string, options: FlowOptions): { readonly walk: Walk; readonly files: readonly string[] } {
  const { out, formats, sourceUrl, depth, nodes, stop, skip, pin } = options
  const ts = loadCompiler(folder)
  const { model, sources } = readModel(ts, readProject(ts, folder, options))
  const root = findFunction(model, target)
  const name = nameOf(root).replaceAll(/[^\w.-]/g, '_')
  const observation = observationOf(folder, name, root, options)
  const walkOptions = { depth, nodes, stop, skip, pin }
  const found = walk(model, root, observation.observed, walkOptions)
  const prose = new Map([...readProse(out, name)].map(([id, { text }]) => [id, text]))
  const page = flowPage(name, found, { model, sources, sourceUrl, prose, command: observation.command })
  const saved: SavedWalk = { schema: 1, root, options: walkOptions, ...observation, cards: cardsOf(found, model, sources) }
  const files = new Map([
    [walkFile(name), `${JSON.stringify(saved, null, 1)}\n`],
    ...(formats.includes('md') ? [[`${name}.md`, markdownPage(page)] as const] : []),
    ...(formats.includes('html') ? htmlFiles(page, found, new Lookup(model, sourceUrl), sources) : []),
  ])
  for (const [file, text] of files) {
    mkdirSync(dirname(join(out, file)), { recursive: true })
    writeFileSync(join(out, file), text)
  }
  return { walk: found, files: [...files.keys()] }
}

/** What was observed: by the command that is given, or else in the run that the saved walk is from. */
function observationOf(folder: string, name: string, root: string, { out, command }: FlowOptions): Pick<SavedWalk, 'command' | 'observed'> {
  if (command !== null) return { command, observed: observe(folder, command) }
  const before = readWalk(out, name)
  return before?.root === root ? { command: before.command, observed: before.observed } : { command: null, observed: null }
}

function cardsOf({ cards }: Walk, { symbols }: Model, sources: ReadonlyMap<string, string>): readonly SavedCard[] {
  const known = new Map(symbols.map((symbol) => [symbol.id, symbol]))
  return cards.flatMap((id) => {
    const symbol = known.get(id)
    return symbol === undefined ? [] : [{ id, hash: symbol.hash, source: sourceOf(sources, id, symbol.line, symbol.endLine) }]
  })
}

/** The page in HTML, with its style, program and search, and pages of the sources unless these have an address elsewhere. */
function htmlFiles(
  page: Page,
  { root, cards }: Walk,
  lookup: Lookup,
  sources: ReadonlyMap<string, string>,
): readonly (readonly [file: string, text: string])[] {
  const crumb = { text: nameOf(root), page: page.path }
  const { model, sourceUrl } = lookup
  const frame = { name: model.name, menu: [crumb], generator: `Written by ${model.generator}` }
  const modules = sourceUrl === null ? [...new Set(cards.map(moduleOf))] : []
  const sourcePages = modules.map((path) => sourcePage(lookup, path, sources.get(path) ?? ''))
  const index = cards.map((id) => [nameOf(id), 'function', `${page.path}.html#${encodeURIComponent(anchorOf(id))}`, moduleOf(id), 1])
  return [
    [`${page.path}.html`, htmlPage(page, frame)],
    ...sourcePages.map((one) => [`${one.path}.html`, htmlPage({ ...one, crumbs: [crumb] }, frame)] as const),
    ['site.css', siteStyle()],
    ['site.js', `${PAGE_SCRIPT}\n`],
    ['search.js', `window.searchIndex = ${JSON.stringify(index).replaceAll('<', String.raw`\u003c`)}\n`],
  ]
}
