// Draws a timeline of memory: areas above each other, one for each owner, and a table of who had what when most was in use.
import { byId, element } from '../../../fx/viewer/page/elements/dom.ts'
import type { MemoryData, MemorySeries } from './data.ts'
import { bytesText, timeText } from './texts.ts'

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

/** Shows who had the memory over time. */
export function showMemory(data: MemoryData): void {
  const chart = byId('chart', HTMLElement)
  const legend = byId('legend', HTMLElement)
  const by = byId('by', HTMLSelectElement)
  const { times, peak } = data
  const span = Math.max(times.at(-1) ?? 0, Number.MIN_VALUE)
  let at = peak

  function draw(): void {
    const series = data.series[by.value]
    if (series === undefined) return
    const areas = areasOf(series)
    const width = chart.clientWidth
    const total = (point: number): number => areas.reduce((sum, { bytes }) => sum + (bytes[point] ?? 0), 0)
    const most = Math.max(1, ...times.map((_, i) => total(i)))
    const x = (time: number): number => LEFT + (time / span) * (width - LEFT - RIGHT)
    const y = (bytes: number): number => HEIGHT - BOTTOM - (bytes / most) * (HEIGHT - TOP - BOTTOM)
    const picture = shape('svg', { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}` })
    for (const bytes of stepsOf(most)) {
      picture.append(shape('line', { class: 'grid', x1: LEFT, x2: width - RIGHT, y1: y(bytes), y2: y(bytes) }))
      picture.append(shape('text', { x: LEFT - 8, y: y(bytes) + 4, 'text-anchor': 'end' }, bytes === 0 ? '0' : bytesText(bytes)))
    }
    const below = times.map(() => 0)
    for (const { bytes, colour } of areas) {
      const floor = [...below]
      times.forEach((_, i) => (below[i] = (below[i] ?? 0) + (bytes[i] ?? 0)))
      picture.append(shape('path', { d: outline(times, floor, below, x, y), fill: colour, 'fill-opacity': 0.75 }))
    }
    const labels = [0, span / 2, span]
    labels.forEach((time, i) =>
      picture.append(
        shape(
          'text',
          { x: x(time), y: HEIGHT - 8, 'text-anchor': i === 0 ? 'start' : i === 1 ? 'middle' : 'end' },
          time === 0 ? '0' : timeText(time),
        ),
      ),
    )
    const marked = x(times[at] ?? 0)
    picture.append(shape('line', { class: 'mark', x1: marked, x2: marked, y1: TOP, y2: HEIGHT - BOTTOM }))
    chart.replaceChildren(picture)
    legend.replaceChildren(
      element('li', {}, at === peak ? 'at the peak' : `after ${timeText(times[at] ?? 0)}`, element('b', {}, bytesText(total(at)))),
      ...areas.map(({ owner, colour, bytes }) =>
        element('li', {}, element('i', { style: `background:${colour}` }), owner, element('b', {}, bytesText(bytes[at] ?? 0))),
      ),
    )
  }

  /** The last point that is not behind a place of the chart. */
  function moveTo(clientX: number): void {
    const { left, width } = chart.getBoundingClientRect()
    const time = ((clientX - left - LEFT) / Math.max(1, width - LEFT - RIGHT)) * span
    const behind = times.findIndex((other) => other > time)
    at = Math.max(0, behind < 0 ? times.length - 1 : behind - 1)
    draw()
  }

  chart.addEventListener('pointermove', (event) => moveTo(event.clientX))
  chart.addEventListener('pointerdown', (event) => moveTo(event.clientX))
  chart.addEventListener('pointerleave', () => {
    at = peak
    draw()
  })
  chart.addEventListener('keydown', (event) => {
    const step = event.key === 'ArrowLeft' ? -1 : event.key === 'ArrowRight' ? 1 : 0
    if (step === 0) return
    at = Math.min(times.length - 1, Math.max(0, at + step))
    draw()
    event.preventDefault()
  })
  by.addEventListener('change', draw)
  new ResizeObserver(draw).observe(chart.parentElement ?? chart)
  draw()
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
          element('td', { class: 'number' }, bytesText(bytes)),
        ),
      ),
    ),
  )
}
