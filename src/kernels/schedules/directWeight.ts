// The gradient of a convolution's weight as a product over pixels, for any window, stride, dilation and number of groups: each element sums gradient[feature, pixel] * image[channel, pixel moved by its place in
// the window]. Lanes run along channels, which are neighbours in a copy of the images with a border of zeros: no window is laid out.
//
// Channels are copied in panels of eight, as many as stay in the cache. Of the rest, fewer than eight, those of all rows of the window lie side by side, so that the elements of a window are neighbours. Gradients are
// read where they lie. Threads share the features: each takes some, has their sums in scratch memory of its own while panels, images and blocks of rows of pixels pass by, and writes their weights one after the other.
// Where not even the images of one panel stay in the cache, they come some at a time, and the sums of all features are kept. Where there are many groups, threads share these.
import { present } from '../../errors/index.ts'
import { call, constant, declareArray, element, forLoop, load, localArray, loopVar, scratch, setElement, store } from '../ir/loopIr.ts'
import type { Expr, Index, Kernel, LoopVar, Scratch, Size, Stmt } from '../ir/loopIr.ts'
import { sizeProduct, sizeSum } from '../ir/sizes.ts'
import { BorderedImages } from './borderedImages.ts'
import type { ConvolutionSizes } from './convolution.ts'
import { machineTiles } from './machineTiles.ts'
import { QUAD, along, down, from, halved, largestDivisor, nest, ones, serial, shared, turned, up } from './notation.ts'
import type { Strides, Terms } from './notation.ts'
import { paddedParts, wholeParts } from './panels.ts'
import type { Part } from './panels.ts'
import type { Schedule } from './schedule.ts'
import { substituted } from './substitute.ts'
import { LANES, withoutSkippedPixels } from './weightSums.ts'
import type { DirectWeightProblem } from './weightSums.ts'

const BYTES = 4
/** Elements of the register tile in lanes: wider ones are for machine code. */
const COLUMNS = 8
/** With as many groups, threads share these, not the features of one. */
const GROUPS_TO_SHARE = 4

interface WeightTile {
  /** Features by elements of the window of the register tile. */
  readonly rows: number
  readonly columns: number
  /** Pixels whose products are added up in registers: of several images where these have few, or of some rows of one, unless these would have too few. */
  readonly mostPixels: number
  readonly leastPixels: number
  readonly pixelsOfImages: number
  /** The limit for the images that are copied at a time: some panels of channels of all images, or else one panel of some. */
  readonly copiedBytes: number
}

/** Whether the schedule computes the gradient of such a convolution's weight. */
export const takesDirectWeight = (s: ConvolutionSizes): boolean =>
  [s.batch, s.channels, s.features, s.outHeight, s.outWidth, s.kernelHeight, s.kernelWidth].every((size) => size > 0)

/** The schedule of the gradient of a convolution's weight as a product over pixels. */
export const directWeight: Schedule<DirectWeightProblem, DirectWeightProblem, WeightTile> = {
  name: 'direct weight gradient',
  match: ({ sizes }) => takesDirectWeight(sizes),
  spec: (problem) => ({ ...problem, ...withoutSkippedPixels(problem) }),
  tiles: (engine) => [
    { rows: 4, columns: COLUMNS, ...machineTiles(engine).weight, mostPixels: 512, leastPixels: 64, pixelsOfImages: 128, copiedBytes: 256 * 1024 },
  ],
  build: (problem, tile) => new DirectWeight(problem, tile).kernel(),
}

/** Channels from `first` on, in panels of `width` of them. */
interface Channels {
  readonly first: number
  readonly width: number
  /** The loop over panels that are copied at a time, and inside of it that over panels. */
  readonly panels: LoopVar
  readonly panel: LoopVar
  /** The loop over images that are copied at a time. */
  readonly images: LoopVar
  readonly memories: readonly Scratch[]
  readonly clear: readonly Stmt[]
  readonly copy: readonly Stmt[]
  /** The sums: of the features of a tile, or of all where `keepsSums` says so. */
  readonly sumsIn: Scratch
  readonly keepsSums: boolean
  /** Where the first element of a window is in the last memory: by image, and by row and column of the result. */
  readonly image: (image: Strides) => Strides
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
  /** The loop over the images that were copied, as many at a time as are added up in registers. */
  readonly some: LoopVar
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
  /** Whether threads share the groups. */
  readonly #sharesGroups: boolean
  /** The loops over images whose products are added up in registers, of those that are copied at a time, and over rows of pixels of which they are. */
  readonly #inner: LoopVar
  readonly #block: LoopVar
  readonly #channels: readonly Channels[]
  readonly #lanes: Scratch | null
  readonly #weights: Scratch | null

