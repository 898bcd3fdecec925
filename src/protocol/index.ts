// What rooms that do not know each other agree on: who takes over a call (PyTorch's `__torch_function__`), the names of functions in graphs, schemas, and the
// marks of tensors. `ops/` and `fx/` both import this room, and never each other.
export { OVERRIDE, findOverride } from './override.ts'
export type { Override, OverrideKind } from './override.ts'
export {
  TARGET,
  declareEffects,
  effectsOf,
  explainMissingTargets,
  lookupTarget,
  missingTarget,
  namedOnly,
  nameTarget,
  namedTargets,
  targetInfo,
} from './target.ts'
export type { Effects, TargetFunction, TargetInfo } from './target.ts'
export { INSPECT, inspectAs } from './inspect.ts'
export { PriorityQueue } from './priorityQueue.ts'
export { attributeName, camelCase, childPath, snakeCase, withName } from './names.ts'
export { MODULE, isCallable, isClass, isFunction, isModule, isObject, described, kindOf, setCopyText } from './kinds.ts'
export type { ModuleLike } from './kinds.ts'
export { ownCopy } from './ownCopy.ts'
export { checkDepth, entryOf, isPlainObject, setOwn } from './plainObject.ts'
export {
  checkArgument,
  checkArray,
  checkCallable,
  checkCount,
  checkIterable,
  checkMethod,
  checkModule,
  checkPositive,
  checkString,
  swappedHint,
  uncalledHint,
} from './arguments.ts'
export { essence, nearest } from './nearest.ts'
export { checkSynchronous, explainPromise, isPromise } from './asyncResults.ts'
export { channelsLastHint, weightLayoutHint } from './otherLayouts.ts'
export { checkOptionNames, checkOptions, meantOption, unknownOption } from './options.ts'
export type { OptionNames } from './options.ts'
export { parseSchema } from './schema.ts'
export type { FunctionSchema, SchemaArgument, SchemaDefault, SchemaType } from './schema.ts'
export { BUFFER, LEAF_MODULE, STANDS_FOR, TENSOR, isParameter, isTensorLike } from './tensorLike.ts'
export type { ModuleParameter, ModuleTensor, TensorClasses, TensorLike } from './tensorLike.ts'
export { SYMBOLIC, isSize, isSymbolic, isSymbolicSize } from './symbolicSize.ts'
export type { Size, SizeOperation, SizeRelation, SymbolicFunction, SymbolicKind, SymbolicSize, SymbolicValue } from './symbolicSize.ts'
export { canGenerateCode, environmentVariable, hostProcess, isAllowed } from './host.ts'
export { scriptAt, workerThreads } from './workerThreads.ts'
export type { ChannelEnd, Script } from './workerThreads.ts'
export { explainUnknownNames } from './unknownNames.ts'
export { torchModules, withModules } from './torchModules.ts'
export type { NamesGuide } from './unknownNames.ts'
export type { NodeType, TypeValue } from './typeValue.ts'
export { remembered } from './remembered.ts'
export { kept, resultStore, setResultStore } from './keptResults.ts'
export type { KeptKind, ResultStore } from './keptResults.ts'
export { valueText } from './valueText.ts'
export { blockComment, isIdentifier, lineComment, literal, memberAccess, propertyKey, quote, scalarLiteral } from './quote.ts'
export { py, pyFloat } from './pythonText.ts'
export type { OnProgress, Progress } from './progress.ts'
