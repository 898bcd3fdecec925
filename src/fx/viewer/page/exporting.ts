// The graph as a file: SVG and PNG of everything or of what is in view, and for printing.
import type { Rect, Scene } from '../layout/arrange.ts'
import { paint } from './paint.ts'
import type { Marks } from './paint.ts'
import type { SpatialIndex } from './spatialIndex.ts'
import { CanvasSurface, SvgSurface } from './surface.ts'
import type { Theme } from '../theme.ts'

const MARGIN = 24
/** The longest side of a picture, and the most pixels that it has: browsers draw no larger ones. */
const MOST_SIDE = 16_000
const MOST_PIXELS = 64_000_000

/** All of a scene, with a margin. */
export const everything = (scene: Scene): Rect => ({ x: -MARGIN, y: -MARGIN, w: scene.w + 2 * MARGIN, h: scene.h + 2 * MARGIN })

export function toSvg(index: SpatialIndex, part: Rect, theme: Theme, marks: Marks, background: string = theme.page): string {
  const surface = new SvgSurface()
  paint(surface, index, part, 1, theme, marks)
  return surface.svg(part.x, part.y, part.w, part.h, background)
}

/** A PNG at twice the size, or smaller if it would have too many pixels. */
export async function toPng(index: SpatialIndex, part: Rect, theme: Theme, marks: Marks): Promise<Blob> {
  const scale = Math.min(2, MOST_SIDE / part.w, MOST_SIDE / part.h, Math.sqrt(MOST_PIXELS / (part.w * part.h)))
  const canvas = document.createElement('canvas')
  canvas.width = Math.max(1, Math.round(part.w * scale))
  canvas.height = Math.max(1, Math.round(part.h * scale))
  const context = canvas.getContext('2d')
  if (context === null) throw new Error('The browser has no canvas to draw on.')
  context.fillStyle = theme.page
  context.fillRect(0, 0, canvas.width, canvas.height)
  context.setTransform(scale, 0, 0, scale, -part.x * scale, -part.y * scale)
  paint(new CanvasSurface(context), index, part, scale, theme, marks)
  return await new Promise((done, fail) =>
    canvas.toBlob(
      (blob) => (blob === null ? fail(new Error(`The picture of ${canvas.width} x ${canvas.height} pixels could not be made.`)) : done(blob)),
      'image/png',
    ),
  )
}

/** Lets the browser save a file. */
export function save(blob: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}