  constructor(problem: DirectWeightProblem, tile: WeightTile) {
    const { sizes, order, groups } = problem
    const { batch, channels, outHeight, outWidth } = sizes
    this.#p = problem
    const isWhole = (columns: number): boolean => channels < COLUMNS || down(channels, columns) === down(channels, COLUMNS)
    this.#tile = { ...tile, columns: halved(tile.columns, COLUMNS, isWhole) }
    this.#group = groups === 1 ? null : loopVar('group', groups)
    this.#sharesGroups = groups >= GROUPS_TO_SHARE
    const together = order?.images ?? largestDivisor(batch, (n) => n * outHeight * outWidth <= tile.pixelsOfImages)
    const rows = largestDivisor(outHeight, (n) => n * outWidth <= tile.mostPixels)
    this.#inner = loopVar('inner', together)
    this.#block = loopVar('block', outHeight, order !== null || rows * outWidth < tile.leastPixels ? outHeight : rows)
    const whole = down(channels, this.#tile.columns)
    this.#channels = [...(whole === 0 ? [] : [this.#whole(whole)]), ...(whole === channels ? [] : [this.#rest(whole, channels - whole)])]
    const lanes = order?.lanes ?? 1
    this.#lanes = lanes === 1 ? null : scratch('lanes', 'float32', lanes * tile.rows * this.#tile.columns, 'thread')
    this.#weights = this.#area === 1 ? null : scratch('weights', 'float32', Math.min(channels, this.#tile.columns) * this.#area, 'thread')
  }

  get #area(): number {
    const { kernelHeight, kernelWidth } = this.#p.sizes
    return kernelHeight * kernelWidth
  }

  /** What all threads read, unless they share groups. */
  #ofCall(name: string, elements: number): Scratch {
    return scratch(name, 'float32', elements, this.#sharesGroups ? 'thread' : 'call')
  }

