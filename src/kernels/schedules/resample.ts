// Lines of another length, whose elements are weighted sums of a few elements of the line, four at a time; for images both dimensions in one kernel. Where these elements lie
// is read from tables, in a loop (resampleLoop.ts), or is part of the code (resampleWritten.ts). Float32.
import { KernelError } from '../ir/errors.ts'
import {
  at,
  bufferParam,
  call,
  constant,
  declare,
  forLoop,
  iota,
  load,
  local,
  loopVar,
  read,
  scratch,
  sizeOf,
  sizeParam,
  store,
} from '../ir/loopIr.ts'
import type { BufferParam, Kernel, LoopVar, Memory, Scratch, Size, SizeParam, Stmt } from '../ir/loopIr.ts'
import { sizeDifference, sizeProduct } from '../ir/sizes.ts'
import { QUAD, from } from './notation.ts'
import type { Terms } from './notation.ts'
import { groupsOf, periodOf } from './resampleGroups.ts'
import type { Group, LineParts } from './resampleGroups.ts'
import type { Line, Row } from './resampleLines.ts'
import { groupsInLoop, loopParams } from './resampleLoop.ts'
import type { LoopParams } from './resampleLoop.ts'
import { windowsOf } from './resampleWindows.ts'
import { writtenGroups } from './resampleWritten.ts'
import type { Written } from './resampleWritten.ts'
import type { Schedule } from './schedule.ts'

/** The groups of four elements of each line that a kernel makes: all of them in a loop, or some that are written out. */
export type MadeGroups = 'loop' | readonly [start: number, end: number]

/** A resizing of lines, or of images: of their lines, and of what stands in rows above each other. */
export interface Resampling {
  readonly line: LineParts
  readonly groups: MadeGroups
  /** For images: of how many rows a row of the result is made, whether these have weights, and whether they are put together before the lines or after them. */
  readonly rows: { readonly taps: number; readonly weighted: boolean; readonly first: boolean } | null
  /** How many lines are made together. There are as many. */
  readonly together: number
}

/** How a kernel makes groups, and the lengths of a line and of its result, which a loop gets from its caller. */
type Way =
  | { readonly kind: 'loop'; readonly windows: number; readonly params: LoopParams; readonly size: Size; readonly out: Size }
  | { readonly kind: 'written'; readonly written: Written; readonly size: Size; readonly out: Size }

interface ResamplingSpec extends Resampling {
  readonly way: Way
}

/** Elements of a group may lie in this many vectors. */
const MOST_VECTORS = 4
const MOST_TAPS = 4

/**
 * The kernel's parameters are the result, the lines, with groups in a loop the {@link loopTables}, and the lines' weights; for images also the numbers of rows that rows of
 * the result are made of, and their weights, see {@link rowsInBlocks}; and then the number of lines, or those of images, their rows, and the rows of the result; with groups
 * in a loop at last their number, and the lengths of a line and of one of the result. There are no weights where all are 1.
 */
export const resample: Schedule<Resampling, ResamplingSpec, 'only'> = {
  name: 'resample',
  match: ({ line, rows, groups }) => {
    if (!isTaken(line)) return false
    if (groups === 'loop') return windowsOf(line) !== null
    const vectors = Math.max(...groupsOf(line).map((group) => group.vectors.length))
    return vectors <= (rows?.first === true ? 2 : MOST_VECTORS)
  },
  spec: (problem) => ({ ...problem, way: wayOf(problem) }),
  tiles: () => ['only'],
  build: (spec) => new Resample(spec).kernel(),
}

/** The most kernels for one line, and the most elements of a line. Longer ones cost more to write than to compute. */
const MOST_KERNELS = 16
const LONGEST_LINE = 2 ** 16
/** Bytes of the groups that a kernel writes out: with the code around them there are at most 8 KB. */
const MOST_BYTES = 7000
/** Fewer groups are written out also if they do not repeat themselves: a loop takes longer than they do. */
const FEW_GROUPS = 8

/**
 * The kernels that together make `lines` lines, or images whose kernel makes as many at a time. Lines that grow and do not repeat themselves take a loop. Null where the
 * lines are left to other kernels.
 */
