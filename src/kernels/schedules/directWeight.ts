// The gradient of a convolution's weight as a product over pixels, for any window, stride, dilation and number of groups: each element sums gradient[feature, pixel] * image[channel, pixel moved by its place in
// the window]. Lanes run along channels, which are neighbours in a copy of the images with a border of zeros: no window is laid out.
//
// Eight channels are copied at a time. Of the rest, fewer than eight, those of all rows of the window lie side by side, so that the elements of a window are neighbours. Gradients are read where they lie. The sums of
// these channels stay in the cache while images and blocks of rows of pixels pass by.
import { present } from '../../errors/index.ts'
import { touches64Bits } from '../ir/analysis.ts'
import { call, constant, declareArray, element, forLoop, load, localArray, loopVar, scratch, setElement, store } from '../ir/loopIr.ts'
import type { Expr, Index, Kernel, LoopVar, Scratch, Stmt } from '../ir/loopIr.ts'
import { sizeProduct, sizeSum } from '../ir/sizes.ts'
import { BorderedImages } from './borderedImages.ts'
import type { ConvolutionOperand, ConvolutionSizes, WeightGradientProblem } from './convolution.ts'
import { machineTiles } from './machineTiles.ts'
import { QUAD, along, down, from, halved, largestDivisor, nest, ones, up } from './notation.ts'
import type { Terms } from './notation.ts'
import { paddedParts, wholeParts } from './panels.ts'
import type { Part } from './panels.ts'
import type { Schedule } from './schedule.ts'
import { substituted } from './substitute.ts'

const LANES = 4
/** Elements of the register tile in lanes: wider ones are for machine code. */
const COLUMNS = 8
/** The largest window whose sums have lanes in strict code, and the limit for the images of such a sum. */
const MOST_IN_LANES = 25
const BYTES_IN_LANES = 128 * 1024

/** The order in which a sum adds its products: those of `images` images and of every `lanes`-th pixel of a row one after the other, then the sums of the lanes in halves, then what the next images come to. */
export interface SumOrder {
  readonly images: number
  readonly lanes: 1 | typeof LANES
}

/** The gradient of the weight of a convolution with groups. `features` counts those of all groups. */
export interface DirectWeightProblem extends WeightGradientProblem {
  /** The number of groups, each of which has `sizes.channels` channels and `sizes.features` features of its own. */
  readonly groups: number
  /** Null for any order. */
  readonly order: SumOrder | null
}

interface WeightTile {
  /** Features by elements of the window of the register tile. */
  readonly rows: number
  readonly columns: number
  /** Pixels whose products are added up in registers: of several images where these have few, or of some rows of one, unless these would have too few. */
  readonly mostPixels: number
  readonly leastPixels: number
  readonly pixelsOfImages: number
}

/** Whether the schedule computes the gradient of such a convolution's weight. */
export const takesDirectWeight = (s: ConvolutionSizes): boolean =>
  [s.batch, s.channels, s.features, s.outHeight, s.outWidth, s.kernelHeight, s.kernelWidth].every((size) => size > 0)

/** The schedule of the gradient of a convolution's weight as a product over pixels. */
export const directWeight: Schedule<DirectWeightProblem, DirectWeightProblem, WeightTile> = {
  name: 'direct weight gradient',
  match: ({ sizes }) => takesDirectWeight(sizes),
  spec: (problem) => ({ ...problem, ...withoutSkippedPixels(problem) }),
  tiles: (engine) => [{ rows: 4, columns: COLUMNS, ...machineTiles(engine).weight, mostPixels: 512, leastPixels: 64, pixelsOfImages: 128 }],
  build: (problem, tile) => new DirectWeight(problem, tile).kernel(),
}

