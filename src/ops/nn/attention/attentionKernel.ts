// Attention in blocks of query rows: the scores of a few rows at a time are all that is ever in memory.
import type { Size } from '../../../protocol/index.ts'
import {
  ATTENTION_BLOCK,
  ATTENTION_PANEL,
  attend,
  attendBackward,
  beginPieces,
  compileInTiles,
  endPieces,
  getNumThreads,
  isStrict,
  overHeads,
  packKeys,
  packValues,
} from '../../../kernels/index.ts'
import type { AttentionKeys, AttentionMask, CompiledKernel, Kernel, TileEngine } from '../../../kernels/index.ts'
import { Tensor, numelOf, sameShape, sizeEq, sizeLess, sizeMod, hasNoElements } from '../../../tensor/index.ts'
import { zeros } from '../../create/creation.ts'
import { kernelCache, scratchMemory } from '../../eager/launch.ts'
import { sizeAt } from '../../shared/shapes.ts'
import { contiguous } from '../../view/reshape.ts'
import { expand } from '../../view/windows.ts'

/** Whether a kernel is for one head or for several, which threads share. */
type Heads = 'one' | 'several'

const forHeads = (heads: Heads, build: (engine: TileEngine) => Kernel): CompiledKernel =>
  compileInTiles(heads === 'one' ? build : (engine) => overHeads(build(engine)))

const keysKernel = kernelCache((heads: Heads) => forHeads(heads, () => packKeys()))
const valuesKernel = kernelCache((heads: Heads) => forHeads(heads, () => packValues()))
const attendKernel = kernelCache((mask: AttentionMask, keys: AttentionKeys, heads: Heads) => forHeads(heads, (engine) => attend(mask, keys, engine)))
const beginKernel = kernelCache((heads: Heads) => forHeads(heads, () => beginPieces()))
const endKernel = kernelCache((mask: AttentionMask, heads: Heads) => forHeads(heads, () => endPieces(mask)))
const backwardKernel = kernelCache((mask: AttentionMask, heads: Heads) => forHeads(heads, (engine) => attendBackward(mask, engine)))

/** The bytes that heads keep that are computed together, at most: they stay in the cache. Where threads share heads, there are at least `LEAST_HEADS`. */
const BYTES_OF_HEADS = { one: 2 ** 18, several: 2 ** 20 }
const LEAST_HEADS = 4

/** Fewer rows do not pay for packing the keys. */
const LEAST_ROWS = 16

/** Keys of a piece at most, a multiple of 8: the scores of a block stay in the cache. */
const MOST_KEYS = 4096

/** Elements between two rows of scores: rows that lie a power of two apart would share the few places of one set of the cache. */
const BESIDE = 16

const FLOAT_BYTES = 4

export interface Attention {
  readonly query: Tensor
  /** With as many heads as `query`, or fewer: each for as many heads of `query` as there are. */
  readonly key: Tensor
  readonly value: Tensor
  /** Added to the scores, to whose shape it broadcasts. */
  readonly mask: Tensor | null
  readonly isCausal: boolean
  readonly scale: number
}

/** Whether the kernels here compute it: float32, enough rows, leading dimensions that are the same. */
export function takesBlocks({ query, key, value, mask }: Omit<Attention, 'isCausal' | 'scale'>): boolean {
  const [rows, count] = [sizeAt(query.symSizes, -2), sizeAt(key.symSizes, -2)]
  const [depth, width] = [sizeAt(query.symSizes, -1), sizeAt(value.symSizes, -1)]
  const isFloat32 = [query, key, value, ...(mask === null ? [] : [mask])].every(({ dtype }) => dtype === 'float32')
  if (!isFloat32 || sizeLess(rows, LEAST_ROWS) || hasNoElements([count, depth, width]) || !sizeEq(sizeMod(width, ATTENTION_PANEL), 0)) return false
  const [lead, own] = [query.symSizes.slice(0, -2), key.symSizes.slice(0, -2)]
  if (hasNoElements(lead) || !sameShape(own, value.symSizes.slice(0, -2)) || own.length !== lead.length) return false
  if (!sameShape(lead.slice(0, -1), own.slice(0, -1)) || hasNoElements(own)) return false
  if (!sizeEq(sizeMod(lead.at(-1) ?? 1, own.at(-1) ?? 1), 0)) return false
  return mask === null || isExpandable(mask.symSizes, [...lead, rows, count])
}

