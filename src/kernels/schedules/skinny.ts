// Products with at most four rows or columns, or up to eight rows of a layer: one token, a matrix times a vector, a dot product. The operand with few lines (rows of A, columns of B) is
// small; each element of the other one is used at most four times, so that it is read where it lies, in the order in which it lies: along the depth (`skinnyAlong`) or
// across its lines (`skinnyAcross`). Sums go to scratch memory, from which the epilogue reads them.
import { InternalError } from '../../errors/index.ts'
import type { GemmSpec, MatrixOperand } from './gemmSpec.ts'
import {
  assign,
  at,
  call,
  constant,
  declare,
  declareArray,
  element,
  forLoop,
  load,
  local,
  localArray,
  loopVar,
  read,
  reduceLanes,
  scratch,
  serialLoops,
  setElement,
  store,
} from '../ir/loopIr.ts'
import type { Expr, Index, Kernel, LoopVar, Memory, Scratch, Size, Stmt } from '../ir/loopIr.ts'
import { roundedDown, sizeDifference, sizeProduct, sizeSum } from '../ir/sizes.ts'
import { from, ones } from './notation.ts'
import type { Terms } from './notation.ts'
import type { Schedule } from './schedule.ts'

/** The small operand has at most this many lines. */
export const FEW_LINES = 4
/** Rows where columns of B have neighbours along the depth: packing B would take longer than two goes at it. */
export const FEW_ROWS = 8

/** One operand: line l at depth k lies at l * stride + k * depthStride. */
interface Lines {
  readonly operand: MatrixOperand
  readonly loop: LoopVar
  readonly stride: Size
  readonly depthStride: Size
}

/** A product in terms of its small operand, which has `count` lines, and its large one. */
interface SkinnySpec {
  readonly problem: GemmSpec
  readonly few: Lines
  readonly count: number
  readonly many: Lines
  /** The sums: those of the first line of the small operand, then those of the second. */
  readonly sums: Scratch
}

const isFew = (size: Size, most: number): boolean => typeof size === 'number' && size >= 1 && size <= most

const rowsOf = ({ a, rows }: GemmSpec): Lines => ({ operand: a, loop: rows, stride: a.rowStride, depthStride: a.colStride })
const columnsOf = ({ b, cols }: GemmSpec): Lines => ({ operand: b, loop: cols, stride: b.colStride, depthStride: b.rowStride })

/** The small operand and the large one, which must be as the schedule needs it; null if there is no such product. */
function operandsOf(problem: GemmSpec, fits: (many: Lines) => boolean): readonly [few: Lines, many: Lines] | null {
  const { reduceBatch } = problem
  if (reduceBatch > 0) return null
  const [rows, columns] = [rowsOf(problem), columnsOf(problem)]
  if (isFew(rows.loop.extent, columns.depthStride === 1 ? FEW_ROWS : FEW_LINES) && fits(columns)) return [rows, columns]
  return isFew(columns.loop.extent, FEW_LINES) && fits(rows) ? [columns, rows] : null
}

/** What both schedules share: `fits` says which large operands they take. */
function skinny(fits: (many: Lines) => boolean): Pick<Schedule<GemmSpec, SkinnySpec, never>, 'match' | 'spec'> {
  return {
    match: (problem) => operandsOf(problem, fits) !== null,
    spec: (problem) => {
      const operands = operandsOf(problem, fits)
      if (operands === null) throw new InternalError(`${problem.name} is not a skinny product`)
      const [few, many] = operands
      const count = Number(few.loop.extent)
      return { problem, few, many, count, sums: scratch('sums', 'float32', sizeProduct(many.loop.extent, count)) }
    },
  }
}

/** Bytes of scratch memory for a product of these sizes. */
export const skinnyScratchBytes = (m: number, n: number, k: number): number => 4 * (m * n + FEW_ROWS * k) + 3 * 64

/** The loops over the batch, around the statements that compute the sums, and the epilogue. */
function kernelOf({ problem, few, many, sums }: SkinnySpec, others: readonly Scratch[], compute: readonly Stmt[]): Kernel {
  const { name, params, batch, epilogue } = problem
  const sum = load(sums, at([few.loop, many.loop.extent], [many.loop, 1]))
  const finish = forLoop(few.loop, 'serial', [forLoop(many.loop, 'simd', epilogue(sum))])
  // The parameter for scratch memory is not listed: it becomes that of the kernel's own.
  return { name, params: params.slice(0, -1), scratch: [sums, ...others], body: serialLoops(batch, [...compute, finish]) }
}

