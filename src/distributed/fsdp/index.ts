// Fully sharded training: parameters, gradients and optimizer states divided among the ranks. PyTorch's torch.distributed.fsdp.
export { fullParameterStats, resetFullParameterStats } from './memory.ts'
export type { FullParameterStats } from './memory.ts'
export { flatLayout, shardMetadata, shardPadding, shardParamInfos } from './flatParameter.ts'
export type { FlatEntry, FlatLayout, FlatLayoutOptions, FlatSegment, FlatShardMetadata, ShardParamInfo, SharedEntry } from './flatParameter.ts'
export { FullyShardedDataParallel, FullyShardedDataParallel as FSDP } from './fsdp.ts'
export { cleanName } from './names.ts'
export type { CpuOffload, FsdpOptions } from './options.ts'
export { BackwardPrefetch, ShardingStrategy } from './unitOptions.ts'
export type { MixedPrecision, ShardAndReplicaGroups, UnitOptions } from './unitOptions.ts'
export { ProfilerType, SimpleProfiler, setProfilerLog } from './profiler.ts'
export type { ProfilerScope } from './profiler.ts'
export { stateDictType } from './stateDict.ts'
export type { StateDictOptions } from './stateDict.ts'
export { summonFullParams } from './summon.ts'
export type { SummonOptions } from './summon.ts'
export { StateDictType } from './unit.ts'
export {
  CustomPolicy,
  ModuleWrapPolicy,
  alwaysWrapPolicy,
  lambdaAutoWrapPolicy,
  sizeBasedAutoWrapPolicy,
  transformerAutoWrapPolicy,
  wrapTargets,
} from './wrapPolicies.ts'
export type { AutoWrapPolicy, ModuleClass, SizeBasedOptions, WrapFunction, WrapTarget } from './wrapPolicies.ts'
export type { ClipOptions } from './clip.ts'
export { describeUnits, fsdpModules, getShardedModuleTreeWithModuleNameToFqns } from './debugUtils.ts'
export type { ShardedTreeOptions, UnitDescription } from './debugUtils.ts'
export {
  fullOptimStateDict,
  optimStateDict,
  optimStateDictToLoad,
  rekeyOptimStateDict,
  scatterFullOptimStateDict,
  shardFullOptimStateDict,
} from './optimState.ts'
export type { AnyOptimizer, NamedOptimizerState, NamedStateValue, OptimStateKeyType } from './optimState.ts'
export { ShardedGradScaler } from './gradScaler.ts'
export type { ShardedGradScalerOptions } from './gradScaler.ts'
export type { GradScalerOptions, GradScalerState, ScaledOptimizer } from '../../optim/index.ts'
export { fullyShard } from './fullyShard.ts'
export type { FsdpModule, FullyShardOptions } from './fullyShard.ts'
