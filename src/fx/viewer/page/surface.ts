// What a picture is drawn on: a canvas for the screen, SVG text for files and for printing. Both draw the same calls alike.
import { remembered } from '../../../protocol/remembered.ts'
import type { Point } from '../layout/plan.ts'

/** How a shape is filled and outlined. Colours are CSS colours; widths and dashes are in pixels of the picture. */
export interface Paint {
  readonly fill?: string
  readonly stroke?: string
  readonly width?: number
  readonly dash?: readonly number[]
  readonly opacity?: number
}

/** How a text is written. */
export interface TextStyle {
  readonly size: number
  readonly colour: string
  readonly bold?: boolean
  readonly mono?: boolean
  readonly struck?: boolean
  /** The text is narrowed to this width if it is wider. */
  readonly maxWidth: number
  readonly opacity?: number
}

export type Rects = readonly (readonly [x: number, y: number, w: number, h: number])[]
export type Line = readonly Point[]

export interface Surface {
  /** A rectangle with rounded corners. */
  box(x: number, y: number, w: number, h: number, radius: number, paint: Paint): void
  /** Many rectangles of one colour. A list that is drawn again costs less: its path is kept as long as the list is. */
  boxes(rects: Rects, fill: string, opacity: number): void
  /** Lines through points: curves that begin and end vertically, or straight. Their path is kept as that of rectangles. */
  lines(lines: readonly Line[], paint: Paint, curved: boolean): void
  /** Arrow heads that point down, by their tips. */
  arrows(tips: readonly Point[], size: number, fill: string): void
  /** A text whose baseline starts at (x, y). */
  text(x: number, y: number, text: string, style: TextStyle): void
}

const SANS = 'system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif'
const MONO = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace'

/** The control points of the curve between two points; null for a straight line, which is what leads upwards or stays in its column. */
function bend([x0, y0]: Point, [x1, y1]: Point): readonly [number, number, number, number] | null {
  if (y1 <= y0 || x0 === x1) return null
  const bow = (y1 - y0) * 0.5
  return [x0, y0 + bow, x1, y1 - bow]
}

function rectsPath(rects: Rects): Path2D {
  const path = new Path2D()
  for (const [x, y, w, h] of rects) path.rect(x, y, w, h)
  return path
}

const curvesPath = (lines: readonly Line[]): Path2D => linesPath(lines, true)

const straightsPath = (lines: readonly Line[]): Path2D => linesPath(lines, false)

function linesPath(lines: readonly Line[], curved: boolean): Path2D {
  const path = new Path2D()
  for (const points of lines) {
    let last: Point | null = null
    for (const point of points) {
      const controls = last === null || !curved ? null : bend(last, point)
      if (last === null) path.moveTo(point[0], point[1])
      else if (controls === null) path.lineTo(point[0], point[1])
      else path.bezierCurveTo(...controls, point[0], point[1])
      last = point
    }
  }
  return path
}

export class CanvasSurface implements Surface {
  readonly #context: CanvasRenderingContext2D
  readonly #rects = new WeakMap<Rects, Path2D>()
  readonly #curves = new WeakMap<readonly Line[], Path2D>()
  readonly #straights = new WeakMap<readonly Line[], Path2D>()

  constructor(context: CanvasRenderingContext2D) {
    this.#context = context
  }

  box(x: number, y: number, w: number, h: number, radius: number, paint: Paint): void {
    const path = new Path2D()
    path.roundRect(x, y, w, h, radius)
    this.#finish(paint, path)
  }

