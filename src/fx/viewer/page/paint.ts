// Draws the part of a scene that is in view, in as much detail as can be seen at the scale.
import { LINE_HEIGHT, LINE_SIZE, PADDING_X, PADDING_Y, TITLE_HEIGHT, TITLE_SIZE, categoryOf } from '../layout/boxes.ts'
import { HEADING } from '../layout/arrange.ts'
import type { Box, Frame, Rect, Route } from '../layout/arrange.ts'
import type { Group, Item } from '../layout/tree.ts'
import type { Change } from '../view.ts'
import type { SpatialIndex } from './spatialIndex.ts'
import type { Line, Paint, Rects, Surface } from './surface.ts'
import type { Heat } from './cost.ts'
import type { Theme } from '../theme.ts'

/** What is special about some of the boxes. */
export interface Marks {
  readonly selected: Item | null
  /** What a search has found; null if there is no search. */
  readonly hits: ReadonlySet<Item> | null
  /** Times from a profile; null without one. */
  readonly heat: Heat | null
}

/** Below these scales, texts are not drawn, lines are straight, and boxes are plain. */
const TEXTS = 0.3
const CURVES = 0.12
const OUTLINES = 0.12
const RADIUS = 6
/** How strong the colour of the hottest node is. */
const HOTTEST = 0.6
/** In how many steps the smallest box of a plain picture grows to twice its size. */
const STEPS_PER_OCTAVE = 2
/** At small scales this many degrees of heat are told apart. */
const LEVELS = 4

/** How a box differs from the earlier graph; a closed group is changed if anything in it is. */
export function changeOf(item: Item): Change {
  if (item.kind === 'node') return item.node.change
  const changes = new Set(item.children.map(changeOf))
  if (changes.size === 1) return [...changes][0] ?? 'same'
  return changes.size === 0 ? 'same' : 'changed'
}

export function paint(surface: Surface, index: SpatialIndex, view: Rect, scale: number, theme: Theme, marks: Marks): void {
  const { boxes, frames, routes } = index.around(view)
  for (const frame of frames) paintFrame(surface, frame, scale, theme)
  paintRoutes(surface, routes, scale, theme, marks)
  if (scale < OUTLINES) paintPlain(surface, boxes, scale, theme, marks)
  else for (const box of boxes) paintBox(surface, box, scale, theme, marks)
}

function paintFrame(surface: Surface, { group, x, y, w, h }: Frame, scale: number, theme: Theme): void {
  surface.box(x, y, w, h, 8, { fill: theme.frame, stroke: theme.frameLine, width: Math.max(1, 0.7 / scale) })
  // At small scales, headings keep their size on the screen as long as there is room.
  const size = Math.max(LINE_SIZE, Math.min(10 / scale, HEADING - 6))
  if (size * scale < 6) return
  const title = `▾ ${group.className === '' ? group.path : group.className}`
  const room = w - 20
  surface.text(x + 10, y + (HEADING + size) / 2 - 1, `${title}   ${group.className === '' ? '' : group.path}`, {
    size,
    colour: theme.soft,
    bold: true,
    maxWidth: room,
  })
}

/** The lines of one way of drawing each. */
interface Lines {
  readonly usual: readonly Line[]
  readonly near: readonly Line[]
  readonly removed: readonly Line[]
}

/** The lines of routes that were drawn last, and for which selection: steps of a drag or a zoom draw the same ones again, which a surface does faster. */
const lastLines = new WeakMap<readonly Route[], { readonly selected: Item | null; readonly lines: Lines }>()

function linesOf(routes: readonly Route[], selected: Item | null): Lines {
  const last = lastLines.get(routes)
  if (last?.selected === selected) return last.lines
  const usual: Line[] = []
  const near: Line[] = []
  const removed: Line[] = []
  for (const { from, to, points } of routes) {
    if (from === selected || to === selected) near.push(points)
    else if (isRemoved(from) || isRemoved(to)) removed.push(points)
    else usual.push(points)
  }
  const lines = { usual, near, removed }
  lastLines.set(routes, { selected, lines })
  return lines
}

function paintRoutes(surface: Surface, routes: readonly Route[], scale: number, theme: Theme, { selected }: Marks): void {
  const { usual, near, removed } = linesOf(routes, selected)
  const curved = scale >= CURVES
  const draw = (lines: readonly Line[], colour: string, width: number, more: Paint): void => {
    if (lines.length === 0) return
    surface.lines(lines, { stroke: colour, width: Math.max(width, 0.6 / scale), ...more }, curved)
    if (scale < TEXTS) return
    const tips = lines.flatMap((points) => points.slice(-1))
    surface.arrows(tips, 7, colour)
  }
  draw(usual, theme.edge, 1.2, scale < CURVES ? { opacity: 0.5 } : {})
  draw(removed, theme.changes.removed, 1.2, { dash: [4, 4], opacity: 0.6 })
  draw(near, theme.focus, 2, {})
}

const isRemoved = (item: Item): boolean => item.kind === 'node' && item.node.change === 'removed'

const colourOf = (item: Item, theme: Theme): string => (item.kind === 'node' ? theme.categories[categoryOf(item.node)] : theme.soft)

/** A list of rectangles, and how it is filled. */
interface Fill {
  readonly rects: Rects
  readonly colour: string
  readonly opacity: number
}

/** From what the rectangles of boxes follow, beside the boxes. */
interface PlainLook extends Marks {
  readonly theme: Theme
  /** The height of the smallest box, in pixels of the scene. */
  readonly least: number
}

