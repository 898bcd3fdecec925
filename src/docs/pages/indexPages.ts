// Pages over the whole program: the first one, all names from A to Z, names by kind, and all errors.
import { baseOf, byText } from '../model.ts'
import type { ProgramSymbol } from '../model.ts'
import { groupBy } from './lookup.ts'
import type { Lookup } from './lookup.ts'
import { firstSentence, parseInline } from './markdownText.ts'
import { nameLink, purposeOf, summaryOf } from './modulePage.ts'
import { code, heading, joined, link, list, soft, table, text } from './page.ts'
import type { Block, Inline, Page } from './page.ts'

/** Names without regard to case first, so that `Tensor` stands beside `tensor`. */
const byName = (a: ProgramSymbol, b: ProgramSymbol): number =>
  byText(a.name.toLowerCase(), b.name.toLowerCase()) || byText(a.name, b.name) || byText(a.id, b.id)

/** The symbols that an index lists: what modules export, with its members. */
const listed = ({ model }: Lookup): readonly ProgramSymbol[] => model.symbols.filter(({ visibility }) => visibility !== 'private')

const row = (lookup: Lookup, symbol: ProgramSymbol): readonly Inline[] => [
  nameLink(lookup, symbol.id),
  ' ',
  soft(`${symbol.kind}, ${baseOf(symbol.module)}`),
]

/** The first page: what the package exports, entry by entry. */
export function startPage(lookup: Lookup): Page {
  const { model } = lookup
  const entries = new Map<string, { readonly path: string; readonly symbols: string[] }>()
  for (const { path, entries: names, exports } of model.modules)
    for (const name of names) {
      const known = entries.get(name) ?? { path, symbols: [] }
      known.symbols.push(...exports.flatMap(({ symbol }) => (symbol === null ? [] : [symbol])))
      entries.set(name, known)
    }
  const tops = model.symbols.filter(({ name }) => !name.includes('.'))
  const counts = (['public', 'internal', 'private'] as const).map((kind) => `${tops.filter(({ visibility }) => visibility === kind).length} ${kind}`)
  const blocks: Block[] = [
    ...(model.description === '' ? [] : [text(model.description)]),
    text(
      `${model.modules.length} `,
      link({ page: lookup.folderPage('') }, 'modules'),
      `, ${tops.length} names: ${counts.join(', ')}. `,
      link({ page: 'names' }, 'All names from A to Z'),
      ', ',
      link({ page: 'kinds' }, 'by kind'),
      ', ',
      link({ page: 'errors' }, 'errors'),
      '.',
    ),
  ]
  for (const [name, { path, symbols }] of [...entries].toSorted((a, b) => byText(a[0], b[0]))) {
    const module = lookup.modules.get(path)
    const purpose = module === undefined ? null : purposeOf(lookup, module)
    const known = [...new Set(symbols)].flatMap((id) => lookup.symbols.get(id) ?? []).toSorted(byName)
    blocks.push(
      heading(2, `.${name}`, code(name)),
      ...(purpose === null ? [] : [text(...parseInline(firstSentence(purpose), (word) => lookup.resolve(path, word)))]),
    )
    blocks.push(
      text(
        soft(`${known.length} names from `),
        link({ page: lookup.pageOf(path) }, code(path)),
        ...(known.length === 0 ? [] : [': ']),
        ...joined(
          known.map(({ id }) => [nameLink(lookup, id)]),
          ', ',
        ),
      ),
    )
  }
  return { path: 'index', title: model.name, crumbs: [], blocks }
}

/** All names from A to Z. */
export function namesPage(lookup: Lookup): Page {
  const letterOf = ({ name }: ProgramSymbol): string => (/^[a-z]/i.test(name) ? (name[0]?.toUpperCase() ?? '') : 'others')
  const groups = [...groupBy(listed(lookup).toSorted(byName), letterOf)].toSorted(
    (a, b) => Number(a[0] === 'others') - Number(b[0] === 'others') || byText(a[0], b[0]),
  )
  return {
    ...{ path: 'names', title: 'Names from A to Z', crumbs: [] },
    blocks: [
      text(
        ...joined(
          groups.map(([letter]) => [link({ page: 'names', anchor: `.${letter}` }, letter)]),
          ' ',
        ),
      ),
      ...groups.flatMap(([letter, symbols]): readonly Block[] => [
        heading(2, `.${letter}`, letter),
        list(symbols.map((symbol) => row(lookup, symbol))),
      ]),
    ],
  }
}

const KINDS = ['function', 'class', 'interface', 'type', 'constant', 'enum', 'namespace'] as const

/** The names at the top of modules, by kind. Errors are classes that extend an error. */
export function kindsPage(lookup: Lookup): Page {
  const symbols = listed(lookup)
    .filter(({ name }) => !name.includes('.'))
    .toSorted(byName)
  return {
    ...{ path: 'kinds', title: 'Names by kind', crumbs: [] },
    blocks: KINDS.flatMap((kind): readonly Block[] => {
      const of = symbols.filter((symbol) => symbol.kind === kind)
      return of.length === 0 ? [] : [heading(2, `.${kind}`, kind, ' ', soft(String(of.length))), list(of.map((symbol) => row(lookup, symbol)))]
    }),
  }
}

/** All errors that are thrown, by class, with the places that throw them. */
export function errorsPage(lookup: Lookup): Page {
  const thrown = lookup.model.symbols.flatMap((symbol) =>
    symbol.throws.flatMap((one) => (one.error === null ? [] : [{ ...one, by: symbol, name: one.error }])),
  )
  const groups = [...groupBy(thrown, ({ name }) => name)].toSorted((a, b) => byText(a[0], b[0]))
  const blocks = groups.flatMap(([name, places]): readonly Block[] => {
    const [first] = places
    const symbol = first?.symbol === undefined || first.symbol === null ? undefined : lookup.symbols.get(first.symbol)
    const rows = places.map(({ by, message, line }): readonly (readonly Inline[])[] => [
      [nameLink(lookup, by.id)],
      [message ?? soft('computed')],
      [link(lookup.lineTarget(by.module, line), `${baseOf(by.module)}:${line}`)],
    ])
    return [
      heading(2, `.${name}`, code(name), ...(first?.code === undefined || first.code === null ? [] : [' ', soft(first.code)])),
      ...(symbol === undefined ? [] : [text(nameLink(lookup, symbol.id), ...(symbol.doc === null ? [] : [': ', ...summaryOf(lookup, symbol)]))]),
      table(['thrown by', 'message', 'line'], rows),
    ]
  })
  return { path: 'errors', title: 'Errors', crumbs: [], blocks: blocks.length === 0 ? [text('Nothing here throws an error.')] : blocks }
}
