// Where the items of one group are, and how edges run in it. The items of a group are in rows (layered), the sections of a large one below each other in columns.
// Values that come from outside to an item further down run in lanes at the right, beside the heading, values that leave from further up in lanes at the left.
import { GAP_Y } from './layered.ts'
import type { Layered, Layouts } from './layered.ts'
import type { Links } from './links.ts'

/** A position. */
export type Point = readonly [x: number, y: number]

/** The layout of one group, in pixels from its top left corner. */
export interface Plan {
  readonly w: number
  readonly h: number
  /** Of each item. */
  readonly places: readonly Point[]
  /** The points at which an edge between two items passes, without its ends. */
  via(from: number, to: number, source: number): readonly Point[]
  /** The points from the top of the group to an item, for a value from outside. */
  entry(source: number, item: number): readonly Point[]
  /** The points from an item to the bottom of the group, for a value that is used outside. */
  exit(source: number, item: number): readonly Point[]
}

/** The size of an item. */
export type Size = readonly [w: number, h: number]

const LANE = 10
/** Further values share lanes. */
const MOST_LANES = 12
const SECTION_GAP = 56
const COLUMN_GAP = 90
/** The width of a large graph for each pixel of its height. */
const WIDTH_TO_HEIGHT = 1.5

/** A number for each value that needs a lane: few lanes, so that later ones share the first. */
function lanesFor(sources: Iterable<number>): { readonly of: ReadonlyMap<number, number>; readonly count: number } {
  const of = new Map<number, number>()
  for (const source of sources) if (!of.has(source)) of.set(source, of.size % MOST_LANES)
  return { of, count: Math.min(of.size, MOST_LANES) }
}

/** Items in rows. */
export function layeredPlan(sizes: readonly Size[], isFrame: readonly boolean[], links: Links, layouts: Layouts): Plan {
  const { w, h, x, y, row, rows, passes } = layouts.of({ sizes, edges: links.inner })
  const last = rows.length - 1
  const isFirst = (item: number): boolean => row[item] === 0
  const entryLanes = lanesFor([...links.entries].flatMap(([source, items]) => ([...items].every(isFirst) ? [] : [source])))
  const exitLanes = lanesFor([...links.exits].flatMap(([source, item]) => (row[item] === last ? [] : [source])))
  const shift = exitLanes.count === 0 ? 0 : (exitLanes.count + 1) * LANE
  const width = shift + w + (entryLanes.count === 0 ? 0 : (entryLanes.count + 1) * LANE)
  const edgeNumbers = new Map(links.inner.map(([from, to], i) => [`${from}>${to}`, i]))
  const spread = spreadOf(links, sizes)
  return {
    w: width,
    h,
    places: sizes.map((_, i) => [(x[i] ?? 0) + shift, y[i] ?? 0]),
    via: (from, to) => passed(passes[edgeNumbers.get(`${from}>${to}`) ?? -1] ?? [], rows.slice((row[from] ?? 0) + 1, row[to]), shift),
    entry(source, item) {
      const lane = entryLanes.of.get(source)
      if (isFirst(item) || lane === undefined) {
        // An open group says itself where the value comes in.
        return isFrame[item] === true ? [] : [[shift + (x[item] ?? 0) + (sizes[item]?.[0] ?? 0) / 2 + (spread.get(`${source}>${item}`) ?? 0), 0]]
      }
      const at = shift + w + (lane + 1) * LANE
      return [
        [at, 0],
        [at, (rows[row[item] ?? 0]?.[0] ?? 0) - GAP_Y * 0.8],
      ]
    },
    exit(source, item) {
      const lane = exitLanes.of.get(source)
      if (lane === undefined) return []
      const at = shift - (lane + 1) * LANE
      return [
        [at, (rows[row[item] ?? 0]?.[1] ?? 0) + GAP_Y * 0.8],
        [at, h],
      ]
    },
  }
}

/** Where an edge runs beside the boxes of the rows that it passes. */
function passed(xs: readonly number[], between: Layered['rows'], shift: number): Point[] {
  return xs.flatMap((x, i): Point[] => {
    const row = between[i]
    return row === undefined
      ? []
      : [
          [x + shift, row[0]],
          [x + shift, row[1]],
        ]
  })
}

