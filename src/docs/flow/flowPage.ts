// The page of a walk: what the function is for, a diagram of the most important functions with the main path in colour, diagrams of what is below each of them, and a card for each
// function with its whole source.
import { baseOf, moduleOf, nameOf } from '../model.ts'
import type { Model, ProgramSymbol } from '../model.ts'
import { Lookup, groupBy } from '../pages/lookup.ts'
import { firstSentence, parseInline } from '../pages/markdownText.ts'
import { code, heading, joined, link, list, soft, text } from '../pages/page.ts'
import type { Block, Inline, Page } from '../pages/page.ts'
import { docBlocks } from '../pages/symbolBlocks.ts'
import type { Diagram } from './diagram.ts'
import { drawing } from './drawing.ts'
import type { FlowEdge } from './graphOfCalls.ts'
import type { Walk } from './walk.ts'

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

/** A page without links to names: its functions are those of the walk. */
const noLinks = (): null => null

/** Blocks that are shown when they are opened; none if there are none. */
const folded = (summary: string, ...blocks: readonly Block[]): readonly Block[] =>
  blocks.length === 0 ? [] : [{ kind: 'folded', summary: [summary], blocks }]

const counted = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`

export const flowPage = (path: string, walk: Walk, parts: FlowParts): Page => new FlowPage(path, walk, parts).page()

class FlowPage {
  readonly #path: string
  readonly #walk: Walk
  readonly #parts: FlowParts
  readonly #lookup: Lookup
  readonly #cards: ReadonlySet<string>

  constructor(path: string, walk: Walk, parts: FlowParts) {
    this.#path = path
    this.#walk = walk
    this.#parts = parts
    this.#lookup = new Lookup(parts.model, parts.sourceUrl)
    this.#cards = new Set(walk.cards)
  }

  page(): Page {
    const blocks = [...this.#introduction(), ...this.#overview(), ...this.#sections(), ...this.#functions()]
    return { path: this.#path, title: `${nameOf(this.#walk.root)}: what happens in a call`, crumbs: [], blocks }
  }

  /** The name of a function that has a card, with a link to it. */
  #cardLink(id: string): Inline {
    return link({ page: this.#path, anchor: anchorOf(id) }, code(nameOf(id)))
  }

  #drawing(diagram: Diagram): Block {
    return drawing(diagram, this.#walk.main, this.#path, anchorOf)
  }

  /** What the function is for, and where the calls are known from. */
  #introduction(): readonly Block[] {
    const doc = this.#lookup.symbols.get(this.#walk.root)?.doc ?? null
    const { command } = this.#parts
    return [
      ...(doc === null ? [] : [text(...parseInline(doc.text.split(/\n\s*\n/)[0]?.replaceAll(/\s+/g, ' ') ?? '', noLinks))]),
      command === null
        ? text(soft('From the calls that the sources show; functions that are chosen at run time are missing.'))
        : text(soft('From the calls of a run: '), code(command)),
    ]
  }

  #overview(): readonly Block[] {
    const { main, overview } = this.#walk
    const path = main.map((id) => [this.#cardLink(id)])
    return [heading(2, '.overview', 'The most important functions'), this.#drawing(overview), text(soft('Main path: '), ...joined(path, ' → '))]
  }

  #sections(): readonly Block[] {
    const { main, sections } = this.#walk
    if (sections.length === 0) return []
    const blocks = sections.flatMap(({ id, diagram }) => {
      const following = main[main.indexOf(id) + 1]
      return [
        heading(3, `.below.${anchorOf(id)}`, 'Below ', code(nameOf(id))),
        this.#drawing(diagram),
        ...(following === undefined ? [] : [text(soft('Goes on with '), this.#cardLink(following), '.')]),
      ]
    })
    return [heading(2, '.drill-down', 'Flow drill down'), ...blocks]
  }

  #functions(): readonly Block[] {
    const files = [...groupBy(this.#walk.cards, moduleOf)].flatMap(([module, ids]) => {
      const purpose = this.#lookup.modules.get(module)?.header ?? null
      return [
        heading(3, `.file.${anchorOf(module)}`, code(module)),
        ...(purpose === null ? [] : [text(soft(...parseInline(firstSentence(purpose), noLinks)))]),
        ...ids.flatMap((id) => this.#card(id)),
      ]
    })
    return [heading(2, '.functions', 'Functions'), ...files]
  }

  #card(id: string): readonly Block[] {
    const symbol = this.#lookup.symbols.get(id)
    if (symbol === undefined) return []
    const prose = this.#parts.prose.get(id)?.split(/\n\s*\n/) ?? []
    return [
      this.#cardHeading(symbol),
      ...prose.map((paragraph) => text(...parseInline(paragraph.replaceAll(/\s+/g, ' '), noLinks))),
      ...(symbol.doc === null ? [] : docBlocks(symbol.doc, noLinks)),
      ...this.#source(symbol),
      ...this.#callees(symbol),
      ...this.#dynamicCalls(id),
    ]
  }

  #cardHeading({ id, module, line }: ProgramSymbol): Block {
    const count = this.#walk.edges.filter(({ to }) => to === id).reduce((sum, edge) => sum + (edge.count ?? 0), 0)
    const place = link(this.#lookup.lineTarget(module, line), `${baseOf(module)}:${line}`)
    const entered = count === 0 ? [] : [` · entered ${counted(count, 'time', 'times')}`]
    return heading(4, anchorOf(id), code(nameOf(id)), ' ', soft(place, ...entered))
  }

  #source({ id, line, endLine }: ProgramSymbol): readonly Block[] {
    const source: Block = { kind: 'source', text: sourceOf(this.#parts.sources, id, line, endLine), from: line, hasAnchors: false }
    const lines = endLine - line + 1
    return lines > FOLDED ? folded(`The source, ${lines} lines`, source) : [source]
  }

  #callees({ id, module }: ProgramSymbol): readonly Block[] {
    const callees = this.#walk.edges.filter(({ from }) => from === id)
    if (callees.length === 0) return []
    return folded(`Calls ${counted(callees.length, 'function', 'functions')}`, list(callees.map((edge) => this.#callee(edge, module))))
  }

  /** A function that is called from a module: its file if that is another one, the lines, and how often it ran. */
  #callee({ to, lines, count }: FlowEdge, module: string): readonly Inline[] {
    const facts = [
      ...(moduleOf(to) === module ? [] : [baseOf(moduleOf(to))]),
      lines.length === 0 ? 'no call in the source: it only ran' : `line ${[...new Set(lines)].join(', ')}`,
      ...(count === null ? [] : [count === 0 ? 'did not run here' : `ran ${counted(count, 'time', 'times')}`]),
    ]
    return [this.#cards.has(to) ? this.#cardLink(to) : code(nameOf(to)), ' ', soft(facts.join(' · '))]
  }

  #dynamicCalls(id: string): readonly Block[] {
    const calls = (this.#lookup.calls.get(id) ?? []).filter(({ kind }) => kind === 'dynamic')
    if (calls.length === 0) return []
    return folded('Calls of values, of which only the type is known', list(calls.map(({ to, line }) => [code(to), ' ', soft(`line ${line}`)])))
  }
}