/** Whether a tensor of the shape `from` broadcasts to the shape `to`. */
export const isExpandable = (from: readonly Size[], to: readonly Size[]): boolean =>
  from.length <= to.length && from.every((size, d) => sizeEq(size, 1) || sizeEq(size, to[d + to.length - from.length]))

/** The matrices of a tensor in the heap, whose rows are contiguous. */
interface Matrices {
  /** The address of each. */
  readonly places: readonly number[]
  /** Elements from one row to the next. */
  readonly stride: number
}

/** The matrices of `tensor` for each index of the dimensions `lead`, to which its own broadcast; null if it is not in the heap. */
function matricesOf(tensor: Tensor, lead: readonly number[]): Matrices | null {
  const { sizes } = tensor
  const lines = tensor.steps.at(-1) === 1 ? tensor : contiguous(tensor)
  const { ptr } = lines.realize().block
  if (ptr === 0) return null
  let places = [ptr + lines.offset * FLOAT_BYTES]
  for (const [d, size] of lead.entries()) {
    const own = d + sizes.length - 2 - lead.length
    const step = (sizes[own] ?? 1) === 1 ? 0 : (lines.steps[own] ?? 0) * FLOAT_BYTES
    places = places.flatMap((place) => Array.from({ length: size }, (_, i) => place + i * step))
  }
  return { places, stride: sizeAt(sizes, -2) === 1 ? 0 : (lines.steps.at(-2) ?? 0) }
}

const maskOf = (mask: Tensor, lead: readonly number[], count: number): Matrices | null =>
  matricesOf(mask.sizes.at(-1) === count ? mask : contiguous(expand(mask, [...mask.sizes.slice(0, -1), count])), lead)

/** Addresses in scratch memory, each at the begin of a cache line, for that many elements. */
function scratchFor(...elements: readonly number[]): readonly number[] {
  const sizes = elements.map((n) => Math.ceil(n / 16) * 16 * FLOAT_BYTES)
  let next = Math.ceil(scratchMemory(sizes.reduce((sum, bytes) => sum + bytes, 64)) / 64) * 64
  return sizes.map((bytes) => (next += bytes) - bytes)
}

/** What both directions go through: the heads of the keys, and for each the heads of the queries that share it. */
function problemOf({ query, key, value, mask, isCausal, scale }: Attention, most: number) {
  const [lead, own] = [query.sizes.slice(0, -2), key.sizes.slice(0, -2)]
  const [rows, count, depth, width] = [sizeAt(query.sizes, -2), sizeAt(key.sizes, -2), sizeAt(query.sizes, -1), sizeAt(value.sizes, -1)]
  const [owners, heads] = [numelOf(own), numelOf(lead)]
  const [q, k, v] = [matricesOf(query, lead), matricesOf(key, own), matricesOf(value, own)]
  const m = mask === null ? null : maskOf(mask, lead, count)
  if (q === null || k === null || v === null || (mask !== null && m === null)) return null
  const kind: AttentionMask = m !== null ? 'added' : isCausal ? 'causal' : 'none'
  const whole = Math.ceil(count / ATTENTION_PANEL) * ATTENTION_PANEL
  const room = Math.min(whole, most) + BESIDE
  return { lead, rows, count, depth, width, owners, groups: heads / owners, q, k, v, m, kind, whole, most, room, scale }
}

type Problem = NonNullable<ReturnType<typeof problemOf>>

/** How far the matrices of two heads of the keys are apart, in elements: those of queries, keys, values and masks. */
type Steps = readonly [q: number, k: number, v: number, m: number]

/** Heads of the keys that are computed together: a grid of them, from `first` on. */
interface Grid {
  readonly first: number
  readonly rows: number
  readonly columns: number
  /** From a row to the next: how many heads of the keys, and how far the matrices. */
  readonly ofRow: { readonly heads: number; readonly apart: Steps }
  readonly ofColumn: Grid['ofRow']
}

const still: Grid['ofRow'] = { heads: 0, apart: [0, 0, 0, 0] }

