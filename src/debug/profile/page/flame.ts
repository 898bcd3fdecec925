// Draws a flame graph. Only frames that are wide enough to see are elements of the page; a click shows a frame at full width.
import { byId, element, onClick } from '../../../fx/viewer/page/elements/dom.ts'
import type { FlameData, PackedFrame } from './data.ts'
import { sizeText } from '../../../protocol/sizeText.ts'
import { flopsText, shareText } from './texts.ts'
import { timeText } from '../../../protocol/timeText.ts'

const ROW = 26
/** Narrower frames, in pixels, are not drawn. */
const NARROWEST = 2

/** A frame and where it stands. */
interface Place {
  readonly frame: PackedFrame
  readonly parent: Place | null
  readonly depth: number
  /** Where it begins and how long it is, as parts of all. */
  readonly from: number
  readonly size: number
}

/** The short name that a frame shows: a module's path below the module around it, an operator without where it is. */
function labelOf({ frame: [name, kind], parent }: Place): string {
  if (kind === 'operator') return name.slice(name.lastIndexOf('.') + 1)
  if (kind !== 'module') return name
  let around = parent
  while (around !== null && around.frame[1] !== 'module') around = around.parent
  const outer = around === null ? name.slice(0, name.indexOf('.')) : around.frame[0]
  return outer !== '' && name.startsWith(`${outer}.`) ? name.slice(outer.length + 1) : name
}

/** The frame that stands for everything. Runs may be measured a little shorter than what ran in them. */
function whole({ totalTime, frames }: FlameData): PackedFrame {
  const sumOf = (at: 2 | 4 | 5): number => frames.reduce((sum, frame) => sum + frame[at], 0)
  return ['all', 'all', Math.max(totalTime, sumOf(2)), 1, sumOf(4), sumOf(5), frames]
}

const isAround = (outer: Place, inner: Place): boolean => {
  for (let at: Place | null = inner; at !== null; at = at.parent) if (at === outer) return true
  return false
}

function hasAround({ parent }: Place, frames: ReadonlySet<PackedFrame>): boolean {
  for (let at = parent; at !== null; at = at.parent) if (frames.has(at.frame)) return true
  return false
}

const own = ([, , time, , , , children]: PackedFrame): number => Math.max(0, time - children.reduce((sum, child) => sum + child[2], 0))

class FlameGraph {
  readonly #flame = byId('flame', HTMLElement)
  readonly #detail = byId('detail', HTMLElement)
  readonly #hits = byId('hits', HTMLElement)
  readonly #total: number
  readonly #places: Place[] = []
  readonly #root: Place
  #shown: Place
  #selected: Place
  #found: ReadonlySet<PackedFrame> | null = null
  readonly #drawn = new Map<Place, HTMLElement>()

  constructor(data: FlameData) {
    const all = whole(data)
    this.#total = all[2]
    this.#root = this.#lay(all, null, 0, 0)
    this.#shown = this.#root
    this.#selected = this.#root
  }

