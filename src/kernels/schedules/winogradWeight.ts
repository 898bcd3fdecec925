// The gradient of a 3x3 convolution's weight by Winograd's algorithm transposed: windows of the images and tiles of the result's gradient are transformed, their 16 products are summed over
// all tiles, and the sums become the 3x3 weights. It takes 16 multiplications where the plain sum over pixels takes 36.
//
// Rows of tiles come in blocks, whose transformed windows and tiles stay in the cache; each block is added to the sums.
import { call, constant, declareArray, element, forLoop, load, localArray, loopVar, scratch, setElement, store } from '../ir/loopIr.ts'
import type { Expr, Kernel, LoopVar, Scratch, Stmt } from '../ir/loopIr.ts'
import { BorderedImages } from './borderedImages.ts'
import { onBothSides } from './bothSides.ts'
import type { Transform } from './bothSides.ts'
import type { ConvolutionSizes, WeightGradientProblem } from './convolution.ts'
import { machineTiles } from './machineTiles.ts'
import { QUAD, from, halved, largestDivisor, nest, shared, up } from './notation.ts'
import type { Terms } from './notation.ts'
import type { Schedule } from './schedule.ts'
import { substituted } from './substitute.ts'
import { takesWinograd } from './winogradSpec.ts'
import { F23 } from './winogradTransforms.ts'

interface WeightTile {
  /** Features by channels of the products' register tile. */
  readonly rows: number
  readonly columns: number
  /** Channels that are transformed in lanes. */
  readonly lanes: number
  /** The limit for the transformed windows and tiles of a block; a block has at least one row of tiles. */
  readonly blockBytes: number
  /** Images of fewer tiles share a block with others, up to this number of tiles. */
  readonly tilesOfImages: number
}

const { side: TILE, window: WINDOW, products: PRODUCTS } = F23

/** The sums of more weights do not stay in the cache between blocks. */
const MOST_WEIGHTS = 256 * 256
const BYTES = 4
/** The least register tile: wider ones are for machine code. */
const ROWS = 4
const COLUMNS = 8
const AREA = 9
/** Elements between the matrices of two products, so that they do not all lie in the same part of the cache. */
const GAP = 16

/** Whether the gradient of a convolution’s weight is computed by {@link winogradWeight}. */
export const takesWinogradWeight = (sizes: ConvolutionSizes): boolean => takesWinograd(sizes) && sizes.channels * sizes.features <= MOST_WEIGHTS

/** The schedule of the gradient of a 3x3 convolution’s weight by Winograd’s algorithm. */
export const winogradWeight: Schedule<WeightGradientProblem, WeightGradientProblem, WeightTile> = {
  name: 'winogradWeight',
  match: ({ sizes }) => takesWinogradWeight(sizes),
  spec: (problem) => problem,
  tiles: (engine) => [{ rows: ROWS, columns: COLUMNS, lanes: QUAD, ...machineTiles(engine).weight, blockBytes: 1700 * 1024, tilesOfImages: 64 }],
  build: (problem, tile) => new WinogradWeight(problem, tile).kernel(),
}

class WinogradWeight {
  readonly #p: WeightGradientProblem
  readonly #tile: WeightTile
  /** The loops over images, `inner` over those that share a block (null for one), and over rows of tiles. */
  readonly #outer: LoopVar
  readonly #inner: LoopVar | null
  readonly #block: LoopVar
  readonly #tileColumns: number
  readonly #images: BorderedImages
  readonly #gradients: BorderedImages
  readonly #windows: Scratch
  readonly #pixels: Scratch
  readonly #sums: Scratch
  readonly #weights: Scratch

