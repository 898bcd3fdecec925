// Convolutions of 3x3 windows by Winograd's algorithms: F(2,3) computes the result by tiles of 2x2 pixels, each from 4x4 pixels of the image. Windows and weights are transformed so that a
// tile takes 16 products of channels instead of 36, and the 16 products of all tiles are products of matrices. It adds fewer terms in a row than the direct convolution, in another order.
// F(4,3) computes tiles of 4x4 pixels with 36 products instead of 144, and is less accurate: programs ask for it.
//
// Of each image a copy with a border of zeros is made whose channels are neighbours, so that the transforms run in lanes along channels and features. Where the transformed windows of all
// images stay in the cache, groups of features are computed one after the other, else blocks of rows of tiles. Results go by way of scratch memory in the layout of the result, where the
// epilogue reads them.
import { bufferParam, call, constant, declareArray, element, forLoop, load, localArray, loopVar, scratch, setElement, store } from '../ir/loopIr.ts'
import type { Expr, Kernel, LoopVar, Memory, Scratch, Stmt } from '../ir/loopIr.ts'
import { BorderedImages } from './borderedImages.ts'
import { byWayOfMemory, fromLines, onBothSides, transformed } from './bothSides.ts'
import type { Line } from './bothSides.ts'
import type { ConvolutionSizes } from './convolution.ts'
import { machineTiles } from './machineTiles.ts'
import { QUAD, from, largestDivisor, nest, ones, serial, shared, up } from './notation.ts'
import type { Strides } from './notation.ts'
import { substituted } from './substitute.ts'
import { F23, F43 } from './winogradTransforms.ts'
import type { WinogradAlgorithm } from './winogradTransforms.ts'
import { takesFastWinograd, takesWinograd } from './winogradSpec.ts'
import type { WinogradSchedule, WinogradSpec, WinogradTile } from './winogradSpec.ts'
import { COLUMNS, GAP, packScratchAt, transformWeights } from './winogradWeights.ts'
import type { TransformedWeights } from './winogradWeights.ts'

const BYTES = 4
/** Values that a transform may keep in registers; V8 has 16 for vectors. */
const REGISTERS = 16

/** Features that fill a cache line. */
const LINE = 16
/** With as many groups of features, threads share these; else they share the products of a group, and its results. */
const GROUPS_TO_SHARE = 4
/** Loops inside each other, which threads share or not. */
type Nested = typeof shared

const scheduleOf = (name: string, algorithm: WinogradAlgorithm, takes: (sizes: ConvolutionSizes) => boolean): WinogradSchedule => ({
  name,
  algorithm,
  match: ({ sizes }) => takes(sizes),
  spec: (problem) => {
    const { outHeight, outWidth } = problem.sizes
    return { algorithm, problem, tileRows: Math.ceil(outHeight / algorithm.side), tileColumns: Math.ceil(outWidth / algorithm.side) }
  },
  tiles: (engine) => [
    {
      rows: 4,
      columns: COLUMNS,
      ...machineTiles(engine).product,
      windowBytes: 1536 * 1024,
      windowsOfWeights: 1,
      weightBytes: 512 * 1024,
      blockBytes: 800 * 1024,
    },
  ],
  build: (spec, tile) => new Winograd(spec, tile).kernel(),
})

/** The schedule of 3x3 convolutions by Winograd’s F(2,3). */
export const winograd: WinogradSchedule = scheduleOf('winograd', F23, takesWinograd)
/** The schedule of 3x3 convolutions by Winograd’s F(4,3). */
export const fastWinograd: WinogradSchedule = scheduleOf('winograd_fast', F43, takesFastWinograd)

/**
 * A convolution whose weights were transformed before: the kernel that transforms them, from the weights' parameter to another, which needs scratch memory `scratchAt` bytes behind that,
 * and the convolution, whose parameter for the weights points to the transformed ones.
 */
export interface PackedWinograd {
  readonly pack: Kernel
  readonly scratchAt: number
  readonly convolution: Kernel
}

/** The kernels for weights that are transformed before. */
export function packedWinograd(spec: WinogradSpec, tile: WinogradTile): PackedWinograd {
  const winograd = new Winograd(spec, tile, spec.problem.weight.buffer)
  return { pack: winograd.packs(), scratchAt: packScratchAt(spec.algorithm, spec.problem.sizes), convolution: winograd.kernel() }
}