  #lay(frame: PackedFrame, parent: Place | null, depth: number, from: number): Place {
    const place: Place = { frame, parent, depth, from, size: frame[2] / Math.max(this.#total, Number.MIN_VALUE) }
    this.#places.push(place)
    let at = from
    for (const child of frame[6]) at += this.#lay(child, place, depth + 1, at).size
    return place
  }

  draw(): void {
    this.#drawn.clear()
    const boxes = this.#places.flatMap((place) => this.#boxOf(place) ?? [])
    const deepest = [...this.#drawn.keys()].reduce((most, { depth }) => Math.max(most, depth), 0)
    this.#flame.style.height = `${(deepest + 1) * ROW}px`
    this.#flame.classList.toggle('searching', this.#found !== null)
    this.#flame.replaceChildren(...boxes)
  }

  /** The element of a frame; null if it is not seen. */
  #boxOf(place: Place): HTMLElement | null {
    const shown = this.#shown
    const width = this.#flame.clientWidth
    const isAbove = place !== shown && isAround(place, shown)
    if (!isAbove && !isAround(shown, place)) return null
    const left = isAbove ? 0 : ((place.from - shown.from) / shown.size) * width
    const wide = isAbove ? width : (place.size / shown.size) * width
    if (!(wide >= NARROWEST)) return null
    const [name, kind, time] = place.frame
    const names = {
      class: `frame ${kind}${isAbove ? ' above' : ''}`,
      'aria-level': String(place.depth + 1),
      'aria-label': `${name}, ${timeText(time)}`,
    }
    const box = element('button', { type: 'button', role: 'treeitem', ...names }, wide > 28 ? element('span', {}, labelOf(place)) : null)
    box.style.cssText = `left:${left}px;width:${Math.max(1, wide - 1)}px;top:${place.depth * ROW}px`
    box.tabIndex = place === this.#selected ? 0 : -1
    if (this.#found !== null) box.classList.toggle('hit', this.#found.has(place.frame))
    if (place === this.#selected) box.classList.add('selected')
    box.addEventListener('click', () => this.go(place))
    // A frame that is drawn below a mouse that rests is not meant.
    box.addEventListener('mousemove', ({ movementX, movementY }) => (movementX === 0 && movementY === 0 ? undefined : this.#describe(place)))
    box.addEventListener('mouseleave', () => this.#describe(this.#selected))
    this.#drawn.set(place, box)
    return box
  }

  /** Shows a frame at full width; by default everything. */
  go(place: Place = this.#root): void {
    this.#shown = place
    this.#select(place)
  }

  #select(place: Place): void {
    this.#selected = place
    this.draw()
    this.#describe(place)
    this.#drawn.get(place)?.focus({ preventScroll: false })
  }

  /** What is known of the selected frame. */
  describe(): void {
    this.#describe(this.#selected)
  }

  #describe(place: Place): void {
    const [name, kind, time, calls, flops, bytes] = place.frame
    const rate = flops === 0 || time === 0 ? '' : `, ${(flops / time / 1e6).toFixed(2)} GFLOP/s`
    const isAll = place === this.#root
    const facts: readonly (readonly [string, string | null])[] = [
      ['time', `${timeText(time)} (${shareText(time, this.#total)})`],
      ['own time', `${timeText(own(place.frame))} (${shareText(own(place.frame), this.#total)})`],
      ['calls', isAll || kind === 'backward' ? null : `${calls}`],
      ['a call', isAll || calls < 2 ? null : timeText(time / calls)],
      ['FLOPs', flops === 0 ? null : `${flopsText(flops)}${rate}`],
      ['bytes', bytes === 0 ? null : sizeText(bytes)],
    ]
    this.#detail.replaceChildren(
      element('h2', {}, name, element('span', { class: 'kind' }, kind === 'all' ? 'all that ran' : kind)),
      element(
        'dl',
        {},
        ...facts.map(([what, text]) => (text === null ? null : element('div', {}, element('dt', {}, what), element('dd', {}, text)))),
      ),
    )
  }

  search(given: string): void {
    const text = given.trim().toLowerCase()
    const matching = new Set(
      this.#places.filter(({ frame, parent }) => parent !== null && frame[0].toLowerCase().includes(text)).map(({ frame }) => frame),
    )
    this.#found = text === '' ? null : matching
    // A frame inside of another that matches is counted with it.
    const outermost = this.#places.filter((place) => matching.has(place.frame) && !hasAround(place, matching))
    const time = outermost.reduce((sum, { frame }) => sum + frame[2], 0)
    this.#hits.textContent = text === '' ? '' : `${matching.size} ${matching.size === 1 ? 'frame' : 'frames'}, ${shareText(time, this.#total)}`
    this.draw()
  }

  /** To the frame around, the first one inside, or the one beside. */
  step(key: string): void {
    const visible = [...this.#drawn.keys()]
    const inRow = visible.filter(({ depth }) => depth === this.#selected.depth)
    const beside = inRow[inRow.indexOf(this.#selected) + (key === 'ArrowLeft' ? -1 : 1)]
    const inside = visible.find(({ parent }) => parent === this.#selected)
    const next = key === 'ArrowUp' ? this.#selected.parent : key === 'ArrowDown' ? inside : beside
    if (next !== null && next !== undefined) this.#select(next)
  }
}

/** Shows the flame graph of a profile. */
export function showFlames(data: FlameData): void {
  const graph = new FlameGraph(data)
  const input = byId('search', HTMLInputElement)
  const reset = (): void => {
    input.value = ''
    graph.search('')
    graph.go()
  }
  input.addEventListener('input', () => graph.search(input.value))
  onClick('reset', reset)
  addEventListener('keydown', (event) => {
    if (event.key === 'Escape') return reset()
    if (event.target === input || event.ctrlKey || event.metaKey || event.altKey) return undefined
    if (event.key === '/') input.focus()
    else if (event.key.startsWith('Arrow')) graph.step(event.key)
    else return undefined
    event.preventDefault()
    return undefined
  })
  new ResizeObserver(() => graph.draw()).observe(byId('flame', HTMLElement).parentElement ?? document.body)
  graph.draw()
  graph.describe()
}
