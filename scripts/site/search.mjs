// The index of the search: what the names of the site are, and where. Pages load it as a script, since pages from a disk may not fetch files.
import { firstSentence } from '../../dist/docs/pages/markdownText.js'
import { exportedNames } from '../../dist/docs/pages/site.js'
import { addressOf } from '../../dist/docs/write/markdown.js'
import { parentOf } from '../../dist/docs/pages/lookup.js'
import { namespacesOf } from './api.mjs'
import { plain } from './markdown.mjs'

const address = (target) => addressOf('', target, '.html')
const short = (text) => firstSentence(text ?? '').slice(0, 120)

/** The entries: name, kind, address, a sentence, and 1 for what belongs to users. */
export function searchEntries({ lookup, docs, operators, errors }) {
  const ofUsers = lookup.model.symbols.filter(({ visibility }) => visibility === 'public')
  const symbols = ofUsers.flatMap((symbol) => {
    const page = lookup.apiPages.get(symbol.id)
    if (page === undefined && (parentOf(symbol) === null || !lookup.apiPages.has(parentOf(symbol)))) return []
    const shown = page === undefined ? [symbol.name] : exportedNames(symbol)
    return shown.map((name) => [name, symbol.kind, address(lookup.targetOf(symbol.id)), short(symbol.doc?.text), 1])
  })
  const headings = docs.flatMap(({ page }) => [
    [page.title, 'page', address({ page: page.path }), '', 1],
    ...page.blocks
      .filter(({ kind, level }) => kind === 'heading' && level <= 3)
      .map(({ text, id }) => [plain(text), page.title, address({ page: page.path, anchor: id }), '', 0]),
  ])
  return [
    ...symbols,
    ...operators.map(({ title, path, summary }) => [title, 'operator', address({ page: path }), short(summary), 1]),
    ...errors.map(({ title, path, summary }) => [title, 'error', address({ page: path }), short(summary), 1]),
    ...lookup.entries.flatMap((entry) => namespacesOf(lookup, entry).map(({ name, target, what }) => [name, 'namespace', address(target), what, 1])),
    ...lookup.entries.map(({ entry, page }) => [entry, 'entry point', address({ page }), '', 1]),
    ...headings,
    ...lookup.model.modules.map(({ path, header }) => [path, 'module', address({ page: lookup.pageOf(path) }), short(header), 0]),
  ]
}

/** The script that sets the index. */
export const searchScript = (entries) =>
  `window.searchIndex = ${JSON.stringify(entries)
    .replaceAll('<', String.raw`\u003c`)
    .replaceAll('],[', '],\n[')}\n`
