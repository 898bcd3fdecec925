// What happens around forward and during backward: units are gathered before they compute, freed afterwards, and their gradients reduced. The order of the first
// step tells which unit comes next.
import { queueBackwardCallback, registerHook } from '../../autograd/index.ts'
import { dispatchState } from '../../dispatch/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { setAttribute } from '../../module/index.ts'
import { treeLeaves, treeMap } from '../../pytree/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { DistributedError } from '../errors.ts'
import type { FlatHandle } from './handle.ts'
import { reshardsAfterForward } from './options.ts'
import { hideUnreduced, showUnreduced, startReduction } from './reduce.ts'
import { forwards, summoned, unitsIn } from './unit.ts'
import type { RootState, Unit } from './unit.ts'

/** How many units may be under way at a time. */
const MAX_GATHERS = 2

/** The units of handles, for hooks that know only the handle. */
const unitOfHandle = new WeakMap<FlatHandle, Unit>()

/** Makes `unit` the root, if no other unit is above it. */
export function makeRoot(unit: Unit): RootState {
  if (unit.root !== null) return unit.root
  const units = unitsIn(unit.wrapper)
  for (const other of units) {
    if (other !== unit && other.isRoot !== null)
      throw new ArgumentError(
        "Non-root FSDP instance's `_is_root` should not have been set yet or should have been set to `False`: " +
          `the unit ${other.inner.getName()} has run by itself, so it is a root. Run the outermost module first.`,
      )
  }
  const root: RootState = {
    unit,
    units,
    forwardOrder: [],
    isFirstForward: true,
    postForwardOrder: [],
    gathering: new Set(),
    reductions: [],
    isCallbackQueued: false,
  }
  for (const other of units) {
    other.isRoot = other === unit
    other.root = root
    if (other.handle !== null) unitOfHandle.set(other.handle, other)
    castBuffers(other)
  }
  return root
}

function castBuffers({ inner, settings }: Unit): void {
  const { bufferDtype } = settings.mixedPrecision
  if (bufferDtype === undefined || bufferDtype === null) return
  for (const module of inner.modules())
    for (const [name, buffer] of module.ownBuffers())
      if (buffer instanceof Tensor && dtypeInfo[buffer.dtype].floating) setAttribute(module, name, buffer.to(bufferDtype))
}

function unshard(root: RootState, handle: FlatHandle): void {
  if (handle.settings.limitAllGathers)
    for (const other of root.gathering) {
      if (!other.isGathering) root.gathering.delete(other)
      else if (root.gathering.size >= MAX_GATHERS) {
        other.waitUnshard()
        root.gathering.delete(other)
      }
    }
  handle.startUnshard()
  if (handle.isGathering) root.gathering.add(handle)
}

function awaitUnshard(root: RootState, handle: FlatHandle): void {
  handle.waitUnshard()
  root.gathering.delete(handle)
}

/** Starts to gather the unit that comes after `handle`. */
function prefetch(root: RootState, handle: FlatHandle, direction: 'forward' | 'backward'): void {
  const order = direction === 'forward' ? root.forwardOrder : root.postForwardOrder
  const at = direction === 'forward' ? order.indexOf(handle) + 1 : order.lastIndexOf(handle) - 1
  const next = order[at]
  if (next === undefined || (direction === 'forward' && at === 0)) return
  const needs = direction === 'forward' ? next.progress.needsForward : next.progress.needsBackward
  if (!needs || next.progress.isPrefetched) return
  unshard(root, next)
  next.progress.isPrefetched = true
}

function cast(args: readonly unknown[], dtype: DType): readonly unknown[] {
  return args.map((arg) => treeMap(arg, (leaf) => (leaf instanceof Tensor && dtypeInfo[leaf.dtype].floating ? leaf.to(dtype) : leaf)))
}

function castInputs(unit: Unit, args: readonly unknown[]): readonly unknown[] {
  const { paramDtype, castForwardInputs = false, castRootForwardInputs = true } = unit.settings.mixedPrecision
  const wanted = unit.isRoot === true ? castRootForwardInputs : castForwardInputs
  return wanted && paramDtype !== undefined && paramDtype !== null ? cast(args, paramDtype) : args
}

function startForward(root: RootState): void {
  root.postForwardOrder = []
  // A backward that failed has not come to its end.
  root.isCallbackQueued = false
  for (const { handle } of root.units) {
    if (handle === null) continue
    Object.assign(handle.progress, { needsForward: true, isPrefetched: false, ranPreBackward: false, ranPostBackward: false })
  }
}

