// The search field with the list of what was found.
import { categoryOf, operation } from '../layout/boxes.ts'
import type { PageNode } from '../pageData.ts'
import { byId, element } from './elements/dom.ts'
import { find, kindCounts, parseQuery } from './search.ts'

/** As many results are listed; the graph shows all of them. */
const MOST_RESULTS = 40

export interface SearchActions {
  /** The numbers of the nodes that were found; null if nothing is searched for. */
  readonly found: (hits: readonly number[] | null) => void
  readonly go: (index: number) => void
}

export class SearchBox {
  readonly #nodes: readonly PageNode[]
  readonly #actions: SearchActions
  readonly #input = byId('search', HTMLInputElement)
  readonly #kind = byId('kind', HTMLSelectElement)
  readonly #count = byId('hits', HTMLElement)
  readonly #list = byId('results', HTMLElement)
  #hits: readonly number[] = []
  #turn = -1

  constructor(nodes: readonly PageNode[], actions: SearchActions) {
    this.#nodes = nodes
    this.#actions = actions
    for (const [kind, count] of kindCounts(nodes)) this.#kind.append(element('option', { value: kind }, `${kind} (${count})`))
    this.#input.addEventListener('input', () => this.#search())
    this.#kind.addEventListener('change', () => this.#search())
    this.#input.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') {
        this.clear()
        this.#input.blur()
      } else if (event.key === 'Enter') this.#next(event.shiftKey ? -1 : 1)
      else if (event.key === 'ArrowDown') this.#next(1)
      else if (event.key === 'ArrowUp') this.#next(-1)
      else return
      event.preventDefault()
    })
    this.#list.addEventListener('click', (event) => {
      const row = event.target instanceof Element ? event.target.closest<HTMLElement>('[data-hit]') : null
      if (row === null) return
      this.#turn = Number(row.dataset['hit']) - 1
      this.#next(1)
      this.#list.hidden = true
    })
    this.#input.addEventListener('focus', () => (this.#list.hidden = this.#hits.length === 0))
    document.addEventListener('pointerdown', (event) => {
      if (event.target instanceof Element && event.target.closest('.find') === null) this.#list.hidden = true
    })
  }

  focus(): void {
    this.#input.focus()
    this.#input.select()
  }

  clear(): void {
    this.#input.value = ''
    this.#kind.value = ''
    this.#search()
  }

  #search(): void {
    const query = parseQuery(this.#input.value)
    const kinds = this.#kind.value === '' ? query.kinds : [...query.kinds, this.#kind.value]
    const hits = find(this.#nodes, { ...query, kinds })
    this.#hits = hits ?? []
    this.#turn = -1
    this.#count.textContent = hits === null ? '' : `${hits.length} found`
    this.#actions.found(hits)
    this.#showList()
  }

  #showList(): void {
    this.#list.hidden = this.#hits.length === 0
    this.#list.replaceChildren(
      ...this.#hits.slice(0, MOST_RESULTS).flatMap((index, i) => {
        const node = this.#nodes[index]
        if (node === undefined) return []
        const dot = element('i', { style: `background: var(--category-${categoryOf(node)})` })
        return element(
          'button',
          { type: 'button', 'data-hit': String(i), class: i === this.#turn ? 'current' : null },
          dot,
          element('b', {}, operation(node)),
          element('span', {}, node.name),
        )
      }),
    )
    if (this.#hits.length > MOST_RESULTS)
      this.#list.append(element('p', { class: 'label' }, `and ${this.#hits.length - MOST_RESULTS} more in the graph`))
  }

  #next(step: number): void {
    if (this.#hits.length === 0) return
    this.#turn = (this.#turn + step + this.#hits.length) % this.#hits.length
    this.#count.textContent = `${this.#turn + 1} of ${this.#hits.length}`
    this.#showList()
    this.#actions.go(this.#hits[this.#turn] ?? 0)
  }
}
