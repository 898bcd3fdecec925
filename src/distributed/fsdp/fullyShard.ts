// fullyShard: divides the parameters of a module in place, by rows, without a wrapper. PyTorch's FSDP2.
import { ArgumentError } from '../../errors/index.ts'
import type { Module } from '../../module/index.ts'
import { checkOptions, isModule, valueText } from '../../protocol/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { ProcessGroup } from '../processGroup.ts'
import { clipGradNorm } from './clip.ts'
import type { ClipOptions } from './clip.ts'
import { readOptions } from './options.ts'
import type { Settings } from './options.ts'
import { collectParameters } from './parameters.ts'
import { RowHandle } from './rows.ts'
import { afterGradient, makeRoot, runForward } from './runtime.ts'
import { DEFAULT_STATE_DICT, registerUnit, unitOf, unitOrNone, unitsIn } from './unit.ts'
import type { MixedPrecision, ShardAndReplicaGroups } from './unitOptions.ts'

/** Options of {@link fullyShard}. */
export interface FullyShardOptions {
  /** The ranks that divide the parameters, or these and the ranks that hold the same rows. Default: all ranks. */
  readonly processGroup?: ProcessGroup | ShardAndReplicaGroups
  /** Whether forward frees the parameters, so that backward gathers them again. Default: true, except for the outermost module. */
  readonly reshardAfterForward?: boolean
  /** Dtypes of computation and reduction. PyTorch's `mp_policy`. */
  readonly mixedPrecision?: MixedPrecision | null
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
  const { processGroup, reshardAfterForward, mixedPrecision } = options
  const isPair = Array.isArray(processGroup)
  const keeps = reshardAfterForward === false
  const settings = readOptions({
    useOrigParams: true,
    shardingStrategy: isPair ? (keeps ? '_HYBRID_SHARD_ZERO2' : 'HYBRID_SHARD') : keeps ? 'SHARD_GRAD_OP' : 'FULL_SHARD',
    mixedPrecision: mixedPrecision ?? null,
    ...(processGroup === undefined ? {} : { processGroup }),
  })
  return { ...settings, reshardsRoot: reshardAfterForward === true, showsUnreduced: false }
}

/** Defines a property that is no part of the module's contents. */
const define = (module: Module, name: string, value: unknown): void =>
  void Object.defineProperty(module, name, { value, configurable: true, enumerable: false, writable: true })

/**
 * Divides the parameters of `module` among the ranks: of each, every rank stores an equal share of the rows (`[7, 5]` on 2 ranks: 4 and 3 rows). Parameters of
 * modules inside that were given to `fullyShard` before stay theirs, so call it from the inside to the outside. The module stays the same object; make the
 * optimizer afterwards. PyTorch's `fully_shard`.
 *
 * @throws ArgumentError for a container without forward, a module that is divided already, and parameters of several dtypes.
 * @example
 * for (const block of model.blocks) fullyShard(block)
 * fullyShard(model)
 * const optimizer = new optim.AdamW(model.parameters(), { lr: 1e-3 })
 */
export function fullyShard<M extends Module>(module: M, options: FullyShardOptions = {}): asserts module is M & FsdpModule {
  checkOptions(WHERE, options, { processGroup: true, reshardAfterForward: true, mixedPrecision: true })
  if (!isModule(module)) throw new ArgumentError(`${WHERE}: module must be a Module, got ${valueText(module)}.`)
  if (['ModuleList', 'ModuleDict'].includes(module.constructor.name))
    throw new ArgumentError(`fully_shard does not support containers that do not implement forward: ${String(module)}`)
  if (unitOrNone(module) !== undefined)
    throw new ArgumentError(
      `${WHERE}: this ${module.getName()} is divided already. Call fullyShard once for each module, from the inside to the outside.`,
    )
  const settings = settingsOf(options)
  const parameters = collectParameters(module, (part) => unitOrNone(part) !== undefined, new Set())
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
