// Draws the part of a scene that is in view, in as much detail as can be seen at the scale.
import { LINE_HEIGHT, LINE_SIZE, PADDING_X, PADDING_Y, TITLE_HEIGHT, TITLE_SIZE, categoryOf } from '../layout/boxes.ts'
import { HEADING } from '../layout/arrange.ts'
import type { Box, Frame, Rect, Route } from '../layout/arrange.ts'
import type { Point } from '../layout/plan.ts'
import type { Group, Item } from '../layout/tree.ts'
import type { Change } from '../view.ts'
import type { SpatialIndex } from './spatialIndex.ts'
import type { Paint, Surface } from './surface.ts'
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
  const { boxes, frames, routes } = index.find(view)
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

function paintRoutes(surface: Surface, routes: readonly Route[], scale: number, theme: Theme, { selected }: Marks): void {
  const usual: (readonly Point[])[] = []
  const near: (readonly Point[])[] = []
  const removed: (readonly Point[])[] = []
  for (const { from, to, points } of routes) {
    if (from === selected || to === selected) near.push(points)
    else if (isRemoved(from) || isRemoved(to)) removed.push(points)
    else usual.push(points)
  }
  const curved = scale >= CURVES
  const draw = (lines: readonly (readonly Point[])[], colour: string, width: number, more: Paint): void => {
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

/** Boxes that are too small for an outline, one colour at a time. */
function paintPlain(surface: Surface, boxes: readonly Box[], scale: number, theme: Theme, { selected, hits, heat }: Marks): void {
  const byColour = new Map<string, [number, number, number, number][]>()
  // A box is at least a pixel high.
  const least = 1 / scale
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
  for (const [colour, rects] of byColour) surface.boxes(rects, colour, 1)
  if (heat === null) return
  for (let level = 1; level <= LEVELS; level++) {
    const warm = boxes.filter(({ item }) => Math.ceil(heat.warmth(item) * LEVELS) === level)
    const rects = warm.map(({ x, y, w, h }): [number, number, number, number] => [x - least, y - least, w + 2 * least, h + 2 * least])
    if (rects.length > 0) surface.boxes(rects, theme.categories.activation, level / LEVELS)
  }
}

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
