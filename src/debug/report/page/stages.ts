// The stages of a graph, one after the other, each as the difference from the one before.
import { element } from '../../../fx/viewer/page/elements/dom.ts'
import { VirtualList } from '../../../fx/viewer/page/elements/virtualList.ts'
import type { GraphFacts, Report, Stage, StageLine } from '../data.ts'
import { lineDiff } from '../lineDiff.ts'
import { placeParts } from './texts.ts'

/** Stages with fewer lines in common are in other words (a graph and its loops), and are shown as they are. */
const LEAST_COMMON = 0.2

/** A line as it is shown. */
interface ShownLine {
  readonly line: StageLine
  readonly change: '' | 'added' | 'removed'
}

/** The lines of a stage; where it has much in common with the one before it, with what was removed. */
export function linesOf(stages: readonly Stage[], at: number): { readonly lines: readonly ShownLine[]; readonly isDiff: boolean } {
  const { lines = [], before = -1 } = stages[at] ?? {}
  const old = stages[before]?.lines ?? null
  const plain = { lines: lines.map((line): ShownLine => ({ line, change: '' })), isDiff: false }
  if (old === null || old.length === 0) return plain
  const diff = lineDiff(
    old.map(([text]) => text),
    lines.map(([text]) => text),
  )
  if (diff.filter(([a, b]) => a >= 0 && b >= 0).length < LEAST_COMMON * Math.min(old.length, lines.length)) return plain
  const shown = diff.flatMap(([a, b]): ShownLine[] => {
    const line = b >= 0 ? lines[b] : old[a]
    return line === undefined ? [] : [{ line, change: b < 0 ? 'removed' : a < 0 ? 'added' : '' }]
  })
  return { lines: shown, isDiff: true }
}

/** The view of the stages. The element has to be in the page before it is drawn. */
export function stagesView({ stages }: GraphFacts, report: Report): HTMLElement {
  const [count, title, note, box] = [
    element('span', { class: 'label' }),
    element('b', {}),
    element('span', { class: 'label' }),
    element('div', { class: 'stage-lines', tabindex: '0' }),
  ]
  let at = 0
  const show = (next: number): void => {
    at = Math.max(0, Math.min(stages.length - 1, next))
    const stage = stages[at]
    if (stage === undefined) return
    const { lines, isDiff } = linesOf(stages, at)
    const changes = lines.filter(({ change }) => change !== '')
    const from = stages[stage.before]?.title
    count.textContent = `${at + 1} of ${stages.length}`
    title.textContent = stage.title
    note.textContent = [
      stage.note,
      isDiff && from !== undefined ? `against ${from}: ${changes.length === 0 ? 'the same' : `${changes.length} lines differ`}` : '',
    ]
      .filter((part) => part !== '')
      .join(', ')
    for (const [i, tab] of [...tabs.children].entries()) tab.setAttribute('aria-selected', String(i === at))
    tabs.children[at]?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
    const list = new VirtualList(
      box,
      { count: lines.length, height: 20, line: (i) => lineElement(lines[i], report) },
      isDiff ? 'lines diff' : 'lines',
    )
    const width = Math.max(0, ...lines.map(({ line: [text] }) => report.texts[text]?.length ?? 0))
    list.inner.style.minWidth = `calc(${width + 26}ch + 20px)`
    list.reveal(lines.findIndex(({ change }) => change !== ''))
  }
  const tabs = element(
    'div',
    { class: 'steps', role: 'tablist' },
    stages.map((stage, i) => {
      const tab = element('button', { type: 'button', role: 'tab' }, stage.title)
      tab.addEventListener('click', () => show(i))
      return tab
    }),
  )
  const button = (name: string, text: string, step: number): HTMLElement => {
    const made = element('button', { type: 'button', class: 'step', 'data-step': name, 'aria-label': `${name} stage` }, text)
    made.addEventListener('click', () => show(at + step))
    return made
  }
  const view = element(
    'div',
    { class: 'stages' },
    tabs,
    element('p', { class: 'stage-head' }, button('previous', '‹', -1), count, button('next', '›', 1), title, ' ', note),
    box,
  )
  view.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowRight') show(at + 1)
    if (event.key === 'ArrowLeft') show(at - 1)
  })
  show(0)
  return view
}

function lineElement(shown: ShownLine | undefined, { texts, places }: Report): HTMLElement {
  const [text, place] = shown?.line ?? [-1, -1]
  const at = places[place]
  return element(
    'div',
    { class: shown?.change ?? '' },
    element('span', { class: 'from', title: at?.code ?? null }, at === undefined ? null : placeParts(at)),
    texts[text] ?? '',
  )
}
