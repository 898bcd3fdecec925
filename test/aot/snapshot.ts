// What tensors hold, as plain values that later writes do not change.
import { Tensor } from 'tensorfx'
import { treeMap } from '../../src/pytree/index.ts'

/** The value with its tensors replaced by their dtype, shape and numbers. */
export const snapshotOf = (value: unknown): unknown =>
  treeMap(value, (leaf) => (leaf instanceof Tensor ? `${leaf.dtype} [${leaf.shape.join(', ')}] ${JSON.stringify(leaf.detach().toArray())}` : leaf))
