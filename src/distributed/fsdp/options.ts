// The options of FullyShardedDataParallel, and what they mean.
import { ArgumentError } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import type { Module } from '../../module/index.ts'
import { checkOptions, isCallable, nearest, valueText } from '../../protocol/index.ts'
import type { TensorLike } from '../../protocol/index.ts'
import { DeviceMesh } from '../deviceMesh.ts'
import { ProcessGroup, groupOr } from '../processGroup.ts'
import { BackwardPrefetch, ShardingStrategy } from './unitOptions.ts'
import type { MixedPrecision, ShardAndReplicaGroups, UnitOptions } from './unitOptions.ts'
import type { AutoWrapPolicy } from './wrapPolicies.ts'

/** Options of `FullyShardedDataParallel`. */
export interface FsdpOptions extends UnitOptions {
  /** Which submodules become units of their own; see the wrap policies. Default: none. */
  readonly autoWrapPolicy?: AutoWrapPolicy | null
  /** Modules whose parameters are left alone: they stay whole, and their gradients are not reduced. */
  readonly ignoredModules?: Iterable<Module>
  /** The same by parameter, or by module. */
  readonly ignoredStates?: Iterable<TensorLike | Module>
  /** Gives a module with fake parameters real ones. */
  readonly paramInitFn?: (module: Module) => void
  /** Whether all ranks start with rank 0's parameters and buffers. Default false. */
  readonly syncModuleStates?: boolean
  /** Where PyTorch keeps shards that it does not compute with. Tensors are in main memory in any case, so this changes nothing; a program that sets it runs. */
  readonly cpuOffload?: CpuOffload | null
}

/** PyTorch's `CPUOffload`. */
export interface CpuOffload {
  readonly offloadParams?: boolean
}

const KNOWN = {
  processGroup: true,
  deviceMesh: true,
  shardingStrategy: true,
  autoWrapPolicy: true,
  backwardPrefetch: true,
  mixedPrecision: true,
  ignoredModules: true,
  ignoredStates: true,
  paramInitFn: true,
  syncModuleStates: 'boolean',
  cpuOffload: true,
  forwardPrefetch: 'boolean',
  limitAllGathers: 'boolean',
  useOrigParams: 'boolean',
} as const

/** The options with their defaults, checked. */
export interface Settings {
  readonly strategy: ShardingStrategy
  readonly shardGroup: ProcessGroup
  readonly replicas: ProcessGroup | null
  readonly backwardPrefetch: BackwardPrefetch | null
  readonly mixedPrecision: MixedPrecision
  readonly forwardPrefetch: boolean
  readonly limitAllGathers: boolean
  readonly useOrigParams: boolean
  /** Whether forward frees the outermost unit's parameters like those of the others. */
  readonly reshardsRoot: boolean
  /** Whether `grad` shows what `noSync` has gathered on this rank. */
  readonly showsUnreduced: boolean
}

const WHERE = 'FullyShardedDataParallel'

export const isHybrid = (strategy: ShardingStrategy): boolean => strategy === 'HYBRID_SHARD' || strategy === '_HYBRID_SHARD_ZERO2'

/** Whether forward frees what it gathered. */
export const reshardsAfterForward = (strategy: ShardingStrategy): boolean => strategy === 'FULL_SHARD' || strategy === 'HYBRID_SHARD'

function oneOf(name: string, value: unknown, known: object): void {
  const names = Object.keys(known)
  if (typeof value === 'string' && names.includes(value)) return
  const guess = typeof value === 'string' ? nearest(value, names) : null
  throw new ArgumentError(
    `${WHERE}: ${name} must be one of ${names.join(', ')}, got ${valueText(value)}.${guess === null ? '' : ` Did you mean '${guess}'?`}`,
  )
}

/** The groups that a mesh stands for: its only dimension, or of two the second, which divides, and the first, along which the copies are. */
function groupsOfMesh(strategy: ShardingStrategy, mesh: unknown): ProcessGroup | ShardAndReplicaGroups {
  if (!(mesh instanceof DeviceMesh)) throw new ArgumentError(`${WHERE}: deviceMesh must be what initDeviceMesh returns, got ${valueText(mesh)}.`)
  if (isHybrid(strategy)) {
    if (mesh.ndim !== 2)
      throw new ArgumentError(
        `${WHERE}: Expected device_mesh to have ndim=2 but got ${mesh.ndim}: for ${strategy} the first dimension counts the copies, and the second divides each.`,
      )
    return [mesh.getGroup(1), mesh.getGroup(0)]
  }
  if (mesh.ndim !== 1)
    throw new ArgumentError(
      `${WHERE}: ${strategy} needs a deviceMesh of one dimension, got ${String(mesh)}. Pass one dimension of it, such as mesh.get('shard'), or a hybrid strategy.`,
    )
  return mesh.getGroup(0)
}

