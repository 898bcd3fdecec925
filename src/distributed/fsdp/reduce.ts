// Gradients of a unit: from the whole of this rank to the shard of the mean over all ranks.
import { noGrad } from '../../autograd/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { reduction } from '../prepare.ts'
import type { Work } from '../work.ts'
import type { FlatHandle } from './handle.ts'

/** A reduction under way. */
export interface PendingReduction {
  /** Waits, and adds the result to the gradients of the trained parameters. */
  finish(): void
}

/** The part of the division by the number of ranks that is done before the sum, so that neither overflows nor underflows. */
function preFactor(ranks: number): number {
  let factor = 1
  while (ranks % factor === 0 && ranks / factor > factor) factor *= 2
  return factor
}

/** The gradient that each trained parameter has in a shard of the flat gradient; null where this rank has no part. */
function partsOf(handle: FlatHandle, shard: Tensor): readonly (Tensor | null)[] {
  if (!handle.settings.useOrigParams) return [shard]
  return handle.infos.map(({ offsetInShard, numelInShard }, i) => {
    const piece = handle.pieces[i]
    if (offsetInShard === null || numelInShard === null || piece?.requiresGrad !== true) return null
    return shard.narrow(0, offsetInShard, numelInShard).view(piece.shape)
  })
}

/** Adds a shard of the gradient to the gradients of the trained parameters. */
function addShard(handle: FlatHandle, shard: Tensor): void {
  noGrad(() =>
    partsOf(handle, shard).forEach((part, i) => {
      const tensor = handle.trained[i]
      if (tensor === undefined || part === null) return
      if (tensor.grad === null) tensor.grad = part
      else tensor.grad.add_(part)
    }),
  )
}

/** Starts to reduce the gradient that backward left in `handle.full.grad`. Returns null if there is none. */
export function startReduction(handle: FlatHandle): PendingReduction | null {
  const { full, settings, layout, local } = handle
  const { grad } = full
  if (grad === null) return null
  full.grad = null
  const { shardGroup, replicas, mixedPrecision } = settings
  const ranks = shardGroup.size * (replicas?.size ?? 1)
  const wanted = mixedPrecision.reduceDtype ?? mixedPrecision.paramDtype ?? local.dtype
  const before = preFactor(ranks)
  const { whole, rule } = noGrad(() => {
    const scaled = grad.detach().to(wanted)
    // A tensor of the engine may be another's too.
    const divided = before === 1 ? scaled : scaled.div(before)
    const sum = reduction('FullyShardedDataParallel', divided, 'sum', ranks)
    return { whole: handle.byRank(divided).to(sum.dtype).contiguous(), rule: sum }
  })
  let works: Work[]
  let result: Tensor
  if (layout.shards > 1) {
    result = Tensor.empty([layout.shardNumel], whole.dtype)
    works = [shardGroup.start({ kind: 'reducescatter', op: rule.op, input: whole, output: result })]
  } else {
    result = whole === grad ? noGrad(() => whole.clone()) : whole
    works = settings.strategy === 'NO_SHARD' ? [shardGroup.start({ kind: 'allreduce', op: 'sum', data: result })] : []
  }
  if (replicas !== null) {
    // The sum over replicas is of what the shards' sum leaves.
    for (const work of works) work.wait()
    works = [replicas.start({ kind: 'allreduce', op: 'sum', data: result })]
  }
  return {
    finish: () => {
      for (const work of works) work.wait()
      noGrad(() => {
        const mean = result.to(wanted).div(ranks / before)
        addShard(handle, mixedPrecision.keepLowPrecisionGrads === true ? mean : mean.to(local.dtype))
      })
    },
  }
}

/** After a backward inside noSync: the gradients of this rank alone are shown in place of the reduced ones. */
export function showUnreduced(handle: FlatHandle): void {
  const { full, layout, trained } = handle
  const { grad } = full
  if (grad === null) return
  if (!handle.showsUnreduced) handle.hiddenGrads = trained.map((tensor) => tensor.grad)
  handle.showsUnreduced = true
  noGrad(() =>
    trained.forEach((tensor, i) => {
      if (!tensor.requiresGrad) return
      tensor.grad = handle.settings.useOrigParams
        ? grad.narrow(0, layout.offsets[i] ?? 0, layout.numels[i] ?? 0).view(layout.entries[i]?.shape ?? [])
        : grad
    }),
  )
}

/** Before a backward: what noSync left is added to it, unless the program has dropped it. */
export function hideUnreduced(handle: FlatHandle): void {
  if (!handle.showsUnreduced) return
  handle.showsUnreduced = false
  const isDropped = handle.trained.every(({ grad }) => grad === null)
  if (isDropped) handle.full.grad = null
  handle.trained.forEach((tensor, i) => {
    tensor.grad = isDropped ? null : (handle.hiddenGrads[i] ?? null)
  })
  handle.hiddenGrads = []
}
