// A tensor of which each rank holds a part. PyTorch's ShardedTensor.
import { noGrad } from '../autograd/index.ts'
import { ArgumentError, messageOf } from '../errors/index.ts'
import { TENSOR, checkArgument, checkArray, checkCount, checkMethod, isPlainObject, valueText } from '../protocol/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import { Tensor, checkTensor, formatShape } from '../tensor/index.ts'
import type { DType } from '../kernels/index.ts'
import { decode, integer, list, object, string } from '../protocol/decode.ts'
import { broadcast } from './inPlace.ts'
import { allGatherObject } from './objects.ts'
import { groupOr } from './processGroup.ts'
import type { ProcessGroup } from './processGroup.ts'

/** Where a part lies in the whole tensor, and which rank of the group holds it. */
export interface ShardMetadata {
  readonly offsets: readonly number[]
  readonly sizes: readonly number[]
  readonly rank: number
}

/** A part that this rank holds. */
export interface Shard {
  readonly tensor: Tensor
  readonly offsets: readonly number[]
}

/** The rows of each rank if dimension 0 is cut into equal parts, of which the last may be shorter, or missing. PyTorch's `torch.chunk`. */
export function chunkRows(rows: number, ranks: number): readonly { readonly start: number; readonly count: number }[] {
  const size = Math.ceil(rows / ranks)
  return Array.from({ length: ranks }, (_, rank) => {
    const start = Math.min(rows, rank * size)
    return { start, count: Math.min(rows, start + size) - start }
  })
}

/** A part of a tensor, along every dimension. */
function part(tensor: Tensor, offsets: readonly number[], sizes: readonly number[]): Tensor {
  return offsets.reduce((view, offset, dim) => view.narrow(dim, offset, sizes[dim] ?? 0), tensor)
}

const SIZES = list(integer(0), 64)
const METADATA = object({ offsets: SIZES, sizes: SIZES, rank: integer(0) })

/** What a rank says of its parts, or why it has none to pass. */
const ANSWER = object({ own: list(METADATA, 100_000), problem: string(10_000) })

const checkSizes = (where: string, name: string, value: unknown): readonly number[] => decode(where, SIZES, value, name)

/** Where this rank's parts lie. Throws ArgumentError if they are none. */
function describeShards(where: string, shards: readonly Shard[], shape: readonly number[], dtype: DType, rank: number): readonly ShardMetadata[] {
  checkArray(where, 'shards', shards)
  checkSizes(where, 'shape', shape)
  return shards.map((shard, i) => {
    checkArgument(isPlainObject(shard) && Array.isArray(shard['offsets']), where, `shards[${i}]`, 'an object { tensor, offsets }', shard)
    const { tensor, offsets } = shard
    checkSizes(where, `shards[${i}].offsets`, offsets)
    if (!(tensor instanceof Tensor) || tensor.dtype !== dtype || offsets.length !== shape.length)
      throw new ArgumentError(
        `${where}: shards[${i}] must be a ${dtype} Tensor with ${shape.length} offsets, got ${tensor instanceof Tensor ? `one of ${tensor.dtype} and shape ${formatShape(tensor.shape)}` : valueText(tensor)} at [${String(offsets)}].`,
      )
    return { offsets, sizes: tensor.shape, rank }
  })
}

/** Whether two parts have an element in common. */
export const overlap = (a: Omit<ShardMetadata, 'rank'>, b: Omit<ShardMetadata, 'rank'>): boolean =>
  a.offsets.every((start, d) => start < (b.offsets[d] ?? 0) + (b.sizes[d] ?? 0) && (b.offsets[d] ?? 0) < start + (a.sizes[d] ?? 0))

/**
 * The first element that is in no part; null if there is none. The element before it, along each dimension, is in a part that ends there, so that only the ends of
 * parts are compared.
 */
function firstMissing(shape: readonly number[], parts: readonly ShardMetadata[]): readonly number[] | null {
  const places = shape.map((size, d) => {
    const ends = parts.map(({ offsets, sizes }) => (offsets[d] ?? 0) + (sizes[d] ?? 0))
    return [...new Set([0, ...ends])].filter((place) => place < size).toSorted((a, b) => a - b)
  })
  const search = (start: readonly number[], left: readonly ShardMetadata[]): readonly number[] | null => {
    const d = start.length
    if (d === shape.length) return left.length === 0 ? start : null
    for (const place of places[d] ?? []) {
      const around = left.filter(({ offsets, sizes }) => (offsets[d] ?? 0) <= place && place < (offsets[d] ?? 0) + (sizes[d] ?? 0))
      const found = search([...start, place], around)
      if (found !== null) return found
    }
    return null
  }
  return search([], parts)
}

/**
 * A tensor in parts on several ranks, as sharded state dicts hold them. Every rank knows where all parts are. PyTorch's `ShardedTensor`.
 *
 * @example const whole = state.get('fc.weight').fullTensor()
 */
export class ShardedTensor implements TensorLike {
  declare readonly [TENSOR]: true
  readonly isParameter = false
  requiresGrad = false
  grad: unknown = null
  readonly shape: readonly number[]
  readonly dtype: DType
  readonly localShards: readonly Shard[]
  /** All parts, by rank. */
  readonly metadata: readonly ShardMetadata[]
  readonly group: ProcessGroup