/** All heads as a grid; null if they do not lie in one. */
function gridOf({ owners, groups, q, k, v, m }: Problem): Grid | null {
  const between = (matrices: Matrices | null, from: number, to: number): number =>
    matrices === null ? 0 : ((matrices.places[to] ?? 0) - (matrices.places[from] ?? 0)) / FLOAT_BYTES
  const steps = (from: number, to: number): Steps => [
    between(q, from * groups, to * groups),
    between(k, from, to),
    between(v, from, to),
    between(m, from * groups, to * groups),
  ]
  const ofColumn = steps(0, 1)
  let columns = 1
  while (columns < owners && sameShape(steps(columns - 1, columns), ofColumn)) columns++
  const ofRow = columns === owners ? still.apart : steps(0, columns)
  if (owners % columns !== 0) return null
  for (let head = columns; head < owners; head++) {
    const [from, wanted] = head % columns === 0 ? [head - columns, ofRow] : [head - 1, ofColumn]
    if (!sameShape(steps(from, head), wanted)) return null
  }
  return { first: 0, rows: owners / columns, columns, ofRow: { heads: columns, apart: ofRow }, ofColumn: { heads: 1, apart: ofColumn } }
}

/** The heads of the keys in grids of as many as keep few elements, `kept` for each; one by one if they do not lie in a grid. */
function gridsOf(problem: Problem, kept: readonly number[]): readonly Grid[] {
  const grid = problem.owners === 1 ? null : gridOf(problem)
  if (grid === null) return Array.from({ length: problem.owners }, (_, first) => ({ first, rows: 1, columns: 1, ofRow: still, ofColumn: still }))
  const bytes = FLOAT_BYTES * kept.reduce((sum, n) => sum + n, 0)
  const most =
    getNumThreads() === 1 ? Math.max(1, Math.floor(BYTES_OF_HEADS.one / bytes)) : Math.max(LEAST_HEADS, Math.floor(BYTES_OF_HEADS.several / bytes))
  const { columns, ofRow, ofColumn } = grid
  const [high, wide] = [Math.max(1, Math.floor(most / columns)), Math.min(columns, most)]
  const found: Grid[] = []
  for (let row = 0; row < grid.rows; row += high) {
    for (let column = 0; column < columns; column += wide) {
      const [rows, across] = [Math.min(high, grid.rows - row), Math.min(wide, columns - column)]
      const part = { first: row * columns + column, rows, columns: across, ofRow, ofColumn }
      // Threads share rows.
      found.push(rows >= across ? part : { ...part, rows: across, columns: rows, ofRow: ofColumn, ofColumn: ofRow })
    }
  }
  return found
}

/** How far a buffer's elements for the heads of a row and of the next are apart, and the same of columns. */
type Apart = readonly [ofRow: number, ofColumn: number]

/** The heads of the keys in the parts in which they are computed, and where what a part keeps lies. */
interface Together {
  readonly heads: Heads
  readonly places: readonly number[]
  readonly parts: readonly Part[]
}

/** Heads that are computed together, and how far their buffers are apart. */
interface Part {
  readonly first: number
  /** Of scratch memory, of results, both with `elements` for each head of the keys, and of operands. */
  readonly inScratch: (elements: number) => Apart
  readonly inOrder: (elements: number) => Apart
  readonly operands: Readonly<Record<'query' | 'key' | 'value' | 'mask', Apart>>
  /** The arguments that kernels for several heads have beyond those for one: how far their buffers are apart. */
  readonly over: (...buffers: readonly Apart[]) => readonly number[]
}

function together(problem: Problem, kept: readonly number[]): Together {
  const grids = gridsOf(problem, kept)
  const most = Math.max(...grids.map(({ rows, columns }) => rows * columns))
  const heads = most === 1 ? 'one' : 'several'
  const parts = grids.map(({ first, rows, columns, ofRow, ofColumn }): Part => {
    const operand = (i: keyof Steps & number): Apart => [Number(ofRow.apart[i]), Number(ofColumn.apart[i])]
    return {
      first,
      inScratch: (elements) => [elements * columns, elements],
      inOrder: (elements) => [elements * ofRow.heads, elements * ofColumn.heads],
      operands: { query: operand(0), key: operand(1), value: operand(2), mask: operand(3) },
      over: (...buffers) => (heads === 'one' ? [] : [rows, columns, ...buffers.map(([step]) => step), ...buffers.map(([, step]) => step)]),
    }
  })
  return { heads, places: scratchFor(...kept.map((elements) => elements * most)), parts }
}

