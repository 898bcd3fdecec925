// Attention in blocks of query rows: the scores of a few rows at a time are all that is ever in memory.
import type { Size } from '../../../protocol/index.ts'
import {
  ATTENTION_BLOCK,
  ATTENTION_PANEL,
  attend,
  attendBackward,
  beginPieces,
  compileInTiles,
  compileKernel,
  endPieces,
  isStrict,
  packKeys,
  packValues,
} from '../../../kernels/index.ts'
import type { AttentionKeys, AttentionMask } from '../../../kernels/index.ts'
import { Tensor, numelOf, sameShape, sizeEq, sizeLess, sizeMod, hasNoElements } from '../../../tensor/index.ts'
import { zeros } from '../../create/creation.ts'
import { kernelCache, scratchMemory } from '../../eager/launch.ts'
import { sizeAt } from '../../shared/shapes.ts'
import { contiguous } from '../../view/reshape.ts'
import { expand } from '../../view/windows.ts'

const keysKernel = kernelCache(() => compileKernel(packKeys()))
const valuesKernel = kernelCache(() => compileKernel(packValues()))
const attendKernel = kernelCache((mask: AttentionMask, keys: AttentionKeys) => compileInTiles((engine) => attend(mask, keys, engine)))
const beginKernel = kernelCache(() => compileKernel(beginPieces()))
const endKernel = kernelCache((mask: AttentionMask) => compileKernel(endPieces(mask)))
const backwardKernel = kernelCache((mask: AttentionMask) => compileInTiles((engine) => attendBackward(mask, engine)))

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

/** The arguments of a kernel for a block: `args`, with what comes after the buffers that all masks have. */
function withNumbers(args: number[], problem: Problem, head: number, { row, height, start, keys }: Block): number[] {
  const { q, m, kind, count, depth, width, room, scale } = problem
  if (m !== null) args.push((m.places[head] ?? 0) + (row * m.stride + start) * FLOAT_BYTES)
  args.push(height, keys, count, depth, width, room, q.stride)
  if (m !== null) args.push(m.stride)
  if (kind === 'causal') args.push(row - start)
  args.push(scale)
  return args
}

/**
 * The result, and for each row the logarithm of the sum of its scores' exponentials, which is Infinity for a row that the mask hides as a whole. Null if something is not in
 * the heap, or under strict. What {@link takesBlocks} says no to must not come here. `most` is a multiple of 8.
 */
export function attentionByBlocks(attention: Attention, most: number = MOST_KEYS): readonly [result: Tensor, logs: Tensor] | null {
  const problem = isStrict() ? null : problemOf(attention, most)
  if (problem === null) return null
  const { lead, rows, count, depth, width, owners, groups, q, k, v, kind, whole, room } = problem
  const [out, logs] = [Tensor.empty([...lead, rows, width], 'float32'), Tensor.empty([...lead, rows], 'float32')]
  const [outAt, logsAt] = [addressOf(out), addressOf(logs)]
  if (outAt === 0 || logsAt === 0) return null
  const pieces = count > most ? { begin: beginKernel().run, end: endKernel(kind).run } : null
  const [keyPanels = 0, valuePanels = 0, scores = 0, factors = 0, greatest = 0, sums = 0] = scratchFor(
    ...[whole * depth, count * width, ATTENTION_BLOCK * room, ATTENTION_BLOCK, ATTENTION_BLOCK, ATTENTION_BLOCK],
  )
  const [packK, packV, run] = [keysKernel().run, valuesKernel().run, attendKernel(kind, pieces === null ? 'all' : 'piece').run]
  for (let owner = 0; owner < owners; owner++) {
    packK(keyPanels, k.places[owner] ?? 0, count, depth, k.stride)
    packV(valuePanels, v.places[owner] ?? 0, count, width, v.stride)
    for (let head = owner * groups; head < (owner + 1) * groups; head++) {
      const queryAt = q.places[head] ?? 0
      forBlocks(problem, (block) => {
        const { row, height, start } = block
        const at = (head * rows + row) * FLOAT_BYTES
        const [to, logsTo, from] = [outAt + at * width, logsAt + at, queryAt + row * q.stride * FLOAT_BYTES]
        const [keysAt, valuesAt] = [keyPanels + start * depth * FLOAT_BYTES, valuePanels + start * ATTENTION_PANEL * FLOAT_BYTES]
        if (pieces !== null && start === 0) pieces.begin(to, greatest, sums, height, width)
        const args =
          pieces === null ? [to, logsTo, from, keysAt, valuesAt, scores, factors] : [to, from, keysAt, valuesAt, scores, factors, greatest, sums]
        run(...withNumbers(args, problem, head, block))
        if (pieces !== null && block.isLast) pieces.end(to, logsTo, greatest, sums, height, width)
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
  const { rows, count, depth, width, owners, groups, q, k, v, kind, whole, room } = problem
  const gradients = [attention.query, attention.key, attention.value].map((x) => zeros(x.sizes, { dtype: 'float32' }))
  const [gradQuery = 0, gradKey = 0, gradValue = 0, gradAt = 0, outAt = 0, logsAt = 0] = [
    ...gradients,
    ...[grad, out, logs].map((x) => contiguous(x)),
  ].map(addressOf)
  if ([gradQuery, gradKey, gradValue, gradAt, outAt, logsAt].includes(0)) return null
  const [keyPanels = 0, keyColumns = 0, valuePanels = 0, scores = 0, slopes = 0, means = 0] = scratchFor(
    ...[whole * depth, count * depth, whole * width, ATTENTION_BLOCK * room, ATTENTION_BLOCK * room, ATTENTION_BLOCK],
  )
  const [packK, packV, run] = [keysKernel().run, valuesKernel().run, backwardKernel(kind).run]
  for (let owner = 0; owner < owners; owner++) {
    const [keyAt, valueAt] = [k.places[owner] ?? 0, v.places[owner] ?? 0]
    packK(keyPanels, keyAt, count, depth, k.stride)
    packV(keyColumns, keyAt, count, depth, k.stride)
    packK(valuePanels, valueAt, count, width, v.stride)
    for (let head = owner * groups; head < (owner + 1) * groups; head++) {
      const queryAt = q.places[head] ?? 0
      forBlocks(problem, (block) => {
        const { row, start } = block
        const [at, first] = [(head * rows + row) * FLOAT_BYTES, (owner * count + start) * FLOAT_BYTES]
        const args = [gradQuery + at * depth, gradKey + first * depth, gradValue + first * width]
        args.push(gradAt + at * width, outAt + at * width, logsAt + at, queryAt + row * q.stride * FLOAT_BYTES)
        args.push(keyPanels + start * depth * FLOAT_BYTES, keyColumns + start * ATTENTION_PANEL * FLOAT_BYTES)
        args.push(valuePanels + start * width * FLOAT_BYTES, scores, slopes, means)
        run(...withNumbers(args, problem, head, block))
      })
    }
  }
  const [query, key, value] = gradients
  return query === undefined || key === undefined || value === undefined ? null : [query, key, value]
}