  #shared(loops: readonly LoopVar[], body: readonly Stmt[]): readonly Stmt[] {
    return this.#sharesGroups ? serial(loops, body) : shared(loops, body)
  }

  #ofGroup(stride: number): Terms {
    return this.#group === null ? [] : [[this.#group, stride]]
  }

  /** The pixels of an image that windows reach, from the first column and row on. */
  get #reach(): { readonly tall: number; readonly wide: number } {
    const { outHeight, outWidth, strideH, strideW, kernelHeight, kernelWidth, dilationH, dilationW } = this.#p.sizes
    return {
      tall: (outHeight - 1) * strideH + (kernelHeight - 1) * dilationH + 1,
      wide: (outWidth - 1) * strideW + (kernelWidth - 1) * dilationW + 1,
    }
  }

  /** The loops over panels of `width` of `count` channels and over images, as many of each at a time as stay in the cache where one takes that many elements. */
  #loops(count: number, width: number, elements: number): Pick<Channels, 'panels' | 'panel' | 'images'> {
    const { batch } = this.#p.sizes
    const together = Number(this.#inner.extent)
    const fits = (panels: number, images: number): boolean => panels * images * elements * BYTES <= this.#tile.copiedBytes
    const panels = largestDivisor(count / width, (n) => fits(n, batch))
    const images = together * largestDivisor(batch / together, (n) => fits(panels, n * together))
    return {
      panels: loopVar('panels', count, panels * width),
      panel: loopVar('panel', panels * width, width),
      images: loopVar('images', batch, images),
    }
  }

  /** Where sums lie: of all features where images come some at a time. */
  #sumsOf(name: string, count: number, images: LoopVar): Pick<Channels, 'sumsIn' | 'keepsSums' | 'count'> {
    const { features, batch } = this.#p.sizes
    const keepsSums = images.step < batch
    return {
      sumsIn: keepsSums ? this.#ofCall(name, features * count) : scratch(name, 'float32', this.#tile.rows * count, 'thread'),
      keepsSums,
      count,
    }
  }

  /** Channels from `first` on of the images, with all that windows reach. */
  #images(name: string, first: number, width: number, { panels, panel, images }: Pick<Channels, 'panels' | 'panel' | 'images'>): BorderedImages {
    const { sizes, image } = this.#p
    const { padH, padW } = sizes
    const { tall, wide } = this.#reach
    const seen = { height: Math.min(sizes.height, tall - padH), width: Math.min(sizes.width, wide - padW), padH, padW }
    const several = [panels, panel].filter(({ extent, step }) => extent !== step)
    const outer: Terms = [[images, image.outer], ...along(ones(...several), image.channel), ...this.#ofGroup(sizes.channels * image.channel)]
    const source = { ...image, start: image.start + first * image.channel }
    const copied = {
      channels: width,
      ...seen,
      outer,
      image: source,
      multiple: 1,
      together: loopVar('image', images.step),
      ...(several.includes(panel) ? { panel } : {}),
    }
    return new BorderedImages(copied, tall, wide, name, this.#sharesGroups ? 'thread' : 'call')
  }

  /** Channels that fill a register tile: each place in the window is a run. */
  #whole(count: number): Channels {
    const { strideH, strideW, dilationH, dilationW, kernelHeight, kernelWidth } = this.#p.sizes
    const width = this.#tile.columns
    const { tall, wide } = this.#reach
    const loops = this.#loops(count, width, tall * wide * width)
    const [ky, kx] = [loopVar('ky', kernelHeight), loopVar('kx', kernelWidth)]
    const images = this.#images('bordered', 0, width, loops)
    const line = images.width * width
    return {
      ...{
        first: 0,
        width,
        ...loops,
        memories: [images.memory],
        clear: images.clear(),
        copy: images.copy(this.#sharesGroups ? 'serial' : 'parallel'),
      },
      ...{ image: (image) => images.placeOf(image), pixelRow: strideH * line, pixelCol: strideW * width },
      ...this.#sumsOf('sums', kernelHeight * kernelWidth * width, loops.images),
      ...{ runs: [ky, kx], tiles: wholeParts(width, [width]), row: kernelWidth * width, col: width },
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
    const kx = loopVar('kx', kernelWidth)
    const { tall, wide } = this.#reach
    const high = kernelHeight * width
    const line = wide * high
    const loops = this.#loops(width, width, tall * wide * width + outHeight * line)
    const images = this.#images('rest', first, width, loops)
    // The last tile of a run may end behind the last element.
    const rows = this.#ofCall('rows', loops.images.step * outHeight * line + most)
    const isWindow = dilationW === 1
    const length = isWindow ? kernelWidth * high : high
    // Beside whole channels, a narrower tile for what is left would be too much code.
    const tiles = first === 0 ? paddedParts(length, most) : [{ first: 0, extent: length, width: length <= QUAD ? QUAD : most, padded: true }]
    const all = up(length, first === 0 || length <= QUAD ? QUAD : most)
    const [image, y, x, ky, c] = [
      loopVar('image', loops.images.step),
      loopVar('y', outHeight),
      loopVar('x', wide),
      loopVar('ky', kernelHeight),
      loopVar('c', width),
    ]
    const row = wide * width
    const pixel = load(images.memory, from(0, ...images.placeOf([[image, 1]]), [y, strideH * row], [x, width], [ky, dilationH * row], [c, 1]))
    const move = store(rows, from(0, [image, outHeight * line], [y, line], [x, high], [ky, width], [c, 1]), pixel)
    return {
      ...{ first, width, ...loops, memories: [images.memory, rows], clear: images.clear() },
      copy: [
        ...images.copy(this.#sharesGroups ? 'serial' : 'parallel'),
        ...this.#shared([image, y], serial([x, ky], [forLoop(c, 'unroll', [move])])),
      ],
      ...{ image: (image) => image.map(([loop, stride]) => [loop, stride * outHeight * line]), pixelRow: line, pixelCol: strideW * high },
      ...this.#sumsOf('restSums', isWindow ? all : kernelWidth * all, loops.images),
      ...{ runs: isWindow ? [] : [kx], tiles, row: width, col: isWindow ? high : all },
      ...{ pixels: isWindow ? [] : [[kx, dilationW * high]], sums: isWindow ? [] : [[kx, all]] },
    }
  }

  kernel(): Kernel {
    const { name, params } = this.#p
    const own = [this.#lanes, this.#weights].filter((memory) => memory !== null)
    const body = this.#channels.flatMap((one) => this.#ofChannels(one))
    return {
      name,
      params,
      scratch: [...this.#channels.flatMap(({ memories, sumsIn }) => [...memories, sumsIn]), ...own],
      body: this.#group === null ? body : nest(this.#sharesGroups ? 'parallel' : 'serial', [this.#group], body),
    }
  }

  /** Whether one block has all pixels, so that what it comes to are the sums. */
  get #isOnce(): boolean {
    const { batch, outHeight } = this.#p.sizes
    return this.#inner.extent === batch && this.#block.step === outHeight
  }

  #ofChannels(channels: Channels): readonly Stmt[] {
    const { clear, copy, panels, panel, images, keepsSums } = channels
    const overFeatures = (body: (features: Part, feature: LoopVar) => readonly Stmt[]): readonly Stmt[] => {
      const { features } = this.#p.sizes
      const { rows } = this.#tile
      return wholeParts(features, [rows, features % rows]).flatMap((part) => {
        const feature = loopVar('f', part.extent, part.width)
        return this.#shared([feature], serial([panel], body(part, feature)))
      })
    }
    const clearSums = this.#isOnce ? [] : this.#clearSums(channels)
    const block = (part: Part, feature: LoopVar): readonly Stmt[] => this.#products(channels, part, feature)
    const finish = (part: Part, feature: LoopVar): readonly Stmt[] => this.#finish(channels, part, feature)
    const all = keepsSums
      ? [...clearSums, forLoop(images, 'serial', [...copy, ...overFeatures(block)]), ...overFeatures(finish)]
      : [forLoop(images, 'serial', [...copy, ...overFeatures((part, feature) => [...clearSums, ...block(part, feature), ...finish(part, feature)])])]
    return [...clear, forLoop(panels, 'serial', all)]
  }

  #clearSums({ sumsIn }: Channels): readonly Stmt[] {
    const i = loopVar('i', sumsIn.elements)
    return [forLoop(i, 'simd', [store(sumsIn, from(0, [i, 1]), constant('float32', 0))])]
  }

  // ---- products ----

  /** Adds the products of the images that were copied to the sums of some features. */
  #products(channels: Channels, features: Part, feature: LoopVar): readonly Stmt[] {
    const some = loopVar('some', channels.images.step, Number(this.#inner.extent))
    const tiles = channels.tiles.map((elements) => {
      const e0 = loopVar('e0', elements.extent, elements.width)
      return forLoop(e0, 'serial', this.#addProducts(channels, { some, features, feature, elements, element: e0 }))
    })
    return serial([some, this.#block, ...channels.runs], tiles)
  }

  /** Where the sums of a feature of a tile begin. */
  #sumsOfFeature({ count, keepsSums }: Channels, { first }: Part, feature: LoopVar, r: LoopVar): { readonly start: Size; readonly terms: Terms } {
    return keepsSums ? { start: sizeProduct(first, count), terms: along(ones(feature, r), count) } : { start: 0, terms: along(ones(r), count) }
  }

  /** Adds the products of a block to the sums of a tile. */
  #addProducts(channels: Channels, tile: RunningTile): readonly Stmt[] {
    const { features, feature, elements, element: e0 } = tile
    const { sums: ofRun, sumsIn } = channels
    const columns = elements.width
    const [r, e] = [loopVar('r', features.width), loopVar('e', columns)]
    const array = localArray('sum', 'float32', [features.width, columns])
    const sum = element(array, r, e)
    const overTile = (stmt: Stmt): Stmt => forLoop(r, 'unroll', [forLoop(e, 'lanes', [stmt])])
    const products = (lane: LoopVar | null): readonly Stmt[] => {
      const pixels = this.#pixels(lane)
      const product = call('mulAdd', this.#gradient(channels, tile, r, pixels), this.#image(channels, tile, e, pixels), sum)
      return [
        declareArray(array, constant('float32', 0)),
        ...nest('serial', [this.#inner, pixels.y, pixels.x], [overTile(setElement(array, [r, e], product))]),
      ]
    }
    const { start, terms } = this.#sumsOfFeature(channels, features, feature, r)
    const place = from(sizeSum(start, elements.first), ...terms, ...ofRun, [e0, 1], [e, 1])
    const keep = (value: Expr): Stmt => overTile(store(sumsIn, place, this.#isOnce ? value : call('add', load(sumsIn, place), value)))
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

  #gradient({ images }: Channels, { some, features, feature }: RunningTile, r: LoopVar, { rows, columns }: Pixels): Expr {
    const { start, buffer, outer, channel, row, col } = this.#p.gradient
    const index = from(
      sizeSum(start, sizeProduct(features.first, channel)),
      ...along(ones(images, some, this.#inner), outer),
      ...along([...this.#ofGroup(this.#p.sizes.features), ...ones(feature, r)], channel),
      ...along(rows, row),
      ...along(columns, col),
    )
    return load(buffer, index)
  }

  #image(
    { memories, image, pixelRow, pixelCol, pixels }: Channels,
    { some, elements, element: e0 }: RunningTile,
    e: LoopVar,
    { rows, columns }: Pixels,
  ): Expr {
    const memory = present(memories.at(-1), 'a copy of the images')
    const ofImage = image([
      [some, 1],
      [this.#inner, 1],
    ])
    return load(memory, from(elements.first, ...ofImage, ...along(rows, pixelRow), ...along(columns, pixelCol), ...pixels, ...ones(e0, e)))
  }

  // ---- results ----

  /** The weights of a panel for some features, one after the other, and the epilogue. */
  #finish(channels: Channels, part: Part, feature: LoopVar): readonly Stmt[] {
    const { features, elements, epilogue, sizes } = this.#p
    const { first, panels, panel, width, sumsIn } = channels
    const [r, area] = [loopVar('r', part.width), this.#area]
    const i = loopVar('i', area * width)
    const weights = this.#weights
    const places = new Map([
      [features, from(part.first, ...this.#ofGroup(sizes.features), ...ones(feature, r))],
      [elements, from(first * area, ...along(ones(panels, panel), area), [i, 1])],
    ])
    const results = (sum: Expr): Stmt => forLoop(i, 'simd', substituted(epilogue(sum), places))
    const { start, terms } = this.#sumsOfFeature(channels, part, feature, r)
    const sum = (base: number, ...place: Terms): Expr => load(sumsIn, from(sizeSum(start, base), ...terms, ...place))
    if (weights === null) return serial([r], [results(sum(0, [i, 1]))])
    return serial([r], [...this.#turn(channels, part.width === this.#tile.rows, weights, sum), results(load(weights, from(0, [i, 1])))])
  }

  /** Brings the sums of a feature, whose channels are neighbours, in the order of the weights: by blocks of 4x4, unless channels or features fill no tile, which would be too much code. */
  #turn({ runs, width, row, col }: Channels, isWhole: boolean, weights: Scratch, sum: (base: number, ...place: Terms) => Expr): readonly Stmt[] {
    const { kernelHeight, kernelWidth } = this.#p.sizes
    const area = this.#area
    const [ky, kx, lane] = [loopVar('ky', kernelHeight), loopVar('kx', kernelWidth), loopVar('c', width)]
    const byLanes = (base: number, to: Terms, value: Expr): Stmt => forLoop(lane, 'lanes', [store(weights, from(base, [lane, area], ...to), value)])
    const place = along(ones(ky), kernelWidth)
    if (runs.length < 2) return serial([ky, kx], [byLanes(0, [...place, ...ones(kx)], sum(0, [ky, row], [kx, col], [lane, 1]))])
    const inBlocks = isWhole ? down(area, QUAD) : 0
    const [k0, c0, left] = [loopVar('k0', inBlocks, QUAD), loopVar('c0', width, QUAD), loopVar('left', area - inBlocks)]
    const blocks = turned(
      (k, c) => sum(0, ...along(ones(k0, k), width), ...ones(c0, c)),
      (k, c, value) => store(weights, from(0, ...along(ones(c0, c), area), ...ones(k0, k)), value),
    )
    return [
      ...(inBlocks === 0 ? [] : serial([k0, c0], blocks)),
      ...(left.extent === 0 ? [] : serial([left], [byLanes(inBlocks, ones(left), sum(inBlocks * width, [left, width], [lane, 1]))])),
    ]
  }
}
