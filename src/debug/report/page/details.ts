// The details of a row of the timeline: its line, where the program was, and the graph that it is about.
import { element } from '../../../fx/viewer/page/elements/dom.ts'
import type { GraphFacts, Place, Report, Row, Tab } from '../data.ts'
import { classOf } from './findingList.ts'
import { kernelTable } from './kernelTable.ts'
import { memoryChart } from './memoryChart.ts'
import { stagesView } from './stages.ts'
import { sizeText } from '../../../protocol/sizeText.ts'
import { factList, whereView } from './parts.ts'
import { timeText } from '../../../protocol/timeText.ts'

/** Of long lists this many are shown. */
const MOST = 60

const placeView = (place: Place): HTMLElement =>
  element(
    'div',
    { class: 'place-view' },
    element('p', { class: 'place' }, `${place.file}:${place.line} in ${place.fn}`),
    place.code === null ? null : element('pre', {}, place.code),
  )

/** The head of the side: what the row is, and its line. */
export function describeRow(row: Row, report: Report): HTMLElement[] {
  const place = report.places[row.place]
  const stack = row.stack.slice(0, -1).flatMap((at) => report.places[at] ?? [])
  const facts: (readonly [string, string])[] = [
    ...row.details,
    ...(row.milliseconds === null ? [] : [['time', timeText(row.milliseconds)] as const]),
    ...(row.count === 1 ? [] : [['calls', String(row.count)] as const]),
    ['at', timeText(row.time)],
  ]
  return [
    element('header', { class: classOf(row.kind) }, element('h2', {}, row.title), element('p', { class: 'sub' }, row.kind)),
    ...(place === undefined ? [] : [placeView(place)]),
    factList(facts),
    ...(stack.length === 0 ? [] : [element('details', {}, element('summary', {}, 'Called from'), stack.toReversed().map(placeView))]),
  ]
}

const TABS: readonly (readonly [Tab, string])[] = [
  ['stages', 'Stages'],
  ['fusion', 'Fusion'],
  ['memory', 'Memory'],
  ['kernels', 'Kernels'],
]

/** The details of a graph, opened at a tab. `opened` is told which one is shown. */
export function graphView(graph: GraphFacts, report: Report, tab: Tab, opened: (tab: Tab) => void): HTMLElement {
  const body = element('div', { class: 'graph-body' })
  const buttons = new Map<Tab, HTMLElement>()
  const show = (chosen: Tab): void => {
    for (const [name, button] of buttons) button.setAttribute('aria-selected', String(name === chosen))
    body.replaceChildren(contentOf(chosen, graph, report))
    opened(chosen)
  }
  const counts: Readonly<Record<Tab, number>> = {
    stages: graph.stages.length,
    fusion: graph.groups.length,
    memory: graph.memory.reduce((sum, { lifetimes }) => sum + lifetimes.length, 0),
    kernels: graph.kernels.length,
  }
  for (const [name, text] of TABS) {
    const button = element(
      'button',
      { type: 'button', role: 'tab', 'data-tab': name },
      `${text} `,
      element('span', { class: 'label' }, String(counts[name])),
    )
    button.addEventListener('click', () => show(name))
    buttons.set(name, button)
  }
  show(tab)
  const about = [
    graph.backend ?? 'no backend',
    `${graph.operators} operators`,
    graph.milliseconds === null ? 'not finished' : timeText(graph.milliseconds),
    `ended by: ${graph.reason}`,
  ]
  return element(
    'div',
    { class: 'graph' },
    element('p', { class: 'sub' }, element('code', {}, graph.name), ` of ${graph.fn}: ${about.join(', ')}`),
    element('div', { class: 'tabs', role: 'tablist' }, ...buttons.values()),
    body,
  )
}

function contentOf(tab: Tab, graph: GraphFacts, report: Report): HTMLElement {
  if (tab === 'stages') return graph.stages.length === 0 ? element('p', { class: 'label' }, 'No stages.') : stagesView(graph, report)
  if (tab === 'fusion') return fusionView(graph, report)
  if (tab === 'kernels')
    return graph.kernels.length === 0 ? element('p', { class: 'label' }, 'This backend has reported no kernels.') : kernelTable(graph.kernels, report)
  return memoryView(graph, report)
}

function memoryView({ memory, saved }: GraphFacts, report: Report): HTMLElement {
  const plans =
    memory.length === 0
      ? element('p', { class: 'label' }, 'This backend has reported no memory plan.')
      : memory.map((plan) => memoryChart(plan, report))
  return element('div', {}, plans, saved === null || saved.length === 0 ? null : savedView(saved))
}

function savedView(saved: NonNullable<GraphFacts['saved']>): HTMLElement {
  const total = saved.reduce((sum, { bytes }) => sum + bytes, 0)
  return element(
    'section',
    {},
    element('h3', {}, `Saved for the backward: ${sizeText(total)}`),
    factList(saved.slice(0, MOST).map(({ name, spec, bytes }) => [name, `${spec ?? 'unknown'}, ${sizeText(bytes)}`])),
  )
}

function fusionView({ groups, refused, fallbacks }: GraphFacts, report: Report): HTMLElement {
  const where = (place: number): HTMLElement | null => whereView(report.places[place])
  const more = (count: number): HTMLElement | null => (count > MOST ? element('p', { class: 'label' }, `and ${count - MOST} more`) : null)
  const section = (title: string, count: number, items: readonly HTMLElement[]): HTMLElement | null =>
    count === 0 ? null : element('section', {}, element('h3', {}, `${title}: ${count}`), element('ul', {}, items), more(count))
  return element(
    'div',
    {},
    section(
      'Stay apart',
      refused.length,
      refused
        .slice(0, MOST)
        .map(({ first, second, reason, places }) =>
          element(
            'li',
            { class: classOf('refused fusion') },
            element('b', {}, `${first} and ${second}`),
            `: ${reason}`,
            where(places[1]),
            places[0] === places[1] ? null : where(places[0]),
          ),
        ),
    ),
    section(
      'Eager kernels',
      fallbacks.length,
      fallbacks
        .slice(0, MOST)
        .map(({ operator, reason, place }) => element('li', { class: classOf('fallback') }, element('b', {}, operator), `: ${reason}`, where(place))),
    ),
    section(
      'Kernels',
      groups.length,
      groups.slice(0, MOST).map(({ kind, members }) => element('li', {}, element('b', {}, kind), `: ${members.join(', ')}`)),
    ),
  )
}
