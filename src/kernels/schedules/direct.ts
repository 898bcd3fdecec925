// Convolutions as products of matrices, of any window, stride, dilation and number of groups, and transposed ones, which are the gradients of images: the weight [feature, depth] times the windows [depth, column], where
// the depth is (channel, y, x) in this order, and a column is a pixel of the result. Sums are added up one after the other, so that they are the same in any tile.
//
// Windows are gathered from a copy of the images with a border of zeros, or from the images, into quads of four columns, depth-major, as many as stay in the cache. Rows of weights are read as they are where
// the depth is contiguous. Small planes of several images are columns of one product, so that large weights are read once.
import {
  at,
  call,
  constant,
  declare,
  declareArray,
  element,
  forLoop,
  iota,
  load,
  local,
  localArray,
  loopVar,
  read,
  scratch,
  setElement,
  sizeOf,
  store,
} from '../ir/loopIr.ts'
import type { Expr, Index, Kernel, LoopVar, Scratch, Stmt } from '../ir/loopIr.ts'
import { BorderedPlanes } from './borderedPlanes.ts'
import type { Planes } from './borderedPlanes.ts'
import type { ConvolutionSizes, Taps } from './convolution.ts'
import { partsOf, reachOf } from './directParts.ts'
import type { DirectProblem, Part } from './directParts.ts'
import { machineTiles } from './machineTiles.ts'
import { ENOUGH, QUAD, along, down, from, largestDivisor, nest, ones, serial, shared, up } from './notation.ts'
import type { Terms } from './notation.ts'
import type { Schedule } from './schedule.ts'
import { substituted } from './substitute.ts'

const BYTES = 4
/** Taps of a row that are written out; and for columns, whose elements are moved one by one. */
const WRITTEN_OUT = 8
const WRITTEN_OUT_COLUMNS = 2
/** Each part has code of its own. */
const MOST_PARTS = 4

interface DirectTile {
  /** Neighbouring columns that are computed in lanes: a quad, or more where vectors are longer. */
  readonly quad: number
  /** Features by quads of columns of the register tile, and features where there is a single quad. */
  readonly rows: number
  readonly quads: number
  readonly rowsOfQuad: number
  /** Whether weights that are not contiguous along the depth are packed: else they are read where they lie, in loops inside each other. */
  readonly packsWeights: boolean
  /** The limit for gathered windows, and columns that a block has in any case. */
  readonly blockBytes: number
  readonly leastColumns: number
}

/** The loops over the depth: channels, rows and columns of the window. */
type Depths = readonly [LoopVar, LoopVar, LoopVar]

/** Whether the schedule computes such a convolution, or transposed one. */
export const takesDirect = (s: ConvolutionSizes, transposed: boolean): boolean =>
  [s.batch, s.channels, s.features, s.outHeight, s.outWidth, s.kernelHeight, s.kernelWidth].every((size) => size > 0) &&
  (!transposed || Math.min(s.strideH, s.outHeight) * Math.min(s.strideW, s.outWidth) <= MOST_PARTS)

/** The schedule of convolutions as products of matrices. */
export const direct: Schedule<DirectProblem, DirectProblem, DirectTile> = {
  name: 'direct convolution',
  match: ({ sizes, transposed }) => takesDirect(sizes, transposed),
  spec: (problem) => problem,
  tiles: (engine) => [
    {
      quad: QUAD,
      rows: 4,
      quads: 2,
      rowsOfQuad: 8,
      packsWeights: true,
      ...machineTiles(engine).convolution,
      blockBytes: 512 * 1024,
      leastColumns: 64,
    },
  ],
  build: (problem, tile) => new Direct(problem, tile).kernel(),
}

/** The weights along the depth, where the windows' elements lie, and the loops around a body over both. */
interface AlongDepth {
  readonly weights: Expr
  readonly places: Terms
  readonly over: (body: readonly Stmt[]) => readonly Stmt[]
}

class Direct {
  readonly #p: DirectProblem
  readonly #tile: DirectTile
  readonly #parts: readonly Part[]
  /** The loop over groups; null for one. */
  readonly #group: LoopVar | null
  /** Images whose columns are in one product. */
  readonly #together: number
  readonly #outer: LoopVar
  readonly #inner: LoopVar
  readonly #copy: BorderedPlanes | null
  readonly #planes: Planes
  /** Whether a feature's weights are contiguous, in the order of the depth. */
  readonly #isDeep: boolean
  /** Whether threads share the features of a block, of which there are few, rather than blocks. */
  readonly #sharesFeatures: boolean
  readonly #packed: Scratch | null
  readonly #windows: Scratch
  readonly #sums: Scratch
  readonly #table: Scratch

