// Checkpoints by shards. PyTorch's torch.distributed.checkpoint.
export { loadShardedCheckpoint } from './load.ts'
export type { LoadCheckpointOptions, LoadedCheckpoint } from './load.ts'
export { saveShardedCheckpoint } from './save.ts'
export type { SaveCheckpointOptions } from './save.ts'
export type { CheckpointState } from './state.ts'
