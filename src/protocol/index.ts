// Two small protocols keep the rooms apart: *override* (PyTorch's `__torch_function__`) and *target name*.
// `ops/` and `fx/` both know this room, and never each other.
export { OVERRIDE, findOverride } from './override.ts'
export type { Override, OverrideKind } from './override.ts'
export { TARGET, declareEffects, effectsOf, lookupTarget, nameTarget, targetInfo } from './target.ts'
export type { Effects, TargetFunction, TargetInfo } from './target.ts'
export { inspectAs } from './inspect.ts'
export { formatSchema, parseSchema } from './schema.ts'
export type { FunctionSchema, SchemaArgument, SchemaType } from './schema.ts'
export { LEAF_MODULE, STANDS_FOR, TENSOR, isParameter, isTensorLike } from './tensorLike.ts'
export type { TensorLike } from './tensorLike.ts'