  boxes(rects: Rects, fill: string, opacity: number): void {
    const context = this.#context
    context.globalAlpha = opacity
    context.fillStyle = fill
    context.fill(remembered(this.#rects, rects, rectsPath))
    context.globalAlpha = 1
  }

  lines(lines: readonly Line[], paint: Paint, curved: boolean): void {
    const path = curved ? remembered(this.#curves, lines, curvesPath) : remembered(this.#straights, lines, straightsPath)
    this.#finish(paint, path)
  }

  arrows(tips: readonly Point[], size: number, fill: string): void {
    const context = this.#context
    context.beginPath()
    for (const [x, y] of tips) {
      context.moveTo(x - size * 0.55, y - size)
      context.lineTo(x + size * 0.55, y - size)
      context.lineTo(x, y)
    }
    context.fillStyle = fill
    context.fill()
  }

  text(x: number, y: number, text: string, style: TextStyle): void {
    const context = this.#context
    context.font = `${style.bold === true ? '600 ' : ''}${style.size}px ${style.mono === true ? MONO : SANS}`
    context.fillStyle = style.colour
    context.globalAlpha = style.opacity ?? 1
    context.fillText(text, x, y, style.maxWidth)
    if (style.struck === true) context.fillRect(x, y - style.size * 0.33, Math.min(context.measureText(text).width, style.maxWidth), 1.2)
    context.globalAlpha = 1
  }

  #finish({ fill, stroke, width = 1, dash = [], opacity = 1 }: Paint, path: Path2D): void {
    const context = this.#context
    context.globalAlpha = opacity
    if (fill !== undefined) {
      context.fillStyle = fill
      context.fill(path)
    }
    if (stroke !== undefined) {
      context.strokeStyle = stroke
      context.lineWidth = width
      context.setLineDash([...dash])
      context.stroke(path)
      context.setLineDash([])
    }
    context.globalAlpha = 1
  }
}

export class SvgSurface implements Surface {
  readonly #parts: string[] = []

  box(x: number, y: number, w: number, h: number, radius: number, paint: Paint): void {
    this.#parts.push(`<rect x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}" rx="${n(radius)}"${attributes(paint)}/>`)
  }

  boxes(rects: Rects, fill: string, opacity: number): void {
    const d = rects.map(([x, y, w, h]) => `M${n(x)} ${n(y)}h${n(w)}v${n(h)}h${n(-w)}z`).join('')
    this.#parts.push(`<path d="${d}"${attributes({ fill, opacity })}/>`)
  }

  lines(lines: readonly Line[], paint: Paint, curved: boolean): void {
    const d = lines.map((points) => {
      let last: Point | null = null
      return points
        .map((point) => {
          const controls = last === null || !curved ? null : bend(last, point)
          const start = last === null ? 'M' : controls === null ? 'L' : `C${controls.map(n).join(' ')} `
          last = point
          return `${start}${n(point[0])} ${n(point[1])}`
        })
        .join('')
    })
    if (d.length > 0) this.#parts.push(`<path d="${d.join('')}"${attributes(paint)}/>`)
  }

  arrows(tips: readonly Point[], size: number, fill: string): void {
    const d = tips.map(([x, y]) => `M${n(x - size * 0.55)} ${n(y - size)}h${n(size * 1.1)}L${n(x)} ${n(y)}z`).join('')
    if (d !== '') this.#parts.push(`<path d="${d}" fill="${fill}"/>`)
  }

  text(x: number, y: number, text: string, { size, colour, bold, mono, struck, maxWidth, opacity = 1 }: TextStyle): void {
    // Fonts differ: a text that is about as wide as its box is fitted to it.
    const estimate = text.length * size * (mono === true ? 0.62 : 0.6)
    const fitted = estimate > maxWidth ? ` textLength="${n(maxWidth)}" lengthAdjust="spacingAndGlyphs"` : ''
    const style = `${bold === true ? ' font-weight="600"' : ''}${struck === true ? ' text-decoration="line-through"' : ''}${opacity < 1 ? ` opacity="${opacity}"` : ''}`
    this.#parts.push(
      `<text x="${n(x)}" y="${n(y)}" font-size="${n(size)}" font-family="${escape(mono === true ? MONO : SANS)}" fill="${colour}"${style}${fitted}>${escape(text)}</text>`,
    )
  }

  /** The picture of a part of the plane. */
  svg(x: number, y: number, w: number, h: number, background: string): string {
    const view = `viewBox="${n(x)} ${n(y)} ${n(w)} ${n(h)}"`
    const ground = `<rect x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}" fill="${background}"/>`
    return `<svg xmlns="http://www.w3.org/2000/svg" ${view} width="${n(w)}" height="${n(h)}">${ground}${this.#parts.join('')}</svg>`
  }
}

/** A number with two decimals at most. */
const n = (value: number): string => String(Math.round(value * 100) / 100)

function attributes({ fill, stroke, width = 1, dash = [], opacity = 1 }: Paint): string {
  const line =
    stroke === undefined ? '' : ` stroke="${stroke}" stroke-width="${n(width)}"${dash.length > 0 ? ` stroke-dasharray="${dash.join(' ')}"` : ''}`
  return ` fill="${fill ?? 'none'}"${line}${opacity < 1 ? ` opacity="${opacity}"` : ''}`
}

const escape = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
