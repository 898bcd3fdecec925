// What a unit of FullyShardedDataParallel may be told: how it is divided, when it is gathered, and in which dtypes it computes.
import type { DType } from '../../kernels/index.ts'
import type { DeviceMesh } from '../deviceMesh.ts'
import type { ProcessGroup } from '../processGroup.ts'

/** How parameters, gradients and optimizer states are divided. PyTorch's `ShardingStrategy`. */
export const ShardingStrategy = {
  /** Parameters are gathered for forward and again for backward. */
  FULL_SHARD: 'FULL_SHARD',
  /** Parameters are gathered for forward and kept until backward is over. */
  SHARD_GRAD_OP: 'SHARD_GRAD_OP',
  /** Every rank has all parameters, as with DistributedDataParallel. */
  NO_SHARD: 'NO_SHARD',
  /** FULL_SHARD within a group, and a replica in each group. */
  HYBRID_SHARD: 'HYBRID_SHARD',
  /** SHARD_GRAD_OP within a group, and a replica in each group. */
  _HYBRID_SHARD_ZERO2: '_HYBRID_SHARD_ZERO2',
} as const
export type ShardingStrategy = keyof typeof ShardingStrategy

/** When backward gathers the next unit's parameters. PyTorch's `BackwardPrefetch`. */
export const BackwardPrefetch = {
  /** Before a unit's own backward: the most overlap, and one more unit in memory. */
  BACKWARD_PRE: 'BACKWARD_PRE',
  /** After a unit's own backward. */
  BACKWARD_POST: 'BACKWARD_POST',
} as const
export type BackwardPrefetch = keyof typeof BackwardPrefetch

/** Dtypes in which a unit computes and sends; null leaves a dtype as it is. PyTorch's `MixedPrecision`. */
export interface MixedPrecision {
  /** Of parameters in forward and backward, and of inputs. */
  readonly paramDtype?: DType | null
  /** Of gradients while they are reduced over the ranks. Default: `paramDtype`. */
  readonly reduceDtype?: DType | null
  readonly bufferDtype?: DType | null
  /** Whether gradients stay in `reduceDtype`, which the optimizer then has to take. Default false. */
  readonly keepLowPrecisionGrads?: boolean
  /** Whether the inputs of each unit are cast to `paramDtype`. Default false. */
  readonly castForwardInputs?: boolean
  /** Whether the inputs of the outermost unit are. Default true. */
  readonly castRootForwardInputs?: boolean
}

/** Ranks among which a unit is divided, and those that hold the same shard. */
export type ShardAndReplicaGroups = readonly [shard: ProcessGroup, replicas: ProcessGroup]

/** Options that each unit may have of its own. */
export interface UnitOptions {
  /** Default: all ranks. For the hybrid strategies a pair: the ranks that divide a copy, and those that hold the same shard of their copies. */
  readonly processGroup?: ProcessGroup | ShardAndReplicaGroups
  /**
   * The same as a grid of ranks, in place of `processGroup`: of one dimension, or for the hybrid strategies of two, of which the first counts the copies and the
   * second divides each. Made by `initDeviceMesh`.
   */
  readonly deviceMesh?: DeviceMesh
  /** Default 'FULL_SHARD'. */
  readonly shardingStrategy?: ShardingStrategy
  /** Default 'BACKWARD_PRE'. */
  readonly backwardPrefetch?: BackwardPrefetch | null
  readonly mixedPrecision?: MixedPrecision | null
  /** Whether forward gathers the next unit's parameters early, in the order of the first step. Default false. */
  readonly forwardPrefetch?: boolean
  /** Whether at most two units are being gathered at a time. Default true. */
  readonly limitAllGathers?: boolean
  /** Whether `parameters()` are (parts of) the original ones, under their names, instead of one flat parameter per unit. Default false. */
  readonly useOrigParams?: boolean
}
