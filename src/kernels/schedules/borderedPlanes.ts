// Copies of images, plane by plane, with the zeros around them that windows reach: windows are read from them without testing for the border, in lanes along rows.
import { constant, forLoop, load, loopVar, scratch, store } from '../ir/loopIr.ts'
import type { LoopVar, Memory, Scratch, Stmt } from '../ir/loopIr.ts'
import type { ConvolutionOperand, ConvolutionSizes } from './convolution.ts'
import { QUAD, from, shared, up } from './notation.ts'
import type { Terms } from './notation.ts'

/** The rows or columns that windows read, from `low` to `high`, counted from the image's first one. */
export interface Reach {
  readonly low: number
  readonly high: number
}

/** Where windows read pixels: in the copy, or in the image itself. Strides are in elements. */
export interface Planes {
  readonly memory: Memory
  /** Where the pixel is that windows at the first row and column read with an offset of 0. */
  readonly start: number
  readonly image: number
  readonly channel: number
  readonly row: number
  readonly col: number
}

/** What is copied. */
interface Copied {
  readonly sizes: ConvolutionSizes
  readonly image: ConvolutionOperand
  readonly rows: Reach
  readonly cols: Reach
  /** Images that are copied at a time. */
  readonly together: number
  /** Rows may be read in whole vectors, whose elements are so far apart. */
  readonly step: number
}

export class BorderedPlanes {
  readonly memory: Scratch
  readonly planes: Planes
  readonly #s: ConvolutionSizes
  readonly #image: ConvolutionOperand
  readonly #rows: Reach
  readonly #cols: Reach
  readonly #row: number
  readonly #plane: number

  constructor({ sizes, image, rows, cols, together, step }: Copied) {
    this.#s = sizes
    this.#image = image
    this.#rows = rows
    this.#cols = cols
    this.#row = cols.high - cols.low + 1
    this.#plane = (rows.high - rows.low + 1) * this.#row
    const all = sizes.channels * this.#plane
    // Behind the last row lies what its last vector reads.
    this.memory = scratch('bordered', 'float32', up(together * all + QUAD * step, QUAD))
    this.planes = {
      ...{ memory: this.memory, start: -rows.low * this.#row - cols.low },
      ...{ image: all, channel: this.#plane, row: this.#row, col: 1 },
    }
  }

  /** Writes zeros everywhere. Those around the images stay when images are copied. */
  clear(): readonly Stmt[] {
    const i = loopVar('i', Number(this.memory.elements))
    return [forLoop(i, 'simd', [store(this.memory, from(0, [i, 1]), constant('float32', 0))])]
  }

  /** Copies the images of the loop `image`, which `outer` says where to find, as far as windows read them. */
  copy(image: LoopVar, outer: Terms): readonly Stmt[] {
    const { channels, height, width } = this.#s
    const { buffer, start, channel, row, col } = this.#image
    const [top, left] = [Math.max(0, this.#rows.low), Math.max(0, this.#cols.low)]
    const [rows, cols] = [Math.min(height, this.#rows.high + 1) - top, Math.min(width, this.#cols.high + 1) - left]
    if (rows <= 0 || cols <= 0) return []
    const [c, y, x] = [loopVar('channel', channels), loopVar('y', rows), loopVar('x', cols)]
    const source = from(start + top * row + left * col, ...outer, [c, channel], [y, row], [x, col])
    const { planes } = this
    const target = from(planes.start + top * planes.row + left, [image, planes.image], [c, planes.channel], [y, planes.row], [x, 1])
    return shared([image, c, y], [forLoop(x, 'simd', [store(this.memory, target, load(buffer, source))])])
  }
}
