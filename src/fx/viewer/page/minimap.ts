// The whole graph, small, with the part that is in view. It is drawn once for a scene; only the frame moves.
import type { Rect, Scene } from '../layout/arrange.ts'
import { paint } from './paint.ts'
import type { SpatialIndex } from './spatialIndex.ts'
import { CanvasSurface } from './surface.ts'
import type { Theme } from '../theme.ts'

const MOST_WIDTH = 168
const MOST_HEIGHT = 132
const PADDING = 6

export class Minimap {
  readonly #canvas: HTMLCanvasElement
  readonly #picture = document.createElement('canvas')
  #scale = 1

  constructor(canvas: HTMLCanvasElement, go: (x: number, y: number) => void) {
    this.#canvas = canvas
    const point = (event: PointerEvent): void => {
      const box = canvas.getBoundingClientRect()
      go((event.clientX - box.left - PADDING) / this.#scale, (event.clientY - box.top - PADDING) / this.#scale)
    }
    canvas.addEventListener('pointerdown', (event) => {
      canvas.setPointerCapture(event.pointerId)
      point(event)
    })
    canvas.addEventListener('pointermove', (event) => {
      if (canvas.hasPointerCapture(event.pointerId)) point(event)
    })
  }

  /** Draws a new scene. */
  draw(index: SpatialIndex, theme: Theme): void {
    const { scene } = index
    this.#scale = Math.min((MOST_WIDTH - 2 * PADDING) / Math.max(scene.w, 1), (MOST_HEIGHT - 2 * PADDING) / Math.max(scene.h, 1))
    const ratio = devicePixelRatio
    const [w, h] = [Math.max(28, scene.w * this.#scale + 2 * PADDING), Math.max(28, scene.h * this.#scale + 2 * PADDING)]
    for (const canvas of [this.#canvas, this.#picture]) [canvas.width, canvas.height] = [w * ratio, h * ratio]
    this.#canvas.style.width = `${w}px`
    this.#canvas.style.height = `${h}px`
    const context = this.#picture.getContext('2d')
    if (context === null) return
    const scale = this.#scale * ratio
    context.setTransform(scale, 0, 0, scale, PADDING * ratio, PADDING * ratio)
    paint(new CanvasSurface(context), index, whole(scene), Math.min(this.#scale, 0.1), theme, { selected: null, hits: null, heat: null })
  }

  /** Shows which part is in view. */
  frame(part: Rect, theme: Theme): void {
    const context = this.#canvas.getContext('2d')
    if (context === null) return
    const ratio = devicePixelRatio
    context.setTransform(1, 0, 0, 1, 0, 0)
    context.clearRect(0, 0, this.#canvas.width, this.#canvas.height)
    context.drawImage(this.#picture, 0, 0)
    const [w, h] = [this.#canvas.width / ratio, this.#canvas.height / ratio]
    const along = (at: number, length: number, room: number): readonly [number, number] => {
      const start = Math.max(1, at * this.#scale + PADDING)
      return [start, Math.max(4, Math.min(room - 1, (at + length) * this.#scale + PADDING) - start)]
    }
    const [x, width] = along(part.x, part.w, w)
    const [y, height] = along(part.y, part.h, h)
    context.setTransform(ratio, 0, 0, ratio, 0, 0)
    context.fillStyle = theme.focus
    context.globalAlpha = 0.12
    context.fillRect(x, y, width, height)
    context.globalAlpha = 1
    context.strokeStyle = theme.focus
    context.lineWidth = 1.5
    context.strokeRect(x, y, width, height)
  }
}

const whole = (scene: Scene): Rect => ({ x: 0, y: 0, w: scene.w, h: scene.h })
