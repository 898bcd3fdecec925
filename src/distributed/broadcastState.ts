// The same start on all ranks.
import type { TensorLike } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import { broadcast } from './inPlace.ts'
import type { ProcessGroup } from './processGroup.ts'

/** Gives all ranks of a group the values of one of them, by default the first; `source` counts within the group. The tensors must be the same on all ranks, in the same order. */
export function broadcastState(tensors: Iterable<TensorLike>, group: ProcessGroup, source = 0): void {
  const root = group.ranks[source] ?? 0
  for (const tensor of tensors) if (tensor instanceof Tensor) broadcast(tensor, root, { group })
}