/** The order of sums that strict compiled code has always had: in lanes where rows of pixels are whole vectors that windows of few elements read one by one. */
export function strictOrder({ sizes, groups, image, gradient, epilogue }: Omit<DirectWeightProblem, 'order'>): SumOrder {
  const { batch, channels, features, outHeight, outWidth, kernelHeight, kernelWidth, strideH, strideW, dilationH, dilationW } = sizes
  const isRun = groups === 1 && image.col === 1 && gradient.col === 1 && gradient.row === outWidth
  const isDense = strideH === 1 && strideW === 1 && dilationH === 1 && dilationW === 1
  if (!isRun || !isDense || outWidth % LANES !== 0 || kernelHeight * kernelWidth > MOST_IN_LANES || touches64Bits(epilogue(constant('float32', 0))))
    return { images: 1, lanes: 1 }
  const copied = channels * (outHeight + kernelHeight - 1) * (outWidth + kernelWidth - 1)
  const bytes = 4 * (copied + up(features, 4) * outHeight * outWidth)
  return { images: largestDivisor(batch, (images) => images * bytes <= BYTES_IN_LANES), lanes: LANES }
}

/** Where the window has one row or column and no border, the problem of an image that has only the pixels that are read. */
function withoutSkippedPixels({ sizes, image }: WeightGradientProblem): { readonly sizes: ConvolutionSizes; readonly image: ConvolutionOperand } {
  const [rows, cols] = [sizes.kernelHeight === 1 && sizes.padH === 0, sizes.kernelWidth === 1 && sizes.padW === 0]
  return {
    sizes: {
      ...sizes,
      ...(rows ? { height: sizes.outHeight, strideH: 1 } : {}),
      ...(cols ? { width: sizes.outWidth, strideW: 1 } : {}),
    },
    image: { ...image, row: image.row * (rows ? sizes.strideH : 1), col: image.col * (cols ? sizes.strideW : 1) },
  }
}

/** Channels that are copied at a time: `width` of them, from the one at `first` + `panel` on. */
interface Channels {
  readonly first: number
  readonly panel: LoopVar
  readonly width: number
  readonly memories: readonly Scratch[]
  readonly clear: readonly Stmt[]
  readonly copy: readonly Stmt[]
  /** Where the first element of a window is in the last memory: by image, and by row and column of the result. */
  readonly image: number
  readonly pixelRow: number
  readonly pixelCol: number
  /** Elements of the weight that are neighbours in the copy: one run for each iteration of `runs`, in register tiles of some of them. */
  readonly runs: readonly LoopVar[]
  readonly tiles: readonly Part[]
  /** Where runs begin in the copy, and in the sums of a feature, of which there are `count`. */
  readonly pixels: Terms
  readonly sums: Terms
  readonly count: number
  /** From one sum to that of the next row, and of the next column of the window. */
  readonly row: number
  readonly col: number
}

/** A register tile: some features from `feature` on, by some elements of a run. */
interface RunningTile {
  readonly features: Part
  readonly feature: LoopVar
  readonly elements: Part
  readonly element: LoopVar
}

/** The loops over the pixels of a block, along a side and inside a lane, and what the row and the column of a pixel are. */
interface Pixels {
  readonly y: LoopVar
  readonly x: LoopVar
  readonly rows: Terms
  readonly columns: Terms
}

class DirectWeight {
  readonly #p: DirectWeightProblem
  readonly #tile: WeightTile
  /** The loop over groups; null for one. */
  readonly #group: LoopVar | null
  /** The loops over images, `inner` over those that are copied at a time, and over rows of pixels whose products are added up in registers. */
  readonly #outer: LoopVar
  readonly #inner: LoopVar
  readonly #block: LoopVar
  readonly #channels: readonly Channels[]
  readonly #sums: Scratch
  readonly #lanes: Scratch | null
  readonly #weights: Scratch | null

