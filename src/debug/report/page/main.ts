// The program of the page of a run: numbers and findings above, the timeline below, details at the side. Two runs stand beside each other, the second compared with the first.
import { byId, element, onClick } from '../../../fx/viewer/page/elements/dom.ts'
import { NONE } from '../data.ts'
import type { Report, Tab } from '../data.ts'
import { totalsView } from './comparison.ts'
import { describeRow, graphView } from './details.ts'
import { findingKey, findingList } from './findingList.ts'
import { factList } from './parts.ts'
import { TimelineList } from './timelineList.ts'

const reports: readonly Report[] = JSON.parse(byId('data', HTMLScriptElement).textContent)
const panel = byId('panel', HTMLElement)
const side = byId('side', HTMLElement)
const runs = byId('runs', HTMLElement)
const timelines: TimelineList[] = []

/** What is shown, as the page's address says it: `#run=0&row=12&tab=kernels`. */
interface Shown {
  readonly run: number
  readonly row: number
  readonly tab: Tab | null
}

const isTab = (text: string | null): text is Tab => text === 'stages' || text === 'fusion' || text === 'memory' || text === 'kernels'

function fromHash(hash: string): Shown | null {
  const params = new URLSearchParams(hash.replace(/^#/, ''))
  const [run, row, tab] = [Number(params.get('run') ?? 0), Number(params.get('row') ?? NaN), params.get('tab')]
  return reports[run]?.rows[row] === undefined ? null : { run, row, tab: isTab(tab) ? tab : null }
}

function remember({ run, row, tab }: Shown): void {
  // A page that is embedded as text has no address of its own.
  if (location.protocol !== 'about:') history.replaceState(null, '', `#run=${run}&row=${row}${tab === null ? '' : `&tab=${tab}`}`)
}

function open(shown: Shown): void {
  const report = reports[shown.run]
  const row = report?.rows[shown.row]
  if (report === undefined || row === undefined) return
  side.hidden = false
  document.body.classList.add('with-side')
  for (const [run, timeline] of timelines.entries()) timeline.select(run === shown.run ? shown.row : NONE)
  const graph = report.graphs[row.graph]
  panel.replaceChildren(...describeRow(row, report))
  if (graph === undefined) remember(shown)
  else panel.append(graphView(graph, report, shown.tab ?? 'stages', (tab) => remember({ ...shown, tab })))
  panel.scrollTop = 0
  // A graph's part that was asked for stands first.
  if (shown.tab !== null) panel.querySelector('.graph')?.scrollIntoView({ block: 'start' })
}

function close(): void {
  side.hidden = true
  document.body.classList.remove('with-side')
  for (const timeline of timelines) timeline.select(NONE)
  if (location.protocol !== 'about:') history.replaceState(null, '', location.pathname + location.search)
}

function runView(report: Report, run: number): HTMLElement {
  const other = reports.length > 1 ? (reports[1 - run] ?? null) : null
  const others = other === null ? null : new Set(other.findings.map((finding) => findingKey(finding, other)))
  const rows = element('div', { class: 'timeline', tabindex: '0', 'aria-label': 'What happened, in time order' })
  const findings = findingList({ report, others, open: ({ row, tab }) => open({ run, row, tab }) })
  const about = element('details', { class: 'about' }, element('summary', {}, 'About this run'), factList(report.about))
  const state = report.isComplete ? null : element('p', { class: 'label' }, 'The trace has no end: the program was killed, or still runs.')
  const view = element(
    'section',
    { class: 'run' },
    reports.length > 1 ? element('h2', {}, `${run === 0 ? 'Before' : 'After'}: ${report.title}`) : null,
    element('div', { class: 'summary' }, totalsView(report, run === 0 ? null : other), state, findings, about),
    rows,
  )
  timelines.push(new TimelineList(rows, report, (row) => open({ run, row, tab: null })))
  return view
}

runs.append(...reports.map(runView))
runs.classList.toggle('two', reports.length > 1)
onClick('close-side', close)
addEventListener('keydown', (event) => {
  if (event.key === 'Escape') close()
})
addEventListener('hashchange', () => {
  const shown = fromHash(location.hash)
  if (shown !== null) open(shown)
})
const first = fromHash(location.hash)
if (first !== null) open(first)