/** How far from the middle of an item each value from outside arrives at it. */
function spreadOf(links: Links, sizes: readonly Size[]): ReadonlyMap<string, number> {
  const arriving = new Map<number, number[]>()
  for (const [source, items] of links.entries) for (const item of items) arriving.set(item, [...(arriving.get(item) ?? []), source])
  return new Map(
    [...arriving].flatMap(([item, sources]) => {
      const step = Math.min(14, ((sizes[item]?.[0] ?? 0) * 0.8) / sources.length)
      return sources.map((source, i) => [`${source}>${item}`, (i - (sources.length - 1) / 2) * step] as const)
    }),
  )
}

/** Sections below each other, in columns, so that a large graph is about as wide as it is high. */
export function stackedPlan(sizes: readonly Size[], links: Links): Plan {
  const columns = columnsOf(sizes)
  const columnOf = sizes.map((_, i) => columns.findIndex(([, end]) => i < end))
  const isNext = (from: number, to: number): boolean => to === from + 1 && columnOf[from] === columnOf[to]
  // A value runs in the lanes at the left of the column of its user.
  const hasOutside = links.entries.size + links.exits.size > 0
  const withLanes = new Set(links.inner.flatMap(([from, to]) => (isNext(from, to) ? [] : [columnOf[to] ?? 0])))
  const places: Point[] = []
  const lefts: number[] = []
  let [left, height] = [0, 0]
  columns.forEach(([start, end], c) => {
    const lanes = hasOutside || withLanes.has(c) ? (MOST_LANES + 1) * LANE : 0
    left += (c === 0 ? 0 : COLUMN_GAP) + lanes
    lefts.push(left)
    const width = Math.max(...sizes.slice(start, end).map(([w]) => w))
    let top = 0
    for (let i = start; i < end; i++) {
      const [w = 0, h = 0] = sizes[i] ?? []
      places.push([left + (width - w) / 2, top])
      top += h + SECTION_GAP
    }
    left += width
    height = Math.max(height, top - SECTION_GAP)
  })
  const top = (i: number): number => places[i]?.[1] ?? 0
  const bottom = (i: number): number => top(i) + (sizes[i]?.[1] ?? 0)
  const laneAt = (item: number, source: number): number => (lefts[columnOf[item] ?? 0] ?? 0) - ((source % MOST_LANES) + 1) * LANE
  return {
    w: left,
    h: height,
    places,
    via(from, to, source) {
      if (isNext(from, to)) return []
      const at = laneAt(to, source)
      return [
        [at, bottom(from) + SECTION_GAP * 0.5],
        [at, top(to) - SECTION_GAP * 0.5],
      ]
    },
    entry(source, item) {
      if (top(item) === 0) return []
      const at = laneAt(item, source)
      return [
        [at, 0],
        [at, top(item) - SECTION_GAP * 0.5],
      ]
    },
    exit(source, item) {
      if (bottom(item) === height) return []
      const at = laneAt(item, source)
      return [
        [at, bottom(item) + SECTION_GAP * 0.5],
        [at, height],
      ]
    },
  }
}

/** The first and the last section of each column, the last one not included. */
function columnsOf(sizes: readonly Size[]): (readonly [start: number, end: number])[] {
  const total = sizes.reduce((sum, [, h]) => sum + h + SECTION_GAP, 0)
  const width = sizes.reduce((sum, [w]) => sum + w, 0) / sizes.length + COLUMN_GAP + MOST_LANES * LANE
  // n columns are about n * width wide, and total / n high.
  const most = total / Math.max(1, Math.round(Math.sqrt((total * WIDTH_TO_HEIGHT) / width)))
  const columns: [number, number][] = [[0, 0]]
  let height = 0
  sizes.forEach(([, h], i) => {
    if (height > 0 && height + h > most) {
      columns.push([i, i])
      height = 0
    }
    const column = columns.at(-1)
    if (column !== undefined) column[1] = i + 1
    height += h + SECTION_GAP
  })
  return columns
}
