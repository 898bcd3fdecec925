// The same start on all ranks.
import type { TensorLike } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import { broadcast } from './inPlace.ts'
import type { ProcessGroup } from './processGroup.ts'

/** Gives all ranks of a group the values of its first rank. The tensors must be the same on all ranks, in the same order. */
export function broadcastState(tensors: Iterable<TensorLike>, group: ProcessGroup): void {
  const [root = 0] = group.ranks
  for (const tensor of tensors) if (tensor instanceof Tensor) broadcast(tensor, root, { group })
}
