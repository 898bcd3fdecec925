// Parameters divided along one dimension each, by rows unless they are told otherwise: each rank stores an equal share of every parameter, and each parameter stays
// a tensor of its own.
import { noGrad } from '../../autograd/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { chunkRows } from '../shardedTensor.ts'
import { joinPath } from './flatParameter.ts'
import type { FlatEntry, FlatLayout, FlatSegment, ShardParamInfo } from './flatParameter.ts'
import { FlatHandle, keepingVersion } from './handle.ts'
import type { Gathering } from './handle.ts'
import type { UnitParameters } from './parameters.ts'

const product = (sizes: readonly number[]): number => sizes.reduce((a, b) => a * b, 1)

/** The dimension along which a parameter is divided. */
const dimOf = ({ shardDim = 0 }: FlatEntry): number => shardDim

/** Elements for each step along the dimension that is divided. */
const widthOf = (entry: FlatEntry): number => product(entry.shape.filter((_, dim) => dim !== dimOf(entry)))

/** How many steps along its dimension each rank stores, those that only fill up included. */
const stepsOf = (entry: FlatEntry, shards: number): number => Math.ceil((entry.shape[dimOf(entry)] ?? 1) / shards)

/** How many elements of a parameter each rank stores, those that only fill up included. */
const shareOf = (entry: FlatEntry, shards: number): number => stepsOf(entry, shards) * widthOf(entry)

/** The shape in which a whole parameter shows the shares of the ranks: dimension 1 counts these. */
function sharesShape(entry: FlatEntry, shards: number): readonly [outer: number, shards: number, steps: number, inner: number] {
  return [product(entry.shape.slice(0, dimOf(entry))), shards, stepsOf(entry, shards), product(entry.shape.slice(dimOf(entry) + 1))]
}

/** Whole parameters lie one after the other, each followed by what fills up the last shares. */
export function rowLayout({ entries, shared }: Pick<UnitParameters, 'entries' | 'shared'>, shards: number): FlatLayout {
  const segments: FlatSegment[] = []
  const offsets: number[] = []
  const numels: number[] = []
  let at = 0
  for (const entry of entries) {
    const numel = product(entry.shape)
    const room = shareOf(entry, shards) * shards
    offsets.push(at)
    numels.push(numel)
    segments.push({ offset: at, numel, isPadding: false })
    if (room > numel) segments.push({ offset: at + numel, numel: room - numel, isPadding: true })
    at += room
  }
  return {
    entries,
    shared,
    names: entries.map(({ name, modulePath }) => joinPath(modulePath, name)),
    numels,
    offsets,
    segments,
    numel: at,
    shards,
    shardNumel: at / shards,
    paddedNumel: at,
  }
}

/** The steps along its dimension that a rank stores of a parameter. */
function ownSteps({ entries, shards }: FlatLayout, rank: number, index: number): { readonly start: number; readonly count: number } {
  const entry = entries[index]
  return chunkRows(entry === undefined ? 1 : (entry.shape[dimOf(entry)] ?? 1), shards)[rank] ?? { start: 0, count: 0 }
}

/**
 * For each parameter two views of shape [ranks, outer, steps, inner]: of its place among whole parameters, and of its stretch of every rank's shard. What is copied
 * from one to the other comes into the other's order.
 */
function* sharesOf(layout: FlatLayout, full: Tensor, ordered: Tensor): Generator<readonly [inFull: Tensor, inShards: Tensor]> {
  const { shards, shardNumel } = layout
  const rows = ordered.view([shards, shardNumel])
  let inShard = 0
  for (const [i, entry] of layout.entries.entries()) {
    const share = shareOf(entry, shards)
    const shape = sharesShape(entry, shards)
    const [outer, , steps, inner] = shape
    const whole = full.detach().narrow(0, layout.offsets[i] ?? 0, share * shards)
    yield [whole.view(shape).permute([1, 0, 2, 3]), rows.narrow(1, inShard, share).view([shards, outer, steps, inner])]
    inShard += share
  }
}

/** The parameters of a module that `fullyShard` divides. Its methods run in the constructor of the base class. */
export class RowHandle extends FlatHandle {
  protected override makeLayout(parameters: UnitParameters, shards: number): FlatLayout {
    return rowLayout(parameters, shards)
  }

  protected override makeInfos(): readonly ShardParamInfo[] {
    let at = 0
    return this.layout.entries.map((entry, i) => {
      const offsetInShard = at
      at += shareOf(entry, this.layout.shards)
      const { start, count } = ownSteps(this.layout, this.rank, i)
      const width = widthOf(entry)
      const isStretch = dimOf(entry) === 0
      // A rank without rows has an empty part, and an empty gradient.
      return {
        inShard: count > 0,
        offsetInShard,
        numelInShard: count * width,
        intraParamStartIdx: isStretch ? start * width : null,
        intraParamEndIdx: isStretch ? (start + count) * width - 1 : null,
      }
    })
  }

  protected override pieceShape(index: number): readonly number[] {
    const entry = this.layout.entries[index]
    if (entry === undefined) return []
    const { count } = ownSteps(this.layout, this.rank, index)
    return entry.shape.length === 0 ? [count] : entry.shape.map((size, dim) => (dim === dimOf(entry) ? count : size))
  }

  override partOf(whole: Tensor, index: number): Tensor {
    const entry = this.layout.entries[index]
    if (entry === undefined || dimOf(entry) === 0) return super.partOf(whole, index)
    const { start, count } = ownSteps(this.layout, this.rank, index)
    return whole
      .detach()
      .view(entry.shape)
      .narrow(dimOf(entry), start, count)
      .reshape([count * widthOf(entry)])
  }

  override byRank(full: Tensor): Tensor {
    const { shards, paddedNumel } = this.layout
    if (shards === 1) return full
    const ordered = Tensor.empty([paddedNumel], full.dtype)
    for (const [inFull, inShards] of sharesOf(this.layout, full, ordered)) inShards.copy_(inFull)
    return ordered
  }

  override gatherInto(target: Tensor, shard: Tensor = this.local): Gathering | null {
    const { shards, paddedNumel } = this.layout
    if (shards === 1) return super.gatherInto(target, shard)
    const input = noGrad(() => shard.detach().to(target.dtype))
    const gathered = Tensor.empty([paddedNumel], target.dtype)
    const work = this.settings.shardGroup.start({ kind: 'allgather', input, output: gathered })
    return {
      isCompleted: () => work.isCompleted(),
      wait: () => {
        work.wait()
        // Written through other tensors on the same memory.
        keepingVersion(target, () =>
          noGrad(() => {
            for (const [inFull, inShards] of sharesOf(this.layout, target, gathered)) inFull.copy_(inShards)
          }),
        )
      },
    }
  }
}
