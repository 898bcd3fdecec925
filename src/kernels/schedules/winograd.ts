// Convolutions of 3x3 windows by Winograd's F(2,3): the result is computed by tiles of 2x2 pixels, each from 4x4 pixels of the image. Windows and weights are transformed so that a
// tile takes 16 products of channels instead of 36, and the 16 products of all tiles are products of matrices. It adds fewer terms in a row than the direct convolution, in another order.
//
// Of each image a copy with a border of zeros is made whose channels are neighbours, so that the transforms run in lanes along channels and features. Rows of tiles are computed in blocks,
// whose transformed windows and products stay in the cache. Results go by way of scratch memory in the layout of the result, where the epilogue reads them.
import { at, call, constant, declareArray, element, forLoop, load, localArray, loopVar, scratch, setElement, store } from '../loopIr.ts'
import type { Expr, Index, Kernel, LoopMode, LoopVar, Scratch, Stmt } from '../loopIr.ts'
import type { ConvolutionProblem } from './convolution.ts'
import type { Schedule } from './schedule.ts'
import { substituted } from './substitute.ts'

/** Pixels of a tile along a side, and those of the window that it is computed from. */
const TILE = 2
const WINDOW = TILE + 2
const PRODUCTS = WINDOW * WINDOW
/** Elements of a vector, for transposes. */
const QUAD = 4
/** Elements between the matrices of two products, so that they do not all lie in the same part of the cache. */
const GAP = 16

/** Fewer channels or smaller planes gain nothing: the transforms cost as much as the products save. */
const LEAST_CHANNELS = 16
const LEAST_PLANE = 8

/** The sizes that follow from a problem. */
interface WinogradSpec {
  readonly problem: ConvolutionProblem
  readonly images: number
  readonly features: number
  /** Tiles along y and x. */
  readonly tileRows: number
  readonly tileColumns: number
  /** The bordered copy of an image. */
  readonly paddedHeight: number
  readonly paddedWidth: number
}

interface WinogradTile {
  /** Tiles by features of the products' register tile. */
  readonly rows: number
  readonly columns: number
  /** The transformed windows and products of a block take at most so many bytes, unless one row of tiles takes more. */
  readonly blockBytes: number
}

const up = (n: number, to: number): number => Math.ceil(n / to) * to
const down = (n: number, to: number): number => n - (n % to)
const isOne = ([y, x]: readonly [number, number]): boolean => y === 1 && x === 1

export const winograd: Schedule<ConvolutionProblem, WinogradSpec, WinogradTile> = {
  name: 'winograd',
  match: ({ kernel: [ky, kx], stride, dilation, channels, features, outHeight, outWidth, images }) =>
    ky === 3 &&
    kx === 3 &&
    isOne(stride) &&
    isOne(dilation) &&
    channels >= LEAST_CHANNELS &&
    typeof images.extent === 'number' &&
    typeof features.extent === 'number' &&
    features.extent >= LEAST_CHANNELS &&
    outHeight >= LEAST_PLANE &&
    outWidth >= LEAST_PLANE,
  spec: (problem) => {
    const [tileRows, tileColumns] = [Math.ceil(problem.outHeight / TILE), Math.ceil(problem.outWidth / TILE)]
    return {
      problem,
      images: Number(problem.images.extent),
      features: Number(problem.features.extent),
      tileRows,
      tileColumns,
      paddedHeight: tileRows * TILE + 2,
      paddedWidth: tileColumns * TILE + 2,
    }
  },
  tiles: () => [{ rows: 4, columns: 8, blockBytes: 800 * 1024 }],
  build: (spec, tile) => new Winograd(spec, tile).kernel(),
}

/** `base` and terms as an index. */
const from = (base: number, ...terms: readonly (readonly [LoopVar, number])[]): Index => ({ ...at(...terms), base })
/** Loops of one mode inside each other, the outermost first. */
const nest = (mode: LoopMode, loops: readonly LoopVar[], body: readonly Stmt[]): readonly Stmt[] =>
  loops.reduceRight((inner: readonly Stmt[], loop) => [forLoop(loop, mode, inner)], body)
