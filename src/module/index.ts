export { Module, cloneModule, setModuleTracingHook } from './module.ts'
export type { ForwardHook, ForwardPreHook, ModuleTracingHook, RemovableHandle, SelfCloning } from './module.ts'
export { LoadStateError } from './stateDict.ts'