function groupsOf(
  strategy: ShardingStrategy,
  { processGroup, deviceMesh }: FsdpOptions,
): { shardGroup: ProcessGroup; replicas: ProcessGroup | null } {
  if (processGroup !== undefined && deviceMesh !== undefined)
    throw new ArgumentError(`${WHERE}: Cannot pass both process_group and device_mesh at the same time. Please just pass only one of them.`)
  const given = deviceMesh === undefined ? processGroup : groupsOfMesh(strategy, deviceMesh)
  const isPair = Array.isArray(given)
  if (isHybrid(strategy)) {
    const [shardGroup, replicas] = isPair ? given : []
    if (shardGroup instanceof ProcessGroup && replicas instanceof ProcessGroup) return { shardGroup, replicas }
    throw new ArgumentError(
      `${WHERE}: ${strategy} needs a deviceMesh of two dimensions, or processGroup: [shard, replicas], the ranks that divide a copy and the ranks that hold the same shard, got ${valueText(given)}. Make them with initDeviceMesh or newGroup, on all ranks in the same order.`,
    )
  }
  if (given !== undefined && !(given instanceof ProcessGroup))
    throw new ArgumentError(`${WHERE}: processGroup must be a ProcessGroup (a pair is for the hybrid strategies), got ${valueText(given)}.`)
  return { shardGroup: groupOr(given), replicas: null }
}

function checkMixedPrecision(mixed: MixedPrecision): void {
  checkOptions(`${WHERE}: mixedPrecision`, mixed, {
    paramDtype: true,
    reduceDtype: true,
    bufferDtype: true,
    keepLowPrecisionGrads: 'boolean',
    castForwardInputs: 'boolean',
    castRootForwardInputs: 'boolean',
  })
  for (const [name, dtype] of Object.entries({ paramDtype: mixed.paramDtype, reduceDtype: mixed.reduceDtype, bufferDtype: mixed.bufferDtype })) {
    if (dtype === undefined || dtype === null) continue
    if (!Object.hasOwn(dtypeInfo, dtype) || !dtypeInfo[dtype].floating)
      throw new ArgumentError(`${WHERE}: mixedPrecision.${name} must be a floating dtype or null, got ${valueText(dtype)}.`)
  }
}

/** Checks the options, and fills in defaults. Throws ArgumentError, which names the option. */
export function readOptions(options: FsdpOptions): Settings {
  checkOptions(WHERE, options, KNOWN)
  const { shardingStrategy = 'FULL_SHARD', backwardPrefetch = 'BACKWARD_PRE', mixedPrecision } = options
  oneOf('shardingStrategy', shardingStrategy, ShardingStrategy)
  if (backwardPrefetch !== null) oneOf('backwardPrefetch', backwardPrefetch, BackwardPrefetch)
  checkMixedPrecision(mixedPrecision ?? {})
  if (options.paramInitFn !== undefined && !isCallable(options.paramInitFn))
    throw new ArgumentError(`${WHERE}: paramInitFn must be a function, got ${valueText(options.paramInitFn)}.`)
  const { cpuOffload = null, forwardPrefetch, limitAllGathers, useOrigParams } = options
  if (cpuOffload !== null) checkOptions(`${WHERE}: cpuOffload`, cpuOffload, { offloadParams: 'boolean' })
  const { shardGroup, replicas } = groupsOf(shardingStrategy, options)
  // Among one rank nothing is divided.
  const isAlone = shardGroup.size === 1 && replicas === null
  return {
    strategy: isAlone ? 'NO_SHARD' : shardingStrategy,
    shardGroup,
    replicas,
    backwardPrefetch,
    mixedPrecision: mixedPrecision ?? {},
    forwardPrefetch: forwardPrefetch ?? false,
    limitAllGathers: limitAllGathers ?? true,
    useOrigParams: useOrigParams ?? false,
    reshardsRoot: false,
    showsUnreduced: true,
  }
}
