// What is kept in the folder of a site for the next time: what it was made from, which files belong to it, and what was read of the modules.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isObject } from '../protocol/index.ts'
import { hashOf } from './read/index.ts'
import type { Kept } from './read/changes.ts'

const CACHE = '.cache.json'
const FACTS = '.facts.json'

/** What a site was made from, and its files. */
export interface Cache {
  readonly key: string
  readonly files: readonly string[]
}

/** What is known of the site in a folder; null if there is none. */
export function cacheIn(out: string): Cache | null {
  const path = join(out, CACHE)
  if (!existsSync(path)) return null
  try {
    const read: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (!isObject(read)) return null
    const [key, files]: unknown[] = [Reflect.get(read, 'key'), Reflect.get(read, 'files')]
    return typeof key === 'string' && Array.isArray(files)
      ? { key, files: files.filter((name) => typeof name === 'string' && !name.split('/').includes('..')) }
      : null
  } catch {
    return null
  }
}

/** What was read when the site in a folder was made; null if there is none, or if it is not what was written. */
export function keptIn(out: string): Kept | null {
  const path = join(out, FACTS)
  if (!existsSync(path)) return null
  const text = readFileSync(path, 'utf8')
  const end = text.indexOf('\n')
  const facts = text.slice(end + 1)
  return hashOf(facts) === text.slice(0, Math.max(0, end)) ? JSON.parse(facts) : null
}

/** Keeps what a site was made from. `kept`: what was read of the modules; null if nothing was. */
export function writeCache(out: string, cache: Cache, kept: Kept | null): void {
  if (kept !== null) {
    const facts = JSON.stringify(kept)
    writeFileSync(join(out, FACTS), `${hashOf(facts)}\n${facts}`)
  }
  writeFileSync(join(out, CACHE), `${JSON.stringify(cache)}\n`)
}
