// Walks as files: the page of a walk, and a file beside it with what it was made from, by which a check finds the cards whose functions have changed.
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { lineDiff } from '../../debug/report/lineDiff.ts'
import { ArgumentError } from '../../errors/index.ts'
import { isObject } from '../../protocol/index.ts'
import { loadCompiler } from '../compiler.ts'
import { PAGE_SCRIPT } from '../generated/page.ts'
import { moduleOf, nameOf } from '../model.ts'
import type { Model } from '../model.ts'
import { Lookup } from '../pages/lookup.ts'
import { sourcePage } from '../pages/site.ts'
import { readProject } from '../project.ts'
import type { ProjectOptions } from '../project.ts'
import { readModel } from '../read/index.ts'
import type { ReadModel } from '../read/index.ts'
import { readPlaces } from '../read/places.ts'
import { htmlPage, siteStyle } from '../write/html.ts'
import { markdownPage } from '../write/markdown.ts'
import { flowPage, sourceOf } from './flowPage.ts'
import { observe } from './observe.ts'
import type { Observed } from './observe.ts'
import { findFunction, walk } from './walk.ts'
import type { Walk, WalkOptions } from './walk.ts'

/** What is kept of a walk. */
interface SavedWalk {
  readonly schema: 1
  readonly root: string
  readonly options: WalkOptions
  readonly command: string | null
  readonly observed: readonly Observed[] | null
  /** The functions that have a card, with the hash of their tokens and their text. */
  readonly cards: readonly { readonly id: string; readonly hash: string; readonly source: string }[]
}

/** What {@link writeFlow} is asked for. */
export interface FlowOptions extends WalkOptions, Omit<ProjectOptions, 'out'> {
  /** The folder of the walks. */
  readonly out: string
  readonly formats: readonly ('html' | 'md' | 'json')[]
  readonly sourceUrl: string | null
  /** A command to observe; null: what was observed before, if anything was. */
  readonly command: string | null
}

/** A card whose function has changed. */
export interface StaleCard {
  readonly flow: string
  readonly id: string
  /** 'changed', 'gone', 'renamed' where another function has the same tokens, or 'prose' where only the text by hand is for an older version. */
  readonly kind: 'changed' | 'gone' | 'renamed' | 'prose'
  /** The lines that differ, with `-` and `+`; for 'renamed' the new id. */
  readonly lines: readonly string[]
}

const END = '.flow.json'
const PROSE = '.prose.md'
const readTexts = (folder: string, options: Omit<ProjectOptions, 'out'>): ReadModel => {
  const ts = loadCompiler(folder)
  return readModel(ts, readProject(ts, folder, options))
}

function savedIn(path: string): SavedWalk {
  const read: unknown = JSON.parse(readFileSync(path, 'utf8'))
  if (!isObject(read) || Reflect.get(read, 'schema') !== 1)
    throw new ArgumentError(`${path} is not a walk written by this version of tensorfx flow. Write it again.`)
  return read as SavedWalk
}

/** Text by hand: `::card src/file.ts#name@hash` and what follows, up to the next card. */
export function proseIn(source: string): ReadonlyMap<string, { readonly hash: string; readonly text: string }> {
  const cards = source
    .replaceAll('\r\n', '\n')
    .split(/^::card[ \t]+/m)
    .slice(1)
  return new Map(
    cards.flatMap((card) => {
      const [, id = '', hash = '', rest = ''] = /^(\S+?)@([\da-f]+)[ \t]*(?:\n([^]*))?$/.exec(card) ?? []
      return id === '' ? [] : [[id, { hash, text: rest.trim() }] as const]
    }),
  )
}

const proseOf = (path: string): ReturnType<typeof proseIn> => (existsSync(path) ? proseIn(readFileSync(path, 'utf8')) : new Map())

