// The same start on all ranks.
import type { Module } from '../module/index.ts'
import { Tensor } from '../tensor/index.ts'
import { broadcast } from './inPlace.ts'
import type { ProcessGroup } from './processGroup.ts'

/** Gives all ranks of a group the parameters and buffers of its first rank. */
export function broadcastState(module: Module, group: ProcessGroup): void {
  const [root = 0] = group.ranks
  for (const tensors of [module.parameters(), module.buffers()])
    for (const tensor of tensors) if (tensor instanceof Tensor) broadcast(tensor, root, { group })
}
