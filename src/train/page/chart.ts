// A chart of lines over steps, as SVG. It shows the values under the pointer.
import { shortNumber } from '../shortNumber.ts'
import { ticks } from './numbers.ts'

/** A line. */
export interface Line {
  readonly name: string
  /** 'train' is pale where a smooth line is drawn over it. */
  readonly tone: 'train' | 'smooth' | 'validation'
  readonly points: readonly (readonly [step: number, value: number])[]
  /** Points are marked. */
  readonly isMarked: boolean
}

const SVG = 'http://www.w3.org/2000/svg'
const [WIDTH, HEIGHT] = [420, 190]
const EDGE = { left: 52, right: 12, top: 12, bottom: 24 }

function svg(name: string, attributes: Readonly<Record<string, string | number>>, text = ''): SVGElement {
  const element = document.createElementNS(SVG, name)
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value))
  element.textContent = text
  return element
}

const inside = (value: number, from: number, to: number): number => Math.min(to, Math.max(from, value))

/** A card with a chart. */
export class Chart {
  readonly element: HTMLElement
  readonly #drawing: SVGElement
  readonly #latest: HTMLElement
  readonly #tip: HTMLElement
  readonly #format: (value: number) => string
  #lines: readonly Line[] = []
  #x: (step: number) => number = () => 0
  #steps: readonly number[] = []

  constructor(title: string, format: (value: number) => string = shortNumber) {
    this.#format = format
    this.element = document.createElement('section')
    this.element.className = 'card'
    const head = document.createElement('header')
    const name = document.createElement('h2')
    name.textContent = title
    this.#latest = document.createElement('span')
    this.#latest.className = 'latest'
    head.append(name, this.#latest)
    this.#drawing = svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': title })
    this.#tip = document.createElement('output')
    this.#tip.className = 'tip'
    this.element.append(head, this.#drawing, this.#tip)
    this.#drawing.addEventListener('pointermove', (event) => this.#point(event))
    this.#drawing.addEventListener('pointerleave', () => this.#leave())
  }

  draw(lines: readonly Line[]): void {
    this.#lines = lines.filter(({ points }) => points.length > 0)
    const all = this.#lines.flatMap(({ points }) => points)
    const values = all.map(([, value]) => value).filter(Number.isFinite)
    const steps = all.map(([step]) => step)
    this.#steps = [...new Set(steps)].sort((a, b) => a - b)
    this.#drawing.replaceChildren()
    this.#latest.replaceChildren(...this.#legend())
    if (values.length === 0) return
    const [first, last] = [Math.min(...steps), Math.max(...steps)]
    let [low, high] = [Math.min(...values), Math.max(...values)]
    if (low === high) [low, high] = low === 0 ? [0, 1] : [low - Math.abs(low) / 10, high + Math.abs(high) / 10]
    const x = (step: number): number => EDGE.left + ((WIDTH - EDGE.left - EDGE.right) * (step - first)) / Math.max(1, last - first)
    const y = (value: number): number => HEIGHT - EDGE.bottom - ((HEIGHT - EDGE.top - EDGE.bottom) * (value - low)) / (high - low)
    this.#x = x
    for (const value of ticks(low, high, 4)) {
      this.#drawing.append(svg('line', { class: 'grid', x1: EDGE.left, x2: WIDTH - EDGE.right, y1: y(value), y2: y(value) }))
      this.#drawing.append(svg('text', { class: 'tick', x: EDGE.left - 6, y: y(value) + 4, 'text-anchor': 'end' }, this.#format(value)))
    }
    for (const step of ticks(first, last, 4))
      if (Number.isInteger(step))
        this.#drawing.append(
          svg('text', { class: 'tick', x: inside(x(step), EDGE.left + 8, WIDTH - 20), y: HEIGHT - 6, 'text-anchor': 'middle' }, String(step)),
        )
    for (const { points, tone, isMarked } of this.#lines) {
      const drawn = points.filter(([, value]) => Number.isFinite(value))
      const path = drawn.map(([step, value], i) => `${i === 0 ? 'M' : 'L'}${x(step).toFixed(1)} ${y(value).toFixed(1)}`).join('')
      this.#drawing.append(svg('path', { class: `line ${tone}`, d: path }))
      if (isMarked || drawn.length === 1)
        for (const [step, value] of drawn) this.#drawing.append(svg('circle', { class: tone, cx: x(step), cy: y(value), r: 2.5 }))
    }
  }

  #legend(): readonly Node[] {
    return this.#lines
      .filter(({ tone }, _, lines) => tone !== 'train' || !lines.some((other) => other.tone === 'smooth'))
      .map(({ name, tone, points }) => {
        const item = document.createElement('span')
        item.className = `key ${tone}`
        item.textContent = `${name} ${this.#format(points.at(-1)?.[1] ?? NaN)}`
        return item
      })
  }

  /** Shows the values of the step nearest to the pointer. */
  #point(event: PointerEvent): void {
    const box = this.#drawing.getBoundingClientRect()
    const at = ((event.clientX - box.left) / box.width) * WIDTH
    const nearest = this.#steps.reduce(
      (best, step) => (Math.abs(this.#x(step) - at) < Math.abs(this.#x(best) - at) ? step : best),
      this.#steps[0] ?? 0,
    )
    const parts = this.#lines.flatMap(({ name, points }) => {
      const found = points.find(([step]) => step === nearest)
      return found === undefined ? [] : [`${name} ${this.#format(found[1])}`]
    })
    this.#tip.textContent = `step ${nearest}: ${parts.join(', ')}`
    this.#drawing.querySelector('.cursor')?.remove()
    this.#drawing.append(svg('line', { class: 'cursor', x1: this.#x(nearest), x2: this.#x(nearest), y1: EDGE.top, y2: HEIGHT - EDGE.bottom }))
  }

  #leave(): void {
    this.#tip.textContent = ''
    this.#drawing.querySelector('.cursor')?.remove()
  }
}
