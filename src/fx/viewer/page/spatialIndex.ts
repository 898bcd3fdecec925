// Finds what lies in a part of a scene, without looking at the rest: boxes, frames and lines by the cells of a grid.
import type { Box, Frame, Rect, Route, Scene } from '../layout/arrange.ts'

/** What lies in a part of a scene, in drawing order. */
export interface Found {
  readonly boxes: readonly Box[]
  readonly frames: readonly Frame[]
  readonly routes: readonly Route[]
}

/** The length of a cell, in pixels of the scene. */
const CELL = 1024
/** A view of this share of the scene, or more, is found sooner by asking every thing than by collecting and sorting what its cells hold. */
const MOST_BY_CELLS = 0.25
/** A view of this share of the scene, or more, is drawn as the whole scene: the canvas cuts off what is outside sooner than what is inside is found, and the lists stay the same from step to step. */
const NEARLY_ALL = 0.5

/** One kind of things by the cells in which they lie. */
class Grid<T> {
  readonly #things: readonly T[]
  readonly #rects: readonly Rect[]
  readonly #cells = new Map<number, number[]>()
  readonly #columns: number
  readonly #scene: Scene

  constructor(things: readonly T[], scene: Scene, rectOf: (thing: T) => Rect) {
    this.#things = things
    this.#rects = things.map(rectOf)
    this.#columns = Math.ceil(scene.w / CELL) + 1
    this.#scene = scene
    this.#rects.forEach((rect, i) => {
      for (const cell of this.#cellsOf(rect)) {
        const list = this.#cells.get(cell)
        if (list === undefined) this.#cells.set(cell, [i])
        else list.push(i)
      }
    })
  }

  find(view: Rect): T[] {
    const isSeen = (i: number): boolean => {
      const rect = this.#rects[i]
      return rect !== undefined && touches(rect, view)
    }
    if (shareOf(this.#scene, view) >= MOST_BY_CELLS) return this.#things.filter((_, i) => isSeen(i))
    const places = new Set<number>()
    for (const cell of this.#cellsOf(view)) for (const i of this.#cells.get(cell) ?? []) places.add(i)
    return [...places]
      .sort((a, b) => a - b)
      .flatMap((i) => {
        const thing = this.#things[i]
        return thing !== undefined && isSeen(i) ? [thing] : []
      })
  }

  *#cellsOf({ x, y, w, h }: Rect): Generator<number> {
    const column = (at: number): number => Math.max(0, Math.min(this.#columns - 1, Math.floor(at / CELL)))
    for (let row = Math.floor(y / CELL); row <= Math.floor((y + h) / CELL); row++)
      for (let at = column(x); at <= column(x + w); at++) yield row * this.#columns + at
  }
}

/** The share of a scene that is in view. */
function shareOf({ w, h }: Scene, view: Rect): number {
  const overlap = (start: number, length: number, room: number): number => Math.max(0, Math.min(start + length, room) - Math.max(start, 0)) / room
  return overlap(view.x, view.w, w) * overlap(view.y, view.h, h)
}

const touches = (a: Rect, b: Rect): boolean => a.x <= b.x + b.w && b.x <= a.x + a.w && a.y <= b.y + b.h && b.y <= a.y + a.h

export class SpatialIndex {
  readonly scene: Scene
  readonly #boxes: Grid<Box>
  readonly #frames: Grid<Frame>
  readonly #routes: Grid<Route>

  constructor(scene: Scene) {
    this.scene = scene
    this.#boxes = new Grid(scene.boxes, scene, (box) => box)
    this.#frames = new Grid(scene.frames, scene, (frame) => frame)
    this.#routes = new Grid(scene.routes, scene, boundsOf)
  }

  find(view: Rect): Found {
    const { scene } = this
    // All of it: nothing to look for.
    if (view.x <= 0 && view.y <= 0 && view.x + view.w >= scene.w && view.y + view.h >= scene.h) return scene
    return { boxes: this.#boxes.find(view), frames: this.#frames.find(view), routes: this.#routes.find(view) }
  }

  /** What to draw so that a part is seen: what lies in it, and perhaps more. */
  around(view: Rect): Found {
    return shareOf(this.scene, view) >= NEARLY_ALL ? this.scene : this.find(view)
  }

  /** The box, or else the innermost frame, at a point. */
  at(x: number, y: number): Box | Frame | null {
    const { boxes, frames } = this.find({ x, y, w: 0, h: 0 })
    return boxes.find((b) => touches(b, { x, y, w: 0, h: 0 })) ?? frames.findLast((f) => touches(f, { x, y, w: 0, h: 0 })) ?? null
  }
}

function boundsOf({ points }: Route): Rect {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity]
  for (const [x, y] of points) {
    left = Math.min(left, x)
    right = Math.max(right, x)
    top = Math.min(top, y)
    bottom = Math.max(bottom, y)
  }
  return { x: left, y: top, w: right - left, h: bottom - top }
}
