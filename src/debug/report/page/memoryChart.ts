// A memory plan as a chart: steps from left to right, addresses in the arena from bottom to top, a box for each temporary while it is kept.
import { element } from '../../../fx/viewer/page/elements/dom.ts'
import type { MemoryPlan, Report } from '../data.ts'
import { sizeText } from '../../../protocol/sizeText.ts'
import { factList, placeText, whereView } from './parts.ts'

const WIDTH = 320
const HEIGHT = 160
/** The largest temporaries are drawn. */
const MOST = 300
/** Of those at the peak this many are listed. */
const MOST_AT_PEAK = 12

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

/** A plan: its chart, and the temporaries at its peak. */
export function memoryChart(plan: MemoryPlan, { places }: Report): HTMLElement {
  const { program, arenaBytes, steps, lifetimes, peakStep, peakBytes } = plan
  if (lifetimes.length === 0)
    return element(
      'section',
      {},
      element('h3', {}, program),
      element('p', { class: 'label' }, 'No temporaries: each kernel writes what the program returns.'),
    )
  const largest = lifetimes.toSorted((a, b) => b.bytes - a.bytes)
  const atPeak = largest.filter((lifetime) => isAtPeak(lifetime, plan)).slice(0, MOST_AT_PEAK)
  return element(
    'section',
    {},
    element('h3', {}, program),
    element(
      'p',
      { class: 'label' },
      `An arena of ${sizeText(arenaBytes)}; ${sizeText(peakBytes)} in use at step ${peakStep} of ${steps}. Steps go from left to right, addresses upward.`,
    ),
    element('div', {}, drawing(plan, largest.slice(0, MOST), places)),
    factList(
      atPeak.map(({ buffer, bytes, place }) => [buffer, [sizeText(bytes), whereView(places[place])]]),
      { class: 'at-peak-list' },
    ),
  )
}

type Lifetime = MemoryPlan['lifetimes'][number]

const isAtPeak = ({ first, last }: Lifetime, { peakStep }: MemoryPlan): boolean => first <= peakStep && peakStep <= last

/** The temporaries as boxes, with the step of the peak behind them. */
function drawing(plan: MemoryPlan, lifetimes: readonly Lifetime[], places: Report['places']): SVGElement {
  const { program, arenaBytes, steps, peakStep, peakBytes } = plan
  const [stepWidth, byteHeight] = [WIDTH / steps, HEIGHT / Math.max(1, arenaBytes)]
  const chart = svg('svg', {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    class: 'memory',
    role: 'img',
    'aria-label': `Memory of ${program} over its ${steps} steps`,
  })
  const peak = { x: peakStep * stepWidth, y: 0, width: stepWidth, height: HEIGHT, class: 'peak' }
  chart.append(svg('rect', peak, `the peak: ${sizeText(peakBytes)} at step ${peakStep}`))
  for (const lifetime of lifetimes) {
    const { buffer, bytes, offset, first, last, place } = lifetime
    const box = {
      x: first * stepWidth,
      y: HEIGHT - (offset + bytes) * byteHeight,
      width: Math.max(1, (last + 1 - first) * stepWidth - 0.5),
      height: Math.max(0.5, bytes * byteHeight - 0.5),
      class: isAtPeak(lifetime, plan) ? 'at-peak' : 'other',
    }
    const where = places[place] === undefined ? '' : `, ${placeText(places[place])}`
    chart.append(svg('rect', box, `${buffer}: ${sizeText(bytes)}, steps ${first} to ${last}${where}`))
  }
  return chart
}