/** Runs a unit's forward: `call` computes with the full parameters. */
export function runForward<T>(unit: Unit, args: readonly unknown[], call: (args: readonly unknown[]) => T): T {
  if (summoned.size > 0)
    throw new DistributedError(
      'FullyShardedDataParallel: forward was called inside summonFullParams, in which parameters must stay as they are. Call it before or afterwards.',
    )
  const root = makeRoot(unit)
  const { handle } = unit
  if (unit.isRoot === true) startForward(root)
  const inputs = castInputs(unit, args)
  forwards.under++
  try {
    if (handle !== null) {
      if (root.isFirstForward && !root.forwardOrder.includes(handle)) root.forwardOrder.push(handle)
      if (!handle.progress.isPrefetched) unshard(root, handle)
      handle.progress.needsForward = false
      if (unit.settings.forwardPrefetch && !root.isFirstForward) prefetch(root, handle, 'forward')
      awaitUnshard(root, handle)
      handle.progress.isPrefetched = false
      handle.showViews()
    }
    const output = call(inputs)
    if (handle !== null) {
      root.postForwardOrder.push(handle)
      reshardAfterForward(unit, handle)
    }
    if (unit.isRoot === true) root.isFirstForward = false
    return hookOutput(root, unit, output)
  } catch (error) {
    if (handle !== null) {
      handle.reshard(true)
      handle.showShards()
    }
    throw error
  } finally {
    forwards.under--
  }
}

function reshardAfterForward(unit: Unit, handle: FlatHandle): void {
  handle.reshard((unit.isRoot !== true || unit.settings.reshardsRoot) && reshardsAfterForward(unit.settings.strategy))
  handle.showShards()
}

/** Backward through the output will need the parameters again. */
function hookOutput<T>(root: RootState, unit: Unit, output: T): T {
  if (!dispatchState.gradEnabled) return output
  const { handle } = unit
  let isNeeded = false
  for (const leaf of treeLeaves(output)) {
    if (!(leaf instanceof Tensor) || !leaf.requiresGrad) continue
    isNeeded = true
    registerHook(leaf, () => beforeBackward(root, unit))
  }
  if (handle !== null && isNeeded) handle.progress.needsBackward = true
  return output
}

function beforeBackward(root: RootState, unit: Unit): void {
  if (!root.isCallbackQueued) {
    root.isCallbackQueued = true
    queueBackwardCallback(() => endBackward(root))
  }
  const { handle } = unit
  if (handle === null || handle.progress.ranPreBackward) return
  const { progress } = handle
  progress.ranPreBackward = true
  if (!progress.isPrefetched) unshard(root, handle)
  progress.needsBackward = false
  if (unit.settings.backwardPrefetch === 'BACKWARD_PRE') prefetch(root, handle, 'backward')
  awaitUnshard(root, handle)
  progress.isPrefetched = false
  hideUnreduced(handle)
}

/** All gradients of a unit have come. */
export function afterGradient(handle: FlatHandle): void {
  const unit = unitOfHandle.get(handle)
  const root = unit?.root ?? null
  if (unit === undefined || root === null) return
  handle.progress.ranPostBackward = true
  const { strategy } = unit.settings
  handle.reshard(strategy !== 'NO_SHARD' && (unit.sync || reshardsAfterForward(strategy)))
  if (unit.settings.backwardPrefetch === 'BACKWARD_POST') prefetch(root, handle, 'backward')
  if (!unit.sync) return
  // One reduction at a time is under way, so that at most two units' gradients are in memory.
  root.reductions.shift()?.finish()
  const reduction = startReduction(handle)
  if (reduction !== null) root.reductions.push(reduction)
}

/** The end of backward: what is under way ends, and units that were not reached are freed. */
function endBackward(root: RootState): void {
  root.isCallbackQueued = false
  for (const reduction of root.reductions.splice(0)) reduction.finish()
  for (const { handle, settings, sync } of root.units) {
    if (handle === null) continue
    const { progress } = handle
    if (!progress.ranPostBackward && handle.isDivided && handle.isFull)
      handle.reshard(settings.strategy !== 'NO_SHARD' && (sync || reshardsAfterForward(settings.strategy)))
    if (progress.ranPreBackward && settings.showsUnreduced) showUnreduced(handle)
    Object.assign(progress, { needsBackward: false, isPrefetched: false, ranPreBackward: false, ranPostBackward: false })
  }
  root.gathering.clear()
}
