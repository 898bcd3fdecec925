// What rooms that do not know each other agree on: who takes over a call (PyTorch's `__torch_function__`), the names of functions in graphs, schemas, and the
// marks of tensors. `ops/` and `fx/` both import this room, and never each other.
export { OVERRIDE, findOverride } from './override.ts'
export type { Override, OverrideKind } from './override.ts'
export { TARGET, declareEffects, effectsOf, lookupTarget, nameTarget, targetInfo } from './target.ts'
export type { Effects, TargetFunction, TargetInfo } from './target.ts'
export { inspectAs } from './inspect.ts'
export { camelCase, snakeCase } from './names.ts'
export { isPlainObject } from './plainObject.ts'
export { parseSchema } from './schema.ts'
export type { FunctionSchema, SchemaArgument, SchemaDefault, SchemaType } from './schema.ts'
export { LEAF_MODULE, STANDS_FOR, TENSOR, isParameter, isTensorLike } from './tensorLike.ts'
export type { TensorLike } from './tensorLike.ts'
export { environmentVariable, hostProcess, isAllowed } from './host.ts'
