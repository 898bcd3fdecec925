// The findings: kinds as buttons, and below them what was found of the chosen kind, or the first of each.
import { element } from '../../../fx/viewer/page/elements/dom.ts'
import type { Finding, Kind, Report } from '../data.ts'
import { whereView } from './parts.ts'

/** Of each kind this many are shown until one is chosen. */
const FIRST = 3

export interface FindingListOptions {
  readonly report: Report
  /** Those of another run, by what they say: what both have is not marked. Null where one run is shown. */
  readonly others: ReadonlySet<string> | null
  readonly open: (finding: Finding) => void
}

/** What a finding says, without what differs from run to run. */
export const findingKey = ({ kind, place }: Finding, report: Report): string => {
  const { file, line } = report.places[place] ?? { file: '', line: 0 }
  return `${kind} ${file.split(/[\\/]/).at(-1)}:${line}`
}

/** The elements of the findings. */
export function findingList(options: FindingListOptions): HTMLElement {
  const { report } = options
  const kinds = [...new Set(report.findings.map(({ kind }) => kind))]
  const list = element('div', { class: 'finding-list' })
  const buttons = new Map<Kind | null, HTMLElement>()
  const choose = (chosen: Kind | null): void => {
    for (const [kind, button] of buttons) button.setAttribute('aria-pressed', String(kind === chosen))
    list.replaceChildren(
      ...kinds
        .filter((kind) => chosen === null || kind === chosen)
        .flatMap((kind) => ofKind(kind, chosen === null ? FIRST : Infinity, options, choose)),
    )
  }
  const button = (kind: Kind | null, text: string, count: number): HTMLElement => {
    const made = element(
      'button',
      { type: 'button', class: `chip ${kind === null ? '' : classOf(kind)}`, 'data-kind': kind ?? 'all' },
      text,
      element('b', {}, String(count)),
    )
    made.addEventListener('click', () => choose(kind))
    buttons.set(kind, made)
    return made
  }
  const countOf = (kind: Kind): number => report.findings.reduce((sum, finding) => sum + (finding.kind === kind ? finding.count : 0), 0)
  const all = report.findings.reduce((sum, { count }) => sum + count, 0)
  const chips = element('div', { class: 'chips' }, button(null, 'all', all), ...kinds.map((kind) => button(kind, kind, countOf(kind))))
  choose(null)
  return report.findings.length === 0
    ? element('p', { class: 'label' }, 'Nothing to report: no breaks, no recompiles, no failures.')
    : element('div', {}, chips, list)
}

/** The class that gives a kind its colour. */
export const classOf = (kind: Kind): string => `kind-${kind.replaceAll(' ', '-')}`

function ofKind(kind: Kind, most: number, { report, others, open }: FindingListOptions, choose: (kind: Kind) => void): HTMLElement[] {
  const found = report.findings.filter((finding) => finding.kind === kind)
  const rows = found.slice(0, most).map((finding) => {
    const place = report.places[finding.place]
    const isNew = others !== null && !others.has(findingKey(finding, report))
    const row = element(
      'button',
      { type: 'button', class: `finding ${classOf(kind)}`, title: finding.text },
      element(
        'span',
        { class: 'what' },
        finding.text,
        finding.count > 1 ? element('b', {}, ` ×${finding.count}`) : null,
        isNew ? element('span', { class: 'badge' }, 'only here') : null,
      ),
      whereView(place),
    )
    row.addEventListener('click', () => open(finding))
    return row
  })
  if (found.length <= most) return rows
  const more = element('button', { type: 'button', class: 'more' }, `${found.length - most} more of ${kind}`)
  more.addEventListener('click', () => choose(kind))
  return [...rows, more]
}
