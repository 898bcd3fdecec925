// The page of a walk: what the function is for, a diagram of the most important functions with the main path in colour, diagrams of what is below each of them, and a card for each
// function with its whole source.
import { baseOf, moduleOf, nameOf } from '../model.ts'
import type { Model } from '../model.ts'
import { Lookup, groupBy } from '../pages/lookup.ts'
import { firstSentence, parseInline } from '../pages/markdownText.ts'
import { code, heading, joined, link, list, soft, text } from '../pages/page.ts'
import type { Block, Inline, Page } from '../pages/page.ts'
import { docBlocks } from '../pages/symbolBlocks.ts'
import { drawing } from './drawing.ts'
import type { FlowEdge, Walk } from './walk.ts'

/** Longer functions are folded. */
const FOLDED = 45

export const anchorOf = (id: string): string => id.replaceAll('/', '.').replaceAll('#', ':')

/** The lines of a function. */
export const sourceOf = (sources: ReadonlyMap<string, string>, id: string, line: number, endLine: number): string =>
  (sources.get(moduleOf(id)) ?? '')
    .split('\n')
    .slice(line - 1, endLine)
    .join('\n')

/** What a page of a walk is made from. */
export interface FlowParts {
  readonly model: Model
  readonly sources: ReadonlyMap<string, string>
  readonly sourceUrl: string | null
  /** Text by hand for cards, in Markdown. */
  readonly prose: ReadonlyMap<string, string>
  /** The command that was observed; null without one. */
  readonly command: string | null
}

export function flowPage(path: string, walk: Walk, parts: FlowParts): Page {
  const { root, main, overview, sections, cards } = walk
  const lookup = new Lookup(parts.model, parts.sourceUrl)
  const symbol = lookup.symbols.get(root)
  const draw = (diagram: Walk['overview']): Block => drawing(diagram, main, path, anchorOf)
  const card = (id: string): Inline => link({ page: path, anchor: anchorOf(id) }, code(nameOf(id)))
  const resolve = (): null => null
  const blocks: Block[] = [
    ...(symbol?.doc === null || symbol === undefined
      ? []
      : [text(...parseInline(symbol.doc.text.split(/\n\s*\n/)[0]?.replaceAll(/\s+/g, ' ') ?? '', resolve))]),
    text(
      soft(
        parts.command === null
          ? 'From the calls that the sources show; functions that are chosen at run time are missing.'
          : 'From the calls of a run: ',
      ),
      ...(parts.command === null ? [] : [code(parts.command)]),
    ),
    heading(2, '.overview', 'The most important functions'),
    draw(overview),
    text(
      soft('Main path: '),
      ...joined(
        main.map((id) => [card(id)]),
        ' → ',
      ),
    ),
  ]
  if (sections.length > 0) blocks.push(heading(2, '.drill-down', 'Flow drill down'))
  for (const { id, diagram } of sections) {
    blocks.push(heading(3, `.below.${anchorOf(id)}`, 'Below ', code(nameOf(id))), draw(diagram))
    const following = main[main.indexOf(id) + 1]
    if (following !== undefined) blocks.push(text(soft('Goes on with '), card(following), '.'))
  }
  blocks.push(heading(2, '.functions', 'Functions'))
  for (const [module, ids] of groupBy(cards, moduleOf)) {
    const purpose = lookup.modules.get(module)?.header ?? null
    blocks.push(
      heading(3, `.file.${anchorOf(module)}`, code(module)),
      ...(purpose === null ? [] : [text(soft(...parseInline(firstSentence(purpose), resolve)))]),
      ...ids.flatMap((id) => cardBlocks(lookup, id, path, walk, parts)),
    )
  }
  return { path, title: `${nameOf(root)}: what happens in a call`, crumbs: [], blocks }
}

function cardBlocks(lookup: Lookup, id: string, page: string, { edges, cards }: Walk, { sources, prose }: FlowParts): readonly Block[] {
  const symbol = lookup.symbols.get(id)
  if (symbol === undefined) return []
  const { line, endLine, module } = symbol
  const resolve = (): null => null
  const source: Block = { kind: 'source', text: sourceOf(sources, id, line, endLine), from: line, hasAnchors: false }
  const byHand = prose.get(id)
  const count = edges.filter((edge) => edge.to === id).reduce((sum, edge) => sum + (edge.count ?? 0), 0)
  const callee = ({ to, lines, count: times }: FlowEdge): readonly Inline[] => [
    cards.includes(to) ? link({ page, anchor: anchorOf(to) }, code(nameOf(to))) : code(nameOf(to)),
    ' ',
    soft(
      `${moduleOf(to) === module ? '' : `${baseOf(moduleOf(to))} · `}${lines.length === 0 ? 'no call in the source: it only ran' : `line ${[...new Set(lines)].join(', ')}`}${times === null ? '' : times === 0 ? ' · did not run here' : ` · ran ${times} ${times === 1 ? 'time' : 'times'}`}`,
    ),
  ]
  const callees = edges.filter((edge) => edge.from === id)
  const stops = (lookup.calls.get(id) ?? []).filter(({ kind }) => kind === 'dynamic')
  return [
    heading(
      4,
      anchorOf(id),
      code(nameOf(id)),
      ' ',
      soft(
        link(lookup.lineTarget(module, line), `${baseOf(module)}:${line}`),
        ...(count === 0 ? [] : [` · entered ${count} ${count === 1 ? 'time' : 'times'}`]),
      ),
    ),
    ...(byHand === undefined ? [] : byHand.split(/\n\s*\n/).map((paragraph) => text(...parseInline(paragraph.replaceAll(/\s+/g, ' '), resolve)))),
    ...(symbol.doc === null ? [] : docBlocks(symbol.doc, resolve)),
    endLine - line + 1 > FOLDED ? { kind: 'folded', summary: [`The source, ${endLine - line + 1} lines`], blocks: [source] } : source,
    ...(callees.length === 0
      ? []
      : [
          {
            kind: 'folded',
            summary: [`Calls ${callees.length} ${callees.length === 1 ? 'function' : 'functions'}`],
            blocks: [list(callees.map(callee))],
          } as const,
        ]),
    ...(stops.length === 0
      ? []
      : [
          {
            kind: 'folded',
            summary: ['Calls of values, of which only the type is known'],
            blocks: [list(stops.map(({ to, line: at }) => [code(to), ' ', soft(`line ${at}`)]))],
          } as const,
        ]),
  ]
}
