// A layered layout of some boxes by dagre: rows from top to bottom, in the order of the data. Layouts are remembered by their sizes and edges, since networks repeat
// themselves; the page brings along those that were computed when it was written.
import { Graph, layout } from '@dagrejs/dagre'

/** Boxes and edges between them, by the places of the boxes. */
export interface LayeredInput {
  readonly sizes: readonly (readonly [w: number, h: number])[]
  readonly edges: readonly (readonly [from: number, to: number])[]
}

/** Where each box is, in pixels from the top left corner. */
export interface Layered {
  readonly w: number
  readonly h: number
  readonly x: readonly number[]
  readonly y: readonly number[]
  /** The top and the bottom of each row. */
  readonly rows: readonly (readonly [top: number, bottom: number])[]
  /** The row of each box. */
  readonly row: readonly number[]
  /** For each edge, where it passes each of the rows between its ends. */
  readonly passes: readonly (readonly number[])[]
}

/** A layout as numbers: the size, x and y of each box, and the passes of the edges that have some: edge, count, values. */
export type PackedLayout = readonly [w: number, h: number, boxes: readonly number[], passes: readonly number[]]

const GAP_X = 24
/** The space between rows, in which edges bend. */
export const GAP_Y = 40

export class Layouts {
  readonly #known: Map<string, PackedLayout>
  /** How many layouts were computed, and not known before. */
  computed = 0

  constructor(known: Readonly<Record<string, PackedLayout>> = {}) {
    this.#known = new Map(Object.entries(known))
  }

  of(input: LayeredInput): Layered {
    const key = hash(input)
    let packed = this.#known.get(key)
    if (packed === undefined) {
      packed = compute(input)
      this.computed++
      this.#known.set(key, packed)
    }
    return unpackLayout(packed, input)
  }

  /** All layouts, to be written into a page. */
  toJSON(): Record<string, PackedLayout> {
    return Object.fromEntries(this.#known)
  }
}

/** A key of 106 bits for sizes and edges. */
function hash({ sizes, edges }: LayeredInput): string {
  const numbers = [sizes.length, ...sizes.flat(), ...edges.flat()]
  const half = (seed: number): string => {
    let [high, low] = [0xdeadbeef ^ seed, 0x41c6ce57 ^ seed]
    for (const n of numbers) {
      high = Math.imul(high ^ n, 2654435761)
      low = Math.imul(low ^ n, 1597334677)
      high ^= low >>> 15
      low ^= high >>> 13
    }
    return ((high >>> 0) * 0x200000 + (low >>> 11)).toString(36)
  }
  return half(1) + half(7)
}

function compute({ sizes, edges }: LayeredInput): PackedLayout {
  const graph = new Graph()
  graph.setGraph({ rankdir: 'TB', nodesep: GAP_X, edgesep: 14, ranksep: GAP_Y, ranker: 'network-simplex' })
  sizes.forEach(([width, height], i) => graph.setNode(String(i), { width, height }))
  for (const [from, to] of edges) graph.setEdge(String(from), String(to), {})
  layout(graph)
  const places = sizes.map(([width, height], i) => {
    const { x = 0, y = 0 } = graph.node(String(i))
    return { x: x - width / 2, y: y - height / 2, center: y }
  })
  const centers = [...new Set(places.map((p) => Math.round(p.center)))]
  // Edges have a point in each row that they pass, which may be further out than all boxes.
  const inner = edges.map(([from, to]) => {
    const points: readonly { readonly x: number; readonly y: number }[] = graph.edge(String(from), String(to)).points ?? []
    return points.slice(1, -1).flatMap((p) => (centers.some((c) => Math.abs(c - p.y) <= 1) ? [p.x] : []))
  })
  const left = Math.min(0, ...places.map((p) => p.x), ...inner.flat())
  const boxes = places.flatMap((p) => [Math.round(p.x - left), Math.round(p.y)])
  const passes = inner.flatMap((xs, i) => (xs.length === 0 ? [] : [i, xs.length, ...xs.map((x) => Math.round(x - left))]))
  const right = Math.max(0, ...sizes.map(([width], i) => (boxes[2 * i] ?? 0) + width), ...inner.flat().map((x) => x - left))
  const bottom = Math.max(0, ...sizes.map(([, height], i) => (boxes[2 * i + 1] ?? 0) + height))
  return [Math.ceil(right), bottom, boxes, passes]
}

function unpackLayout([w, h, boxes, packedPasses]: PackedLayout, { sizes, edges }: LayeredInput): Layered {
  const [x, y] = [sizes.map((_, i) => boxes[2 * i] ?? 0), sizes.map((_, i) => boxes[2 * i + 1] ?? 0)]
  // Boxes of one row have the same middle, which rounding may move by a pixel.
  const byCenter = sizes.map(([, height], i) => ({ i, top: y[i] ?? 0, bottom: (y[i] ?? 0) + height, center: (y[i] ?? 0) + height / 2 }))
  byCenter.sort((a, b) => a.center - b.center)
  const rows: [number, number][] = []
  const row = sizes.map(() => 0)
  let last = -Infinity
  for (const { i, top, bottom, center } of byCenter) {
    const current = rows.at(-1)
    if (current === undefined || center - last > 2) rows.push([top, bottom])
    else [current[0], current[1]] = [Math.min(current[0], top), Math.max(current[1], bottom)]
    last = center
    row[i] = rows.length - 1
  }
  const passes: (readonly number[])[] = edges.map(() => [])
  for (let at = 0; at < packedPasses.length;) {
    const [edge = 0, count = 0] = packedPasses.slice(at, at + 2)
    passes[edge] = packedPasses.slice(at + 2, at + 2 + count)
    at += 2 + count
  }
  return { w, h, x, y, rows, row, passes }
}
