// The stages of a graph, one after the other, each as the difference from the one before.
import { element } from '../../../fx/viewer/page/elements/dom.ts'
import { VirtualList } from '../../../fx/viewer/page/elements/virtualList.ts'
import { NONE } from '../data.ts'
import type { GraphFacts, Report, Stage, StageLine } from '../data.ts'
import { lineDiff } from '../lineDiff.ts'
import { placeParts } from './parts.ts'

/** Stages with fewer lines in common are in other words (a graph and its loops), and are shown as they are. */
const LEAST_COMMON = 0.2

/** A line as it is shown. */
interface ShownLine {
  readonly line: StageLine
  readonly change: '' | 'added' | 'removed'
}

/** The lines of a stage; where it has much in common with the one before it, with what was removed. */
export function linesOf(stages: readonly Stage[], at: number): { readonly lines: readonly ShownLine[]; readonly isDiff: boolean } {
  const { lines = [], before = NONE } = stages[at] ?? {}
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
export const stagesView = ({ stages }: GraphFacts, report: Report): HTMLElement => new StagesView(stages, report).element

class StagesView {
  readonly element: HTMLElement
  readonly #stages: readonly Stage[]
  readonly #report: Report
  readonly #tabs: readonly HTMLElement[]
  readonly #count = element('span', { class: 'label' })
  readonly #title = element('b', {})
  readonly #note = element('span', { class: 'label' })
  readonly #lines = element('div', { class: 'stage-lines', tabindex: '0' })
  #at = 0

  constructor(stages: readonly Stage[], report: Report) {
    this.#stages = stages
    this.#report = report
    this.#tabs = stages.map(({ title }, i) => this.#button({ role: 'tab' }, title, () => this.#show(i)))
    const previous = this.#button({ class: 'step', 'data-step': 'previous', 'aria-label': 'previous stage' }, '‹', () => this.#show(this.#at - 1))
    const next = this.#button({ class: 'step', 'data-step': 'next', 'aria-label': 'next stage' }, '›', () => this.#show(this.#at + 1))
    this.element = element(
      'div',
      { class: 'stages' },
      element('div', { class: 'steps', role: 'tablist' }, this.#tabs),
      element('p', { class: 'stage-head' }, previous, this.#count, next, this.#title, ' ', this.#note),
      this.#lines,
    )
    this.element.addEventListener('keydown', ({ key }) => {
      if (key === 'ArrowRight') this.#show(this.#at + 1)
      if (key === 'ArrowLeft') this.#show(this.#at - 1)
    })
    this.#show(0)
  }

  #button(attributes: Readonly<Record<string, string>>, text: string, act: () => void): HTMLElement {
    const made = element('button', { type: 'button', ...attributes }, text)
    made.addEventListener('click', act)
    return made
  }

  /** Shows a stage, or the nearest one that there is. */
  #show(wanted: number): void {
    const at = Math.max(0, Math.min(this.#stages.length - 1, wanted))
    const stage = this.#stages[at]
    if (stage === undefined) return
    this.#at = at
    const { lines, isDiff } = linesOf(this.#stages, at)
    this.#count.textContent = `${at + 1} of ${this.#stages.length}`
    this.#title.textContent = stage.title
    this.#note.textContent = isDiff ? [stage.note, this.#differenceText(stage, lines)].filter((part) => part !== '').join(', ') : stage.note
    for (const [i, tab] of this.#tabs.entries()) tab.setAttribute('aria-selected', String(i === at))
    this.#tabs[at]?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
    this.#draw(lines, isDiff)
  }

  #differenceText({ before }: Stage, lines: readonly ShownLine[]): string {
    const from = this.#stages[before]?.title
    const changes = lines.filter(({ change }) => change !== '').length
    return from === undefined ? '' : `against ${from}: ${changes === 0 ? 'the same' : `${changes} lines differ`}`
  }

  #draw(lines: readonly ShownLine[], isDiff: boolean): void {
    const { texts } = this.#report
    const line = (i: number): HTMLElement => lineElement(lines[i], this.#report)
    const list = new VirtualList(this.#lines, { count: lines.length, height: 20, line }, isDiff ? 'lines diff' : 'lines')
    const width = Math.max(0, ...lines.map(({ line: [text] }) => texts[text]?.length ?? 0))
    list.inner.style.minWidth = `calc(${width + 26}ch + 20px)`
    list.reveal(lines.findIndex(({ change }) => change !== ''))
  }
}

function lineElement(shown: ShownLine | undefined, { texts, places }: Report): HTMLElement {
  const [text, place] = shown?.line ?? [NONE, NONE]
  const at = places[place]
  return element(
    'div',
    { class: shown?.change ?? '' },
    element('span', { class: 'from', title: at?.code ?? null }, at === undefined ? null : placeParts(at)),
    texts[text] ?? '',
  )
}
