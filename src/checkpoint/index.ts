// The state of a training in one file, or in one of each rank: saved without a half-written state, and loaded all or nothing.
export { checkpointBlob, saveCheckpoint } from './save.ts'
export type { CheckpointState, SaveCheckpointOptions, WritableHandle } from './save.ts'
export { loadCheckpoint } from './load.ts'
export type { LoadCheckpointOptions, LoadedCheckpoint } from './load.ts'
export type { HasState } from './part.ts'
export type { CheckpointParts, OneOrMore } from './parts.ts'
export type { RankGroup } from './team.ts'