/** A block of rows, and a piece of the keys. */
interface Block {
  readonly row: number
  readonly height: number
  readonly start: number
  readonly keys: number
  /** Whether it is the last piece for these rows. */
  readonly isLast: boolean
}

/** Goes through the blocks of rows, and for each through the pieces of keys that it attends to. */
function forBlocks({ rows, count, kind, most }: Problem, piece: (block: Block) => void): void {
  for (let row = 0; row < rows; row += ATTENTION_BLOCK) {
    const height = Math.min(ATTENTION_BLOCK, rows - row)
    const seen = kind === 'causal' ? Math.min(count, row + height) : count
    for (let start = 0; start < seen; start += most) {
      const keys = Math.min(most, seen - start)
      piece({ row, height, start, keys, isLast: start + keys === seen })
    }
  }
}

const addressOf = (tensor: Tensor): number => {
  const { ptr } = tensor.realize().block
  return ptr === 0 ? 0 : ptr + tensor.offset * FLOAT_BYTES
}

/** The arguments of a kernel for a block: `args`, what comes after the buffers that all masks have, and `over`, what kernels for several heads have beyond. */
function withNumbers(args: number[], problem: Problem, head: number, { row, height, start, keys }: Block, over: readonly number[]): number[] {
  const { q, m, kind, count, depth, width, room, scale } = problem
  if (m !== null) args.push((m.places[head] ?? 0) + (row * m.stride + start) * FLOAT_BYTES)
  args.push(height, keys, count, depth, width, room, q.stride)
  if (m !== null) args.push(m.stride)
  if (kind === 'causal') args.push(row - start)
  args.push(scale)
  for (const more of over) args.push(more)
  return args
}

/**
 * The result, and for each row the logarithm of the sum of its scores' exponentials, which is Infinity for a row that the mask hides as a whole. Null if something is not in
 * the heap, or under strict. What {@link takesBlocks} says no to must not come here. `most` is a multiple of 8.
 */
export function attentionByBlocks(attention: Attention, most: number = MOST_KEYS): readonly [result: Tensor, logs: Tensor] | null {
  const problem = isStrict() ? null : problemOf(attention, most)
  if (problem === null) return null
  const { lead, rows, count, depth, width, groups, q, k, v, kind, whole, room } = problem
  const [out, logs] = [Tensor.empty([...lead, rows, width], 'float32'), Tensor.empty([...lead, rows], 'float32')]
  const [outAt, logsAt] = [addressOf(out), addressOf(logs)]
  if (outAt === 0 || logsAt === 0) return null
  const isWhole = count <= most
  const kept = [whole * depth, count * width, ATTENTION_BLOCK * room, ATTENTION_BLOCK, ATTENTION_BLOCK, ATTENTION_BLOCK]
  const { heads, places, parts } = together(problem, kept)
  const [keyPanels = 0, valuePanels = 0, scores = 0, factors = 0, greatest = 0, sums = 0] = places
  const [packK, packV, run] = [keysKernel(heads).run, valuesKernel(heads).run, attendKernel(kind, isWhole ? 'all' : 'piece', heads).run]
  const pieces = isWhole ? null : { begin: beginKernel(heads).run, end: endKernel(kind, heads).run }
  for (const { first, inScratch, inOrder, operands, over } of parts) {
    const [ofKeys, ofValues] = [inScratch(whole * depth), inScratch(count * width)]
    const [ofScores, ofLine] = [inScratch(ATTENTION_BLOCK * room), inScratch(ATTENTION_BLOCK)]
    const [ofOut, ofLogs] = [inOrder(groups * rows * width), inOrder(groups * rows)]
    packK(keyPanels, k.places[first] ?? 0, count, depth, k.stride, ...over(ofKeys, operands.key))
    packV(valuePanels, v.places[first] ?? 0, count, width, v.stride, ...over(ofValues, operands.value))
    const masks = kind === 'added' ? [operands.mask] : []
    const panels = [operands.query, ofKeys, ofValues, ofScores, ofLine]
    const ofBlock = isWhole ? over(ofOut, ofLogs, ...panels, ...masks) : over(ofOut, ...panels, ofLine, ofLine, ...masks)
    for (let head = first * groups; head < (first + 1) * groups; head++) {
      const queryAt = q.places[head] ?? 0
      forBlocks(problem, (block) => {
        const { row, height, start } = block
        const at = (head * rows + row) * FLOAT_BYTES
        const [to, logsTo, from] = [outAt + at * width, logsAt + at, queryAt + row * q.stride * FLOAT_BYTES]
        const [keysAt, valuesAt] = [keyPanels + start * depth * FLOAT_BYTES, valuePanels + start * ATTENTION_PANEL * FLOAT_BYTES]
        if (pieces !== null && start === 0) pieces.begin(to, greatest, sums, height, width, ...over(ofOut, ofLine, ofLine))
        const args = isWhole ? [to, logsTo, from, keysAt, valuesAt, scores, factors] : [to, from, keysAt, valuesAt, scores, factors, greatest, sums]
        run(...withNumbers(args, problem, head, block, ofBlock))
        if (pieces !== null && block.isLast) pieces.end(to, logsTo, greatest, sums, height, width, ...over(ofOut, ofLogs, ofLine, ofLine))
      })
    }
  }
  return [out, logs]
}