  constructor(problem: WeightGradientProblem, tile: WeightTile) {
    const { sizes, image, gradient } = problem
    const { channels, features, height, width, outHeight, outWidth, padH, padW } = sizes
    const [tileRows, tileColumns] = [Math.ceil(outHeight / TILE), Math.ceil(outWidth / TILE)]
    this.#p = problem
    // As many products as with the least tile, and the same blocks, so that sums are the same bits in any.
    const [ofRows, ofColumns] = [up(features, ROWS), up(channels, COLUMNS)]
    const rows = halved(tile.rows, ROWS, (width) => ofRows % width === 0)
    const columns = halved(tile.columns, COLUMNS, (width) => ofColumns % width === 0)
    this.#tile = { ...tile, rows, columns }
    this.#tileColumns = tileColumns
    const rowBytes = tileColumns * BYTES * PRODUCTS * (ofColumns + ofRows)
    const fits = (rows: number): boolean => rows * rowBytes <= tile.blockBytes
    this.#block = loopVar('block', tileRows, largestDivisor(tileRows, fits))
    const together = largestDivisor(sizes.batch, (n) => n * tileRows * tileColumns <= tile.tilesOfImages && fits(n * tileRows))
    this.#outer = loopVar('images', sizes.batch, Math.max(1, together))
    this.#inner = together > 1 ? loopVar('image', together) : null
    const ofBlock = this.#inner === null ? {} : { together: this.#inner }
    const [tall, wide] = [tileRows * TILE, tileColumns * TILE]
    this.#images = new BorderedImages(
      { channels, height, width, padH, padW, image, outer: [[this.#outer, image.outer]], ...ofBlock, multiple: columns },
      tall + 2,
      wide + 2,
    )
    const plane = { channels: features, height: outHeight, width: outWidth, padH: 0, padW: 0 }
    this.#gradients = new BorderedImages(
      { ...plane, image: gradient, outer: [[this.#outer, gradient.outer]], ...ofBlock, multiple: rows },
      tall,
      wide,
      'gradients',
    )
    this.#windows = scratch('windows', 'float32', PRODUCTS * this.#strideOf(this.#images))
    this.#pixels = scratch('pixels', 'float32', PRODUCTS * this.#strideOf(this.#gradients))
    this.#sums = scratch('sums', 'float32', PRODUCTS * this.#sumStride)
    this.#weights = scratch('weights', 'float32', AREA * this.#images.channels, 'thread')
  }

  /** Tiles of a block. */
  get #tiles(): number {
    return this.#outer.step * this.#block.step * this.#tileColumns
  }

  /** Whether one block has all tiles, so that its products are the sums. */
  get #isOnce(): boolean {
    const { batch, outHeight } = this.#p.sizes
    return batch === this.#outer.step && this.#block.step * TILE >= outHeight
  }

  #ofImage(stride: number): Terms {
    return this.#inner === null ? [] : [[this.#inner, stride]]
  }

  /** From one product to the next. */
  #strideOf({ channels }: BorderedImages): number {
    return this.#tiles * channels + GAP
  }

