// Lines of another length, whose elements are weighted sums of a few elements of the line, four at a time; for images both dimensions in one kernel. Which elements these
// are is part of the code: those of four neighbours are loaded together, in vectors or in pairs, and shuffled into their lanes. Where they repeat themselves along the
// line, as when it doubles, the repetitions are a loop. Float32.
import { KernelError } from '../errors.ts'
import {
  at,
  bufferParam,
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
  lookup,
  loopVar,
  read,
  scratch,
  setElement,
  sizeOf,
  sizeParam,
  store,
} from '../loopIr.ts'
import type { BufferParam, Expr, Index, Kernel, Local, LocalArray, LoopVar, Memory, Scratch, Size, Stmt } from '../loopIr.ts'
import { sizeDifference, sizeProduct } from '../sizes.ts'
import { QUAD, from, ones } from './notation.ts'
import { groupsOf, periodOf } from './resampleGroups.ts'
import type { Group, LineParts, Period } from './resampleGroups.ts'
import type { Schedule } from './schedule.ts'

/** A resizing of lines, or of images: of their lines, and of what stands in rows above each other. */
export interface Resampling {
  readonly line: LineParts
  /** The first of the groups of four elements that the kernel makes, and the end: all of them, but for long lines. */
  readonly groups: readonly [start: number, end: number]
  /** For images: of how many rows a row of the result is made, whether these have weights, and whether they are put together before the lines or after them. */
  readonly rows: { readonly taps: number; readonly weighted: boolean; readonly first: boolean } | null
  /** How many lines are made together. There are as many. */
  readonly together: number
}

/** The kernel's lines, in the order of its code. */
interface ResamplingSpec extends Resampling {
  readonly made: readonly Group[]
  readonly period: Period | null
}

interface ResamplingTile {
  /** How many neighbouring groups are made of one line before the next line has its turn. */
  readonly groups: number
}

/** Elements of a group may lie in this many vectors. */
const MOST_VECTORS = 4
const MOST_TAPS = 4

/**
 * The kernel's parameters are the result, the lines and their weights; for images also the numbers of rows that rows of the result are made of, and their weights, see
 * {@link rowsInBlocks}; and then the number of lines, or those of images, their rows, and the rows of the result. There are no weights where all are 1.
 */
export const resample: Schedule<Resampling, ResamplingSpec, ResamplingTile> = {
  name: 'resample',
  match: ({ line, rows }) => {
    const { size, out, taps } = line
    if (size < QUAD || out < QUAD || taps > MOST_TAPS) return false
    const vectors = Math.max(...groupsOf(line).map((group) => group.vectors.length))
    return vectors <= (rows?.first === true ? 2 : MOST_VECTORS)
  },
  spec: (problem) => {
    const all = groupsOf(problem.line)
    const [start, end] = problem.groups
    return { ...problem, made: all.slice(start, end), period: end - start === all.length ? periodOf(all) : null }
  },
  tiles: () => [{ groups: 2 }, { groups: 3 }],
  build: (spec, tile) => new Resample(spec, tile).kernel(),
}

/** Where the elements of lines come from: rows of memory times weights, which are added up. */
interface Row {
  readonly index: Index
  readonly weight: Expr | null
}

class Resample {
  readonly #spec: ResamplingSpec
  readonly #tile: ResamplingTile
  readonly #out: BufferParam = bufferParam('out', 'float32', 'write')
  readonly #a: BufferParam = bufferParam('a', 'float32')
  readonly #weights: BufferParam | null
  readonly #positions: BufferParam = bufferParam('positions', 'int32')
  readonly #rowWeights: BufferParam | null

  constructor(spec: ResamplingSpec, tile: ResamplingTile) {
    this.#spec = spec
    this.#tile = tile
    this.#weights = spec.line.weights === null ? null : bufferParam('weights', 'float32')
    this.#rowWeights = spec.rows?.weighted === true ? bufferParam('row_weights', 'float32') : null
  }

