// Which cards of saved walks are out of date: their functions have changed since, but for comments and layout.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { lineDiff } from '../../debug/report/lineDiff.ts'
import { ArgumentError } from '../../errors/index.ts'
import { loadCompiler } from '../compiler.ts'
import type { Compiler } from '../compiler.ts'
import { moduleOf } from '../model.ts'
import { readProject } from '../project.ts'
import type { Project, ProjectOptions } from '../project.ts'
import { readPlaces } from '../read/places.ts'
import { sourceOf } from './flowPage.ts'
import { proseFile, proseIn, readProse, readWalk, walkNames, withHashes } from './savedWalk.ts'
import type { Prose, SavedCard, SavedWalk } from './savedWalk.ts'

/** What a check reads: the files of a project, and the folder of its walks. */
export interface CheckOptions extends Pick<ProjectOptions, 'include' | 'exclude' | 'tests'> {
  readonly out: string
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

/** A walk in a folder, and the text by hand for it. */
interface KnownWalk {
  readonly flow: string
  readonly walk: SavedWalk | null
  readonly prose: ReadonlyMap<string, Prose>
}

const cardsOf = ({ walk }: KnownWalk): readonly SavedCard[] => walk?.cards ?? []
const idsIn = ({ walk, prose }: KnownWalk): readonly string[] =>
  walk === null ? [...prose.keys()] : [walk.root, ...walk.cards.map(({ id }) => id), ...prose.keys()]

/** The cards of all walks in a folder whose functions have changed. Throws ArgumentError if there is no walk. */
export function checkFlows(
  folder: string,
  options: CheckOptions,
): { readonly flows: number; readonly cards: number; readonly stale: readonly StaleCard[] } {
  const { out } = options
  const walks = walkNames(out).map((flow): KnownWalk => ({ flow, walk: readWalk(out, flow), prose: readProse(out, flow) }))
  if (walks.length === 0) throw new ArgumentError(`there is no walk in ${out}. Write one: tensorfx flow FILE#function.`)
  const ts = loadCompiler(folder)
  const functions = new Functions(ts, readProject(ts, folder, options), walks.flatMap(idsIn))
  return {
    flows: walks.length,
    cards: walks.reduce((sum, walk) => sum + Math.max(cardsOf(walk).length, walk.prose.size), 0),
    stale: walks.flatMap((walk) => staleOf(walk, functions)),
  }
}

function staleOf(known: KnownWalk, functions: Functions): readonly StaleCard[] {
  const { flow, walk, prose } = known
  const cards = cardsOf(known)
  const missing = (id: string, source: string | null): StaleCard => {
    const now = source === null ? undefined : functions.renamed(id, source)
    return now === undefined ? { flow, id, kind: 'gone', lines: [] } : { flow, id, kind: 'renamed', lines: [now] }
  }
  const isGone = walk !== null && functions.hashOf(walk.root) === undefined && !cards.some(({ id }) => id === walk.root)
  const changed = cards.flatMap(({ id, hash, source }): readonly StaleCard[] => {
    const now = functions.hashOf(id)
    if (now === undefined) return [missing(id, source)]
    return now === hash ? [] : [{ flow, id, kind: 'changed', lines: changedLines(source, functions.textOf(id)) }]
  })
  const texts = [...prose].flatMap(([id, { hash }]): readonly StaleCard[] => {
    const now = functions.hashOf(id)
    if (now === hash || changed.some((one) => one.id === id)) return []
    return [now === undefined ? missing(id, null) : { flow, id, kind: 'prose', lines: [] }]
  })
  return [...(isGone ? [missing(walk.root, null)] : []), ...changed, ...texts]
}

type Places = ReturnType<typeof readPlaces>

/** The functions of a project as they are now. Only files that are asked for are read, until a function is missing from them. */
class Functions {
  readonly #ts: Compiler
  readonly #project: Project
  readonly #known: Places
  #all: Places | null = null

  constructor(ts: Compiler, project: Project, ids: readonly string[]) {
    this.#ts = ts
    this.#project = project
    this.#known = readPlaces(ts, project, ids.map(moduleOf))
  }

  /** The hash of a function's tokens; undefined if it is not there. */
  hashOf(id: string): string | undefined {
    return this.#known.places.get(id)?.hash
  }

  textOf(id: string): string {
    return textIn(this.#known, id)
  }

  /** The function of the project that differs from one with this text by its name alone. */
  renamed(id: string, text: string): string | undefined {
    const all = (this.#all ??= readPlaces(this.#ts, this.#project, this.#project.sources))
    return [...all.places.keys()].find((other) => isRenamed(id, text, other, textIn(all, other)))
  }
}

function textIn({ places, sources }: Places, id: string): string {
  const place = places.get(id)
  return place === undefined ? '' : sourceOf(sources, id, place.line, place.endLine)
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

/** Says that the text by hand of all cards in a folder is right for their functions as they are now. Returns for how many it was not. */
export function acceptProse(folder: string, options: CheckOptions): number {
  const texts = walkNames(options.out)
    .map((name) => join(options.out, proseFile(name)))
    .filter((path) => existsSync(path))
    .map((path) => ({ path, text: readFileSync(path, 'utf8') }))
  const ts = loadCompiler(folder)
  const ids = texts.flatMap(({ text }) => [...proseIn(text).keys()])
  const functions = new Functions(ts, readProject(ts, folder, options), ids)
  let accepted = 0
  for (const { path, text } of texts) {
    const now = withHashes(text, (id, hash) => {
      const current = functions.hashOf(id)
      if (current !== undefined && current !== hash) accepted++
      return current
    })
    if (now !== text) writeFileSync(path, now)
  }
  return accepted
}
