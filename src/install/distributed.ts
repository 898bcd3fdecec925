// The composition root of process groups: tensors, and collectives as operators.
import { registerRanks } from '../checkpoint/team.ts'
import { checkpointRanks } from '../distributed/checkpoint/index.ts'
import { installCollectives } from '../distributed/functional.ts'
import { watchNeverJoined } from '../distributed/mpi/neverJoined.ts'
import { installTensors } from './tensors.ts'

let isInstalled = false

/** Makes collectives work, and known to graphs; checkpoints know of ranks; the other ranks learn of a rank that ends before it joins. */
export function installDistributed(): void {
  if (isInstalled) return
  isInstalled = true
  installTensors()
  installCollectives()
  registerRanks(checkpointRanks)
  watchNeverJoined()
}
