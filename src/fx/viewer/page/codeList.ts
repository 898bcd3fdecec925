// The generated code as a list of which only the lines in view are elements.
import type { PageLine } from '../pageData.ts'
import { element } from './dom.ts'

const LINE = 20
/** Lines beyond the edges that are kept ready. */
const MORE = 12

export class CodeList {
  readonly #box: HTMLElement
  readonly #lines: readonly PageLine[]
  readonly #inner: HTMLElement
  #selected = -1

  constructor(box: HTMLElement, lines: readonly PageLine[], isDiff: boolean, go: (node: number) => void) {
    this.#box = box
    this.#lines = lines
    this.#inner = element('div', { class: isDiff ? 'lines diff' : 'lines' })
    const width = Math.max(0, ...lines.map((line) => line.text.length))
    this.#inner.style.height = `${lines.length * LINE}px`
    this.#inner.style.minWidth = `calc(${width}ch + 32px)`
    box.append(this.#inner)
    box.addEventListener('scroll', () => this.draw())
    this.#inner.addEventListener('click', (event) => {
      const line = event.target instanceof Element ? event.target.closest<HTMLElement>('[data-node]') : null
      if (line !== null) go(Number(line.dataset['node']))
    })
  }

  /** Marks the line of a node, and brings it into view. */
  select(node: number): void {
    this.#selected = node
    const place = this.#lines.findIndex((line) => line.node === node)
    const { scrollTop, clientHeight } = this.#box
    if (place >= 0 && (place * LINE < scrollTop || (place + 1) * LINE > scrollTop + clientHeight))
      this.#box.scrollTop = place * LINE - clientHeight / 2
    this.draw()
  }

  draw(): void {
    const { scrollTop, clientHeight } = this.#box
    const first = Math.max(0, Math.floor(scrollTop / LINE) - MORE)
    const lines = this.#lines.slice(first, first + Math.ceil(clientHeight / LINE) + 2 * MORE)
    this.#inner.replaceChildren(
      ...lines.map(({ text, node, change }, i) => {
        const kind = [node >= 0 ? 'has-node' : '', change === 'same' ? '' : change, node >= 0 && node === this.#selected ? 'current' : '']
        const line = element('div', { class: kind.join(' ').trim(), 'data-node': node >= 0 ? String(node) : null }, text === '' ? ' ' : text)
        line.style.top = `${(first + i) * LINE}px`
        return line
      }),
    )
  }
}
