// The API by entry point: a page for each entry of package.json, and one for each name that it exports. Names that are public lead here from everywhere; modules and sources, with
// everything inside, have the pages of `tensorfx docs`.
import { Lookup, parentOf } from '../../dist/docs/pages/lookup.js'
import { firstSentence, parseMarkdown } from '../../dist/docs/pages/markdownText.js'
import { purposeOf, summaryOf, withMembers } from '../../dist/docs/pages/modulePage.js'
import { code, heading, link, soft, table, text } from '../../dist/docs/pages/page.js'

const byText = (a, b) => (a < b ? -1 : a > b ? 1 : 0)
const KINDS = [
  ['class', 'Classes'],
  ['function', 'Functions'],
  ['constant', 'Constants'],
  ['namespace', 'Namespaces'],
  ['interface', 'Interfaces'],
  ['type', 'Types'],
  ['enum', 'Enumerations'],
]

/** A model in which public names are described on their pages of the API. */
export class SiteLookup extends Lookup {
  /** The pages of symbols by id, and the entry points in their order: the front door first. */
  apiPages = new Map()
  entries = []

  constructor(model) {
    super(model, null)
    const { name: program, modules } = model
    const taken = new Set()
    const give = (wanted) => {
      let name = wanted
      for (let i = 2; taken.has(name.toLowerCase()); i++) name = `${wanted}~${i}`
      taken.add(name.toLowerCase())
      return name
    }
    const found = modules.flatMap((module) => module.entries.map((entry) => ({ entry, module })))
    for (const { entry, module } of found.toSorted((a, b) => byText(a.entry, b.entry))) {
      const page = give(`api/${entry === program ? program : entry.slice(program.length + 1)}`)
      const names = module.exports.map(({ name, symbol }) => ({ name, symbol }))
      this.entries.push({ entry, module, page, names })
    }
    // A name belongs to the entry whose name is longest, which is where it is described best, but the front door keeps its own.
    const order = this.entries.toSorted((a, b) => Number(b.entry === program) - Number(a.entry === program) || byText(a.entry, b.entry))
    for (const { page, names } of order)
      for (const { name, symbol } of names)
        if (symbol !== null && this.symbols.has(symbol) && !this.apiPages.has(symbol)) this.apiPages.set(symbol, give(`${page}/${name}`))
  }

  targetOf(id) {
    const page = this.apiPages?.get(id)
    if (page !== undefined) return { page }
    const symbol = this.symbols.get(id)
    const parent = symbol === undefined ? null : parentOf(symbol)
    const owner = parent === null ? undefined : this.apiPages?.get(parent)
    if (owner !== undefined && symbol.visibility !== 'private') return { page: owner, anchor: this.anchorOf(id) }
    return super.targetOf(id)
  }
}

/** What an entry is for: its header begins with its name. */
const aboutEntry = (lookup, module) => (purposeOf(lookup, module) ?? '').replace(/^tensorfx[\w/]*(?:: |$)/, '')

/** The page that lists the entry points. */
function indexPage(lookup) {
  const rows = lookup.entries.map(({ entry, module, page, names }) => [
    [link({ page }, code(entry))],
    [firstSentence(aboutEntry(lookup, module))],
    [String(names.length)],
  ])
  return {
    ...{ path: 'api/index', title: 'API', crumbs: [] },
    blocks: [
      text(
        'What each entry point exports. Operators have ',
        link({ page: 'operators' }, 'pages of their own'),
        '. For everything inside, with the sources: ',
        link({ page: lookup.folderPage('') }, 'modules'),
        ', ',
        link({ page: 'names' }, 'all names from A to Z'),
        ', ',
        link({ page: 'kinds' }, 'by kind'),
        ', ',
        link({ page: 'throws' }, 'every error that is thrown'),
        '.',
      ),
      table(['entry point', 'what it is', 'names'], rows),
    ],
  }
}

/** The namespaces that an entry exports (`export * as nn`); some have an entry of their own. */
export const namespacesOf = (lookup, { page, names }) =>
  names
    .filter(({ symbol }) => symbol === null)
    .map(({ name }) => {
      const other = lookup.entries.find((one) => one.entry === `${lookup.model.name}/${name}`)
      return other === undefined
        ? { name, target: { page }, what: 'functions of its own' }
        : { name, target: { page: other.page }, what: `everything in ${other.entry}` }
    })

const CRUMB = { text: 'API', page: 'api/index' }

function entryPage(lookup, { entry, module, page, names }) {
  const purpose = aboutEntry(lookup, module)
  const known = names.flatMap(({ name, symbol }) =>
    symbol === null || !lookup.symbols.has(symbol) ? [] : [{ name, symbol: lookup.symbols.get(symbol) }],
  )
  const blocks = [
    { kind: 'code', language: 'ts', text: `import { … } from '${entry}'` },
    ...(purpose === '' ? [] : parseMarkdown(purpose, (word) => lookup.resolve(module.path, word))),
    text(soft(link(lookup.lineTarget(module.path, 1), module.path))),
  ]
  const whole = namespacesOf(lookup, { page, names })
  if (whole.length > 0)
    blocks.push(
      heading(2, '.whole', 'Namespaces'),
      table(
        ['name', 'has'],
        whole.map(({ name, target, what }) => [[link(target, code(name))], [what]]),
      ),
    )
  const kinds = [
    ...KINDS,
    ...[...new Set(known.map(({ symbol }) => symbol.kind))].filter((kind) => !KINDS.some(([one]) => one === kind)).map((kind) => [kind, kind]),
  ]
  for (const [kind, title] of kinds) {
    const of = known
      .filter(({ symbol }) => symbol.kind === kind)
      .toSorted((a, b) => byText(a.name.toLowerCase(), b.name.toLowerCase()) || byText(a.name, b.name))
    if (of.length > 0)
      blocks.push(
        heading(2, `.${kind}`, title),
        table(
          ['name', 'what it is'],
          of.map(({ name, symbol }) => [[link(lookup.targetOf(symbol.id), code(name))], summaryOf(lookup, symbol)]),
        ),
      )
  }
  return { path: page, title: entry, crumbs: [CRUMB], blocks }
}

function symbolPage(lookup, id, path) {
  const symbol = lookup.symbols.get(id)
  const owner = lookup.entries.find(({ page }) => path.startsWith(`${page}/`) && !path.slice(page.length + 1).includes('/'))
  const name = owner?.names.find((one) => one.symbol === id)?.name ?? symbol.name
  const inModule = { page: lookup.pageOf(symbol.module), anchor: lookup.anchorOf(id) }
  return {
    ...{ path, title: name, crumbs: [CRUMB, { text: owner?.entry ?? 'API', page: owner?.page ?? 'api/index' }] },
    blocks: [
      text(
        soft('source '),
        link(lookup.lineTarget(symbol.module, symbol.line), code(`${symbol.module}:${symbol.line}`)),
        soft(' · module '),
        link(inModule, symbol.module),
      ),
      ...withMembers(lookup, symbol),
    ],
  }
}

/** All pages of the API. */
export function apiPages(lookup) {
  return [
    indexPage(lookup),
    ...lookup.entries.map((entry) => entryPage(lookup, entry)),
    ...[...lookup.apiPages].map(([id, path]) => symbolPage(lookup, id, path)),
  ]
}