class Winograd {
  readonly #s: WinogradSpec
  readonly #tile: WinogradTile
  readonly #images: BorderedImages
  /** The loop over groups of features, inside of which are the tiles of all images; null where the loop over blocks of rows of tiles is outside, inside of which are all features. */
  readonly #group: LoopVar | null
  readonly #block: LoopVar
  /** Tiles whose products are computed together, rounded up to whole register tiles, and those of an image among them. */
  readonly #tiles: number
  readonly #tilesOfImage: number
  /** Features whose products are computed together, and those whose results are, as many as fill a cache line, with the loop over these. */
  readonly #together: number
  readonly #line: number
  readonly #lines: LoopVar
  /** Whether threads share groups. */
  readonly #sharesGroups: boolean
  /** Whether the epilogue runs once per image though there are blocks: where the last row of tiles reaches beyond the plane. */
  readonly #late: boolean
  readonly #weights: Memory
  /** Whether they were transformed before. */
  readonly #isPacked: boolean
  readonly #windows: Scratch
  readonly #products: Scratch
  readonly #plane: Scratch
  /** What transforms keep between columns and rows; null where that is in registers. */
  readonly #half: Scratch | null

  /** `packed`: where the transformed weights of all features lie, if they were transformed before. */
  constructor(spec: WinogradSpec, tile: WinogradTile, packed: Memory | null = null) {
    const { algorithm, problem, tileRows, tileColumns } = spec
    const { side, products } = algorithm
    const overlap = algorithm.window - side
    const { batch, features, outHeight } = problem.sizes
    this.#s = spec
    this.#tile = tile
    this.#images = new BorderedImages(
      { ...problem.sizes, image: problem.image, outer: [[problem.images, problem.image.outer]], multiple: QUAD },
      tileRows * side + overlap,
      tileColumns * side + overlap,
    )
    const wholeFeatures = up(features, tile.columns)
    const windowBytes = BYTES * products * this.#channels
    const mostBytes = Math.max(tile.windowBytes, tile.windowsOfWeights * features * windowBytes)
    const isGrouped = wholeFeatures === features && batch * tileRows * tileColumns * windowBytes <= mostBytes
    const panels = largestDivisor(features / tile.columns, (n) => n * tile.columns * windowBytes <= tile.weightBytes)
    this.#together = isGrouped ? panels * tile.columns : wholeFeatures
    this.#group = isGrouped ? loopVar('group', features, this.#together) : null
    this.#sharesGroups = features / this.#together >= GROUPS_TO_SHARE
    const rowBytes = tileColumns * (windowBytes + BYTES * products * wholeFeatures)
    const rows = isGrouped ? tileRows : largestDivisor(tileRows, (n) => n * rowBytes <= tile.blockBytes)
    this.#block = loopVar('block', tileRows, rows)
    this.#tilesOfImage = rows * tileColumns
    this.#tiles = up((isGrouped ? batch : 1) * this.#tilesOfImage, tile.rows)
    this.#line = this.#together % LINE === 0 ? LINE : 8
    this.#lines = loopVar('line', this.#together, this.#line)
    this.#late = rows < tileRows && tileRows * side > outHeight
    this.#isPacked = packed !== null
    this.#weights = packed ?? scratch('weights', 'float32', products * this.#weightStride, isGrouped && this.#sharesGroups ? 'thread' : 'call')
    this.#windows = scratch('windows', 'float32', products * this.#windowStride, isGrouped ? 'call' : 'thread')
    // The last tiles of a vector may begin with the last one.
    this.#products = scratch(
      'products',
      'float32',
      products * this.#productStride + this.#together,
      isGrouped && !this.#sharesGroups ? 'call' : 'thread',
    )
    this.#half = products > REGISTERS ? scratch('half', 'float32', products * QUAD, 'thread') : null
    this.#plane = scratch('plane', 'float32', (isGrouped ? this.#line : this.#together) * this.#planeStride, this.#late ? 'call' : 'thread')
  }

  /** Channels, rounded up. */
  get #channels(): number {
    return this.#images.channels
  }

  get #weightStride(): number {
    const { channels, features } = this.#s.problem.sizes
    return (this.#isPacked ? up(features, this.#tile.columns) : this.#together) * channels + GAP
  }

  get #windowStride(): number {
    return this.#tiles * this.#channels + GAP
  }

  get #productStride(): number {
    return this.#tiles * this.#together + GAP
  }

  /** Pixels of a row in `plane`, in whole vectors. */
  get #rowStride(): number {
    return up(this.#s.problem.sizes.outWidth, QUAD)
  }

  /** Pixels of a feature in `plane`: those of a block, or of all blocks. */
  get #planeStride(): number {
    return (this.#late ? this.#s.tileRows : this.#block.step) * this.#s.algorithm.side * this.#rowStride
  }

  // What blocks, groups and images add to an index, where a loop over them is around it.

  #blocks(stride: number): Strides {
    return this.#group === null ? [[this.#block, stride]] : []
  }

  #groups(stride: number): Strides {
    return this.#group === null ? [] : [[this.#group, stride]]
  }

  /** Where `plane` holds all features together, those of a line. */
  #planes(stride: number): Strides {
    return this.#group === null ? [[this.#lines, stride]] : []
  }

  /** `stride` is that of tiles. */
  #ofImage(stride: number): Strides {
    return this.#group === null ? [] : [[this.#s.problem.images, this.#tilesOfImage * stride]]
  }

  kernel(): Kernel {
    const { name, params } = this.#s.problem
    const parts = [this.#weights, this.#images.memory, this.#windows, this.#products, this.#plane, ...(this.#half === null ? [] : [this.#half])]
    return {
      name,
      params,
      scratch: parts.filter((memory) => memory.kind === 'scratch'),
      body: this.#group === null ? this.#byBlocks() : this.#byGroups(this.#group),
    }
  }

  /** The kernel that transforms the weights for this one. */
  packs(): Kernel {
    const { problem } = this.#s
    const memory = bufferParam('packed', 'float32', 'write')
    const body = this.#weightsOf({ memory, stride: this.#weightStride, features: problem.sizes.features, groups: [], isShared: true })
    return { name: `${problem.name}_weights`, params: [problem.weight.buffer, memory], scratch: this.#half === null ? [] : [this.#half], body }
  }

  #weightsOf(target: TransformedWeights): readonly Stmt[] {
    const { algorithm, problem } = this.#s
    return transformWeights({ algorithm, problem, columns: this.#tile.columns, half: this.#half }, target)
  }

  /** Transforms the weights of all features, or of a group, unless that was done before. */
  #transformWeights(): readonly Stmt[] {
    if (this.#isPacked) return []
    const features = this.#group === null ? this.#s.problem.sizes.features : this.#together
    const groups = this.#group === null ? [] : [this.#group]
    return this.#weightsOf({
      memory: this.#weights,
      stride: this.#weightStride,
      features,
      groups,
      isShared: this.#group === null || !this.#sharesGroups,
    })
  }

  /** All weights are transformed; then blocks of rows of tiles of an image come one after the other. */
  #byBlocks(): readonly Stmt[] {
    const block = [
      ...this.#transformWindows(serial),
      this.#multiply('serial'),
      ...serial([this.#lines], this.#transformProducts()),
      ...(this.#late ? [] : this.#epilogue(serial)),
    ]
    const image = [...this.#images.copy('parallel'), forLoop(this.#block, 'parallel', block), ...(this.#late ? this.#epilogue(shared) : [])]
    return [...this.#transformWeights(), ...this.#images.clear(), forLoop(this.#s.problem.images, 'serial', image)]
  }

  /** The windows of all images are transformed; then groups of features come one after the other, so that their transformed weights stay in the cache. */
  #byGroups(group: LoopVar): readonly Stmt[] {
    const { images } = this.#s.problem
    return [
      ...this.#images.clear(),
      forLoop(images, 'serial', [...this.#images.copy('parallel'), ...this.#transformWindows(shared)]),
      forLoop(group, this.#sharesGroups ? 'parallel' : 'serial', [
        ...this.#transformWeights(),
        this.#multiply(this.#sharesGroups ? 'serial' : 'parallel'),
        ...(this.#sharesGroups ? serial : shared)([images, this.#lines], [...this.#transformProducts(), ...this.#epilogue(serial)]),
      ]),
    ]
  }

  // ---- images ----

  /** [product][tile][channel]. */
  #transformWindows(nested: Nested): readonly Stmt[] {
    const { tileColumns, algorithm } = this.#s
    const { side, window, windows } = algorithm
    const row = this.#images.width * this.#channels
    const [ty, tx, c0, c] = [loopVar('ty', this.#block.step), loopVar('tx', tileColumns), loopVar('c0', this.#channels, QUAD), loopVar('c', QUAD)]
    const pixel = (y: number, x: Line): Expr =>
      load(
        this.#images.memory,
        fromLines(
          y * row,
          ...this.#blocks(side * row),
          ...([
            [x, this.#channels],
            [ty, side * row],
            [tx, side * this.#channels],
            [c0, 1],
            [c, 1],
          ] as const),
        ),
      )
    const put = (y: Line, x: number, value: Expr): Stmt =>
      store(
        this.#windows,
        fromLines(
          x * this.#windowStride,
          ...this.#ofImage(this.#channels),
          ...([
            [y, window * this.#windowStride],
            [ty, tileColumns * this.#channels],
            [tx, this.#channels],
            [c0, 1],
            [c, 1],
          ] as const),
        ),
        value,
      )
    return nested([ty, tx, c0], transformed({ transform: windows, lane: c, half: this.#half, at: pixel, put }))
  }

  // ---- products ----

  /** [product][tile][feature]. */
  #multiply(mode: 'serial' | 'parallel'): Stmt {
    const { channels } = this.#s.problem.sizes
    const { rows, columns } = this.#tile
    const [k, panel, tile, c] = [
      loopVar('k', this.#s.algorithm.products),
      loopVar('panel', this.#together, columns),
      loopVar('tile', this.#tiles, rows),
      loopVar('channel', channels),
    ]
    const [r, o] = [loopVar('r', rows), loopVar('o', columns)]
    const sums = localArray('sums', 'float32', [rows, columns])
    const window = load(this.#windows, from(0, [k, this.#windowStride], [tile, this.#channels], [r, this.#channels], [c, 1]))
    const group = this.#isPacked ? this.#groups(channels) : []
    const weight = load(this.#weights, from(0, ...group, [k, this.#weightStride], [panel, channels], [c, columns], [o, 1]))
    const product = from(0, [k, this.#productStride], [tile, this.#together], [r, this.#together], [panel, 1], [o, 1])
    return forLoop(k, mode, [
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

  /** [feature][row of pixels of the block, or of the image][pixel], as many tiles of a row at a time as have the pixels of a vector. */
  #transformProducts(): readonly Stmt[] {
    const { tileColumns, algorithm } = this.#s
    const { side, window, tiles } = algorithm
    const line = this.#lines
    const [ty, x0, o0, o] = [
      loopVar('ty', this.#block.step),
      loopVar('x0', this.#rowStride, QUAD),
      loopVar('o0', this.#line, QUAD),
      loopVar('o', QUAD),
    ]
    const product = (row: number, col: Line, u: number): Expr =>
      load(
        this.#products,
        fromLines(
          row * window * this.#productStride + u * this.#together,
          ...this.#ofImage(this.#together),
          [col, this.#productStride],
          ...([
            [line, 1],
            [o0, 1],
            [o, 1],
            [ty, tileColumns * this.#together],
            [x0, this.#together / side],
          ] as const),
        ),
      )
    const [x, q, y] = [loopVar('x', QUAD), loopVar('q', QUAD), loopVar('y', side)]
    const [plane, row] = [this.#planeStride, this.#rowStride]
    const blocks = this.#late ? this.#blocks(side * row) : []
    const place = from(0, ...blocks, ...this.#planes(plane), [o0, plane], [q, plane], [ty, side * row], [y, row], [x0, 1], [x, 1])
    const stores = (turned: Expr): readonly Stmt[] => nest('unroll', [q], [forLoop(x, 'lanes', [store(this.#plane, place, turned)])])
    const half = this.#half
    if (half !== null) {
      const taken = localArray('taken', 'float32', [QUAD, QUAD])
      const { columns, row: pixels } = byWayOfMemory({ transform: tiles, lane: o, half, at: (y, x) => product(y, x, 0) })
      const turn = [
        declareArray(taken, constant('float32', 0)),
        forLoop(
          o,
          'lanes',
          pixels(y).map((value, i) => setElement(taken, [i, o], value)),
        ),
        ...stores(element(taken, x, q)),
      ]
      return serial([ty, x0, o0], [...columns, forLoop(y, 'serial', turn)])
    }
    const taken = localArray('taken', 'float32', [side, QUAD, QUAD])
    const ofTile = (u: number): readonly Stmt[] =>
      onBothSides(tiles, (y, x) => product(y, x, u)).flatMap((values, i) => values.map((value, k) => setElement(taken, [i, side * u + k, o], value)))
    const all = Array.from({ length: QUAD / side }, (_, u) => ofTile(u))
    const turn = [
      declareArray(taken, constant('float32', 0)),
      forLoop(o, 'lanes', all.flat()),
      ...nest('unroll', [y], stores(element(taken, y, x, q))),
    ]
    return serial([ty, x0, o0], turn)
  }

  /** Runs the epilogue over the pixels of a block, or of the image: as one run where rows have no gaps. */
  #epilogue(nested: Nested): readonly Stmt[] {
    const { features, pixels, epilogue, sizes } = this.#s.problem
    const { outHeight, outWidth } = sizes
    const { side } = this.#s.algorithm
    const blocks = this.#late ? [] : this.#blocks(side * outWidth)
    const rows = this.#late || this.#block.step === this.#s.tileRows ? outHeight : this.#block.step * side
    const isRun = this.#rowStride === outWidth
    const [y, x] = [loopVar('y', isRun ? 1 : rows), loopVar('x', isRun ? rows * outWidth : outWidth)]
    const o = loopVar('o', this.#group === null ? sizes.features : this.#line)
    const sum = load(this.#plane, from(0, [o, this.#planeStride], [y, this.#rowStride], [x, 1]))
    const places = new Map([
      [features, from(0, ...this.#groups(1), ...(this.#group === null ? [] : ones(this.#lines)), [o, 1])],
      [pixels, from(0, ...blocks, [y, outWidth], [x, 1])],
    ])
    return nested([o, y], [forLoop(x, 'simd', substituted(epilogue(sum), places))])
  }
}