  constructor(problem: DirectWeightProblem, tile: WeightTile) {
    const { sizes, order, groups } = problem
    const { batch, channels, features, outHeight, outWidth } = sizes
    this.#p = problem
    const isWhole = (columns: number): boolean => channels < COLUMNS || down(channels, columns) === down(channels, COLUMNS)
    this.#tile = { ...tile, columns: halved(tile.columns, COLUMNS, isWhole) }
    this.#group = groups === 1 ? null : loopVar('group', groups)
    const together = order?.images ?? largestDivisor(batch, (n) => n * outHeight * outWidth <= tile.pixelsOfImages)
    const rows = largestDivisor(outHeight, (n) => n * outWidth <= tile.mostPixels)
    ;[this.#outer, this.#inner] = [loopVar('images', batch, together), loopVar('image', together)]
    this.#block = loopVar('block', outHeight, order !== null || rows * outWidth < tile.leastPixels ? outHeight : rows)
    const whole = down(channels, this.#tile.columns)
    this.#channels = [...(whole === 0 ? [] : [this.#whole(whole)]), ...(whole === channels ? [] : [this.#rest(whole, channels - whole)])]
    this.#sums = scratch('sums', 'float32', features * Math.max(...this.#channels.map(({ count }) => count)))
    const lanes = order?.lanes ?? 1
    this.#lanes = lanes === 1 ? null : scratch('lanes', 'float32', lanes * tile.rows * this.#tile.columns, 'thread')
    this.#weights = this.#area === 1 ? null : scratch('weights', 'float32', Math.min(channels, this.#tile.columns) * this.#area)
  }

  get #area(): number {
    const { kernelHeight, kernelWidth } = this.#p.sizes
    return kernelHeight * kernelWidth
  }

  #ofGroup(stride: number): Terms {
    return this.#group === null ? [] : [[this.#group, stride]]
  }

