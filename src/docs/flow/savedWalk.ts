// What is kept of a walk, beside its page: what it was made from, NAME.flow.json, and text by hand for its cards, NAME.prose.md.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ArgumentError } from '../../errors/index.ts'
import { isObject } from '../../protocol/index.ts'
import type { Observed } from './observe.ts'
import type { WalkOptions } from './walk.ts'

/** A walk as its file has it. */
export interface SavedWalk {
  readonly schema: 1
  readonly root: string
  readonly options: WalkOptions
  readonly command: string | null
  readonly observed: readonly Observed[] | null
  readonly cards: readonly SavedCard[]
}

/** A function that has a card, with the hash of its tokens and its text. */
export interface SavedCard {
  readonly id: string
  readonly hash: string
  readonly source: string
}

/** Text by hand for a card: the hash of the function that it was written for, and the text. */
export interface Prose {
  readonly hash: string
  readonly text: string
}

const WALK = '.flow.json'
const PROSE = '.prose.md'

export const walkFile = (name: string): string => `${name}${WALK}`
export const proseFile = (name: string): string => `${name}${PROSE}`

/** The names of the walks in a folder. One that has text by hand may have no walk: it is written again when it is needed. */
export function walkNames(folder: string): readonly string[] {
  const files = existsSync(folder) ? readdirSync(folder) : []
  const names = files.flatMap((file) => [WALK, PROSE].flatMap((end) => (file.endsWith(end) ? [file.slice(0, -end.length)] : [])))
  return [...new Set(names)].toSorted()
}

/** A walk in a folder; null if it has not been written. Throws ArgumentError for a file of another version. */
export function readWalk(folder: string, name: string): SavedWalk | null {
  const path = join(folder, walkFile(name))
  if (!existsSync(path)) return null
  const read: unknown = JSON.parse(readFileSync(path, 'utf8'))
  if (!isObject(read) || Reflect.get(read, 'schema') !== 1)
    throw new ArgumentError(`${path} is not a walk written by this version of tensorfx flow. Write it again.`)
  return read as SavedWalk
}

/** Text by hand, by the ids of functions: `::card src/file.ts#name@hash` and what follows, up to the next card. */
export function proseIn(source: string): ReadonlyMap<string, Prose> {
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

/** The text by hand of a walk. */
export function readProse(folder: string, name: string): ReadonlyMap<string, Prose> {
  const path = join(folder, proseFile(name))
  return existsSync(path) ? proseIn(readFileSync(path, 'utf8')) : new Map()
}

/** The source of text by hand with other hashes: `hashOf` gives that of a function; undefined leaves it as it is. */
export const withHashes = (source: string, hashOf: (id: string, hash: string) => string | undefined): string =>
  source.replaceAll(/^(::card[ \t]+)(\S+?)@([\da-f]+)/gm, (whole, head: string, id: string, hash: string) => {
    const current = hashOf(id, hash)
    return current === undefined ? whole : `${head}${id}@${current}`
  })
