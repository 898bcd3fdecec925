// Module, the base class of layers and models, and what works on modules without knowing operators.
export { Module, cloneModule, isLibraryLayer, setModuleTracingHook } from './module.ts'
export type { ForwardHook, ForwardPreHook, ModuleTracingHook, RemovableHandle, SelfCloning } from './module.ts'
export { copyable } from './copyTensor.ts'
export { LoadStateError, collectState, loadState } from './stateDict.ts'
export type { LoadStateResult } from './stateDict.ts'
export { functionalCall } from './functionalCall.ts'
export type { FunctionalCallOptions } from './functionalCall.ts'
export { attributeAt, getAttribute, ownAttribute, setAttribute, splitPath } from './attributes.ts'