/** Writes the walk from a function. Returns it, and the files. Throws ArgumentError for a function that is not there, and a command that fails or does not call it. */
export function writeFlow(folder: string, target: string, options: FlowOptions): { readonly walk: Walk; readonly files: readonly string[] } {
  const { out, formats, sourceUrl } = options
  const { model, sources } = readTexts(folder, options)
  const root = findFunction(model, target)
  const name = nameOf(root).replaceAll(/[^\w.-]/g, '_')
  const saved = join(out, `${name}${END}`)
  const before = options.command === null && existsSync(saved) ? savedIn(saved) : null
  const observed = options.command === null ? (before?.root === root ? before.observed : null) : observe(folder, options.command)
  const command = options.command ?? (before?.root === root ? before.command : null)
  const { depth, nodes, stop, skip, pin } = options
  const found = walk(model, root, observed, { depth, nodes, stop, skip, pin })
  const prose = new Map([...proseOf(join(out, `${name}${PROSE}`))].map(([id, { text }]) => [id, text]))
  const page = flowPage(name, found, { model, sources, sourceUrl, prose, command })
  const kept: SavedWalk = { schema: 1, root, options: { depth, nodes, stop, skip, pin }, command, observed, cards: cardsOf(found, model, sources) }
  const files = new Map([[`${name}${END}`, `${JSON.stringify(kept, null, 1)}\n`]])
  if (formats.includes('md')) files.set(`${name}.md`, markdownPage(page))
  if (formats.includes('html')) {
    const lookup = new Lookup(model, sourceUrl)
    const frame = { name: model.name, menu: [{ text: nameOf(root), page: name }], generator: `Written by ${model.generator}` }
    files.set(`${name}.html`, htmlPage(page, frame))
    if (sourceUrl === null) {
      for (const path of new Set(found.cards.map(moduleOf))) {
        const one = sourcePage(lookup, path, sources.get(path) ?? '')
        files.set(`${one.path}.html`, htmlPage({ ...one, crumbs: [{ text: nameOf(root), page: name }] }, frame))
      }
    }
    files.set('site.css', siteStyle())
    files.set('site.js', `${PAGE_SCRIPT}\n`)
    const index = found.cards.map((id) => [
      nameOf(id),
      'function',
      `${name}.html#${encodeURIComponent(id.replaceAll('/', '.').replaceAll('#', ':'))}`,
      moduleOf(id),
      1,
    ])
    files.set('search.js', `window.searchIndex = ${JSON.stringify(index).replaceAll('<', String.raw`\u003c`)}\n`)
  }
  for (const [file, text] of files) {
    mkdirSync(dirname(join(out, file)), { recursive: true })
    writeFileSync(join(out, file), text)
  }
  return { walk: found, files: [...files.keys()] }
}

function cardsOf({ cards }: Walk, { symbols }: Model, sources: ReadonlyMap<string, string>): SavedWalk['cards'] {
  return cards.flatMap((id) => {
    const symbol = symbols.find((one) => one.id === id)
    return symbol === undefined ? [] : [{ id, hash: symbol.hash, source: sourceOf(sources, id, symbol.line, symbol.endLine) }]
  })
}

/** What a check reads: the folder of a project, and where its walks are. */
type CheckOptions = Pick<FlowOptions, 'out' | 'include' | 'exclude' | 'tests'>

/** The walks in a folder, and the text by hand. A text may be kept without its walk, which is written again when it is needed. */
const walksIn = (out: string): readonly string[] => {
  const names = existsSync(out) ? readdirSync(out).filter((name) => name.endsWith(END) || name.endsWith(PROSE)) : []
  return [...new Set(names.map((name) => name.slice(0, name.endsWith(END) ? -END.length : -PROSE.length)))].toSorted()
}

