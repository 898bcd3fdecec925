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

/** One kind of things by the cells in which they lie. */
class Grid<T> {
  readonly #things: readonly T[]
  readonly #rectOf: (thing: T) => Rect
  readonly #cells = new Map<number, number[]>()
  readonly #columns: number

  constructor(things: readonly T[], width: number, rectOf: (thing: T) => Rect) {
    this.#things = things
    this.#rectOf = rectOf
    this.#columns = Math.ceil(width / CELL) + 1
    things.forEach((thing, i) => {
      for (const cell of this.#cellsOf(rectOf(thing))) {
        const list = this.#cells.get(cell)
        if (list === undefined) this.#cells.set(cell, [i])
        else list.push(i)
      }
    })
  }

  find(view: Rect): T[] {
    const places = new Set<number>()
    for (const cell of this.#cellsOf(view)) for (const i of this.#cells.get(cell) ?? []) places.add(i)
    return [...places]
      .sort((a, b) => a - b)
      .flatMap((i) => {
        const thing = this.#things[i]
        return thing !== undefined && touches(this.#rectOf(thing), view) ? [thing] : []
      })
  }

  *#cellsOf({ x, y, w, h }: Rect): Generator<number> {
    const column = (at: number): number => Math.max(0, Math.min(this.#columns - 1, Math.floor(at / CELL)))
    for (let row = Math.floor(y / CELL); row <= Math.floor((y + h) / CELL); row++)
      for (let at = column(x); at <= column(x + w); at++) yield row * this.#columns + at
  }
}

const touches = (a: Rect, b: Rect): boolean => a.x <= b.x + b.w && b.x <= a.x + a.w && a.y <= b.y + b.h && b.y <= a.y + a.h

export class SpatialIndex {
  readonly scene: Scene
  readonly #boxes: Grid<Box>
  readonly #frames: Grid<Frame>
  readonly #routes: Grid<Route>

  constructor(scene: Scene) {
    this.scene = scene
    this.#boxes = new Grid(scene.boxes, scene.w, (box) => box)
    this.#frames = new Grid(scene.frames, scene.w, (frame) => frame)
    this.#routes = new Grid(scene.routes, scene.w, boundsOf)
  }

  find(view: Rect): Found {
    const { scene } = this
    // All of it: nothing to look for.
    if (view.x <= 0 && view.y <= 0 && view.x + view.w >= scene.w && view.y + view.h >= scene.h) return scene
    return { boxes: this.#boxes.find(view), frames: this.#frames.find(view), routes: this.#routes.find(view) }
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
