// Nested values: flatten arrays, plain objects and Maps to a list of leaves, and build them again. PyTorch's torch.utils._pytree.
export {
  countLeaves,
  treeEqual,
  treeFlatten,
  treeFlattenSpec,
  treeLeaves,
  treeMap,
  treeSpecToString,
  treeStructure,
  treeUnflatten,
} from './pytree.ts'
export type { TreeSpec } from './pytree.ts'
export { registerPytreeNode } from './registry.ts'
export type { PytreeClass, PytreeNodeType } from './registry.ts'
