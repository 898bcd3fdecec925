// A memory plan as a chart: steps from left to right, addresses in the arena from bottom to top, a box for each temporary while it is kept.
import { element } from '../../../fx/viewer/page/elements/dom.ts'
import type { MemoryPlan, Report } from '../data.ts'
import { sizeText } from '../../../protocol/sizeText.ts'
import { placeText } from './texts.ts'

const WIDTH = 320
const HEIGHT = 160
/** The largest temporaries are drawn. */
const MOST = 300

const NAMESPACE = 'http://www.w3.org/2000/svg'

function svg(tag: string, attributes: Readonly<Record<string, string | number>>, title: string | null = null): SVGElement {
  const made = document.createElementNS(NAMESPACE, tag)
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value))
  if (title !== null) {
    const text = document.createElementNS(NAMESPACE, 'title')
    text.textContent = title
    made.append(text)
  }
  return made
}

/** The chart of a plan, and the temporaries at its peak. */
export function memoryChart(plan: MemoryPlan, { places }: Report): HTMLElement {
  const { program, arenaBytes, steps, lifetimes, peakStep, peakBytes } = plan
  if (lifetimes.length === 0)
    return element(
      'section',
      {},
      element('h3', {}, program),
      element('p', { class: 'label' }, 'No temporaries: each kernel writes what the program returns.'),
    )
  const [x, y] = [WIDTH / steps, HEIGHT / Math.max(1, arenaBytes)]
  const largest = lifetimes.toSorted((a, b) => b.bytes - a.bytes)
  const nameOf = (place: number): string => (places[place] === undefined ? '' : `, ${placeText(places[place])}`)
  const chart = svg('svg', {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    class: 'memory',
    role: 'img',
    'aria-label': `Memory of ${program} over its ${steps} steps`,
  })
  chart.append(
    svg('rect', { x: peakStep * x, y: 0, width: x, height: HEIGHT, class: 'peak' }, `the peak: ${sizeText(peakBytes)} at step ${peakStep}`),
  )
  for (const { buffer, bytes, offset, first, last, place } of largest.slice(0, MOST)) {
    const box = {
      x: first * x,
      y: HEIGHT - (offset + bytes) * y,
      width: Math.max(1, (last + 1 - first) * x - 0.5),
      height: Math.max(0.5, bytes * y - 0.5),
    }
    const isPeak = first <= peakStep && peakStep <= last
    chart.append(
      svg('rect', { ...box, class: isPeak ? 'at-peak' : 'other' }, `${buffer}: ${sizeText(bytes)}, steps ${first} to ${last}${nameOf(place)}`),
    )
  }
  const atPeak = largest.filter(({ first, last }) => first <= peakStep && peakStep <= last).slice(0, 12)
  return element(
    'section',
    {},
    element('h3', {}, program),
    element(
      'p',
      { class: 'label' },
      `An arena of ${sizeText(arenaBytes)}; ${sizeText(peakBytes)} in use at step ${peakStep} of ${steps}. Steps go from left to right, addresses upward.`,
    ),
    element('div', {}, chart),
    element(
      'dl',
      { class: 'at-peak-list' },
      atPeak.flatMap(({ buffer, bytes, place }) => {
        const at = places[place]
        return [
          element('dt', {}, buffer),
          element(
            'dd',
            {},
            sizeText(bytes),
            at === undefined
              ? null
              : element(
                  'span',
                  { class: 'where' },
                  ' ',
                  element('code', {}, placeText(at)),
                  at.code === null ? null : element('code', { class: 'source' }, at.code),
                ),
          ),
        ]
      }),
    ),
  )
}
