// Parameters divided by rows: each rank stores an equal share of the rows of every parameter, and each parameter stays a tensor of its own.
import { noGrad } from '../../autograd/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { chunkRows } from '../shardedTensor.ts'
import { joinPath } from './flatParameter.ts'
import type { FlatEntry, FlatLayout, FlatSegment, ShardParamInfo } from './flatParameter.ts'
import { FlatHandle } from './handle.ts'
import type { Gathering } from './handle.ts'
import type { UnitParameters } from './parameters.ts'

const widthOf = ({ shape }: FlatEntry): number => shape.slice(1).reduce((a, b) => a * b, 1)

/** How many elements of a parameter each rank stores, those that only fill up included. */
const shareOf = (entry: FlatEntry, shards: number): number => Math.ceil((entry.shape[0] ?? 1) / shards) * widthOf(entry)

/** Whole parameters lie one after the other, each followed by what fills up the last shares. */
export function rowLayout({ entries, shared }: Pick<UnitParameters, 'entries' | 'shared'>, shards: number): FlatLayout {
  const segments: FlatSegment[] = []
  const offsets: number[] = []
  const numels: number[] = []
  let at = 0
  for (const entry of entries) {
    const numel = entry.shape.reduce((a, b) => a * b, 1)
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

/** The rows of a parameter that a rank stores. */
function rowsOf({ entries, shards }: FlatLayout, rank: number, index: number): { readonly start: number; readonly count: number } {
  return chunkRows(entries[index]?.shape[0] ?? 1, shards)[rank] ?? { start: 0, count: 0 }
}

/** For each parameter its place among whole parameters, and the stretch of each rank's shard. */
function* sharesOf(layout: FlatLayout): Generator<{ readonly offset: number; readonly share: number; readonly inShard: number }> {
  let inShard = 0
  for (const [i, entry] of layout.entries.entries()) {
    const share = shareOf(entry, layout.shards)
    yield { offset: layout.offsets[i] ?? 0, share, inShard }
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
      const { start, count } = rowsOf(this.layout, this.rank, i)
      const width = widthOf(entry)
      // A rank without rows has an empty part, and an empty gradient.
      return {
        inShard: count > 0,
        offsetInShard,
        numelInShard: count * width,
        intraParamStartIdx: start * width,
        intraParamEndIdx: (start + count) * width - 1,
      }
    })
  }

  protected override pieceShape(index: number): readonly number[] {
    const { shape = [] } = this.layout.entries[index] ?? {}
    return [rowsOf(this.layout, this.rank, index).count, ...shape.slice(1)]
  }

  override byRank(full: Tensor): Tensor {
    const { shards, shardNumel, paddedNumel } = this.layout
    if (shards === 1) return full
    const ordered = Tensor.empty([paddedNumel], full.dtype)
    const rows = ordered.view([shards, shardNumel])
    for (const { offset, share, inShard } of sharesOf(this.layout))
      rows.narrow(1, inShard, share).copy_(
        full
          .detach()
          .narrow(0, offset, share * shards)
          .view([shards, share]),
      )
    return ordered
  }

  override gatherInto(target: Tensor, shard: Tensor = this.local): Gathering | null {
    const { shards, shardNumel, paddedNumel } = this.layout
    if (shards === 1) return super.gatherInto(target, shard)
    const input = noGrad(() => shard.detach().to(target.dtype))
    const gathered = Tensor.empty([paddedNumel], target.dtype)
    const work = this.settings.shardGroup.start({ kind: 'allgather', input, output: gathered })
    return {
      isCompleted: () => work.isCompleted(),
      wait: () => {
        work.wait()
        noGrad(() => {
          const rows = gathered.view([shards, shardNumel])
          // Written through another tensor on the same memory, and without a new version: what forward saved are the same numbers.
          const version = target.storage?.version ?? 0
          for (const { offset, share, inShard } of sharesOf(this.layout))
            target
              .detach()
              .narrow(0, offset, share * shards)
              .view([shards, share])
              .copy_(rows.narrow(1, inShard, share))
          if (target.storage !== null) target.storage.version = version
        })
      },
    }
  }
}
