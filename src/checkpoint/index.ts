// The state of a training in one file: saved without a half-written state, and loaded all or nothing.
export { checkpointBlob, saveCheckpoint } from './save.ts'
export type { CheckpointState, SaveCheckpointOptions, WritableHandle } from './save.ts'
export { loadCheckpoint } from './load.ts'
export type { LoadCheckpointOptions, LoadedCheckpoint } from './load.ts'
export type { CheckpointParts, HasState, OneOrMore } from './parts.ts'
