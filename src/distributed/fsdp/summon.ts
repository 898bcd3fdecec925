// Whole parameters for a while, outside forward and backward.
import { noGrad } from '../../autograd/index.ts'
import { ArgumentError, UnsupportedError } from '../../errors/index.ts'
import type { Module } from '../../module/index.ts'
import { checkCallable, checkCount, checkModule, checkOptions } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { allReduce } from '../inPlace.ts'
import { DistributedError } from '../errors.ts'
import { getRank } from '../processGroup.ts'
import type { FlatHandle } from './handle.ts'
import { forwards, summoned, unitOrNone, unitsIn } from './unit.ts'
import type { Unit } from './unit.ts'

/** Options of {@link summonFullParams}. */
export interface SummonOptions {
  /** Whether units inside `module` are included. Default true. */
  readonly recurse?: boolean
  /** Whether each rank keeps its part of what it has written. Default true. */
  readonly writeback?: boolean
  /** Whether only rank 0 sees whole parameters. Default false. */
  readonly rank0Only?: boolean
  /** Has no effect: there is one device. */
  readonly offloadToCpu?: boolean
  /** Whether gradients are whole, too; needs `useOrigParams`. Default false. */
  readonly withGrads?: boolean
}

/** A vector over the whole parameters of a unit, in their own dtype. */
function gathered(handle: FlatHandle): Tensor {
  const { local, layout } = handle
  if (!handle.isDivided) return new Tensor(local.sizes, local.dtype, local.storage)
  const full = Tensor.empty([layout.paddedNumel], local.dtype)
  handle.gatherInto(full)?.wait()
  return full
}

/** The gradients of all ranks' pieces; null if no rank has any. */
function gatheredGrads(handle: FlatHandle): Tensor | null {
  const { layout, infos, pieces, local, settings } = handle
  const shard = Tensor.empty([layout.shardNumel], local.dtype)
  const some = Tensor.empty([1], 'int32')
  noGrad(() => {
    shard.zero_()
    some.fill_(pieces.some(({ grad }) => grad !== null) ? 1 : 0)
    pieces.forEach(({ grad }, i) => {
      const { offsetInShard, numelInShard } = infos[i] ?? {}
      if (grad !== null && typeof offsetInShard === 'number' && typeof numelInShard === 'number')
        shard.narrow(0, offsetInShard, numelInShard).copy_(grad.reshape([numelInShard]))
    })
  })
  allReduce(some, { op: 'max', group: settings.shardGroup })
  if (some.item() === 0) return null
  if (layout.shards === 1) return shard
  const full = Tensor.empty([layout.paddedNumel], local.dtype)
  handle.gatherInto(full, shard)?.wait()
  return full
}

function showGrads(handle: FlatHandle, parameters: readonly Tensor[], grads: Tensor | null): void {
  const { layout } = handle
  parameters.forEach((parameter, i) => {
    if (grads !== null && parameter.requiresGrad)
      parameter.grad = noGrad(() => grads.narrow(0, layout.offsets[i] ?? 0, layout.numels[i] ?? 0).view(parameter.shape))
  })
}

/** Each rank keeps its part of gradients that were written to. */
function keepGrads(handle: FlatHandle, parameters: readonly Tensor[]): void {
  parameters.forEach(({ grad }, i) => {
    const piece = handle.pieces[i]
    if (piece === undefined || typeof handle.infos[i]?.offsetInShard !== 'number') return
    piece.grad = grad === null ? null : noGrad(() => handle.partOf(grad, i).clone().view(piece.shape))
  })
}

/** Shows whole parameters. Returns what shows the shards again. */
export function enterFullParams(units: readonly Unit[], options: SummonOptions = {}): () => void {
  const { writeback = true, rank0Only = false, withGrads = false } = options
  if (summoned.size > 0)
    throw new DistributedError('Cannot manually unshard parameters when already unsharding parameters: summonFullParams does not nest.')
  if (forwards.under > 0 || units.some(({ root }) => root?.isCallbackQueued === true))
    throw new DistributedError(
      'summonFullParams: forward or backward is under way, and needs the parameters as they are. Call it before or afterwards.',
    )
  const isShown = !rank0Only || getRank() === 0
  const shown = units.flatMap(({ handle }) => {
    if (handle === null) return []
    const full = gathered(handle)
    const grads = withGrads ? gatheredGrads(handle) : null
    if (!isShown) return []
    const parameters = handle.showParameters(full)
    if (withGrads) showGrads(handle, parameters, grads)
    return [{ handle, full, parameters }]
  })
  for (const unit of units) summoned.add(unit)
  return () => {
    for (const unit of units) summoned.delete(unit)
    for (const { handle, full, parameters } of shown) {
      const { layout, local } = handle
      // Where a rank has all, what was written stays.
      if (handle.isDivided && (writeback || layout.shards === 1)) noGrad(() => local.detach().copy_(handle.ownPart(full)))
      if (withGrads && writeback) keepGrads(handle, parameters)
      handle.showShards()
    }
  }
}

/**
 * Runs `fn` while the parameters of `module` are whole, under their original names. Afterwards each rank keeps its own part of what it has written, unless
 * `writeback` is false; where nothing is divided, all of it stays. All ranks must call it. PyTorch's `FSDP.summon_full_params`.
 *
 * @throws DistributedError inside forward, backward, or itself; UnsupportedError for `writeback` with `rank0Only`, and `withGrads` without `useOrigParams`.
 * @example summonFullParams(model, () => console.log(model.module.head.weight.shape))
 */
export function summonFullParams<T>(module: Module, fn: () => T, options: SummonOptions = {}): T {
  checkCount('summonFullParams', arguments, 3)
  const where = 'summonFullParams'
  checkOptions(where, options, { recurse: 'boolean', writeback: 'boolean', rank0Only: 'boolean', offloadToCpu: 'boolean', withGrads: 'boolean' })
  checkModule(where, 'module', module)
  checkCallable(where, 'fn', fn)
  const { recurse = true, writeback = true, rank0Only = false, withGrads = false } = options
  if (writeback && rank0Only)
    throw new UnsupportedError(
      'writeback=True and rank0_only=True is not supported yet: other ranks would not see what rank 0 writes. Pass { writeback: false }.',
    )
  const own = unitOrNone(module)
  const units = recurse ? unitsIn(module) : own === undefined ? [] : [own]
  if (withGrads && units.some(({ settings }) => !settings.useOrigParams))
    throw new UnsupportedError(
      'with_grads=True, use_orig_params=False, offload_to_cpu=False is not supported yet: wrap with { useOrigParams: true }.',
    )
  if (units.length === 0) throw new ArgumentError(`${where}: module contains no FullyShardedDataParallel.`)
  const exit = enterFullParams(units, { ...options })
  try {
    return fn()
  } finally {
    exit()
  }
}
