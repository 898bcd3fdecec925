// The distribution of a tensor's values, as a small picture and in words.
import type { ViewStatistics, ViewTensor } from '../view.ts'
import { element } from './elements/dom.ts'

/** A number with about four digits. */
export function short(value: number): string {
  if (value === 0 || (Math.abs(value) >= 1e-3 && Math.abs(value) < 1e5)) return String(Number(value.toPrecision(4)))
  return value.toExponential(2)
}

/** What is known of a tensor: name, shape and dtype; its statistics and histogram. */
export function tensorView(tensor: ViewTensor): HTMLElement {
  const { name, kind, shape, dtype, statistics } = tensor
  const size = `${dtype}[${shape.join(', ')}]`
  return element(
    'div',
    { class: 'tensor' },
    element('div', { class: 'tensor-head' }, element('b', {}, name), element('code', {}, size)),
    statistics === null ? element('div', { class: 'label' }, `${kind}, values not recorded`) : histogram(statistics),
    statistics === null ? null : figures(statistics),
  )
}

export function figures({ min, max, mean, std, zeros, special }: ViewStatistics): HTMLElement {
  const row = (title: string, value: string): HTMLElement[] => [element('dt', {}, title), element('dd', {}, value)]
  return element(
    'dl',
    { class: 'figures' },
    row('min', short(min)),
    row('max', short(max)),
    row('mean', short(mean)),
    row('std', short(std)),
    zeros === 0 ? null : row('zeros', String(zeros)),
    special === 0 ? null : row('NaN or inf', String(special)),
  )
}

export function histogram({ histogram: counts, min, max }: ViewStatistics): HTMLElement {
  const [width, height, most] = [240, 44, Math.max(...counts, 1)]
  const step = width / counts.length
  const bars = counts.map((count, i) => {
    // What is there is seen, however little.
    const h = count === 0 ? 0 : Math.max(1.5, (height * count) / most)
    return `M${(i * step + 0.5).toFixed(1)} ${height}v${(-h).toFixed(1)}h${(step - 1).toFixed(1)}V${height}z`
  })
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg')
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`)
  svg.setAttribute('preserveAspectRatio', 'none')
  svg.setAttribute('role', 'img')
  svg.setAttribute('aria-label', `histogram of the values from ${short(min)} to ${short(max)}`)
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path')
  path.setAttribute('d', bars.join(''))
  svg.append(path)
  const box = element('div', { class: 'histogram' })
  box.append(svg)
  return box
}