  constructor(problem: DirectProblem, tile: DirectTile) {
    this.#p = problem
    this.#tile = tile
    const { sizes, image, weight, transposed } = problem
    const { batch, channels, features, kernelHeight, kernelWidth } = sizes
    this.#parts = partsOf(problem, tile.quad)
    this.#group = problem.groups === 1 ? null : loopVar('group', problem.groups)
    const read = this.#parts.filter(({ depth }) => depth > 0)
    const [rows, cols] = [reachOf(read.map(({ y }) => y)), reachOf(read.map(({ x }) => x))]
    const isInside = rows.low >= 0 && rows.high < sizes.height && cols.low >= 0 && cols.high < sizes.width
    const isFilledUp = read.some((part) => this.#isInQuads(part) && part.rowStride > part.x.count)
    const isCopied = read.length > 0 && (!isInside || isFilledUp || (image.col !== 1 && kernelHeight * kernelWidth > 1))
    const copied = isCopied ? channels * (rows.high - rows.low + 1) * (cols.high - cols.low + 1) : 0
    const ofImage = Math.max(...this.#parts.map(({ y, rowStride, depth }) => y.count * rowStride * depth))
    this.#together = largestDivisor(batch, (n) => n * (ofImage + copied) * BYTES <= tile.blockBytes)
    ;[this.#outer, this.#inner] = [loopVar('images', batch, this.#together), loopVar('image', this.#together)]
    const step = Math.max(1, ...read.map(({ x }) => x.read))
    this.#copy = isCopied ? new BorderedPlanes({ sizes, image, rows, cols, step, together: this.#together }) : null
    this.#planes = this.#copy?.planes ?? { ...image, memory: image.buffer, image: image.outer }
    const isDeep =
      weight.col === 1 && (kernelHeight === 1 || weight.row === kernelWidth) && (channels === 1 || weight.channel === kernelHeight * kernelWidth)
    this.#isDeep = isDeep && !transposed
    const all = features * channels * kernelHeight * kernelWidth
    this.#packed = this.#isDeep || !tile.packsWeights ? null : scratch('weights', 'float32', all)
    const blocks = read.map((part) => this.#columns(part))
    this.#sharesFeatures = read.every((part) => {
      const blocks = part.y.count / this.#rows(part)
      return blocks < ENOUGH && features / this.#rowsOf(part) > blocks
    })
    const windows = Math.max(0, ...read.map(({ depth }, i) => depth * (blocks[i] ?? 0)))
    this.#windows = scratch('windows', 'float32', windows, this.#sharesFeatures ? 'call' : 'thread')
    this.#sums = scratch('sums', 'float32', Math.max(tile.rows, tile.rowsOfQuad) * Math.max(0, ...blocks), 'thread')
    this.#table = scratch('table', 'int32', Math.max(0, ...blocks))
  }

  kernel(): Kernel {
    const { name, params } = this.#p
    const parts = [this.#packed, this.#copy?.memory ?? null, this.#windows, this.#sums, this.#table].filter((memory) => memory !== null)
    const pack = this.#packed === null ? [] : this.#parts.flatMap((part) => this.#packWeights(part))
    const copied =
      this.#copy?.copy(this.#inner, [...this.#ofImages(this.#p.image.outer), ...this.#ofGroup(this.#p.sizes.channels * this.#p.image.channel)]) ?? []
    const images = [...copied, ...this.#parts.flatMap((part, i) => this.#part(part, this.#parts[i - 1]))]
    const group = [...pack, forLoop(this.#outer, 'serial', images)]
    return {
      name,
      params,
      scratch: parts,
      body: [...(this.#copy?.clear() ?? []), ...(this.#group === null ? group : nest('serial', [this.#group], group))],
    }
  }

  #ofGroup(stride: number): Terms {
    return this.#group === null ? [] : [[this.#group, stride]]
  }

  /** What the group adds to the index of a weight. */
  get #weightsOfGroup(): Terms {
    const { features, channels, kernelHeight, kernelWidth } = this.#p.sizes
    return this.#ofGroup(features * channels * kernelHeight * kernelWidth)
  }

  #ofImages(stride: number): Terms {
    return [
      [this.#outer, stride],
      [this.#inner, stride],
    ]
  }

  /** Rows of results in a block. */
  #rows({ y, rowStride, depth }: Part): number {
    const { blockBytes, leastColumns } = this.#tile
    if (this.#together > 1) return y.count
    return largestDivisor(y.count, (n) => n * rowStride * depth * BYTES <= blockBytes || n * rowStride <= leastColumns)
  }

  /** Whether no quad goes from a row to the next. */
  #isInQuads({ rowStride }: Part): boolean {
    return rowStride % this.#tile.quad === 0
  }

  /** Columns in a block, in whole quads, and in whole register tiles. */
  #quadColumns(part: Part): number {
    return up(this.#together * this.#rows(part) * part.rowStride, this.#tile.quad)
  }

  #quads(part: Part): number {
    return this.#quadColumns(part) === this.#tile.quad ? 1 : this.#tile.quads
  }

  /** Features of a register tile. */
  #rowsOf(part: Part): number {
    return this.#quads(part) === 1 ? this.#tile.rowsOfQuad : this.#tile.rows
  }

  #columns(part: Part): number {
    return up(this.#quadColumns(part), this.#tile.quad * this.#quads(part))
  }

  #part(part: Part, before: Part | undefined): readonly Stmt[] {
    const { y, depth } = part
    const block = loopVar('block', y.count, this.#rows(part))
    if (depth === 0) {
      const line = loopVar('line', this.#p.sizes.features)
      return [
        forLoop(
          block,
          'serial',
          this.#epilogue(part, block, line, at([line, 1]), () => constant('float32', 0)),
        ),
      ]
    }
    const gather = this.#isInQuads(part) ? this.#gatherRows(part, block) : this.#gatherColumns(part, block)
    // A part without windows has written no table.
    const isKnown = before !== undefined && before.depth > 0 && before.rowStride === part.rowStride && this.#rows(before) === this.#rows(part)
    const table = this.#isInQuads(part) || isKnown ? [] : this.#writeTable(part)
    return [...table, forLoop(block, this.#sharesFeatures ? 'serial' : 'parallel', [...gather, ...this.#product(part, block)])]
  }

  // ---- weights ----

  /** [feature][channel][y][x]. */
  #packWeights({ y, x, depth, weights: first }: Part): readonly Stmt[] {
    const { sizes } = this.#p
    if (this.#packed === null || depth === 0) return []
    const [f, c, ky, kx] = [
      loopVar('feature', sizes.features),
      loopVar('channel', sizes.channels),
      loopVar('ky', y.taps.count),
      loopVar('kx', x.taps.count),
    ]
    const area = y.taps.count * x.taps.count
    const value = this.#weight({ y, x }, 0, [f], [c, ky, kx])
    const move = store(this.#packed, from(first, [f, depth], [c, area], [ky, x.taps.count], [kx, 1]), value)
    return shared([f, c], this.#overTaps(ky, kx, [move]))
  }

  /** The weight of the feature at `first` and the loops `features`, where it lies. */
  #weight({ y, x }: Pick<Part, 'y' | 'x'>, first: number, features: readonly LoopVar[], [c, ky, kx]: Depths): Expr {
    const { start, buffer, outer, channel, row, col } = this.#p.weight
    const index = from(
      start + y.taps.first * row + x.taps.first * col + first * outer,
      ...this.#weightsOfGroup,
      ...along(ones(...features), outer),
      [c, channel],
      [ky, y.taps.step * row],
      [kx, x.taps.step * col],
    )
    return load(buffer, index)
  }

  /** Loops over the elements of a window: along x they are written out where they are few. */
  #overTaps(ky: LoopVar, kx: LoopVar, body: readonly Stmt[], most: number = WRITTEN_OUT): readonly Stmt[] {
    return [forLoop(ky, 'serial', [forLoop(kx, Number(kx.extent) <= most ? 'unroll' : 'serial', body)])]
  }

  // ---- windows ----

  /** Where an element of a window is read, apart from its pixel. */
  #tap(y: Taps, x: Taps, c: LoopVar, ky: LoopVar, kx: LoopVar): { readonly start: number; readonly terms: Terms } {
    const { start, channel, row, col } = this.#planes
    return {
      start: start + y.offset * row + x.offset * col,
      terms: [
        [c, channel],
        [ky, y.offsetStep * row],
        [kx, x.offsetStep * col],
      ],
    }
  }

  /** Where the images of a block begin, and its rows. */
  #ofBlock({ y }: Part, block: LoopVar): Terms {
    const { row } = this.#planes
    return [
      ...(this.#copy === null
        ? [...this.#ofImages(this.#planes.image), ...this.#ofGroup(this.#p.sizes.channels * this.#planes.channel)]
        : [[this.#inner, this.#planes.image] as const]),
      [block, y.read * row],
    ]
  }

  #window({ y, x, depth }: Part): { readonly loops: Depths; readonly depth: Terms } {
    const area = y.taps.count * x.taps.count
    const [c, ky, kx] = [loopVar('channel', depth / area), loopVar('ky', y.taps.count), loopVar('kx', x.taps.count)]
    return {
      loops: [c, ky, kx],
      depth: [
        [c, area * this.#tile.quad],
        [ky, x.taps.count * this.#tile.quad],
        [kx, this.#tile.quad],
      ],
    }
  }

  /** [quad][depth][column], where no quad goes from a row to the next. */
  #gatherRows(part: Part, block: LoopVar): readonly Stmt[] {
    const { y, x, depth, rowStride } = part
    const { row, col } = this.#planes
    const rows = this.#rows(part)
    const [oy, x0, q] = [loopVar('oy', rows), loopVar('x0', rowStride, this.#tile.quad), loopVar('q', this.#tile.quad)]
    const {
      loops: [c, ky, kx],
      depth: terms,
    } = this.#window(part)
    const { start, terms: tap } = this.#tap(y.taps, x.taps, c, ky, kx)
    const pixel = from(start, ...this.#ofBlock(part, block), [oy, y.read * row], [x0, x.read * col], [q, x.read * col], ...tap)
    const place = from(0, [this.#inner, rows * rowStride * depth], [oy, rowStride * depth], [x0, depth], ...terms, [q, 1])
    const move = forLoop(q, 'lanes', [store(this.#windows, place, load(this.#planes.memory, pixel))])
    return this.#gathered([this.#inner, oy, x0, c], this.#overTaps(ky, kx, [move]))
  }

  #gathered(loops: readonly LoopVar[], body: readonly Stmt[]): readonly Stmt[] {
    return (this.#sharesFeatures ? shared : serial)(loops, body)
  }

  /** Where the pixel of each column of a block lies, from the pixel of the first one. */
  #writeTable(part: Part): readonly Stmt[] {
    const { y, x } = part
    const { image, row, col } = this.#planes
    const rows = this.#rows(part)
    const [oy, ox] = [loopVar('oy', rows), loopVar('ox', x.count)]
    const times = (loop: LoopVar, stride: number): Expr => call('mul', iota(loop), sizeOf(stride))
    const sum = [times(this.#inner, image), times(oy, y.read * row), times(ox, x.read * col)].reduce((a, b) => call('add', a, b))
    const place = from(0, [this.#inner, rows * x.count], [oy, x.count], [ox, 1])
    const tail = loopVar('tail', this.#quadColumns(part) - this.#together * rows * x.count)
    const zero = store(this.#table, from(this.#together * rows * x.count, [tail, 1]), constant('int32', 0))
    return [
      ...nest('serial', [this.#inner, oy, ox], [store(this.#table, place, sum)]),
      ...(tail.extent === 0 ? [] : [forLoop(tail, 'serial', [zero])]),
    ]
  }

  /** [quad][depth][column], of neighbouring columns. */
  #gatherColumns(part: Part, block: LoopVar): readonly Stmt[] {
    const { y, x, depth } = part
    const n = loopVar('n', this.#quadColumns(part), this.#tile.quad)
    const {
      loops: [c, ky, kx],
      depth: terms,
    } = this.#window(part)
    const { start, terms: tap } = this.#tap(y.taps, x.taps, c, ky, kx)
    const outer: Terms =
      this.#copy === null ? [[this.#outer, this.#planes.image], ...this.#ofGroup(this.#p.sizes.channels * this.#planes.channel)] : []
    const offsets = Array.from({ length: this.#tile.quad }, (_, i) => local(`offset${i}`, 'int32'))
    const moves = offsets.map((offset, i) => {
      const pixel: Index = { ...from(start, ...outer, [block, y.read * this.#planes.row], ...tap), dynamic: [{ value: read(offset), stride: 1 }] }
      return store(this.#windows, from(i, [n, depth], ...terms), load(this.#planes.memory, pixel))
    })
    const declared = offsets.map((offset, i) => declare(offset, load(this.#table, from(i, [n, 1]))))
    return this.#gathered([n], [...declared, ...nest('serial', [c], this.#overTaps(ky, kx, moves, WRITTEN_OUT_COLUMNS))])
  }

  // ---- products ----

  #product(part: Part, block: LoopVar): readonly Stmt[] {
    const { features } = this.#p.sizes
    const rows = this.#rowsOf(part)
    const whole = down(features, rows)
    return [...this.#features(part, block, 0, whole, rows), ...this.#features(part, block, whole, features - whole, features - whole)]
  }

  /** `count` features from `first` on, `rows` at a time: their sums over the columns of the block, and then the epilogue. */
  #features(part: Part, block: LoopVar, first: number, count: number, rows: number): readonly Stmt[] {
    if (count === 0) return []
    const { depth } = part
    const [columns, quads] = [this.#columns(part), this.#quads(part)]
    const [f, n] = [loopVar('f', count, rows), loopVar('n', columns, this.#tile.quad * quads)]
    const [r, h, q] = [loopVar('r', rows), loopVar('h', quads), loopVar('q', this.#tile.quad)]
    const sums = localArray('sum', 'float32', [rows, quads, this.#tile.quad])
    const { weights, places, over } = this.#alongDepth(part, first, [f, r])
    const windows = load(this.#windows, at([n, depth], [h, this.#tile.quad * depth], ...places, [q, 1]))
    const overTile = (body: readonly Stmt[]): readonly Stmt[] => nest('unroll', [r, h], [forLoop(q, 'lanes', body)])
    const product = [
      declareArray(sums, constant('float32', 0)),
      ...over(overTile([setElement(sums, [r, h, q], call('mulAdd', weights, windows, element(sums, r, h, q)))])),
      ...overTile([store(this.#sums, at([r, columns], [n, 1], [h, this.#tile.quad], [q, 1]), element(sums, r, h, q))]),
    ]
    const one = loopVar('line', rows)
    return [
      forLoop(f, this.#sharesFeatures ? 'parallel' : 'serial', [
        forLoop(n, 'serial', product),
        ...this.#epilogue(part, block, one, from(first, [f, 1], [one, 1]), (terms) => load(this.#sums, at([one, columns], ...terms))),
      ]),
    ]
  }

  /** The weights of the feature at `first` and the loops `features` along the depth, where the windows' elements lie, and the loops over both. */
  #alongDepth(part: Part, first: number, features: readonly [LoopVar, LoopVar]): AlongDepth {
    const { weight } = this.#p
    const { depth } = part
    if (this.#packed === null && !this.#isDeep) {
      const { loops, depth: places } = this.#window(part)
      const [c, ky, kx] = loops
      return { weights: this.#weight(part, first, features, loops), places, over: (body) => nest('serial', [c], this.#overTaps(ky, kx, body)) }
    }
    const k = loopVar('k', depth)
    const line = this.#packed === null ? weight.outer : depth
    const rows: Terms = [...along(ones(...features), line), [k, 1]]
    const weights =
      this.#packed === null
        ? load(weight.buffer, from(weight.start + first * line, ...this.#weightsOfGroup, ...rows))
        : load(this.#packed, from(part.weights + first * line, ...rows))
    return { weights, places: [[k, this.#tile.quad]], over: (body) => [forLoop(k, 'serial', body)] }
  }

  // ---- results ----

  /** The epilogue for the features `feature` of the loop `line`. `sum` gives the sum at a column. */
  #epilogue(part: Part, block: LoopVar, line: LoopVar, feature: Index, sum: (column: Terms) => Expr): readonly Stmt[] {
    const { features, pixels, images, epilogue, sizes } = this.#p
    const { y, x, rowStride } = part
    const rows = this.#rows(part)
    const isRun = rowStride === x.count && y.step === 1 && x.step === 1
    const [oy, ox] = [loopVar('oy', isRun ? 1 : rows), loopVar('ox', isRun ? rows * x.count : x.count)]
    const value = sum([
      [this.#inner, rows * rowStride],
      [oy, rowStride],
      [ox, 1],
    ])
    const places = new Map([
      [images, from(0, ...this.#ofImages(1))],
      [features, { ...feature, terms: [...feature.terms, ...at(...this.#ofGroup(sizes.features)).terms] }],
      [pixels, from(y.first * sizes.outWidth + x.first, [block, y.step * sizes.outWidth], [oy, y.step * sizes.outWidth], [ox, x.step])],
    ])
    return nest('serial', [line, this.#inner, oy], [forLoop(ox, 'simd', substituted(epilogue(value), places))])
  }
}
