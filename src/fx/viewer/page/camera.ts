// Which part of a scene is seen: the position of its origin on the screen, and the scale.
import type { Rect, Scene } from '../layout/arrange.ts'

/** A point (x, y) of the scene is at (x * scale + this.x, y * scale + this.y) of the screen. */
export interface Camera {
  readonly x: number
  readonly y: number
  readonly scale: number
}

/** The size of what the scene is shown in, in pixels. */
export interface Screen {
  readonly w: number
  readonly h: number
}

const MARGIN = 24
/** A first view is not smaller than this; its texts can be read. */
export const READABLE = 0.75
const MOST = 4

type Extent = Pick<Scene, 'w' | 'h'>

/** The scale at which everything is seen. */
const wholeScale = (scene: Extent, screen: Screen): number =>
  Math.min(1.25, Math.max(screen.w - 2 * MARGIN, 1) / Math.max(scene.w, 1), Math.max(screen.h - 2 * MARGIN, 1) / Math.max(scene.h, 1))

/** Shows everything. */
export function fit(scene: Extent, screen: Screen): Camera {
  const scale = wholeScale(scene, screen)
  return { x: (screen.w - scene.w * scale) / 2, y: (screen.h - scene.h * scale) / 2, scale }
}

/** Shows everything, or, where that would be too small to read, a box near the top of the screen. */
export function firstView(scene: Extent, screen: Screen, first: Rect | null): Camera {
  const whole = fit(scene, screen)
  if (whole.scale >= READABLE || first === null) return whole
  const scale = READABLE + 0.1
  // The middle of the graph, if the box is then in view.
  const middle = (screen.w - scene.w * scale) / 2
  const isSeen = first.x * scale + middle >= MARGIN && (first.x + first.w) * scale + middle <= screen.w - MARGIN
  return { x: isSeen ? middle : screen.w / 2 - (first.x + first.w / 2) * scale, y: Math.max(MARGIN, screen.h * 0.08) - first.y * scale, scale }
}

/** Moves a box to the middle of the screen, at a scale at which it can be read. */
export function centered(camera: Camera, box: Rect, screen: Screen): Camera {
  const scale = Math.max(camera.scale, READABLE)
  return { x: screen.w / 2 - (box.x + box.w / 2) * scale, y: screen.h / 2 - (box.y + box.h / 2) * scale, scale }
}

/** Zooms; what is at (x, y) of the screen stays there. */
export function zoomed(camera: Camera, factor: number, x: number, y: number, scene: Extent, screen: Screen): Camera {
  const scale = Math.min(MOST, Math.max(wholeScale(scene, screen) * 0.5, camera.scale * factor))
  return { x: x - ((x - camera.x) * scale) / camera.scale, y: y - ((y - camera.y) * scale) / camera.scale, scale }
}

/** Keeps some of the scene on the screen. */
export function kept({ x, y, scale }: Camera, scene: Extent, screen: Screen): Camera {
  const within = (at: number, length: number, room: number): number => Math.min(room - 60, Math.max(60 - length * scale, at))
  return { x: within(x, scene.w, screen.w), y: within(y, scene.h, screen.h), scale }
}

/** The part of the scene that is seen. */
export function seen({ x, y, scale }: Camera, screen: Screen): Rect {
  return { x: -x / scale, y: -y / scale, w: screen.w / scale, h: screen.h / scale }
}

/** Whether a box is seen as a whole. */
export function isSeen(camera: Camera, box: Rect, screen: Screen): boolean {
  const part = seen(camera, screen)
  return box.x >= part.x && box.y >= part.y && box.x + box.w <= part.x + part.w && box.y + box.h <= part.y + part.h
}
