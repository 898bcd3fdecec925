// Documentation of a program, from its sources: the model, its pages, and what is missing in them. Node only; the command line is what uses it.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { VERSION } from '../version.ts'
import { cacheIn, keptIn, writeCache } from './cache.ts'
import { loadCompiler } from './compiler.ts'
import type { Compiler } from './compiler.ts'
import { lint } from './lints.ts'
import type { Finding } from './lints.ts'
import type { Model } from './model.ts'
import { Lookup } from './pages/lookup.ts'
import { checkLinks, filesOf, pagesOf } from './pages/site.ts'
import type { SiteOptions } from './pages/site.ts'
import { readProject } from './project.ts'
import type { Project, ProjectOptions } from './project.ts'
import { readChanges } from './read/changes.ts'
import { hashOf, modelOf } from './read/index.ts'

export type { Finding } from './lints.ts'
export type { Model } from './model.ts'
export type { Format } from './pages/site.ts'

/** What {@link documentProject} is asked for. */
export interface DocsOptions extends ProjectOptions, SiteOptions {
  readonly out: string
  /** Write nothing, and compare what is there. */
  readonly isCheck: boolean
}

/** What {@link documentProject} has done. */
export interface Documented {
  readonly out: string
  /** Null where nothing has changed since the last time, and nothing was read. */
  readonly model: Model | null
  readonly pages: number
  /** How many modules were read; the others have not changed since the last time. */
  readonly read: number
  /** Files that were written, or that a check found out of date. */
  readonly changed: readonly string[]
  readonly findings: readonly Finding[]
}

/** A key for everything that the site depends on. */
function keyOf(ts: Compiler, { root, sources, tests, entries, options, name, description }: Project, site: SiteOptions): string {
  const texts = [...sources, ...tests].map((path) => `${path}\0${hashOf(readFileSync(join(root, path), 'utf8'))}`)
  const about = { name, description, entries: [...entries], options, site: { formats: site.formats, sourceUrl: site.sourceUrl } }
  return hashOf([VERSION, ts.version, JSON.stringify(about).replaceAll(root, ''), ...texts].join('\n'))
}

/**
 * Documents the project in a folder. What has not changed since the last time is not read again. Throws ArgumentError if there is no project or it has no sources, and
 * UnsupportedError without TypeScript's API.
 */
export async function documentProject(folder: string, options: DocsOptions): Promise<Documented> {
  const { out, isCheck } = options
  const ts = loadCompiler(folder)
  const project = readProject(ts, folder, options)
  const key = keyOf(ts, project, options)
  const before = cacheIn(out)
  if (!isCheck && before?.key === key && before.files.every((name) => existsSync(join(out, name))))
    return { out, model: null, pages: 0, read: 0, changed: [], findings: [] }

  const { kept, read } = await readChanges(ts, project, keptIn(out))
  const { model, sources } = modelOf(ts, project, kept)
  const lookup = new Lookup(model, options.sourceUrl)
  // A model alone has no pages.
  const pages = options.formats.some((format) => format !== 'json') ? pagesOf(lookup, sources) : []
  const files = filesOf(lookup, pages, options)
  const findings = lint(lookup, checkLinks(pages))
  const current = (name: string): string | null => (existsSync(join(out, name)) ? readFileSync(join(out, name), 'utf8') : null)
  const left = (before?.files ?? []).filter((name) => !files.has(name))
  // A site that was never written is not out of date.
  const changed = isCheck && !existsSync(out) ? [] : [...[...files].filter(([name, text]) => current(name) !== text).map(([name]) => name), ...left]
  if (!isCheck) {
    for (const name of changed) {
      const text = files.get(name)
      const path = join(out, name)
      if (text === undefined) rmSync(path, { force: true })
      else {
        mkdirSync(dirname(path), { recursive: true })
        writeFileSync(path, text)
      }
    }
    mkdirSync(out, { recursive: true })
    writeCache(out, { key, files: [...files.keys()] }, kept)
  }
  return { out, model, pages: pages.length, read: read.length, changed, findings }
}
