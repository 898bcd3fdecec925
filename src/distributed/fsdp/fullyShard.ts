// fullyShard: divides the parameters of a module in place, by rows, without a wrapper. PyTorch's FSDP2.
import { ArgumentError, UnsupportedError } from '../../errors/index.ts'
import type { Module } from '../../module/index.ts'
import { checkCallable, checkCount, checkModule, checkOptions, valueText } from '../../protocol/index.ts'
import { formatShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { DeviceMesh } from '../deviceMesh.ts'
import type { ProcessGroup } from '../processGroup.ts'
import { clipGradNorm } from './clip.ts'
import type { ClipOptions } from './clip.ts'
import { joinPath } from './flatParameter.ts'
import { readOptions } from './options.ts'
import type { Settings } from './options.ts'
import { collectParameters } from './parameters.ts'
import type { UnitParameters } from './parameters.ts'
import { RowHandle } from './rows.ts'
import { afterGradient, makeRoot, runForward } from './runtime.ts'
import { DEFAULT_STATE_DICT, registerUnit, unitOf, unitOrNone, unitsIn } from './unit.ts'
import type { MixedPrecision, ShardAndReplicaGroups } from './unitOptions.ts'

/** Options of {@link fullyShard}. */
export interface FullyShardOptions {
  /** The ranks that divide the parameters, or these and the ranks that hold the same rows. Default: all ranks. */
  readonly processGroup?: ProcessGroup | ShardAndReplicaGroups
  /** The same as a grid of ranks: of one dimension, or of two, of which the first counts the copies. In place of `processGroup`. PyTorch's `mesh`. */
  readonly mesh?: DeviceMesh
  /** Whether forward frees the parameters, so that backward gathers them again. Default: true, except for the outermost module. */
  readonly reshardAfterForward?: boolean
  /** Dtypes of computation and reduction. PyTorch's `mp_policy`. */
  readonly mixedPrecision?: MixedPrecision | null
  /**
   * The dimension along which the ranks divide a parameter; null for rows, which is the default. Other dimensions must divide evenly. PyTorch's
   * `shard_placement_fn`, which returns `Shard(dim)` or None.
   */
  readonly shardPlacementFn?: (parameter: Tensor) => number | null
}

/** What {@link fullyShard} adds to a module. PyTorch's `FSDPModule`. */
export interface FsdpModule {
  /** Gathers the module's own parameters, and shows them whole. All ranks must call it. */
  unshard(): void
  /** Frees them, and shows this rank's rows. What was written to whole parameters is lost. */
  reshard(): void
  /** Whether backward reduces gradients of this module and those below it; otherwise they are kept, for the next backward that does. */
  setRequiresGradientSync(sync: boolean): void
  /** Scales all gradients so that their norm over all ranks is at most `maxNorm`. Returns the norm before. For the outermost module. */
  clipGradNorm_(maxNorm: number, options?: ClipOptions): Tensor
}

const WHERE = 'fullyShard'

function settingsOf(options: FullyShardOptions): Settings {
  const { processGroup, mesh, reshardAfterForward, mixedPrecision } = options
  const isPair = Array.isArray(processGroup) || (mesh instanceof DeviceMesh && mesh.ndim > 1)
  const keeps = reshardAfterForward === false
  const settings = readOptions({
    useOrigParams: true,
    shardingStrategy: isPair ? (keeps ? '_HYBRID_SHARD_ZERO2' : 'HYBRID_SHARD') : keeps ? 'SHARD_GRAD_OP' : 'FULL_SHARD',
    mixedPrecision: mixedPrecision ?? null,
    ...(processGroup === undefined ? {} : { processGroup }),
    ...(mesh === undefined ? {} : { deviceMesh: mesh }),
  })
  return { ...settings, reshardsRoot: reshardAfterForward === true, showsUnreduced: false }
}

/** The dimension along which a parameter is divided. Throws ArgumentError for one that it has not, UnsupportedError for one that does not divide evenly. */
function shardDim(parameter: Tensor, name: string, ranks: number, place: NonNullable<FullyShardOptions['shardPlacementFn']>): number {
  const given: unknown = place(parameter)
  if (given === null || given === undefined) return 0
  const { shape, ndim } = parameter
  if (typeof given !== 'number' || !Number.isInteger(given) || given < -ndim || given >= ndim)
    throw new ArgumentError(
      `${WHERE}: shardPlacementFn must return a dimension of the parameter, from ${-ndim} to ${ndim - 1}, or null, got ${valueText(given)} for '${name}' of shape ${formatShape(shape)}.`,
    )
  const dim = given < 0 ? given + ndim : given
  if (dim > 0 && (shape[dim] ?? 0) % ranks !== 0)
    throw new UnsupportedError(
      `FSDP does not support uneven sharding on dim ${dim}: ${formatShape(shape)} (world size: ${ranks}). Only rows are filled up: let shardPlacementFn return null for '${name}'.`,
    )
  return dim
}

/** The parameters with the dimensions along which they are divided. */
function placed(parameters: UnitParameters, settings: Settings, place: FullyShardOptions['shardPlacementFn']): UnitParameters {
  if (place === undefined) return parameters
  checkCallable(WHERE, 'shardPlacementFn', place)
  const entries = parameters.entries.map((entry, i) => {
    const tensor = parameters.tensors[i]
    const dim = tensor === undefined ? 0 : shardDim(tensor, joinPath(entry.modulePath, entry.name), settings.shardGroup.size, place)
    return dim === 0 ? entry : { ...entry, shardDim: dim }
  })
  return { ...parameters, entries }
}

/** Defines a property that is not a part of the module's contents. */
const define = (module: Module, name: string, value: unknown): void =>
  void Object.defineProperty(module, name, { value, configurable: true, enumerable: false, writable: true })

/**
 * Divides the parameters of `module` among the ranks: of each, every rank stores an equal share of the rows (`[7, 5]` on 2 ranks: 4 and 3 rows). Parameters of
 * modules inside that were given to `fullyShard` before stay theirs, so call it from the inside to the outside. The module stays the same object; make the
 * optimizer afterwards. PyTorch's `fully_shard`.
 *
 * @throws ArgumentError for a container without forward, a module that is divided already, and parameters of several dtypes; UnsupportedError for a dimension that does
 *   not divide evenly.
 * @example
 * for (const block of model.blocks) fullyShard(block)
 * fullyShard(model)
 * const optimizer = new optim.AdamW(model.parameters(), { lr: 1e-3 })
 */
export function fullyShard<M extends Module>(module: M, options: FullyShardOptions = {}): asserts module is M & FsdpModule {
  checkCount('fullyShard', arguments, 2)
  checkOptions(WHERE, options, { processGroup: true, mesh: true, reshardAfterForward: 'boolean', mixedPrecision: true, shardPlacementFn: true })
  checkModule(WHERE, 'module', module)
  if (['ModuleList', 'ModuleDict'].includes(module.constructor.name))
    throw new ArgumentError(`fully_shard does not support containers that do not implement forward: ${String(module)}`)
  if (unitOrNone(module) !== undefined)
    throw new ArgumentError(
      `${WHERE}: this ${module.getName()} is divided already. Call fullyShard once for each module, from the inside to the outside.`,
    )
  const settings = settingsOf(options)
  const own = collectParameters(module, (part) => unitOrNone(part) !== undefined, new Set())
  const parameters = placed(own, settings, options.shardPlacementFn)
  const handle = parameters.tensors.length === 0 ? null : new RowHandle(module, parameters, settings, afterGradient)
  const name = `FSDP${module.getName()}`
  registerUnit(module, { wrapper: module, inner: module, handle, settings, isRoot: null, root: null, sync: true, stateDictType: DEFAULT_STATE_DICT })
  const { forward } = module
  define(module, 'forward', (...args: readonly unknown[]) =>
    runForward(unitOf(module), args, (given): unknown => Reflect.apply(forward, module, given)),
  )
  define(module, 'getName', () => name)
  define(module, 'unshard', () => {
    handle?.startUnshard()
    handle?.waitUnshard()
    if (handle !== null) handle.showParameters(handle.full)
  })
  define(module, 'reshard', () => {
    handle?.reshard(true)
    handle?.showShards()
  })
  define(module, 'setRequiresGradientSync', (sync: boolean) => {
    for (const unit of unitsIn(module)) unit.sync = sync
  })
  define(module, 'clipGradNorm_', (maxNorm: number, given: ClipOptions = {}) => {
    const unit = unitOf(module)
    makeRoot(unit)
    return clipGradNorm(unit, maxNorm, given)
  })
}
