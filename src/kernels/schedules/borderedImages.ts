// A copy of images with a border of zeros, whose channels are neighbours: windows are read from it without testing for the border, in lanes along channels.
import { constant, forLoop, load, loopVar, scratch, store } from '../ir/loopIr.ts'
import type { Expr, Index, LoopMode, LoopVar, Scratch, Stmt } from '../ir/loopIr.ts'
import type { ConvolutionOperand } from './convolution.ts'
import { QUAD, down, from, nest, serial, shared, turned, up } from './notation.ts'
import type { Strides, Terms } from './notation.ts'

/** The images that are copied. */
export interface Images {
  readonly channels: number
  readonly height: number
  readonly width: number
  /** Zeros above and left of the image. */
  readonly padH: number
  readonly padW: number
  readonly image: ConvolutionOperand
  /** What finds an image in the operand. */
  readonly outer: Terms
  /** The loop over those that are copied at a time, which lie one behind the other in the copy; one if there is none. */
  readonly together?: LoopVar
  /** The loop over as many further channels of these images, `channels` at a time, whose copies lie behind each other; none if there is none. */
  readonly panel?: LoopVar
  /** The number of channels of the copy is a multiple of this. */
  readonly multiple: number
}

export class BorderedImages {
  readonly memory: Scratch
  /** The pixels of the copy, and its channels, rounded up. What lies behind the image's channels is undefined. */
  readonly height: number
  readonly width: number
  readonly channels: number
  readonly #p: Images

  constructor(images: Images, height: number, width: number, name: string = 'bordered', per: Scratch['per'] = 'call') {
    this.#p = images
    this.height = height
    this.width = width
    this.channels = up(images.channels, images.multiple)
    const panels = images.panel === undefined ? 1 : Number(images.panel.extent) / images.panel.step
    const count = panels * this.#count
    // A vector of zeros may end behind the last pixel.
    this.memory = scratch(name, 'float32', count * height * width * this.channels + (this.channels % QUAD === 0 ? 0 : QUAD), per)
  }

  /** Images that are copied at a time. */
  get #count(): number {
    return Number(this.#p.together?.extent ?? 1)
  }

  get #row(): number {
    return this.width * this.channels
  }

  /** Where the image's first pixel is in the copy. */
  get #first(): number {
    const { padH, padW } = this.#p
    return padH * this.#row + padW * this.channels
  }

  /** Writes zeros around the image: above and below, and between the end of a row and the start of the next. They stay when images are copied. */
  clear(): readonly Stmt[] {
    const { height, width } = this.#p
    const end = this.#first + (height - 1) * this.#row + width * this.channels
    const zeros = (base: number, count: number, rows: number): readonly Stmt[] => {
      const [y, i0, i] = [loopVar('y', rows), loopVar('i0', count, QUAD), loopVar('i', QUAD)]
      if (count <= 0 || rows <= 0) return []
      const zero = store(this.memory, from(base, ...this.#ofImage, [y, this.#row], [i0, 1], [i, 1]), constant('float32', 0))
      return nest('serial', [y, i0], [forLoop(i, 'lanes', [zero])])
    }
    const all = this.height * this.#row
    const border = this.#isEmpty
      ? zeros(0, all, 1)
      : [
          ...zeros(0, this.#first, 1),
          ...zeros(this.#first + width * this.channels, (this.width - width) * this.channels, height - 1),
          ...zeros(end, all - end, 1),
        ]
    return border.length === 0 ? border : nest('serial', this.#loops, border)
  }

  /** The loops over panels and images. */
  get #loops(): readonly LoopVar[] {
    return [this.#p.panel, this.#p.together].filter((loop) => loop !== undefined)
  }

  /** Where an image begins in the copy. */
  get #ofImage(): Terms {
    const { together } = this.#p
    return this.placeOf(together === undefined ? [] : [[together, 1]])
  }

  /** Where an image begins in the copy, and the panel of its channels. */
  placeOf(image: Strides): Strides {
    const { panel } = this.#p
    const each = this.height * this.#row
    return [
      ...(panel === undefined ? [] : [[panel, (this.#count * each) / panel.step] as const]),
      ...image.map(([loop, count]) => [loop, count * each] as const),
    ]
  }

  /** Whether the copy has no pixel of an image. */
  get #isEmpty(): boolean {
    const { height, width } = this.#p
    return height <= 0 || width <= 0
  }

  /** Copies the images: by blocks of 4x4, then the columns that are left, then the channels that are left. With `parallel`, threads share that. */
  copy(mode: 'serial' | 'parallel' = 'serial'): readonly Stmt[] {
    const { channels, height, width } = this.#p
    if (this.#isEmpty) return []
    const [wide, high] = [down(width, QUAD), down(channels, QUAD)]
    const y = loopVar('y', height)
    const pixels = (c: LoopVar, firstChannel: number, firstColumn: number, lanes: LoopMode): readonly Stmt[] => {
      const x = loopVar('x', width - firstColumn)
      if (c.extent === 0 || x.extent === 0) return []
      const { source, target } = this.#pixel(y, firstChannel, firstColumn, [c], [x])
      return nest('serial', [x], [forLoop(c, lanes, [store(this.memory, target, source)])])
    }
    const [c0, x0] = [loopVar('c0', high, QUAD), loopVar('x0', wide, QUAD)]
    const pixelOf = (c: LoopVar, x: LoopVar): { readonly source: Expr; readonly target: Index } => this.#pixel(y, 0, 0, [c0, c], [x0, x])
    const blocks = turned(
      (c, x) => pixelOf(c, x).source,
      (c, x, value) => store(this.memory, pixelOf(c, x).target, value),
    )
    return (mode === 'parallel' ? shared : serial)(
      [...this.#loops, y],
      [
        ...(wide === 0 || high === 0 ? [] : nest('serial', [c0, x0], blocks)),
        ...pixels(loopVar('c', high), 0, wide, 'simd'),
        ...pixels(loopVar('c', channels - high), high, 0, 'serial'),
      ],
    )
  }

  /** A pixel of row `y`, in the image and in the copy: the sums of loops are its channel and its column, counted from the first ones. */
  #pixel(
    y: LoopVar,
    firstChannel: number,
    firstColumn: number,
    channel: readonly LoopVar[],
    column: readonly LoopVar[],
  ): { readonly source: Expr; readonly target: Index } {
    const { image, outer, together } = this.#p
    const place = (base: number, perRow: number, perChannel: number, perColumn: number, rest: Terms): Index =>
      from(
        base + firstChannel * perChannel + firstColumn * perColumn,
        ...rest,
        [y, perRow],
        ...channel.map((loop) => [loop, perChannel] as const),
        ...column.map((loop) => [loop, perColumn] as const),
      )
    return {
      source: load(
        image.buffer,
        place(image.start, image.row, image.channel, image.col, [...outer, ...(together === undefined ? [] : [[together, image.outer] as const])]),
      ),
      target: place(this.#first, this.#row, 1, this.channels, this.#ofImage),
    }
  }
}