const add = (a: Expr, b: Expr): Expr => call('add', a, b)
const sub = (a: Expr, b: Expr): Expr => call('sub', a, b)

type Four<T> = readonly [T, T, T, T]
const four = <T>(make: (i: 0 | 1 | 2 | 3) => T): Four<T> => [make(0), make(1), make(2), make(3)]

// The transforms along one side.

/** What is multiplied, of the pixels of a window. */
const windowSums = ([a, b, c, d]: Four<Expr>): Four<Expr> => [sub(a, c), add(b, c), sub(c, b), sub(b, d)]
/** What is multiplied, of the weights. */
function weightSums([a, b, c]: readonly [Expr, Expr, Expr]): Four<Expr> {
  const half = constant('float32', 0.5)
  const [ends, middle] = [call('mul', add(a, c), half), call('mul', b, half)]
  return [a, add(ends, middle), sub(ends, middle), c]
}
/** The pixels of the result, of the products. */
const pixelsOf = ([a, b, c, d]: Four<Expr>): readonly [Expr, Expr] => [add(add(a, b), c), sub(sub(b, c), d)]

class Winograd {
  readonly #s: WinogradSpec
  readonly #tile: WinogradTile
  /** Rows of tiles in a block, and tiles in it, rounded up to whole register tiles. */
  readonly #blockRows: number
  readonly #tiles: number
  /** Channels and features rounded up. */
  readonly #channels: number
  readonly #features: number
  /** Features whose products are read together: those of a cache line. */
  readonly #together: number
  /** Whether the epilogue runs once per image: where the last row of tiles reaches beyond the plane. */
  readonly #late: boolean
  readonly #weights: Scratch
  readonly #image: Scratch
  readonly #windows: Scratch
  readonly #products: Scratch
  readonly #plane: Scratch

  constructor(spec: WinogradSpec, tile: WinogradTile) {
    const { problem, features, tileRows, tileColumns, paddedHeight, paddedWidth } = spec
    this.#s = spec
    this.#tile = tile
    this.#channels = up(problem.channels, QUAD)
    this.#features = up(features, tile.columns)
    this.#together = this.#features % 16 === 0 ? 16 : 8
    const bytesPerTile = 4 * PRODUCTS * (this.#channels + this.#features)
    const fits = (rows: number): boolean => tileRows % rows === 0 && rows * tileColumns * bytesPerTile <= tile.blockBytes
    let rows = tileRows
    while (rows > 1 && !fits(rows)) rows--
    this.#blockRows = rows
    this.#tiles = up(rows * tileColumns, tile.rows)
    this.#late = rows < tileRows && tileRows * TILE > problem.outHeight
    this.#weights = scratch('weights', 'float32', PRODUCTS * this.#weightStride)
    this.#image = scratch('padded', 'float32', paddedHeight * paddedWidth * this.#channels)
    this.#windows = scratch('windows', 'float32', PRODUCTS * this.#windowStride, 'thread')
    // The last two tiles may begin with the last one.
    this.#products = scratch('products', 'float32', PRODUCTS * this.#productStride + this.#features, 'thread')
    this.#plane = scratch('plane', 'float32', this.#features * this.#planeStride, this.#late ? 'call' : 'thread')
  }

  get #weightStride(): number {
    return this.#features * this.#s.problem.channels + GAP
  }