/** The rectangles of boxes that were drawn last, as with lines. */
const lastFills = new WeakMap<readonly Box[], { readonly look: PlainLook; readonly fills: readonly Fill[] }>()

const isSameLook = (a: PlainLook, b: PlainLook): boolean =>
  a.theme === b.theme && a.least === b.least && a.selected === b.selected && a.hits === b.hits && a.heat === b.heat

/** Boxes that are too small for an outline, one colour at a time. */
function paintPlain(surface: Surface, boxes: readonly Box[], scale: number, theme: Theme, marks: Marks): void {
  // A box is at least a pixel high, and not two: in steps, so that a zoom finds the same rectangles most of the time.
  const look: PlainLook = { ...marks, theme, least: 2 ** (Math.ceil(STEPS_PER_OCTAVE * Math.log2(1 / scale)) / STEPS_PER_OCTAVE) }
  const last = lastFills.get(boxes)
  const fills = last !== undefined && isSameLook(last.look, look) ? last.fills : fillsOf(boxes, look)
  lastFills.set(boxes, { look, fills })
  for (const { rects, colour, opacity } of fills) surface.boxes(rects, colour, opacity)
}

function fillsOf(boxes: readonly Box[], { selected, hits, heat, theme, least }: PlainLook): readonly Fill[] {
  const byColour = new Map<string, [number, number, number, number][]>()
  for (const { item, x, y, w, h } of boxes) {
    const change = changeOf(item)
    const isHit = hits?.has(item) ?? false
    const colour =
      item === selected
        ? theme.focus
        : isHit
          ? theme.hit
          : change === 'same'
            ? hits === null
              ? colourOf(item, theme)
              : theme.line
            : theme.changes[change]
    // What is looked for is drawn larger, so that it is seen.
    const more = item === selected || isHit ? 3 * least : change === 'same' ? 0 : least
    const rects = byColour.get(colour) ?? []
    rects.push([x - more, y - more, Math.max(w, least) + 2 * more, Math.max(h, least) + 2 * more])
    byColour.set(colour, rects)
  }
  return [...[...byColour].map(([colour, rects]) => ({ colour, rects, opacity: 1 })), ...(heat === null ? [] : warmFills(boxes, heat, theme, least))]
}

/** The heat of boxes in some levels. */
const warmFills = (boxes: readonly Box[], heat: Heat, theme: Theme, least: number): Fill[] =>
  Array.from({ length: LEVELS }, (_, i) => i + 1).flatMap((level) => {
    const warm = boxes.filter(({ item }) => Math.ceil(heat.warmth(item) * LEVELS) === level)
    const rects = warm.map(({ x, y, w, h }) => [x - least, y - least, w + 2 * least, h + 2 * least] as const)
    return rects.length === 0 ? [] : [{ rects, colour: theme.categories.activation, opacity: level / LEVELS }]
  })

function paintBox(surface: Surface, { item, content, x, y, w, h }: Box, scale: number, theme: Theme, { selected, hits, heat }: Marks): void {
  const change = changeOf(item)
  const isHit = hits?.has(item) ?? false
  const opacity = hits !== null && !isHit && item !== selected ? 0.3 : change === 'removed' ? 0.75 : 1
  const marked = item === selected ? theme.focus : isHit ? theme.hit : change === 'same' ? null : theme.changes[change]
  const outline = {
    stroke: marked ?? theme.line,
    width: marked === null ? Math.max(1, 0.6 / scale) : 2,
    ...(change === 'removed' ? { dash: [5, 4] } : {}),
  }
  if (item.kind !== 'node') surface.box(x + 4, y + 4, w, h, RADIUS, { fill: theme.panel, ...outline, opacity: opacity * 0.8 })
  surface.box(x, y, w, h, RADIUS, { fill: theme.panel, ...outline, opacity })
  const warmth = heat?.warmth(item) ?? 0
  if (warmth > 0) surface.box(x + 1, y + 1, w - 2, h - 2, RADIUS, { fill: theme.categories.activation, opacity: HOTTEST * warmth * opacity })
  surface.box(x + 3.5, y + 5, 4, h - 10, 2, { fill: colourOf(item, theme), opacity })
  if (scale < TEXTS) return
  let baseline = y + PADDING_Y + TITLE_SIZE - 1
  const left = x + PADDING_X + 2
  const room = w - PADDING_X * 2 + 4
  content.lines.forEach(({ text, style }, i) => {
    const isTitle = style === 'title'
    const label = isTitle && item.kind !== 'node' ? `▸ ${text}` : text
    surface.text(left, baseline, label, {
      size: isTitle ? TITLE_SIZE : LINE_SIZE,
      bold: isTitle,
      colour: isTitle ? (change === 'same' ? theme.ink : theme.changes[change]) : theme.soft,
      struck: isTitle && change === 'removed',
      maxWidth: room,
      opacity,
    })
    baseline += i === 0 ? TITLE_HEIGHT - 2 : LINE_HEIGHT
  })
}

/** Whether a point is on the heading of an open group. */
export const onHeading = ({ x, y, w }: Frame, px: number, py: number, height: number): boolean =>
  px >= x && px <= x + w && py >= y && py <= y + height

/** The group of a frame or of a closed box; null for a node. */
export const groupOf = (item: Item): Group | null => (item.kind === 'node' ? null : item)
