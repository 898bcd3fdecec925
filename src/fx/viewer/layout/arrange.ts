// The whole picture: where each box is and how each edge runs, for given open groups.
import { nodeBox, groupBox, headingWidth } from './boxes.ts'
import type { BoxContent } from './boxes.ts'
import { Layouts } from './layered.ts'
import { NO_LINKS, edgesOf, linksOf, wayOf } from './links.ts'
import type { Edge, Links } from './links.ts'
import { layeredPlan, stackedPlan } from './plan.ts'
import type { Plan, Point, Size } from './plan.ts'
import type { PageGraph } from '../pageData.ts'
import { makeTree } from './tree.ts'
import type { Group, Item, Tree } from './tree.ts'

/** A rectangle. */
export interface Rect {
  readonly x: number
  readonly y: number
  readonly w: number
  readonly h: number
}

/** A node or a closed group. */
export interface Box extends Rect {
  readonly item: Item
  readonly content: BoxContent
}

/** An open group. */
export interface Frame extends Rect {
  readonly group: Group
}

/** A line from one box to another. Several edges between two boxes are one line. */
export interface Route {
  readonly from: Item
  readonly to: Item
  readonly points: readonly Point[]
}

/** Everything that can be drawn. */
export interface Scene {
  readonly w: number
  readonly h: number
  readonly boxes: readonly Box[]
  readonly frames: readonly Frame[]
  readonly routes: readonly Route[]
  /** Of the boxes, by their item. */
  readonly boxOf: ReadonlyMap<Item, Box>
}

export const HEADING = 26
const INSET = 14

/** Arranges a graph again and again, as its groups open and close. */
export class Arranger {
  readonly tree: Tree
  readonly #edges: readonly Edge[]
  readonly #links: ReadonlyMap<Group, Links>
  readonly #layouts: Layouts
  readonly #contents = new Map<Item, BoxContent>()

  constructor(graph: PageGraph, layouts: Layouts) {
    this.tree = makeTree(graph)
    this.#edges = edgesOf(graph.nodes, this.tree)
    this.#links = linksOf(this.#edges)
    this.#layouts = layouts
  }

  /** The item that stands for another: the outermost closed group around it, or the item itself. */
  shown(item: Item, open: ReadonlySet<Group>): Item {
    let found = item
    for (let at = item.parent; at !== null; at = at.parent) if (at.kind === 'group' && !open.has(at)) found = at
    return found
  }

  arrange(open: ReadonlySet<Group>): Scene {
    const plans = new Map<Group, Plan>()
    const whole = this.#plan(this.tree.root, open, plans)
    const boxes: Box[] = []
    const frames: Frame[] = []
    const rects = new Map<Item, Rect>()
    const offsets = new Map<Group, Point>()
    const place = (group: Group, x: number, y: number): void => {
      offsets.set(group, [x, y])
      const plan = plans.get(group)
      for (const child of group.children) {
        const [dx = 0, dy = 0] = plan?.places[child.place] ?? []
        const at = { x: x + dx, y: y + dy }
        const inner = child.kind === 'node' ? undefined : plans.get(child)
        if (child.kind === 'section') place(child, at.x, at.y)
        else if (child.kind !== 'node' && inner !== undefined) {
          const [w, h] = frameSize(child, inner)
          const frame = { group: child, ...at, w, h }
          frames.push(frame)
          rects.set(child, frame)
          place(child, at.x + (w - inner.w) / 2, at.y + HEADING)
        } else {
          const content = this.#content(child)
          const box = { item: child, content, ...at, w: content.w, h: content.h }
          boxes.push(box)
          rects.set(child, box)
        }
      }
    }
    place(this.tree.root, 0, 0)
    return {
      w: whole.w,
      h: whole.h,
      boxes,
      frames,
      routes: this.#routes(open, plans, offsets, rects),
      boxOf: new Map(boxes.map((box) => [box.item, box])),
    }
  }

  #plan(group: Group, open: ReadonlySet<Group>, plans: Map<Group, Plan>): Plan {
    const inner = group.children.map((child) =>
      child.kind === 'section' || (child.kind !== 'node' && open.has(child)) ? this.#plan(child, open, plans) : null,
    )
    const sizes = group.children.map((child, i): Size => {
      const plan = inner[i]
      if (plan !== null && plan !== undefined && child.kind !== 'node') return child.kind === 'section' ? [plan.w, plan.h] : frameSize(child, plan)
      const { w, h } = this.#content(child)
      return [w, h]
    })
    const links = this.#links.get(group) ?? NO_LINKS
    const isStacked = group.children[0]?.kind === 'section'
    const isFrame = inner.map((plan) => plan !== null)
    const plan = isStacked ? stackedPlan(sizes, links) : layeredPlan(sizes, isFrame, links, this.#layouts)
    plans.set(group, plan)
    return plan
  }

  #content(item: Item): BoxContent {
    const known = this.#contents.get(item)
    if (known !== undefined) return known
    const content = item.kind === 'node' ? nodeBox(item.node) : groupBox(item)
    this.#contents.set(item, content)
    return content
  }

  #routes(open: ReadonlySet<Group>, plans: ReadonlyMap<Group, Plan>, offsets: ReadonlyMap<Group, Point>, rects: ReadonlyMap<Item, Rect>): Route[] {
    const drawn = new Map<Item, Set<Item>>()
    return this.#edges.flatMap((edge) => {
      const [from, to] = [this.shown(edge.from, open), this.shown(edge.to, open)]
      const users = drawn.get(from) ?? new Set()
      drawn.set(from, users)
      const [start, end] = [rects.get(from), rects.get(to)]
      const way = from === to || users.has(to) ? null : wayOf(from, to)
      if (way === null || start === undefined || end === undefined) return []
      users.add(to)
      const points: Point[] = [[start.x + start.w / 2, start.y + start.h]]
      const add = (group: Group, found: (plan: Plan) => readonly Point[]): void => {
        const [plan, [x, y]] = [plans.get(group), offsets.get(group) ?? [0, 0]]
        if (plan !== undefined) for (const [px, py] of found(plan)) points.push([x + px, y + py])
      }
      const source = edge.from.node.index
      for (const [group, item] of way.out) add(group, (plan) => plan.exit(source, item.place))
      const [across, a, b] = way.across
      add(across, (plan) => plan.via(a.place, b.place, source))
      for (const [group, item] of way.into) add(group, (plan) => plan.entry(source, item.place))
      points.push([end.x + end.w / 2, end.y])
      return [{ from, to, points }]
    })
  }
}

const frameSize = (group: Group, plan: Plan): Size => [Math.max(plan.w + 2 * INSET, headingWidth(group)), plan.h + HEADING + INSET]

/** Graphs with more nodes than this open with all their groups closed. */
const MOST_OPEN = 150

/** The groups that are open when a page is opened: all of a small graph, of a large one none. */
export function openAtFirst(tree: Tree): ReadonlySet<Group> {
  return new Set(tree.leaves.length <= MOST_OPEN ? tree.groups : [])
}
