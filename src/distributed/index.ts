// Process groups, collectives, data-parallel training. PyTorch's torch.distributed.
export { ReduceOp } from './collective.ts'
export { assignBuckets } from './ddp/buckets.ts'
export type { BucketItem } from './ddp/buckets.ts'
export { DistributedDataParallel } from './ddp/ddp.ts'
export { allreduceHook, bf16CompressHook, bf16CompressWrapper, fp16CompressHook, fp16CompressWrapper } from './ddp/commHooks.ts'
export type { DdpCommHook } from './ddp/commHooks.ts'
export { PowerSGDState, batchedPowerSGDHook, powerSGDHook } from './ddp/powerSgd.ts'
export type { PowerSGDOptions } from './ddp/powerSgd.ts'
export type { DdpOptions, JoinOptions } from './ddp/ddp.ts'
export type { CommFuture, GradBucket } from './ddp/reducer.ts'
export { CollectiveMismatchError, CollectiveTimeoutError, DistributedError } from './errors.ts'
export * as functional from './functional.ts'
export {
  allGather,
  allGatherIntoTensor,
  allReduce,
  allToAll,
  allToAllSingle,
  barrier,
  broadcast,
  gather,
  irecv,
  isend,
  monitoredBarrier,
  recv,
  reduce,
  reduceScatter,
  reduceScatterTensor,
  scatter,
  send,
} from './inPlace.ts'
export type { CollectiveOptions, MessageOptions, ReduceOptions } from './inPlace.ts'
export { allGatherObject, broadcastObject, scatterObject } from './objects.ts'
export {
  ProcessGroup,
  destroyProcessGroup,
  getBackend,
  getDebugLevel,
  getProcessGroupRanks,
  getRank,
  getWorldSize,
  initProcessGroup,
  isInitialized,
  newGroup,
  restartCount,
  setDebugLevel,
} from './processGroup.ts'
export type { DebugLevel } from './debugLevel.ts'
export type { InitOptions } from './processGroup.ts'
export { collectiveStats, recordCollectives, resetCollectiveStats } from './stats.ts'
export type { CollectiveCount, CollectiveEvent } from './stats.ts'
export { runRanks } from './threads/spawn.ts'
export type { RunRanksOptions } from './threads/spawn.ts'
export { Work } from './work.ts'
export { ShardedTensor } from './shardedTensor.ts'
export type { Shard, ShardMetadata } from './shardedTensor.ts'
export { DeviceMesh, initDeviceMesh } from './deviceMesh.ts'
export type { DeviceMeshOptions } from './deviceMesh.ts'
export { DistributedSampler } from './distributedSampler.ts'
export type { DistributedSamplerOptions } from './distributedSampler.ts'
