// The pages of the modules, folders and sources of the program, most of the site: a thread writes three quarters of them while the others are made.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads'
import { folderPage } from '../../dist/docs/pages/folderPage.js'
import { modulePage } from '../../dist/docs/pages/modulePage.js'
import { linksOf } from '../../dist/docs/pages/page.js'
import { sourcePage } from '../../dist/docs/pages/site.js'
import { htmlPage } from '../../dist/docs/write/html.js'
import { SiteLookup } from './api.mjs'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** The texts of the modules, by path. */
export const sourcesOf = (model) => new Map(model.modules.map(({ path }) => [path, readFileSync(ROOT + path, 'utf8').replace(/^\uFEFF/, '')]))

/** The pages whose number in order `isWanted`, each as its path, HTML and links. */
export function writeProgramPages(lookup, sources, frame, isWanted) {
  const makers = [
    ...lookup.folders.map((folder) => () => folderPage(lookup, folder)),
    ...lookup.model.modules.map((module) => () => modulePage(lookup, module)),
    ...lookup.model.modules.map(
      ({ path }) =>
        () =>
          sourcePage(lookup, path, sources.get(path)),
    ),
  ]
  return makers
    .filter((_, i) => isWanted(i))
    .map((make) => {
      const page = make()
      return { path: page.path, html: htmlPage(page, frame), links: linksOf(page) }
    })
}

/** Which pages the thread writes; the others are for the caller. */
export const isOfThread = (i) => i % 4 !== 0

/** Writes the pages of the thread, of the model in a file. */
export async function programPagesInThread(file, frame) {
  const worker = new Worker(new URL(import.meta.url), { workerData: { file, frame }, resourceLimits: { maxYoungGenerationSizeMb: 128 } })
  return new Promise((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
  })
}

if (!isMainThread) {
  const { file, frame } = workerData
  const model = JSON.parse(readFileSync(file, 'utf8'))
  parentPort.postMessage(writeProgramPages(new SiteLookup(model), sourcesOf(model), frame, isOfThread))
}
