// Nested values: flatten arrays, plain objects and Maps to a list of leaves, and build them again. PyTorch's torch.utils._pytree.
export { treeEqual, treeFlatten, treeLeaves, treeMap, treeUnflatten } from './pytree.ts'
export type { TreeSpec } from './pytree.ts'
