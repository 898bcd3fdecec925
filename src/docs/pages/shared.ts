// Writes the pages of a program with two threads: they need the model, and no page needs another.
import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { Lookup } from './lookup.ts'
import { writePages } from './site.ts'
import type { Part, SiteOptions, WrittenPage } from './site.ts'

/** What a thread is asked for. */
export interface PagesShare {
  /** The model as JSON, which is sent faster than its objects. */
  readonly model: string
  readonly sources: ReadonlyMap<string, string>
  readonly options: Pick<SiteOptions, 'formats' | 'sourceUrl'>
  readonly part: Part
}

/** Pages of fewer modules than these are written sooner by one thread. */
const FEWEST = 200

const ENTRY = new URL('./worker.js', import.meta.url)

/** Writes the pages of a program, in two threads if there is enough to do and the package is built. */
export async function writeShared(
  lookup: Lookup,
  sources: ReadonlyMap<string, string>,
  { formats, sourceUrl }: SiteOptions,
): Promise<readonly WrittenPage[]> {
  const { model } = lookup
  const isAlone = model.modules.length < FEWEST || availableParallelism() < 2 || !existsSync(ENTRY)
  if (isAlone || formats.every((format) => format === 'json')) return writePages(lookup, sources, { formats })
  const share: PagesShare = { model: JSON.stringify(model), sources, options: { formats, sourceUrl }, part: { index: 1, of: 2 } }
  const worker = new Worker(ENTRY, { workerData: share, resourceLimits: { maxYoungGenerationSizeMb: 128, maxOldGenerationSizeMb: 4096 } })
  const other = new Promise<readonly WrittenPage[]>((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
  })
  const first = writePages(lookup, sources, { formats }, { index: 0, of: 2 })
  const second = await other
  return first.flatMap((page, i) => [page, ...second.slice(i, i + 1)])
}