  get #sumStride(): number {
    return this.#images.channels * this.#gradients.channels + GAP
  }

  kernel(): Kernel {
    const { name, params } = this.#p
    const [images, gradients] = [this.#images, this.#gradients]
    const block = [
      ...this.#transform(images, this.#tile.columns, this.#windows, F23.windows),
      ...this.#transform(gradients, this.#tile.rows, this.#pixels, F23.pixels),
      ...this.#addProducts(),
    ]
    return {
      name,
      params,
      scratch: [images.memory, gradients.memory, this.#windows, this.#pixels, this.#sums, this.#weights],
      body: [
        ...images.clear(),
        ...gradients.clear(),
        ...(this.#isOnce ? [] : this.#clearSums()),
        forLoop(this.#outer, 'serial', [...images.copy('parallel'), ...gradients.copy('parallel'), forLoop(this.#block, 'serial', block)]),
        ...this.#finish(),
      ],
    }
  }

  #clearSums(): readonly Stmt[] {
    const i = loopVar('i', PRODUCTS * this.#sumStride)
    return [forLoop(i, 'simd', [store(this.#sums, from(0, [i, 1]), constant('float32', 0))])]
  }

  /** Of the images or the gradients: [product][panel of channels][tile of the block][channel]. */
  #transform(of: BorderedImages, width: number, to: Scratch, transform: Transform): readonly Stmt[] {
    const { channels } = of
    const lanes = Math.min(this.#tile.lanes, width)
    const row = of.width * channels
    const [ty, tx, panel, c0, c] = [
      loopVar('ty', this.#block.step),
      loopVar('tx', this.#tileColumns),
      loopVar('panel', channels, width),
      loopVar('c0', width, lanes),
      loopVar('c', lanes),
    ]
    const pixel = (y: number, x: number): Expr =>
      load(
        of.memory,
        from(
          y * row + x * channels,
          ...this.#ofImage(of.height * row),
          [this.#block, TILE * row],
          [ty, TILE * row],
          [tx, TILE * channels],
          [panel, 1],
          [c0, 1],
          [c, 1],
        ),
      )
    const stores = onBothSides(transform, pixel).flatMap((values, y) =>
      values.map((value, x) =>
        store(
          to,
          from(
            (y * WINDOW + x) * this.#strideOf(of),
            [panel, this.#tiles],
            ...this.#ofImage(this.#block.step * this.#tileColumns * width),
            [ty, this.#tileColumns * width],
            [tx, width],
            [c0, 1],
            [c, 1],
          ),
          value,
        ),
      ),
    )
    return shared([...(this.#inner === null ? [] : [this.#inner]), ty, tx, panel, c0], [forLoop(c, 'lanes', stores)])
  }

  /** Adds the products of a block to the sums: [product][feature][channel]. */
  #addProducts(): readonly Stmt[] {
    const { rows, columns } = this.#tile
    const [windows, pixels] = [this.#images, this.#gradients]
    const [k, panel, row, tile] = [
      loopVar('k', PRODUCTS),
      loopVar('panel', windows.channels, columns),
      loopVar('row', pixels.channels, rows),
      loopVar('tile', this.#tiles),
    ]
    const [o, c] = [loopVar('o', rows), loopVar('c', columns)]
    const sums = localArray('sums', 'float32', [rows, columns])
    const pixel = load(this.#pixels, from(0, [k, this.#strideOf(pixels)], [row, this.#tiles], [tile, rows], [o, 1]))
    const window = load(this.#windows, from(0, [k, this.#strideOf(windows)], [panel, this.#tiles], [tile, columns], [c, 1]))
    const sum = element(sums, o, c)
    const place = from(0, [k, this.#sumStride], [row, windows.channels], [o, windows.channels], [panel, 1], [c, 1])
    return nest(
      'parallel',
      [k],
      [
        forLoop(panel, 'serial', [
          forLoop(row, 'serial', [
            declareArray(sums, constant('float32', 0)),
            forLoop(tile, 'serial', [forLoop(o, 'unroll', [forLoop(c, 'lanes', [setElement(sums, [o, c], call('mulAdd', pixel, window, sum))])])]),
            forLoop(o, 'unroll', [forLoop(c, 'lanes', [store(this.#sums, place, this.#isOnce ? sum : call('add', load(this.#sums, place), sum))])]),
          ]),
        ]),
      ],
    )
  }

  /** The weights of the sums, feature by feature, and the epilogue. */
  #finish(): readonly Stmt[] {
    const { features, elements, epilogue, sizes } = this.#p
    const { channels } = this.#images
    const [c0, c, i] = [loopVar('c0', channels, QUAD), loopVar('c', QUAD), loopVar('i', AREA * sizes.channels)]
    const product = (y: number, x: number): Expr => load(this.#sums, from((y * WINDOW + x) * this.#sumStride, [features, channels], [c0, 1], [c, 1]))
    const stores = onBothSides(F23.weightSums, product).flatMap((values, y) =>
      values.map((value, x) => store(this.#weights, from(3 * y + x, [c0, AREA], [c, AREA]), value)),
    )
    return shared(
      [features],
      [
        forLoop(c0, 'serial', [forLoop(c, 'lanes', stores)]),
        forLoop(i, 'simd', substituted(epilogue(load(this.#weights, from(0, [i, 1]))), new Map([[elements, from(0, [i, 1])]]))),
      ],
    )
  }
}