/** What the backward pass knows of a call. */
export interface AttentionBackward extends Attention {
  readonly grad: Tensor
  readonly out: Tensor
  readonly logs: Tensor
}

/** The gradients of query, key and value. Null if something is not in the heap, the depth is not a multiple of 8, or under strict. */
export function attentionBackwardByBlocks(
  { grad, out, logs, ...attention }: AttentionBackward,
  most: number = MOST_KEYS,
): readonly [query: Tensor, key: Tensor, value: Tensor] | null {
  const problem = isStrict() ? null : problemOf(attention, most)
  if (problem === null || problem.depth % ATTENTION_PANEL !== 0) return null
  const { rows, count, depth, width, groups, q, k, v, kind, whole, room } = problem
  const gradients = [attention.query, attention.key, attention.value].map((x) => zeros(x.sizes, { dtype: 'float32' }))
  const [gradQuery = 0, gradKey = 0, gradValue = 0, gradAt = 0, outAt = 0, logsAt = 0] = [
    ...gradients,
    ...[grad, out, logs].map((x) => contiguous(x)),
  ].map(addressOf)
  if ([gradQuery, gradKey, gradValue, gradAt, outAt, logsAt].includes(0)) return null
  const kept = [whole * depth, count * depth, whole * width, ATTENTION_BLOCK * room, ATTENTION_BLOCK * room, ATTENTION_BLOCK]
  const { heads, places, parts } = together(problem, kept)
  const [keyPanels = 0, keyColumns = 0, valuePanels = 0, scores = 0, slopes = 0, means = 0] = places
  const [packK, packV, run] = [keysKernel(heads).run, valuesKernel(heads).run, backwardKernel(kind, heads).run]
  for (const { first, inScratch, inOrder, operands, over } of parts) {
    const [keyAt, valueAt] = [k.places[first] ?? 0, v.places[first] ?? 0]
    packK(keyPanels, keyAt, count, depth, k.stride, ...over(inScratch(whole * depth), operands.key))
    packV(keyColumns, keyAt, count, depth, k.stride, ...over(inScratch(count * depth), operands.key))
    packK(valuePanels, valueAt, count, width, v.stride, ...over(inScratch(whole * width), operands.value))
    const ofRows = groups * rows
    const results = [ofRows * depth, count * depth, count * width, ofRows * width, ofRows * width, ofRows].map(inOrder)
    const ofBlock = over(...results, operands.query, ...kept.map(inScratch), ...(kind === 'added' ? [operands.mask] : []))
    for (let head = first * groups; head < (first + 1) * groups; head++) {
      const queryAt = q.places[head] ?? 0
      forBlocks(problem, (block) => {
        const { row, start } = block
        const [at, from] = [(head * rows + row) * FLOAT_BYTES, (first * count + start) * FLOAT_BYTES]
        const args = [gradQuery + at * depth, gradKey + from * depth, gradValue + from * width]
        args.push(gradAt + at * width, outAt + at * width, logsAt + at, queryAt + row * q.stride * FLOAT_BYTES)
        args.push(keyPanels + start * depth * FLOAT_BYTES, keyColumns + start * ATTENTION_PANEL * FLOAT_BYTES)
        args.push(valuePanels + start * width * FLOAT_BYTES, scores, slopes, means)
        run(...withNumbers(args, problem, head, block, ofBlock))
      })
    }
  }
  const [query, key, value] = gradients
  return query === undefined || key === undefined || value === undefined ? null : [query, key, value]
}
