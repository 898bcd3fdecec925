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
import { writeShared } from './pages/shared.ts'
import { checkLinks, filesOf } from './pages/site.ts'
import type { SiteOptions } from './pages/site.ts'
import { readProject } from './project.ts'
import type { Project, ProjectOptions } from './project.ts'
import { readChanges } from './read/changes.ts'
import { publicPart } from './publicPart.ts'
import { hashOf, modelOf } from './read/index.ts'
import type { ReadModel } from './read/index.ts'
import { savedModel, withSources } from './savedModel.ts'

export type { Finding } from './lints.ts'
export type { Model } from './model.ts'
export type { Format } from './pages/site.ts'

/** What {@link documentProject} is asked for. */
export interface DocsOptions extends ProjectOptions, SiteOptions {
  readonly out: string
  /** Write nothing, and compare what is there. */
  readonly isCheck: boolean
  /** Leave out what users of the package do not see. */
  readonly isPublic?: boolean
  /** A model.json that was written before, to make the pages from without a compiler. */
  readonly from?: string
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
function keyOf(ts: Compiler, { root, sources, tests, entries, options, name, description }: Project, site: DocsOptions): string {
  const texts = [...sources, ...tests].map((path) => `${path}\0${hashOf(readFileSync(join(root, path), 'utf8'))}`)
  const about = {
    name,
    description,
    entries: [...entries],
    options,
    site: { formats: site.formats, sourceUrl: site.sourceUrl, isPublic: site.isPublic },
  }
  return hashOf([VERSION, ts.version, JSON.stringify(about).replaceAll(root, ''), ...texts].join('\n'))
}

/**
 * Documents the project in a folder. What has not changed since the last time is not read again. Throws ArgumentError if there is no project or it has no sources, and
 * UnsupportedError without TypeScript's API.
 */
export async function documentProject(folder: string, options: DocsOptions): Promise<Documented> {
  const { out, isCheck, from, sourceUrl } = options
  if (from !== undefined) {
    const model = savedModel(from)
    const { files, ...written } = await writeSite(sourceUrl === null ? withSources(model, folder) : { model, sources: new Map() }, options)
    // No key of a project: the next reading of the sources writes the pages again.
    if (!isCheck) writeCache(out, { key: '', files }, null)
    return { out, read: 0, ...written }
  }
  const ts = loadCompiler(folder)
  const project = readProject(ts, folder, options)
  const key = keyOf(ts, project, options)
  const before = cacheIn(out)
  if (!isCheck && before?.key === key && before.files.every((name) => existsSync(join(out, name))))
    return { out, model: null, pages: 0, read: 0, changed: [], findings: [] }

  const { kept, read } = await readChanges(ts, project, keptIn(out))
  const { files, ...written } = await writeSite(modelOf(ts, project, kept), options)
  if (!isCheck) writeCache(out, { key, files }, kept)
  return { out, read: read.length, ...written }
}

/** Writes the pages of a model, or compares them with what is there. */
async function writeSite(
  { model: whole, sources }: ReadModel,
  options: DocsOptions,
): Promise<Omit<Documented, 'out' | 'read'> & { readonly files: readonly string[] }> {
  const { out, isCheck, isPublic, sourceUrl } = options
  const model = isPublic === true ? publicPart(whole) : whole
  const lookup = new Lookup(model, sourceUrl)
  const pages = await writeShared(lookup, sources, options)
  const files = filesOf(lookup, pages, options)
  const links = pages.map((page) => page.links)
  const findings = lint(lookup, checkLinks(links))
  const current = (name: string): string | null => (existsSync(join(out, name)) ? readFileSync(join(out, name), 'utf8') : null)
  const left = (cacheIn(out)?.files ?? []).filter((name) => !files.has(name))
  // A site that was never written is not out of date.
  const changed = isCheck && !existsSync(out) ? [] : [...[...files].filter(([name, text]) => current(name) !== text).map(([name]) => name), ...left]
  if (!isCheck) {
    mkdirSync(out, { recursive: true })
    for (const name of changed) {
      const text = files.get(name)
      const path = join(out, name)
      if (text === undefined) rmSync(path, { force: true })
      else {
        mkdirSync(dirname(path), { recursive: true })
        writeFileSync(path, text)
      }
    }
  }
  return { model, pages: pages.length, changed, findings, files: [...files.keys()] }
}
