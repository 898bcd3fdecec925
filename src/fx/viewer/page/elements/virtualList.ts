// A list of lines of the same height, of which only those in view are elements.
import { element } from './dom.ts'

/** Lines beyond the edges that are kept ready. */
const MORE = 12

/** What a list shows. */
export interface ListContent {
  readonly count: number
  /** The height of a line, in pixels. */
  readonly height: number
  /** Makes the element of a line. Its place is set by the list. */
  readonly line: (i: number) => HTMLElement
}

export class VirtualList {
  readonly #box: HTMLElement
  readonly #inner: HTMLElement
  #content: ListContent

  /** `box` scrolls. `style` is the class of the element that holds the lines. */
  constructor(box: HTMLElement, content: ListContent, style: string = 'lines') {
    this.#box = box
    this.#content = content
    this.#inner = element('div', { class: style })
    box.replaceChildren(this.#inner)
    box.addEventListener('scroll', () => this.draw())
    new ResizeObserver(() => this.draw()).observe(box)
    this.show(content)
  }

  /** The element that holds the lines. */
  get inner(): HTMLElement {
    return this.#inner
  }

  /** Shows other lines. */
  show(content: ListContent): void {
    this.#content = content
    this.#inner.style.height = `${content.count * content.height}px`
    this.draw()
  }

  /** Scrolls until a line is in view. */
  reveal(i: number): void {
    const { scrollTop, clientHeight } = this.#box
    const { height } = this.#content
    if (i >= 0 && (i * height < scrollTop || (i + 1) * height > scrollTop + clientHeight)) this.#box.scrollTop = i * height - clientHeight / 2
    this.draw()
  }

  draw(): void {
    const { scrollTop, clientHeight } = this.#box
    const { count, height, line } = this.#content
    const first = Math.max(0, Math.floor(scrollTop / height) - MORE)
    const last = Math.min(count, first + Math.ceil(clientHeight / height) + 2 * MORE)
    this.#inner.replaceChildren(
      ...Array.from({ length: Math.max(0, last - first) }, (_, i) => {
        const made = line(first + i)
        made.style.top = `${(first + i) * height}px`
        return made
      }),
    )
  }
}
