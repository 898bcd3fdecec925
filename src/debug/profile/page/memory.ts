// Draws a timeline of memory: areas above each other, one for each owner, and a table of who had what when most was in use.
import { byId, element } from '../../../fx/viewer/page/elements/dom.ts'
import type { MemoryData, MemorySeries } from './data.ts'
import { sizeText } from '../../../protocol/sizeText.ts'
import { timeText } from '../../../protocol/timeText.ts'

const HEIGHT = 340
const [LEFT, RIGHT, TOP, BOTTOM] = [76, 8, 10, 26]
/** As many owners have an area of their own; the others share one. */
const MOST_AREAS = 9

/** Colours of areas: those of categories stay the same, whatever else is there. */
const OF_CATEGORIES: Readonly<Record<string, string>> = {
  parameter: 'var(--category-layer)',
  buffer: 'var(--category-pooling)',
  gradient: 'var(--category-activation)',
  'optimizer state': 'var(--category-math)',
  input: 'var(--category-input)',
  activation: 'var(--category-normalization)',
  temporary: 'var(--category-shape)',
  scratch: 'var(--soft)',
  unknown: 'var(--category-parameter)',
}
const COLOURS = Object.values(OF_CATEGORIES)

interface Area {
  readonly owner: string
  readonly colour: string
  /** For each point. */
  readonly bytes: readonly number[]
}

/** The areas of a series, those that are largest first at the bottom. */
function areasOf({ owners, bytes }: MemorySeries): readonly Area[] {
  const most = (at: number): number => bytes.reduce((largest, point) => Math.max(largest, point[at] ?? 0), 0)
  const order = owners.map((owner, at) => ({ owner, at, most: most(at) })).filter((one) => one.most > 0)
  order.sort((a, b) => b.most - a.most)
  const own = order.slice(0, order.length > MOST_AREAS ? MOST_AREAS - 1 : MOST_AREAS)
  const rest = order.slice(own.length)
  const areas = own.map(({ owner, at }, i) => ({
    owner,
    colour: OF_CATEGORIES[owner] ?? COLOURS[i % COLOURS.length] ?? 'var(--soft)',
    bytes: bytes.map((point) => point[at] ?? 0),
  }))
  if (rest.length === 0) return areas
  return [
    ...areas,
    { owner: `${rest.length} others`, colour: 'var(--line)', bytes: bytes.map((point) => rest.reduce((sum, { at }) => sum + (point[at] ?? 0), 0)) },
  ]
}

const SVG = 'http://www.w3.org/2000/svg'
function shape(tag: string, attributes: Readonly<Record<string, string | number>>, text = ''): SVGElement {
  const made = document.createElementNS(SVG, tag)
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value))
  made.textContent = text
  return made
}

/** Round numbers of bytes for the lines of the grid. */
function stepsOf(most: number): readonly number[] {
  const least = most / 5
  let step = 1024
  while (step < least) step *= step * 2 < least ? 4 : 2
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step)
}

/** The chart, its legend, and the moment that they show. */
class MemoryChart {
  readonly #chart = byId('chart', HTMLElement)
  readonly #legend = byId('legend', HTMLElement)
  readonly #by = byId('by', HTMLSelectElement)
  readonly #data: MemoryData
  readonly #span: number
  #at: number

  constructor(data: MemoryData) {
    this.#data = data
    this.#span = Math.max(data.times.at(-1) ?? 0, Number.MIN_VALUE)
    this.#at = data.peak
  }

