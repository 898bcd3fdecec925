// The generated code as a list.
import type { PageLine } from '../../pageData.ts'
import { element } from './dom.ts'
import { VirtualList } from './virtualList.ts'

export class CodeList {
  readonly #lines: readonly PageLine[]
  readonly #list: VirtualList
  #selected = -1

  constructor(box: HTMLElement, lines: readonly PageLine[], isDiff: boolean, go: (node: number) => void) {
    this.#lines = lines
    this.#list = new VirtualList(box, { count: lines.length, height: 20, line: (i) => this.#line(i) }, isDiff ? 'lines diff' : 'lines')
    const { inner } = this.#list
    inner.style.minWidth = `calc(${Math.max(0, ...lines.map((line) => line.text.length))}ch + 32px)`
    inner.addEventListener('click', (event) => {
      const line = event.target instanceof Element ? event.target.closest<HTMLElement>('[data-node]') : null
      if (line !== null) go(Number(line.dataset['node']))
    })
  }

  /** Marks the line of a node, and brings it into view. */
  select(node: number): void {
    this.#selected = node
    this.#list.reveal(this.#lines.findIndex((line) => line.node === node))
  }

  draw(): void {
    this.#list.draw()
  }

  #line(i: number): HTMLElement {
    const { text = '', node = -1, change = 'same' } = this.#lines[i] ?? {}
    const kind = [node >= 0 ? 'has-node' : '', change === 'same' ? '' : change, node >= 0 && node === this.#selected ? 'current' : '']
    return element('div', { class: kind.join(' ').trim(), 'data-node': node >= 0 ? String(node) : null }, text === '' ? ' ' : text)
  }
}