export function resamplingsOf(line: LineParts, rows: Resampling['rows'], lines: number): readonly Resampling[] | null {
  if (!isTaken(line) || line.out > LONGEST_LINE || lines === 0) return null
  const problem = (groups: MadeGroups, together: number): Resampling => ({ line, rows, groups, together: Math.min(lines, together) })
  const taken = (...problems: readonly Resampling[]): readonly Resampling[] | null => (problems.every(resample.match) ? problems : null)
  const groups = groupsOf(line)
  const { length } = groups
  const period = periodOf(groups)
  const windows = windowsOf(line)
  if (windows !== null && period === null && length > FEW_GROUPS) return taken(problem('loop', windows <= 2 ? 4 : 2))
  const written = period === null ? length : length - period.groups * (period.count - 1)
  const fitting = Math.floor(MOST_BYTES / bytesOfGroup(line, groups, rows))
  if (written <= fitting) return taken(problem([0, length], 2 * written <= fitting ? 2 : 1))
  if (rows?.first === false || length > MOST_KERNELS * fitting) return null
  const parts = Array.from({ length: Math.ceil(length / fitting) }, (_, i) => [i * fitting, Math.min(length, (i + 1) * fitting)] as const)
  return taken(...parts.map((part) => problem(part, 1)))
}

/** The bytes of the code of a group that is written out, about, and at most. */
function bytesOfGroup({ taps, weights }: LineParts, groups: readonly Group[], rows: Resampling['rows']): number {
  const vectors = Math.max(...groups.map((group) => group.vectors.length))
  const perVector = rows?.first === true && (rows.weighted || rows.taps > 1) ? 35 + 26 * rows.taps : 35
  const perTap = (weights === null ? 30 : 60) + (vectors > 2 ? 24 : 0)
  return 22 + vectors * perVector + taps * perTap
}

const isTaken = ({ size, out, taps }: LineParts): boolean => size >= QUAD && out >= QUAD && taps <= MOST_TAPS

function wayOf({ line, groups }: Resampling): Way {
  if (groups === 'loop') {
    const windows = windowsOf(line)
    if (windows === null) throw new KernelError('the elements of the groups of a line are too far from each other to be chosen from windows')
    const params = loopParams()
    return { kind: 'loop', windows, params, size: params.size, out: params.out }
  }
  const all = groupsOf(line)
  const [start, end] = groups
  const period = end - start === all.length ? periodOf(all) : null
  return { kind: 'written', written: { made: all.slice(start, end), start, period, taps: line.taps }, size: line.size, out: line.out }
}

const paramsOf = ({ starts, chosen, groups, size, out }: LoopParams): readonly [readonly BufferParam[], readonly SizeParam[]] => [
  [starts, chosen],
  [groups, size, out],
]

class Resample {
  readonly #spec: ResamplingSpec
  readonly #out: BufferParam = bufferParam('out', 'float32', 'write')
  readonly #a: BufferParam = bufferParam('a', 'float32')
  readonly #weights: BufferParam | null
  readonly #positions: BufferParam = bufferParam('positions', 'int32')
  readonly #rowWeights: BufferParam | null

  constructor(spec: ResamplingSpec) {
    this.#spec = spec
    this.#weights = spec.line.weights === null ? null : bufferParam('weights', 'float32')
    this.#rowWeights = spec.rows?.weighted === true ? bufferParam('row_weights', 'float32') : null
  }