  get #windowStride(): number {
    return this.#tiles * this.#channels + GAP
  }

  get #productStride(): number {
    return this.#tiles * this.#features + GAP
  }

  /** Pixels of a row in `plane`, in whole vectors. */
  get #rowStride(): number {
    return up(this.#s.problem.outWidth, QUAD)
  }

  /** Pixels of a feature in `plane`: those of a block, or of all blocks. */
  get #planeStride(): number {
    return (this.#late ? this.#s.tileRows : this.#blockRows) * TILE * this.#rowStride
  }

  kernel(): Kernel {
    const { name, params, images } = this.#s.problem
    const block = loopVar('block', this.#s.tileRows, this.#blockRows)
    const rows = [...this.#transformWindows(block), this.#multiply(), ...this.#transformProducts(this.#late ? block : null)]
    return {
      name,
      params,
      scratch: [this.#weights, this.#image, this.#windows, this.#products, this.#plane],
      body: [
        ...this.#transformWeights(),
        ...this.#clearBorder(),
        forLoop(images, 'serial', [
          ...this.#copyImage(),
          forLoop(block, 'parallel', this.#late ? rows : [...rows, ...this.#epilogue(block)]),
          ...(this.#late ? this.#epilogue(null) : []),
        ]),
      ],
    }
  }

  // ---- weights ----

  /** Panels of the register tile's columns: [product][features of a panel][channel][feature]. */
  #transformWeights(): readonly Stmt[] {
    const { features } = this.#s
    const whole = down(features, this.#tile.columns)
    return [...this.#weightPanels(0, whole, QUAD), ...this.#weightPanels(whole, features - whole, 1)]
  }

  /** `extent` features from `first` on, `lanes` at a time. */
  #weightPanels(first: number, extent: number, lanes: number): readonly Stmt[] {
    if (extent === 0) return []
    const { channels, weight } = this.#s.problem
    const { start, outer, channel, row, col } = weight.strides
    const { columns } = this.#tile
    const inPanel = Math.min(extent, columns)
    const [panel, part] = [loopVar('panel', extent, inPanel), loopVar('part', inPanel, lanes)]
    const [c, o] = [loopVar('channel', channels), loopVar('o', lanes)]
    const taken = (y: number, x: number): Expr =>
      load(weight.buffer, from(start + first * outer + y * row + x * col, [panel, outer], [part, outer], [o, outer], [c, channel]))
    const along = (x: number): Four<Expr> => weightSums([taken(0, x), taken(1, x), taken(2, x)])
    const [left, middle, right] = [along(0), along(1), along(2)]
    const stores = four((y) =>
      weightSums([left[y], middle[y], right[y]]).map((value, x) =>
        store(
          this.#weights,
          from(this.#weightStride * (y * WINDOW + x) + first * channels, [panel, channels], [part, 1], [c, columns], [o, 1]),
          value,
        ),
      ),
    )
    return nest('serial', [panel, part, c], [forLoop(o, 'lanes', stores.flat())])
  }

  // ---- images ----

  /** Zeros around the image: above and below, and between the end of a row and the start of the next. */
  #clearBorder(): readonly Stmt[] {
    const { height, width, pad } = this.#s.problem
    const { paddedHeight, paddedWidth } = this.#s
    const row = paddedWidth * this.#channels
    const [top, left] = [pad[0] * row, pad[1] * this.#channels]
    const inside = top + left
    const last = inside + (height - 1) * row + width * this.#channels
    const gap = (paddedWidth - width) * this.#channels
    const zeros = (base: number, count: number, rows: number): readonly Stmt[] => {
      const [y, i0, i] = [loopVar('y', rows), loopVar('i0', count, QUAD), loopVar('i', QUAD)]
      if (count <= 0 || rows <= 0) return []
      const zero = store(this.#image, from(base, [y, row], [i0, 1], [i, 1]), constant('float32', 0))
      return [forLoop(y, 'serial', [forLoop(i0, 'serial', [forLoop(i, 'lanes', [zero])])])]
    }
    return [...zeros(0, inside, 1), ...zeros(inside + width * this.#channels, gap, height - 1), ...zeros(last, paddedHeight * row - last, 1)]
  }

  /** The image, channels last: by blocks of 4x4, then the columns that are left, then the channels that are left. */
  #copyImage(): readonly Stmt[] {
    const { channels, height, width } = this.#s.problem
    const [wide, high] = [down(width, QUAD), down(channels, QUAD)]
    const y = loopVar('y', height)
    const pixels = (firstChannel: number, firstColumn: number, mode: LoopMode): readonly Stmt[] => {
      const [c, x] = [loopVar('c', (firstChannel === 0 ? high : channels) - firstChannel), loopVar('x', width - firstColumn)]
      if (c.extent === 0 || x.extent === 0) return []
      const { source, target } = this.#pixel(y, firstChannel, firstColumn, [c], [x])
      return nest('serial', [x], [forLoop(c, mode, [store(this.#image, target, source)])])
    }
    const [c0, x0, c, x] = [loopVar('c0', high, QUAD), loopVar('x0', wide, QUAD), loopVar('c', QUAD), loopVar('x', QUAD)]
    const turned = localArray('turned', 'float32', [QUAD, QUAD])
    const { source, target } = this.#pixel(y, 0, 0, [c0, c], [x0, x])
    const blocks = nest(
      'serial',
      [c0, x0],
      [
        declareArray(turned, constant('float32', 0)),
        forLoop(c, 'unroll', [forLoop(x, 'lanes', [setElement(turned, [c, x], source)])]),
        forLoop(x, 'unroll', [forLoop(c, 'lanes', [store(this.#image, target, element(turned, c, x))])]),
      ],
    )
    return [forLoop(y, 'serial', [...(wide === 0 ? [] : blocks), ...pixels(0, wide, 'simd'), ...pixels(high, 0, 'serial')])]
  }

  /** A pixel of a row, in the image and in the copy: the sums of loops are its channel and its column, counted from the first ones. */
  #pixel(
    y: LoopVar,
    firstChannel: number,
    firstColumn: number,
    channel: readonly LoopVar[],
    column: readonly LoopVar[],
  ): { readonly source: Expr; readonly target: Index } {
    const { images, image, pad } = this.#s.problem
    const { start, outer, row, ...strides } = image.strides
    const along = (loops: readonly LoopVar[], stride: number): (readonly [LoopVar, number])[] => loops.map((loop) => [loop, stride])
    const place = (base: number, perRow: number, perChannel: number, perColumn: number, rest: readonly (readonly [LoopVar, number])[]): Index =>
      from(
        base + firstChannel * perChannel + firstColumn * perColumn,
        ...rest,
        [y, perRow],
        ...along(channel, perChannel),
        ...along(column, perColumn),
      )
    const paddedRow = this.#s.paddedWidth * this.#channels
    return {
      source: load(image.buffer, place(start, row, strides.channel, strides.col, [[images, outer]])),
      target: place(pad[0] * paddedRow + pad[1] * this.#channels, paddedRow, 1, this.#channels, []),
    }
  }

  /** [product][tile of the block][channel]. */
  #transformWindows(block: LoopVar): readonly Stmt[] {
    const { paddedWidth, tileColumns } = this.#s
    const row = paddedWidth * this.#channels
    const [ty, tx, c0, c] = [loopVar('ty', this.#blockRows), loopVar('tx', tileColumns), loopVar('c0', this.#channels, QUAD), loopVar('c', QUAD)]
    const pixel = (y: number, x: number): Expr =>
      load(this.#image, from(y * row + x * this.#channels, [block, TILE * row], [ty, TILE * row], [tx, TILE * this.#channels], [c0, 1], [c, 1]))
    const columns = four((x) => windowSums(four((y) => pixel(y, x))))
    const stores = four((y) =>
      windowSums(four((x) => columns[x][y])).map((value, x) =>
        store(
          this.#windows,
          from((y * WINDOW + x) * this.#windowStride, [ty, tileColumns * this.#channels], [tx, this.#channels], [c0, 1], [c, 1]),
          value,
        ),
      ),
    )
    return nest('serial', [ty, tx, c0], [forLoop(c, 'lanes', stores.flat())])
  }

  // ---- products ----

  /** [product][tile of the block][feature]. */
  #multiply(): Stmt {
    const { channels } = this.#s.problem
    const { rows, columns } = this.#tile
    const [k, panel, tile, c] = [
      loopVar('k', PRODUCTS),
      loopVar('panel', this.#features, columns),
      loopVar('tile', this.#tiles, rows),
      loopVar('channel', channels),
    ]
    const [r, o] = [loopVar('r', rows), loopVar('o', columns)]
    const sums = localArray('sums', 'float32', [rows, columns])
    const window = load(this.#windows, from(0, [k, this.#windowStride], [tile, this.#channels], [r, this.#channels], [c, 1]))
    const weight = load(this.#weights, from(0, [k, this.#weightStride], [panel, channels], [c, columns], [o, 1]))
    const product = from(0, [k, this.#productStride], [tile, this.#features], [r, this.#features], [panel, 1], [o, 1])
    return forLoop(k, 'serial', [
      forLoop(panel, 'serial', [
        forLoop(tile, 'serial', [
          declareArray(sums, constant('float32', 0)),
          forLoop(c, 'serial', [
            forLoop(r, 'unroll', [forLoop(o, 'lanes', [setElement(sums, [r, o], call('mulAdd', window, weight, element(sums, r, o)))])]),
          ]),
          forLoop(r, 'unroll', [forLoop(o, 'lanes', [store(this.#products, product, element(sums, r, o))])]),
        ]),
      ]),
    ])
  }

  // ---- results ----

  /** [feature][row of pixels of the block, or of the image][pixel], two tiles of a row at a time. */
  #transformProducts(block: LoopVar | null): readonly Stmt[] {
    const { tileColumns } = this.#s
    const [group, ty, x0, o0, o] = [
      loopVar('group', this.#features, this.#together),
      loopVar('ty', this.#blockRows),
      loopVar('x0', this.#rowStride, QUAD),
      loopVar('o0', this.#together, QUAD),
      loopVar('o', QUAD),
    ]
    const [y, x, q] = [loopVar('y', TILE), loopVar('x', QUAD), loopVar('q', QUAD)]
    const taken = localArray('taken', 'float32', [TILE, QUAD, QUAD])
    const tile = (u: number): readonly Stmt[] => {
      const product = (row: number, col: number): Expr =>
        load(
          this.#products,
          from(
            (row * WINDOW + col) * this.#productStride + u * this.#features,
            [group, 1],
            [o0, 1],
            [o, 1],
            [ty, tileColumns * this.#features],
            [x0, this.#features / TILE],
          ),
        )
      const columns = four((col) => pixelsOf(four((row) => product(row, col))))
      return ([0, 1] as const).flatMap((row) =>
        pixelsOf(four((col) => columns[col][row])).map((value, col) => setElement(taken, [row, TILE * u + col, o], value)),
      )
    }
    const plane = this.#planeStride
    const rows = block === null ? [] : [[block, TILE * this.#rowStride] as const]
    const place = from(0, [group, plane], [o0, plane], [q, plane], ...rows, [ty, TILE * this.#rowStride], [y, this.#rowStride], [x0, 1], [x, 1])
    return nest(
      'serial',
      [group, ty, x0, o0],
      [
        declareArray(taken, constant('float32', 0)),
        forLoop(o, 'lanes', [...tile(0), ...tile(1)]),
        ...nest('unroll', [y, q], [forLoop(x, 'lanes', [store(this.#plane, place, element(taken, y, x, q))])]),
      ],
    )
  }

  /** Runs the epilogue over the pixels of a block, or of the image: as one run where rows have no gaps. */
  #epilogue(block: LoopVar | null): readonly Stmt[] {
    const { outHeight, outWidth, features, pixels, epilogue } = this.#s.problem
    const rows = block === null || this.#blockRows === this.#s.tileRows ? outHeight : this.#blockRows * TILE
    const whole = this.#rowStride === outWidth
    const [y, x] = [loopVar('y', whole ? 1 : rows), loopVar('x', whole ? rows * outWidth : outWidth)]
    const first = block === null ? [] : [[block, TILE * outWidth] as const]
    const sum = load(this.#plane, from(0, [features, this.#planeStride], [y, this.#rowStride], [x, 1]))
    const stmts = substituted(epilogue(sum), new Map([[pixels, from(0, ...first, [y, outWidth], [x, 1])]]))
    return nest('serial', [features, y], [forLoop(x, 'simd', stmts)])
  }
}