const batchTerms = ({ batch }: GemmSpec, { operand }: Lines): Terms => batch.map((loop, i) => [loop, operand.batchStrides[i] ?? 0])

/** A number for products with one, two, three and four lines in the small operand. */
type ByCount = readonly [number, number, number, number]

/** Lines of the large operand at a time, and elements of the depth. */
interface AlongTile {
  readonly lines: ByCount
  readonly depth: ByCount
  /** The same if the distance of lines is not known, so that each of them has a pointer of its own. */
  readonly depthOfUnknown: ByCount
}

/** Both operands have neighbours along the depth, or the small one is packed so: sums run in lanes along the depth. */
export const skinnyAlong: Schedule<GemmSpec, SkinnySpec, AlongTile> = {
  name: 'skinnyAlong',
  ...skinny(({ depthStride }) => depthStride === 1),
  tiles: (engine) => [
    { lines: [4, 4, 3, 2], depth: [engine === 'wasm-relaxed' ? 8 : 4, 4, 4, 4], depthOfUnknown: [4, 4, 4, 4] },
    { lines: [2, 3, 2, 1], depth: [8, 4, 4, 8], depthOfUnknown: [8, 4, 4, 8] },
  ],
  build: (spec, tile) => {
    const { problem, few, count, many } = spec
    // More lines than have room for their sums are two groups, one after the other while the lines of the large operand are in the cache.
    const groups = count <= FEW_LINES ? [count] : [Math.ceil(count / 2), Math.floor(count / 2)]
    const most = Math.max(...groups)
    const lines = tile.lines[most - 1] ?? 1
    const depth = (typeof many.stride === 'number' ? tile.depth : tile.depthOfUnknown)[most - 1] ?? 4
    const { extent } = many.loop
    const together = roundedDown(extent, lines)
    // What is left is computed line by line, with as many sums in flight.
    const blocks: Block[] = [
      { groups, first: 0, lines, extent: together, depth },
      { groups, first: together, lines: 1, extent: sizeDifference(extent, together), depth: depth * lines },
    ]
    const packed = few.depthStride === 1 ? null : scratch('packed', 'float32', sizeProduct(problem.depth, count))
    const compute = blocks.filter((block) => block.extent !== 0).map((block) => linesOf(spec, packed, block))
    return kernelOf(spec, packed === null ? [] : [packed], [...(packed === null ? [] : [packing(spec, packed)]), ...compute])
  },
}

/** Copies the small operand, so that its lines have neighbours along the depth. */
function packing({ problem, few }: SkinnySpec, packed: Scratch): Stmt {
  const k = loopVar('k', problem.depth)
  const source = load(few.operand.buffer, at(...batchTerms(problem, few), [few.loop, few.stride], [k, few.depthStride]))
  return forLoop(few.loop, 'serial', [forLoop(k, 'simd', [store(packed, at([few.loop, problem.depth], [k, 1]), source)])])
}

/** `extent` lines of the large operand from the line `first` on, `lines` at a time, and `depth` elements of each; those of the small operand in groups. */
interface Block {
  readonly groups: readonly number[]
  readonly first: Size
  readonly lines: number
  readonly extent: Size
  readonly depth: number
}

function linesOf(spec: SkinnySpec, packed: Scratch | null, block: Block): Stmt {
  const at0 = loopVar('block', block.extent, block.lines)
  const starts = block.groups.map((_, g) => block.groups.slice(0, g).reduce((sum, count) => sum + count, 0))
  return forLoop(
    at0,
    'parallel',
    block.groups.flatMap((count, g) => groupOf(spec, packed, block, { first: starts[g] ?? 0, count, block: at0 })),
  )
}

/** Some lines of the small operand, in a loop over lines of the large one. */
interface Group {
  readonly first: number
  readonly count: number
  readonly block: LoopVar
}

