// The timeline: a row for each call and for what happened in it, in time order. Calls that went as before are thin.
import { element } from '../../../fx/viewer/page/elements/dom.ts'
import { VirtualList } from '../../../fx/viewer/page/elements/virtualList.ts'
import { NONE } from '../data.ts'
import type { Report } from '../data.ts'
import { classOf } from './findingList.ts'
import { placeParts } from './parts.ts'
import { timeText } from '../../../protocol/timeText.ts'

const HEIGHT = 28

export class TimelineList {
  readonly #report: Report
  readonly #list: VirtualList
  #selected = NONE

  /** `open` is called with the number of a row that is clicked. */
  constructor(box: HTMLElement, report: Report, open: (row: number) => void) {
    this.#report = report
    this.#list = new VirtualList(box, { count: report.rows.length, height: HEIGHT, line: (i) => this.#line(i) }, 'rows')
    const { inner } = this.#list
    inner.addEventListener('click', (event) => {
      const row = event.target instanceof Element ? event.target.closest<HTMLElement>('[data-row]') : null
      if (row !== null) open(Number(row.dataset['row']))
    })
  }

  /** Marks a row and brings it into view. */
  select(row: number): void {
    this.#selected = row
    this.#list.reveal(row)
  }

  #line(i: number): HTMLElement {
    const row = this.#report.rows[i]
    if (row === undefined) return element('div')
    const { kind, depth, title, time, place, milliseconds, count } = row
    const at = this.#report.places[place]
    return element(
      'button',
      { type: 'button', class: `row depth-${depth} ${classOf(kind)}${i === this.#selected ? ' current' : ''}`, 'data-row': String(i), title },
      element('span', { class: 'time' }, timeText(time)),
      element('i', {}),
      element('span', { class: 'title' }, title),
      count > 1 ? element('b', {}, `×${count}`) : null,
      element('span', { class: 'grow' }),
      at === undefined ? null : element('code', { class: 'row-place' }, placeParts(at)),
      element('span', { class: 'took' }, milliseconds === null ? '' : timeText(milliseconds)),
    )
  }
}