  draw(): void {
    const series = this.#data.series[this.#by.value]
    if (series === undefined) return
    const areas = areasOf(series)
    const total = (point: number): number => areas.reduce((sum, { bytes }) => sum + (bytes[point] ?? 0), 0)
    this.#drawChart(areas, Math.max(1, ...this.#data.times.map((_, i) => total(i))))
    const at = this.#at
    this.#legend.replaceChildren(
      element(
        'li',
        {},
        at === this.#data.peak ? 'at the peak' : `after ${timeText(this.#data.times[at] ?? 0)}`,
        element('b', {}, sizeText(total(at))),
      ),
      ...areas.map(({ owner, colour, bytes }) =>
        element('li', {}, element('i', { style: `background:${colour}` }), owner, element('b', {}, sizeText(bytes[at] ?? 0))),
      ),
    )
  }

  #drawChart(areas: readonly Area[], most: number): void {
    const { times } = this.#data
    const width = this.#chart.clientWidth
    const x = (time: number): number => LEFT + (time / this.#span) * (width - LEFT - RIGHT)
    const y = (bytes: number): number => HEIGHT - BOTTOM - (bytes / most) * (HEIGHT - TOP - BOTTOM)
    const picture = shape('svg', { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}` })
    for (const bytes of stepsOf(most)) {
      picture.append(shape('line', { class: 'grid', x1: LEFT, x2: width - RIGHT, y1: y(bytes), y2: y(bytes) }))
      picture.append(shape('text', { x: LEFT - 8, y: y(bytes) + 4, 'text-anchor': 'end' }, bytes === 0 ? '0' : sizeText(bytes)))
    }
    const below = times.map(() => 0)
    for (const { bytes, colour } of areas) {
      const floor = [...below]
      times.forEach((_, i) => (below[i] = (below[i] ?? 0) + (bytes[i] ?? 0)))
      picture.append(shape('path', { d: outline(times, floor, below, x, y), fill: colour, 'fill-opacity': 0.75 }))
    }
    for (const [time, anchor] of [[0, 'start'] as const, [this.#span / 2, 'middle'] as const, [this.#span, 'end'] as const])
      picture.append(shape('text', { x: x(time), y: HEIGHT - 8, 'text-anchor': anchor }, time === 0 ? '0' : timeText(time)))
    const marked = x(times[this.#at] ?? 0)
    picture.append(shape('line', { class: 'mark', x1: marked, x2: marked, y1: TOP, y2: HEIGHT - BOTTOM }))
    this.#chart.replaceChildren(picture)
  }

  /** Shows another moment. */
  #show(point: number): void {
    this.#at = Math.min(this.#data.times.length - 1, Math.max(0, point))
    this.draw()
  }

  /** To the last point that is not behind a place of the chart. */
  #moveTo(clientX: number): void {
    const { left, width } = this.#chart.getBoundingClientRect()
    const time = ((clientX - left - LEFT) / Math.max(1, width - LEFT - RIGHT)) * this.#span
    const behind = this.#data.times.findIndex((other) => other > time)
    this.#show(behind < 0 ? this.#data.times.length - 1 : behind - 1)
  }

  listen(): void {
    const chart = this.#chart
    chart.addEventListener('pointermove', (event) => this.#moveTo(event.clientX))
    chart.addEventListener('pointerdown', (event) => this.#moveTo(event.clientX))
    chart.addEventListener('pointerleave', () => this.#show(this.#data.peak))
    chart.addEventListener('keydown', (event) => {
      const step = event.key === 'ArrowLeft' ? -1 : event.key === 'ArrowRight' ? 1 : 0
      if (step === 0) return
      this.#show(this.#at + step)
      event.preventDefault()
    })
    this.#by.addEventListener('change', () => this.draw())
    new ResizeObserver(() => this.draw()).observe(chart.parentElement ?? chart)
  }
}

/** Shows who had the memory over time. */
export function showMemory(data: MemoryData): void {
  const chart = new MemoryChart(data)
  chart.listen()
  chart.draw()
  byId('owners', HTMLElement).replaceChildren(table(data))
}

/** An area between two lines of steps: memory stays what it is until the next point. */
function outline(
  times: readonly number[],
  floor: readonly number[],
  top: readonly number[],
  x: (time: number) => number,
  y: (bytes: number) => number,
): string {
  const steps = (line: readonly number[]): readonly (readonly [number, number])[] =>
    times.flatMap((time, i) => [[x(time), y(line[i] ?? 0)] as const, [x(times[i + 1] ?? time), y(line[i] ?? 0)] as const])
  const text = [...steps(top), ...steps(floor).toReversed()].map(([px, py]) => `${px.toFixed(1)} ${py.toFixed(1)}`)
  return `M${text.join('L')}Z`
}

function table({ atPeak }: MemoryData): HTMLElement {
  const head = [
    ['kind', ''],
    ['made by', ''],
    ['module', ''],
    ['tensors', ''],
    ['bytes', 'number'],
  ] as const
  return element(
    'table',
    {},
    element('thead', {}, element('tr', {}, ...head.map(([text, kind]) => element('th', { class: kind }, text)))),
    element(
      'tbody',
      {},
      ...atPeak.map(([category, operator, module, tensors, bytes]) =>
        element(
          'tr',
          {},
          ...[category, operator, module, tensors].map((text, i) => element('td', { class: head[i]?.[0].replace(' ', '-') ?? null }, text)),
          element('td', { class: 'number' }, sizeText(bytes)),
        ),
      ),
    ),
  )
}