/** The cards of all walks in a folder whose functions have changed: their tokens, not their comments or layout. Throws ArgumentError if there is no walk. */
export function checkFlows(
  folder: string,
  options: CheckOptions,
): { readonly flows: number; readonly cards: number; readonly stale: readonly StaleCard[] } {
  const { out } = options
  const names = walksIn(out)
  if (names.length === 0) throw new ArgumentError(`there is no walk in ${out}. Write one: tensorfx flow FILE#function.`)
  const walks = names.map((flow) => {
    const saved = join(out, `${flow}${END}`)
    const walk = existsSync(saved) ? savedIn(saved) : null
    return { flow, root: walk?.root ?? null, cards: walk?.cards ?? [], prose: [...proseOf(join(out, `${flow}${PROSE}`))] }
  })
  const ts = loadCompiler(folder)
  const project = readProject(ts, folder, options)
  const { places, sources } = readPlaces(
    ts,
    project,
    walks.flatMap(({ root, cards, prose }) =>
      [...(root === null ? [] : [root]), ...cards.map(({ id }) => id), ...prose.map(([id]) => id)].map(moduleOf),
    ),
  )
  let all: ReturnType<typeof readPlaces> | null = null
  const wholeProject = (): ReturnType<typeof readPlaces> => (all ??= readPlaces(ts, project, project.sources))
  const missing = (flow: string, id: string, source: string | null): StaleCard => {
    const found =
      source === null
        ? undefined
        : [...wholeProject().places].find(([one, { line, endLine }]) =>
            isRenamed(id, source, one, sourceOf(wholeProject().sources, one, line, endLine)),
          )
    return { flow, id, kind: found === undefined ? 'gone' : 'renamed', lines: found === undefined ? [] : [found[0]] }
  }
  const stale = walks.flatMap(({ flow, root, cards, prose }) => {
    const isKnown = root === null || places.has(root) || cards.some(({ id }) => id === root)
    const changed = cards.flatMap(({ id, hash, source }): readonly StaleCard[] => {
      const now = places.get(id)
      if (now === undefined) return [missing(flow, id, source)]
      return now.hash === hash ? [] : [{ flow, id, kind: 'changed', lines: changedLines(source, sourceOf(sources, id, now.line, now.endLine)) }]
    })
    const texts = prose.flatMap(([id, { hash }]): readonly StaleCard[] => {
      const now = places.get(id)
      if (now?.hash === hash || changed.some((one) => one.id === id)) return []
      return [now === undefined ? missing(flow, id, null) : { flow, id, kind: 'prose', lines: [] }]
    })
    return [...(isKnown ? [] : [missing(flow, root, null)]), ...changed, ...texts]
  })
  return { flows: names.length, cards: walks.reduce((sum, { cards, prose }) => sum + Math.max(cards.length, prose.length), 0), stale }
}

/** Whether a function is another one under a new name. */
function isRenamed(id: string, source: string, other: string, text: string): boolean {
  const last = (of: string): string => of.slice(Math.max(of.lastIndexOf('.'), of.lastIndexOf('#')) + 1)
  return text.length - source.length === last(other).length - last(id).length && text.replace(last(other), last(id)) === source
}

/** The lines that differ. */
function changedLines(before: string, after: string): readonly string[] {
  const [old, now] = [before.split('\n'), after.split('\n')]
  return lineDiff(old, now).flatMap(([a, b]) => (a >= 0 && b >= 0 ? [] : [a >= 0 ? `- ${old[a] ?? ''}` : `+ ${now[b] ?? ''}`]))
}

/** Says that the text by hand of all cards in a folder is right for their functions as they are now. */
export function acceptProse(folder: string, options: CheckOptions): number {
  const files = walksIn(options.out)
    .map((flow) => join(options.out, `${flow}${PROSE}`))
    .filter((path) => existsSync(path))
  const ts = loadCompiler(folder)
  const { places } = readPlaces(
    ts,
    readProject(ts, folder, options),
    files.flatMap((path) => [...proseOf(path).keys()].map(moduleOf)),
  )
  let accepted = 0
  for (const path of files) {
    const text = readFileSync(path, 'utf8')
    const now = text.replaceAll(/^(::card[ \t]+)(\S+?)@([\da-f]+)/gm, (whole, head: string, id: string, hash: string) => {
      const current = places.get(id)?.hash
      if (current === undefined || current === hash) return whole
      accepted++
      return `${head}${id}@${current}`
    })
    if (now !== text) writeFileSync(path, now)
  }
  return accepted
}