  kernel(): Kernel {
    const { way, rows } = this.#spec
    const [tables, sizes] = way.kind === 'loop' ? paramsOf(way.params) : [[], []]
    const own = [this.#out, this.#a, ...tables, ...(this.#weights === null ? [] : [this.#weights])]
    if (rows === null) {
      const lines = sizeParam('lines')
      const body = [this.#lines(lines, this.#out, [], [], (r, block) => [this.#whole(r, block)])]
      return { name: 'resample', params: [...own, lines, ...sizes], body }
    }
    const [images, height, outRows] = [sizeParam('images'), sizeParam('rows'), sizeParam('out_rows')]
    const image = loopVar('image', images)
    const [source, target]: readonly [Terms, Terms] = [[[image, sizeProduct(height, way.size)]], [[image, sizeProduct(outRows, way.out)]]]
    const between = scratch('between', 'float32', sizeProduct(height, way.out))
    const params = [...own, this.#positions, ...(this.#rowWeights === null ? [] : [this.#rowWeights]), images, height, outRows, ...sizes]
    if (rows.first) {
      const body = this.#lines(outRows, this.#out, source, target, (r, block) => this.#rows(r, block))
      return { name: 'resample_images', params, body: [forLoop(image, 'serial', [body])] }
    }
    const lines = this.#lines(height, between, source, [], (r, block) => [this.#whole(r, block)])
    return { name: 'resample_images', params, scratch: [between], body: [forLoop(image, 'serial', [lines, this.#columns(between, outRows, target)])] }
  }

  /** Line `first` + r of the source. */
  #whole(r: number, block: Block): Row {
    return { at: block.start(`from${r}`, r, this.#spec.way.size), weight: null }
  }

  /** The rows that row `first` + r of the result is made of. */
  #rows(r: number, { line0, declared }: Block): readonly Row[] {
    const { way, rows } = this.#spec
    const taps = rows?.taps ?? 0
    return Array.from({ length: taps }, (_, t) => {
      const entry = from(r * taps + t, [line0, taps])
      const row = local(`row${r}${t}`, 'int32')
      declared.push(declare(row, call('mul', load(this.#positions, entry), sizeOf(way.size))))
      if (this.#rowWeights === null) return { at: row, weight: null }
      const weight = local(`weight${r}${t}`, 'float32')
      declared.push(declare(weight, load(this.#rowWeights, entry)))
      return { at: row, weight }
    })
  }

  /** Makes `count` lines, a few at a time. The last ones may be among those before. */
  #lines(count: Size, target: Memory, source: Terms, image: Terms, rowsOf: (r: number, block: Block) => readonly Row[]): Stmt {
    const { way, line, together } = this.#spec
    const line0 = loopVar('line0', count, together)
    const first = local('first', 'int32')
    const declared: Stmt[] = [declare(first, call('min', iota(line0), sizeOf(sizeDifference(count, together))))]
    const block: Block = {
      line0,
      declared,
      start: (name, r, length) => {
        const start = local(name, 'int32')
        declared.push(declare(start, call('mul', call('add', read(first), constant('int32', r)), sizeOf(length))))
        return start
      },
    }
    const lines: readonly Line[] = Array.from({ length: together }, (_, r) => ({
      ...{ rows: rowsOf(r, block), source, target, image },
      at: block.start(`to${r}`, r, way.out),
    }))
    const sources = { a: this.#a, weights: this.#weights, lines }
    const groups =
      way.kind === 'loop' ? [groupsInLoop({ windows: way.windows, taps: line.taps }, way.params, sources)] : writtenGroups(way.written, sources)
    return forLoop(line0, 'serial', [...declared, ...groups])
  }

  /** The rows of the result, of rows between. */
  #columns(between: Scratch, outRows: Size, image: Terms): Stmt {
    const { way, rows } = this.#spec
    if (rows === null) throw new KernelError('lines alone have no rows above each other')
    const [y, x] = [loopVar('y', outRows), loopVar('x', way.out)]
    const declared: Stmt[] = []
    const parts = Array.from({ length: rows.taps }, (_, t) => {
      const entry = from(t, [y, rows.taps])
      const row = local(`row${t}`, 'int32')
      declared.push(declare(row, load(this.#positions, entry)))
      const part = load(between, { ...at([x, 1]), dynamic: [{ value: read(row), stride: way.out }] })
      if (this.#rowWeights === null) return part
      const weight = local(`weight${t}`, 'float32')
      declared.push(declare(weight, load(this.#rowWeights, entry)))
      return call('mul', part, read(weight))
    })
    const sum = parts.reduce((total, part) => call('add', total, part))
    return forLoop(y, 'serial', [...declared, forLoop(x, 'simd', [store(this.#out, at(...image, [y, way.out], [x, 1]), sum)])])
  }
}

/** Lines of the result that are made together. */
interface Block {
  /** The number of the first, but for the last block, which is moved back to hold no line that there is not. */
  readonly line0: LoopVar
  /** What is computed before them. */
  readonly declared: Stmt[]
  /** Declares where line r of the block begins, among lines of that length. */
  readonly start: (name: string, r: number, length: Size) => Row['at']
}
