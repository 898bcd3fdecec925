// Draws a flame graph. Only frames that are wide enough to see are elements of the page; a click shows a frame at full width.
import { byId, element, onClick } from '../../../fx/viewer/page/elements/dom.ts'
import type { FlameData, PackedFrame } from './data.ts'
import { bytesText, flopsText, shareText, timeText } from './texts.ts'

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

/** Shows the flame graph of a profile. */
export function showFlames(data: FlameData): void {
  const flame = byId('flame', HTMLElement)
  const detail = byId('detail', HTMLElement)
  const input = byId('search', HTMLInputElement)
  const hits = byId('hits', HTMLElement)

  /** The frame that stands for everything. Runs may be measured a little shorter than what ran in them. */
  const total = Math.max(
    data.totalTime,
    data.frames.reduce((sum, [, , time]) => sum + time, 0),
  )
  const all: PackedFrame = ['all', 'all', total, 1, sumOf(4), sumOf(5), data.frames]
  function sumOf(at: 4 | 5): number {
    return data.frames.reduce((sum, frame) => sum + frame[at], 0)
  }

  const places: Place[] = []
  function lay(frame: PackedFrame, parent: Place | null, depth: number, from: number): Place {
    const place: Place = { frame, parent, depth, from, size: frame[2] / Math.max(total, Number.MIN_VALUE) }
    places.push(place)
    let at = from
    for (const child of frame[6]) at += lay(child, place, depth + 1, at).size
    return place
  }
  const root = lay(all, null, 0, 0)

  let shown = root
  let selected = root
  let found: ReadonlySet<PackedFrame> | null = null
  const drawn = new Map<Place, HTMLElement>()

  const isAround = (outer: Place, inner: Place): boolean => {
    for (let at: Place | null = inner; at !== null; at = at.parent) if (at === outer) return true
    return false
  }

  function draw(): void {
    const width = flame.clientWidth
    drawn.clear()
    let deepest = 0
    const made = places.flatMap((place) => {
      const isAbove = place !== shown && isAround(place, shown)
      if (!isAbove && !isAround(shown, place)) return []
      const left = isAbove ? 0 : ((place.from - shown.from) / shown.size) * width
      const wide = isAbove ? width : (place.size / shown.size) * width
      if (!(wide >= NARROWEST)) return []
      deepest = Math.max(deepest, place.depth)
      const [name, kind, time] = place.frame
      const box = element(
        'button',
        {
          type: 'button',
          role: 'treeitem',
          class: `frame ${kind}${isAbove ? ' above' : ''}`,
          'aria-level': String(place.depth + 1),
          'aria-label': `${name}, ${timeText(time)}`,
        },
        wide > 28 ? element('span', {}, labelOf(place)) : null,
      )
      box.style.cssText = `left:${left}px;width:${Math.max(1, wide - 1)}px;top:${place.depth * ROW}px`
      box.tabIndex = place === selected ? 0 : -1
      if (found !== null) box.classList.toggle('hit', found.has(place.frame))
      if (place === selected) box.classList.add('selected')
      box.addEventListener('click', () => go(place))
      box.addEventListener('mouseenter', () => describe(place))
      box.addEventListener('mouseleave', () => describe(selected))
      drawn.set(place, box)
      return [box]
    })
    flame.style.height = `${(deepest + 1) * ROW}px`
    flame.classList.toggle('searching', found !== null)
    flame.replaceChildren(...made)
  }

  /** Shows a frame at full width. */
  function go(place: Place): void {
    shown = place
    select(place)
  }

  function select(place: Place): void {
    selected = place
    draw()
    describe(place)
    drawn.get(place)?.focus({ preventScroll: false })
  }

  const own = ([, , time, , , , children]: PackedFrame): number => Math.max(0, time - children.reduce((sum, child) => sum + child[2], 0))

  function describe(place: Place): void {
    const [name, kind, time, calls, flops, bytes] = place.frame
    const rate = flops === 0 || time === 0 ? null : `${(flops / time / 1e6).toFixed(2)} GFLOP/s`
    const facts: readonly (readonly [string, string | null])[] = [
      ['time', `${timeText(time)} (${shareText(time, total)})`],
      ['own time', `${timeText(own(place.frame))} (${shareText(own(place.frame), total)})`],
      ['calls', place === root || kind === 'backward' ? null : `${calls}`],
      ['a call', place === root || calls < 2 ? null : timeText(time / calls)],
      ['FLOPs', flops === 0 ? null : `${flopsText(flops)}${rate === null ? '' : `, ${rate}`}`],
      ['bytes', bytes === 0 ? null : bytesText(bytes)],
    ]
    detail.replaceChildren(
      element('h2', {}, name, element('span', { class: 'kind' }, kind === 'all' ? 'all that ran' : kind)),
      element(
        'dl',
        {},
        ...facts.map(([what, text]) => (text === null ? null : element('div', {}, element('dt', {}, what), element('dd', {}, text)))),
      ),
    )
  }

  function search(): void {
    const text = input.value.trim().toLowerCase()
    found =
      text === ''
        ? null
        : new Set(places.filter(({ frame, parent }) => parent !== null && frame[0].toLowerCase().includes(text)).map(({ frame }) => frame))
    if (found === null) hits.textContent = ''
    else {
      const matching = found
      // A frame inside of another that matches is counted with it.
      const outermost = places.filter((place) => matching.has(place.frame) && !hasAround(place, matching))
      hits.textContent = `${matching.size} ${matching.size === 1 ? 'frame' : 'frames'}, ${shareText(
        outermost.reduce((sum, { frame }) => sum + frame[2], 0),
        total,
      )}`
    }
    draw()
  }

  function hasAround({ parent }: Place, frames: ReadonlySet<PackedFrame>): boolean {
    for (let at = parent; at !== null; at = at.parent) if (frames.has(at.frame)) return true
    return false
  }

  function reset(): void {
    input.value = ''
    search()
    go(root)
  }

  /** To the frame around, the first one inside, or the one beside. */
  function step(key: string): void {
    const visible = [...drawn.keys()]
    const inRow = visible.filter(({ depth }) => depth === selected.depth)
    const next =
      key === 'ArrowUp'
        ? selected.parent
        : key === 'ArrowDown'
          ? visible.find(({ parent }) => parent === selected)
          : inRow[inRow.indexOf(selected) + (key === 'ArrowLeft' ? -1 : 1)]
    if (next !== null && next !== undefined) select(next)
  }

  input.addEventListener('input', search)
  onClick('reset', reset)
  addEventListener('keydown', (event) => {
    if (event.key === 'Escape') return reset()
    if (event.target === input || event.ctrlKey || event.metaKey || event.altKey) return undefined
    if (event.key === '/') input.focus()
    else if (event.key.startsWith('Arrow')) step(event.key)
    else return undefined
    event.preventDefault()
    return undefined
  })
  new ResizeObserver(draw).observe(byId('flame', HTMLElement).parentElement ?? document.body)
  draw()
  describe(root)
}