  /** @internal */
  constructor(shape: readonly number[], dtype: DType, localShards: readonly Shard[], metadata: readonly ShardMetadata[], group: ProcessGroup) {
    this.shape = shape
    this.dtype = dtype
    this.localShards = localShards
    this.metadata = metadata
    this.group = group
  }

  /**
   * The parts that the ranks hold, together. All ranks of the group call it; one without parts passes an empty list. PyTorch's
   * `ShardedTensor._init_from_local_shards`.
   *
   * @throws ArgumentError unless the parts cover the shape, each element once, in one dtype.
   */
  static fromLocalShards(shards: readonly Shard[], shape: readonly number[], dtype: DType, group?: ProcessGroup): ShardedTensor {
    checkCount('fromLocalShards', arguments, 4)
    const where = 'ShardedTensor.fromLocalShards'
    const members = groupOr(group)
    let problem = ''
    let own: readonly ShardMetadata[] = []
    try {
      own = describeShards(where, shards, shape, dtype, members.rank)
    } catch (error) {
      // The others wait for what this rank says, so it says that.
      problem = messageOf(error).replace(`${where}: `, '')
    }
    const answers = allGatherObject({ own, problem }, members).map((answer, rank) =>
      decode(where, ANSWER, answer, `what rank ${rank} says of its parts`),
    )
    if (problem !== '') throw new ArgumentError(`${where}: ${problem}`)
    const failed = answers.findIndex((answer) => answer.problem !== '')
    if (failed >= 0) throw new ArgumentError(`${where}: rank ${failed} cannot pass its parts: ${answers[failed]?.problem ?? ''}`)
    const all = answers.flatMap((answer) => answer.own)
    for (const [i, one] of all.entries()) {
      const isInside = one.sizes.length === shape.length && shape.every((size, d) => (one.offsets[d] ?? 0) + (one.sizes[d] ?? 0) <= size)
      if (!isInside)
        throw new ArgumentError(
          `${where}: a part of shape [${one.sizes.join(', ')}] at [${one.offsets.join(', ')}] is outside of the tensor of shape [${shape.join(', ')}].`,
        )
      const other = all.slice(0, i).find((earlier) => overlap(earlier, one))
      if (other !== undefined)
        throw new ArgumentError(
          `${where}: the parts at [${other.offsets.join(', ')}] and [${one.offsets.join(', ')}] overlap. Each element must be in one part.`,
        )
    }
    const covered = all.reduce((sum, { sizes }) => sum + sizes.reduce((a, b) => a * b, 1), 0)
    const numel = shape.reduce((a, b) => a * b, 1)
    if (covered !== numel)
      throw new ArgumentError(
        `${where}: the parts of all ranks have ${covered} elements, the tensor of shape [${shape.join(', ')}] has ${numel}. ` +
          `The first missing element is at [${firstMissing(shape, all)?.join(', ') ?? ''}]: pass all parts that were saved, each on one rank.`,
      )
    return new ShardedTensor(shape, dtype, shards, all, members)
  }

  /** This rank's rows of a tensor that all ranks have. Nothing is sent. */
  static chunk(whole: Tensor, group?: ProcessGroup): ShardedTensor {
    checkCount('ShardedTensor.chunk', arguments, 2)
    const members = groupOr(group)
    checkTensor('ShardedTensor.chunk', 'whole', whole)
    const [rows = 0, ...rest] = whole.shape
    const chunks = chunkRows(rows, members.size)
    const metadata = chunks.flatMap(({ start, count }, rank) =>
      count === 0 ? [] : [{ offsets: [start, ...rest.map(() => 0)], sizes: [count, ...rest], rank }],
    )
    const local = metadata
      .filter(({ rank }) => rank === members.rank)
      .map(({ offsets, sizes }) => ({ tensor: noGrad(() => part(whole.detach(), offsets, sizes).clone()), offsets }))
    return new ShardedTensor(whole.shape, whole.dtype, local, metadata, members)
  }

  /** The whole tensor, on every rank. All ranks of the group must call it. */
  fullTensor(): Tensor {
    checkMethod(this, 'fullTensor', arguments, 0)
    const full = Tensor.empty(this.shape, this.dtype)
    const own = [...this.localShards]
    for (const { offsets, sizes, rank } of this.metadata) {
      const local = rank === this.group.rank ? own.shift()?.tensor : undefined
      const data = noGrad(() => local?.detach().clone() ?? Tensor.empty(sizes, this.dtype))
      broadcast(data, this.group.ranks[rank] ?? 0, { group: this.group })
      noGrad(() => part(full, offsets, sizes).copy_(data))
    }
    return full
  }

  toString(): string {
    const parts = this.metadata.map(({ offsets, sizes, rank }) => `[${sizes.join(', ')}] at [${offsets.join(', ')}] on rank ${rank}`)
    return `ShardedTensor(shape=[${this.shape.join(', ')}], ${this.dtype}: ${parts.join('; ')})`
  }
}
Object.defineProperty(ShardedTensor.prototype, TENSOR, { value: true })