  kernel(): Kernel {
    const { line, rows } = this.#spec
    const own = [this.#out, this.#a, ...(this.#weights === null ? [] : [this.#weights])]
    if (rows === null) {
      const lines = sizeParam('lines')
      return { name: 'resample', params: [...own, lines], body: [this.#lines(lines, this.#out, [], (r, block) => [this.#whole(r, block, [])])] }
    }
    const [images, height, outRows] = [sizeParam('images'), sizeParam('rows'), sizeParam('out_rows')]
    const image = loopVar('image', images)
    const [source, target] = [[image, sizeProduct(height, line.size)] as const, [image, sizeProduct(outRows, line.out)] as const]
    const between = scratch('between', 'float32', sizeProduct(height, line.out))
    const params = [...own, this.#positions, ...(this.#rowWeights === null ? [] : [this.#rowWeights]), images, height, outRows]
    if (rows.first) {
      const body = this.#lines(outRows, this.#out, [target], (r, block) => this.#rows(r, block, source))
      return { name: 'resample_images', params, body: [forLoop(image, 'serial', [body])] }
    }
    const lines = this.#lines(height, between, [], (r, block) => [this.#whole(r, block, [source])])
    return { name: 'resample_images', params, scratch: [between], body: [forLoop(image, 'serial', [lines, this.#columns(between, outRows, target)])] }
  }

  /** Line `first` + r of the source. */
  #whole(r: number, { first }: Block, terms: readonly (readonly [LoopVar, Size])[]): Row {
    const { size } = this.#spec.line
    return { index: { ...at(...terms), dynamic: [{ value: read(first), stride: size }, further(r * size)] }, weight: null }
  }

  /** The rows that row `first` + r of the result is made of. */
  #rows(r: number, { line0, declared }: Block, image: readonly [LoopVar, Size]): readonly Row[] {
    const { line, rows } = this.#spec
    const taps = rows?.taps ?? 0
    return Array.from({ length: taps }, (_, t) => {
      const entry = from(r * taps + t, [line0, taps])
      const row = local(`row${r}${t}`, 'int32')
      declared.push(declare(row, load(this.#positions, entry)))
      const index = { ...at(image), dynamic: [{ value: read(row), stride: line.size }] }
      if (this.#rowWeights === null) return { index, weight: null }
      const weight = local(`weight${r}${t}`, 'float32')
      declared.push(declare(weight, load(this.#rowWeights, entry)))
      return { index, weight: read(weight) }
    })
  }

  /** Makes `count` lines, a few at a time. The last ones may be among those before. */
  #lines(count: Size, target: Memory, terms: readonly (readonly [LoopVar, Size])[], rowsOf: (r: number, block: Block) => readonly Row[]): Stmt {
    const { line, made, period } = this.#spec
    const lines = this.#spec.together
    const line0 = loopVar('line0', count, lines)
    const first = local('first', 'int32')
    const body: Stmt[] = [declare(first, call('min', iota(line0), sizeOf(sizeDifference(count, lines))))]
    const each = Array.from({ length: lines }, (_, r) => ({
      rows: rowsOf(r, { first, line0, declared: body }),
      target,
      to: { ...at(...terms), dynamic: [{ value: read(first), stride: line.out }, further(r * line.out)] },
    }))
    const groups = (start: number, end: number, repeated: LoopVar | null = null): readonly Stmt[] =>
      this.#groups(made.slice(start, end), start, repeated, each)
    if (period === null) body.push(...groups(0, made.length))
    else {
      const { start, groups: length, count: times } = period
      const repeated = loopVar('repeated', times)
      body.push(
        ...groups(0, start),
        forLoop(repeated, 'serial', groups(start, start + length, repeated)),
        ...groups(start + length * times, made.length),
      )
    }
    return forLoop(line0, 'serial', body)
  }

  /** Groups of each line, a few at a time. `start` is the number of the first, whose weights are loaded for all lines. */
  #groups(made: readonly Group[], start: number, repeated: LoopVar | null, lines: readonly Line[]): readonly Stmt[] {
    const { groups } = this.#tile
    const whole = made.length - (made.length % groups)
    return [
      [0, whole, groups],
      [whole, made.length, made.length - whole],
    ].flatMap(([from = 0, to = 0, count = 0]) => (to === from ? [] : [this.#chunks(made.slice(from, to), start + from, count, repeated, lines)]))
  }

  #chunks(made: readonly Group[], start: number, count: number, repeated: LoopVar | null, lines: readonly Line[]): Stmt {
    const { taps } = this.#spec.line
    const [g0, g, t, lane] = [loopVar('g0', made.length, count), loopVar('g', count), loopVar('t', taps), loopVar('lane', QUAD)]
    const weights = localArray('weight', 'float32', [count, taps, QUAD])
    const body: Stmt[] = []
    if (this.#weights !== null) {
      const stride = taps * QUAD
      const again = repeated === null ? [] : [[repeated, stride * (this.#spec.period?.groups ?? 0)] as const]
      const [group, last] = [this.#spec.groups[0] + start, [t, QUAD] as const]
      const weight = load(this.#weights, from(group * stride, ...again, [g0, stride], [g, stride], last, [lane, 1]))
      body.push(
        declareArray(weights, constant('float32', 0)),
        forLoop(g, 'unroll', [forLoop(t, 'unroll', [forLoop(lane, 'lanes', [setElement(weights, [g, t, lane], weight)])])]),
      )
    }
    body.push(...lines.map((line) => forLoop(g, 'unroll', this.#group({ made, g0, g, lane, weights, repeated }, line))))
    return forLoop(g0, 'unroll', body)
  }

  /** Four elements of a line. */
  #group({ made, g0, g, lane, weights, repeated }: Chunk, line: Line): readonly Stmt[] {
    const { taps } = this.#spec.line
    const { step = 0, groups: length = 0 } = this.#spec.period ?? {}
    const count = Math.max(...made.map(({ vectors }) => vectors.length))
    const vectors = localArray('vector', 'float32', [count, QUAD])
    const v = loopVar('v', count)
    // Of groups with fewer vectors the last is loaded again.
    const loaded = made.flatMap((group) => Array.from({ length: count }, (_, i) => group.vectors[i] ?? group.vectors.at(-1) ?? []).flat())
    const places = lookup(loaded, at([g0, count * QUAD], [g, count * QUAD], [v, QUAD], [lane, 1]))
    const along = (stride: number): readonly { readonly loop: LoopVar; readonly stride: Size }[] =>
      repeated === null ? [] : [{ loop: repeated, stride }]
    const sum = line.rows
      .map(({ index, weight }) => {
        const part = load(this.#a, { ...index, terms: [...index.terms, ...along(step)], dynamic: [...index.dynamic, { value: places, stride: 1 }] })
        return weight === null ? part : call('mul', part, weight)
      })
      .reduce((total, part) => call('add', total, part))
    const chosen = (t: number): Expr => {
      const table = (which: 0 | 1): Index => {
        const values = made.flatMap(({ chosen: places }) => (places[t] ?? []).map((place) => place[which]))
        return { base: 0, terms: [], dynamic: [{ value: lookup(values, at([g0, QUAD], [g, QUAD], [lane, 1])), stride: 1 }] }
      }
      const value = element(vectors, table(0), table(1))
      return this.#weights === null ? value : call('mul', value, element(weights, g, t, lane))
    }
    const starts = lookup(
      made.map(({ first }) => first),
      at(...ones(g0, g)),
    )
    const { to } = line
    const place = {
      ...to,
      terms: [...to.terms, ...along(length * QUAD), { loop: lane, stride: 1 }],
      dynamic: [...to.dynamic, { value: starts, stride: 1 }],
    }
    const parts = Array.from({ length: taps }, (_, t) => chosen(t))
    return [
      declareArray(vectors, constant('float32', 0)),
      forLoop(v, 'unroll', [forLoop(lane, 'lanes', [setElement(vectors, [v, lane], sum)])]),
      forLoop(lane, 'lanes', [
        store(
          line.target,
          place,
          parts.reduce((total, part) => call('add', total, part)),
        ),
      ]),
    ]
  }

  /** The rows of the result, of rows between. */
  #columns(between: Scratch, outRows: Size, image: readonly [LoopVar, Size]): Stmt {
    const { line, rows } = this.#spec
    if (rows === null) throw new KernelError('lines alone have no rows above each other')
    const [y, x] = [loopVar('y', outRows), loopVar('x', line.out)]
    const declared: Stmt[] = []
    const parts = Array.from({ length: rows.taps }, (_, t) => {
      const entry = from(t, [y, rows.taps])
      const row = local(`row${t}`, 'int32')
      declared.push(declare(row, load(this.#positions, entry)))
      const part = load(between, { ...at([x, 1]), dynamic: [{ value: read(row), stride: line.out }] })
      if (this.#rowWeights === null) return part
      const weight = local(`weight${t}`, 'float32')
      declared.push(declare(weight, load(this.#rowWeights, entry)))
      return call('mul', part, read(weight))
    })
    const sum = parts.reduce((total, part) => call('add', total, part))
    return forLoop(y, 'serial', [...declared, forLoop(x, 'simd', [store(this.#out, at(image, [y, line.out], [x, 1]), sum)])])
  }
}

/** Groups of each line that are made together, by the loops over them. */
interface Chunk {
  readonly made: readonly Group[]
  readonly g0: LoopVar
  readonly g: LoopVar
  readonly lane: LoopVar
  /** The weights of the groups from `g0` on. */
  readonly weights: LocalArray
  /** The loop in which the groups repeat themselves. */
  readonly repeated: LoopVar | null
}

/** Lines of the result that are made together. */
interface Block {
  /** The number of the first. */
  readonly first: Local
  /** The same, but for the last block, which is moved back to hold no line that there is not. */
  readonly line0: LoopVar
  /** What is computed before them. */
  readonly declared: Stmt[]
}

/** An index this many elements further on. */
const further = (elements: number): Index['dynamic'][number] => ({ value: constant('int32', elements), stride: 1 })

/** A line of the result that is made. */
interface Line {
  readonly rows: readonly Row[]
  readonly target: Memory
  readonly to: Index
}