function groupOf({ problem, few, many, sums }: SkinnySpec, packed: Scratch | null, { first, lines, depth }: Block, group: Group): readonly Stmt[] {
  const { count, block } = group
  const whole = roundedDown(problem.depth, depth)
  const [k0, rest] = [loopVar('k0', whole, depth), loopVar('rest', sizeDifference(problem.depth, whole))]
  const [f, l, k] = [loopVar('f', count), loopVar('l', lines), loopVar('k', depth)]
  const parts = localArray('parts', 'float32', [count, lines, depth])
  const sum = local('sum', 'float32')
  const [small, smallStride, smallBatch]: readonly [Memory, Size, Terms] =
    packed === null ? [few.operand.buffer, few.stride, batchTerms(problem, few)] : [packed, problem.depth, []]
  const product = (start: Size, depths: Terms, plus: Expr): Expr =>
    call(
      'mulAdd',
      load(small, from(sizeSum(sizeProduct(smallStride, group.first), start), ...smallBatch, [f, smallStride], ...depths)),
      load(
        many.operand.buffer,
        from(sizeSum(sizeProduct(first, many.stride), start), ...batchTerms(problem, many), [block, many.stride], [l, many.stride], ...depths),
      ),
      plus,
    )
  const add = setElement(parts, [f, l, k], product(0, ones(k0, k), element(parts, f, l, k)))
  const place = from(sizeSum(sizeProduct(many.loop.extent, group.first), first), [f, many.loop.extent], ...ones(block, l))
  return [
    declareArray(parts, constant('float32', 0)),
    forLoop(k0, 'serial', [forLoop(k, 'lanes', [forLoop(l, 'unroll', [forLoop(f, 'unroll', [add])])])]),
    forLoop(f, 'unroll', [
      forLoop(l, 'unroll', [
        declare(sum, reduceLanes('add', parts, f, l)),
        ...(rest.extent === 0 ? [] : [forLoop(rest, 'serial', [assign(sum, product(whole, ones(rest), read(sum)))])]),
        store(sums, place, read(sum)),
      ]),
    ]),
  ]
}

/** Elements of the depth at a time. */
type AcrossTile = ByCount

/** Neighbours of the large operand are of different lines, e.g. a vector times a matrix: lanes run across lines, and each sum is added to as the depth goes on. */
export const skinnyAcross: Schedule<GemmSpec, SkinnySpec, AcrossTile> = {
  name: 'skinnyAcross',
  ...skinny(({ stride }) => stride === 1),
  tiles: () => [
    [4, 2, 2, 2],
    [8, 4, 3, 1],
  ],
  build: (spec, tile) => {
    const { problem, few, count, many, sums } = spec
    const [f, line] = [loopVar('f', count), loopVar('line', many.loop.extent)]
    const place = at([f, many.loop.extent], [line, 1])
    const clear = forLoop(f, 'serial', [forLoop(line, 'simd', [store(sums, place, constant('float32', 0))])])
    const step = tile[count - 1] ?? 1
    const whole = roundedDown(problem.depth, step)
    const added = (first: Size, extent: Size, steps: number): Stmt => {
      const k0 = loopVar('k0', extent, steps)
      const depths = Array.from({ length: steps }, (_, r) => r)
      const factors = Array.from({ length: count }, (_line, l) => depths.map((r) => local(`x${l}_${r}`, 'float32')))
      const smallAt = (l: number, r: number): Index =>
        from(sizeSum(sizeProduct(few.stride, l), sizeProduct(few.depthStride, sizeSum(first, r))), ...batchTerms(problem, few), [k0, few.depthStride])
      const large = depths.map((r) =>
        load(
          many.operand.buffer,
          from(sizeProduct(many.depthStride, sizeSum(first, r)), ...batchTerms(problem, many), [k0, many.depthStride], [line, 1]),
        ),
      )
      return forLoop(k0, 'serial', [
        ...factors.flatMap((of, l) => of.map((x, r) => declare(x, load(few.operand.buffer, smallAt(l, r))))),
        forLoop(
          line,
          'simd',
          factors.map((of, l) => {
            const to = from(sizeProduct(many.loop.extent, l), [line, 1])
            return store(
              sums,
              to,
              of.reduce<Expr>((sum, x, r) => call('mulAdd', read(x), large[r] ?? sum, sum), load(sums, to)),
            )
          }),
        ),
      ])
    }
    const rest = sizeDifference(problem.depth, whole)
    return kernelOf(spec, [], [clear, added(0, whole, step), ...(rest === 0 ? [] : [added(whole, rest, 1)])])
  },
}