  /** The images' channels from `first` on, with all that windows reach, `width` of them at a time. */
  #images(first: number, width: number, panel: LoopVar): BorderedImages {
    const { sizes, image } = this.#p
    const { padH, padW } = sizes
    const tall = (sizes.outHeight - 1) * sizes.strideH + (sizes.kernelHeight - 1) * sizes.dilationH + 1
    const wide = (sizes.outWidth - 1) * sizes.strideW + (sizes.kernelWidth - 1) * sizes.dilationW + 1
    const seen = { height: Math.min(sizes.height, tall - padH), width: Math.min(sizes.width, wide - padW), padH, padW }
    const outer: Terms = [[this.#outer, image.outer], [panel, image.channel], ...this.#ofGroup(sizes.channels * image.channel)]
    const source = { ...image, start: image.start + first * image.channel }
    const copied = { channels: width, ...seen, outer, image: source, multiple: 1, together: this.#inner }
    return new BorderedImages(copied, tall, wide, first === 0 ? 'bordered' : 'rest')
  }

  /** Channels that fill a register tile: each place in the window is a run. */
  #whole(count: number): Channels {
    const { strideH, strideW, dilationH, dilationW, kernelHeight, kernelWidth } = this.#p.sizes
    const width = this.#tile.columns
    const [panel, ky, kx] = [loopVar('panel', count, width), loopVar('ky', kernelHeight), loopVar('kx', kernelWidth)]
    const images = this.#images(0, width, panel)
    const line = images.width * width
    return {
      ...{ first: 0, panel, width, memories: [images.memory], clear: images.clear(), copy: images.copy() },
      ...{ image: images.height * line, pixelRow: strideH * line, pixelCol: strideW * width },
      ...{ runs: [ky, kx], tiles: wholeParts(width, [width]), count: kernelHeight * kernelWidth * width, row: kernelWidth * width, col: width },
      pixels: [
        [ky, dilationH * line],
        [kx, dilationW * width],
      ],
      sums: [
        [ky, kernelWidth * width],
        [kx, width],
      ],
    }
  }

  /** `width` channels, fewer: a run is the window, or where columns of the window lie apart one of its columns. */
  #rest(first: number, width: number): Channels {
    const { sizes } = this.#p
    const { strideH, strideW, dilationH, dilationW, kernelHeight, kernelWidth, outHeight } = sizes
    const most = this.#tile.columns
    const [panel, kx] = [loopVar('panel', width, width), loopVar('kx', kernelWidth)]
    const images = this.#images(first, width, panel)
    const high = kernelHeight * width
    const [line, together] = [images.width * high, Number(this.#inner.extent)]
    // The last tile of a run may end behind the last element.
    const rows = scratch('rows', 'float32', together * outHeight * line + most)
    const isWindow = dilationW === 1
    const length = isWindow ? kernelWidth * high : high
    // Beside whole channels, a narrower tile for what is left would be too much code.
    const tiles = first === 0 ? paddedParts(length, most) : [{ first: 0, extent: length, width: length <= QUAD ? QUAD : most, padded: true }]
    const all = up(length, first === 0 || length <= QUAD ? QUAD : most)
    const [y, x, ky, c] = [loopVar('y', outHeight), loopVar('x', images.width), loopVar('ky', kernelHeight), loopVar('c', width)]
    const row = images.width * width
    const pixel = load(images.memory, from(0, [this.#inner, images.height * row], [y, strideH * row], [x, width], [ky, dilationH * row], [c, 1]))
    const move = store(rows, from(0, [this.#inner, outHeight * line], [y, line], [x, high], [ky, width], [c, 1]), pixel)
    return {
      ...{ first, panel, width, memories: [images.memory, rows], clear: images.clear() },
      copy: [...images.copy(), ...nest('serial', [this.#inner, y, x, ky], [forLoop(c, 'unroll', [move])])],
      ...{ image: outHeight * line, pixelRow: line, pixelCol: strideW * high },
      ...{ runs: isWindow ? [] : [kx], tiles, count: isWindow ? all : kernelWidth * all, row: width, col: isWindow ? high : all },
      ...{ pixels: isWindow ? [] : [[kx, dilationW * high]], sums: isWindow ? [] : [[kx, all]] },
    }
  }

  kernel(): Kernel {
    const { name, params } = this.#p
    const own = [this.#sums, this.#lanes, this.#weights].filter((memory) => memory !== null)
    const body = this.#channels.flatMap((channels) => this.#ofChannels(channels))
    return {
      name,
      params,
      scratch: [...this.#channels.flatMap(({ memories }) => memories), ...own],
      body: this.#group === null ? body : nest('serial', [this.#group], body),
    }
  }

  /** Whether one block has all pixels, so that what it comes to are the sums. */
  get #isOnce(): boolean {
    const { batch, outHeight } = this.#p.sizes
    return this.#outer.step === batch && this.#block.step === outHeight
  }

  #ofChannels(channels: Channels): readonly Stmt[] {
    const { clear, copy, panel } = channels
    const block = forLoop(this.#block, 'serial', this.#products(channels))
    return [
      ...clear,
      forLoop(panel, 'serial', [
        ...(this.#isOnce ? [] : this.#clearSums(channels)),
        forLoop(this.#outer, 'serial', [...copy, block]),
        ...this.#finish(channels),
      ]),
    ]
  }

  #clearSums({ count }: Channels): readonly Stmt[] {
    const i = loopVar('i', this.#p.sizes.features * count)
    return [forLoop(i, 'simd', [store(this.#sums, from(0, [i, 1]), constant('float32', 0))])]
  }

  // ---- products ----

  #products(channels: Channels): readonly Stmt[] {
    const { features } = this.#p.sizes
    const { rows } = this.#tile
    return wholeParts(features, [rows, features % rows]).map((part) => {
      const feature = loopVar('f', part.extent, part.width)
      const tiles = channels.tiles.map((elements) => {
        const e0 = loopVar('e0', elements.extent, elements.width)
        return forLoop(e0, 'serial', this.#addProducts(channels, { features: part, feature, elements, element: e0 }))
      })
      return forLoop(feature, 'parallel', nest('serial', channels.runs, tiles))
    })
  }

  /** Adds the products of a block to the sums of a tile. */
  #addProducts(channels: Channels, tile: RunningTile): readonly Stmt[] {
    const { features, feature, elements, element: e0 } = tile
    const { count, sums: ofRun } = channels
    const columns = elements.width
    const [r, e] = [loopVar('r', features.width), loopVar('e', columns)]
    const array = localArray('sum', 'float32', [features.width, columns])
    const sum = element(array, r, e)
    const overTile = (stmt: Stmt): Stmt => forLoop(r, 'unroll', [forLoop(e, 'lanes', [stmt])])
    const products = (lane: LoopVar | null): readonly Stmt[] => {
      const pixels = this.#pixels(lane)
      const product = call('mulAdd', this.#gradient(tile, r, pixels), this.#image(channels, tile, e, pixels), sum)
      return [
        declareArray(array, constant('float32', 0)),
        ...nest('serial', [this.#inner, pixels.y, pixels.x], [overTile(setElement(array, [r, e], product))]),
      ]
    }
    const start = sizeProduct(features.first, count)
    const place = from(sizeSum(start, elements.first), [feature, count], [r, count], ...ofRun, [e0, 1], [e, 1])
    const keep = (value: Expr): Stmt => overTile(store(this.#sums, place, this.#isOnce ? value : call('add', load(this.#sums, place), value)))
    const lanes = this.#lanes
    if (lanes === null) return [...products(null), keep(sum)]
    const lane = loopVar('lane', LANES)
    const all = features.width * columns
    const inLane = (base: number, ...terms: Terms): Index => from(base, ...terms, [r, columns], [e, 1])
    const half = (of: number): Expr => call('add', load(lanes, inLane(of * all)), load(lanes, inLane((of + 2) * all)))
    return [forLoop(lane, 'serial', [...products(lane), overTile(store(lanes, inLane(0, [lane, all]), sum))]), keep(call('add', half(0), half(1)))]
  }

  /** The loops over the pixels of a block, or over those of a lane. */
  #pixels(lane: LoopVar | null): Pixels {
    const { outWidth } = this.#p.sizes
    const [y, x] = [loopVar('y', this.#block.step), loopVar('x', outWidth, lane === null ? 1 : LANES)]
    return { y, x, rows: ones(this.#block, y), columns: ones(x, ...(lane === null ? [] : [lane])) }
  }

  #gradient({ features, feature }: RunningTile, r: LoopVar, { rows, columns }: Pixels): Expr {
    const { start, buffer, outer, channel, row, col } = this.#p.gradient
    const index = from(
      sizeSum(start, sizeProduct(features.first, channel)),
      ...along(ones(this.#outer, this.#inner), outer),
      ...along([...this.#ofGroup(this.#p.sizes.features), ...ones(feature, r)], channel),
      ...along(rows, row),
      ...along(columns, col),
    )
    return load(buffer, index)
  }

  #image(
    { memories, image, pixelRow, pixelCol, pixels }: Channels,
    { elements, element: e0 }: RunningTile,
    e: LoopVar,
    { rows, columns }: Pixels,
  ): Expr {
    const memory = present(memories.at(-1), 'a copy of the images')
    return load(memory, from(elements.first, [this.#inner, image], ...along(rows, pixelRow), ...along(columns, pixelCol), ...pixels, ...ones(e0, e)))
  }

  // ---- results ----

  /** The weights of some channels, feature by feature, and the epilogue. */
  #finish({ first, panel, width, count, row, col }: Channels): readonly Stmt[] {
    const { features, elements, epilogue, sizes } = this.#p
    const { kernelHeight, kernelWidth } = sizes
    const [feature, c, ky, kx] = [loopVar('feature', sizes.features), loopVar('c', width), loopVar('ky', kernelHeight), loopVar('kx', kernelWidth)]
    const area = this.#area
    const i = loopVar('i', area * width)
    const weights = this.#weights
    const places = new Map([
      [features, from(0, ...this.#ofGroup(sizes.features), [feature, 1])],
      [elements, from(first * area, [panel, area], [i, 1])],
    ])
    const results = (sum: Expr): Stmt => forLoop(i, 'simd', substituted(epilogue(sum), places))
    if (weights === null) return nest('serial', [feature], [results(load(this.#sums, from(0, [feature, count], [i, 1])))])
    const sum = load(this.#sums, from(0, [feature, count], [ky, row], [kx, col], [c, 1]))
    const turn = forLoop(c, 'lanes', [store(weights, from(0, [c, area], [ky, kernelWidth], [kx, 1]), sum)])
    return nest('serial', [feature], [...nest('serial', [ky, kx], [turn]), results(load(weights, from(0, [i, 1])))])
  }
}
