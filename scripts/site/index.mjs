// npm run site [-- --out DIR]: the site, static pages that open from a disk: get started, guides, the API by entry point, operators, errors, flows, tables of performance,
// differences from PyTorch, modules of fx, the changelog, modules and sources, a search, and the playground. The same sources give the same bytes. Links that lead nowhere make it fail.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { documentProject } from '../../dist/docs/index.js'
import { errorsPage, kindsPage, namesPage } from '../../dist/docs/pages/indexPages.js'
import { linksOf } from '../../dist/docs/pages/page.js'
import { PAGE_SCRIPT } from '../../dist/docs/generated/page.js'
import { framedPage, htmlPage } from '../../dist/docs/write/html.js'
import { SiteLookup, apiPages } from './api.mjs'
import { docFiles, docPages, filePage } from './docPages.mjs'
import { errorPages, withErrorLinks } from './errors.mjs'
import { examplesPage, placeOf, withExampleLinks } from './examples.mjs'
import { flowPages } from './flows.mjs'
import { frameOf, style } from './frame.mjs'
import { homeBody } from './home.mjs'
import { deadLinks } from './links.mjs'
import { operatorPages, withOperatorLinks } from './operators.mjs'
import { playgroundExamples, playgroundFiles, playgroundPages } from './playground.mjs'
import { isOfThread, programPagesInThread, sourcesOf, writeProgramPages } from './programPages.mjs'
import { searchEntries, searchScript } from './search.mjs'

const root = fileURLToPath(new URL('../../', import.meta.url))
const { values } = parseArgs({ options: { out: { type: 'string', default: join(root, 'site') } } })
const out = resolve(values.out)
const began = performance.now()
// esbuild is a process of its own, and needs nothing of the program.
const bundled = playgroundFiles(root)

// The model of the program is only made anew if sources have changed.
const modelFolder = join(out, '.model')
await documentProject(root, { out: modelFolder, isCheck: false, formats: ['json'], sourceUrl: null })
const modelFile = join(modelFolder, 'model.json')
const model = JSON.parse(readFileSync(modelFile, 'utf8'))
const frame = frameOf(model.name, `Written by ${model.generator}`)
const fromThread = programPagesInThread(modelFile, frame)
const lookup = new SiteLookup(model)
const sources = sourcesOf(model)

// Sources have pages already, which links to them from Markdown find.
const files = docFiles(root)
const places = new Map([
  ...files,
  ...model.modules.map(({ path }) => [path, lookup.sourcePage(path)]),
  ...lookup.folders.map((folder) => [folder, lookup.folderPage(folder)]),
])
const asked = new Set()
const docs = docPages(root, files, places, asked)
const { guides } = playgroundExamples(root)
const operators = operatorPages(root, lookup)
const errors = errorPages(root, lookup)
const MORE = { operators: (page) => withOperatorLinks(page, operators), errors: (page) => withErrorLinks(page, errors) }

const pages = [
  ...docs.map((doc) => MORE[doc.page.path]?.(doc.page) ?? withExampleLinks(doc, guides)),
  examplesPage(guides, (file) => files.get(file)),
  ...apiPages(lookup),
  ...operators.pages,
  ...errors,
  ...flowPages(root, model, sources),
  namesPage(lookup),
  kindsPage(lookup),
  { ...errorsPage(lookup), path: 'throws' },
]
// Files that links lead to; folders among them lead to more.
for (const path of asked) pages.push(filePage(root, path, asked))

const number = (count, what) => `${count} ${what}`
const COUNTS = [
  ['api/index', 'API', number(lookup.entries.length, 'entry points')],
  ['operators', 'Operators', number(operators.pages.length, 'with schema, derivative and example')],
  ['errors', 'Errors', number(errors.length, 'codes, with the fix')],
  ['playground-examples', 'Examples', 'of the guides, in the playground'],
  ['mistakes', 'Mistakes', 'what beginners write, and what to write instead'],
  ['differences-from-pytorch', 'Differences from PyTorch', 'and why'],
  ['fx-modules', 'Modules of torch.fx', 'and where each is here'],
  ['performance', 'Performance', 'next to other libraries'],
  ['flows/index', 'Flows', 'calls, function by function'],
  ['what-a-tracer-sees', 'What a tracer sees', 'in JavaScript, case by case'],
  ['security', 'Security', 'files from outside'],
  ['changelog', 'Changelog', 'before and after'],
  ['contributing', 'Contributing', 'layers, tests, fuzzers'],
]

const written = new Map()
for (const page of pages) {
  try {
    written.set(`${page.path}.html`, htmlPage(page, frame))
  } catch (error) {
    throw new Error(`the page ${page.path} cannot be written`, { cause: error })
  }
}
const ofProgram = writeProgramPages(lookup, sources, frame, (i) => !isOfThread(i))
const byHand = new Map([
  [
    'index',
    framedPage(
      { path: 'index', title: model.description, body: homeBody({ name: model.name, description: model.description, counts: COUNTS }) },
      frame,
    ),
  ],
  ...playgroundPages(frame),
])
for (const [path, html] of byHand) written.set(`${path}.html`, html)
for (const [name, text] of await bundled) written.set(name, text)
written.set('site.css', style())
written.set('site.js', `${PAGE_SCRIPT}\n`)
ofProgram.push(...(await fromThread))
for (const { path, html } of ofProgram) written.set(`${path}.html`, html)
const entries = searchEntries({ lookup, docs, operators: operators.pages, errors })
written.set('search.js', searchScript(entries))
written.set('graph.png', readFileSync(`${root}docs/graph.png`))

const links = [...pages.map(linksOf), ...ofProgram.map((page) => page.links)]
const { count, dead } = deadLinks(links, byHand, written, new Map([['playground', guides.filter(({ why }) => why === null).map(placeOf)]]))
const list = join(out, '.files.json')
const before = existsSync(list) ? JSON.parse(readFileSync(list, 'utf8')) : []
for (const name of before) if (!written.has(name)) rmSync(join(out, name), { force: true })
const folders = new Set([...written.keys()].map((name) => dirname(join(out, name))))
for (const folder of folders) mkdirSync(folder, { recursive: true })
for (const [name, text] of written) writeFileSync(join(out, name), text)
writeFileSync(list, `${JSON.stringify([...written.keys()])}\n`)

for (const one of dead.slice(0, 40)) console.log(`dead link: ${one}`)
console.log(
  `${written.size} files in ${out}: ${docs.length} guides and other pages, ${lookup.apiPages.size} names of ${lookup.entries.length} entry points, ${operators.pages.length} operators, ${errors.length} errors; ${entries.length} entries of the search; ${count} links, ${dead.length} dead. ${((performance.now() - began) / 1000).toFixed(1)} s`,
)
process.exitCode = dead.length === 0 ? 0 : 1
