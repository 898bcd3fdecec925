// The memory that MPI lets the ranks of one machine share, and which collectives go through it.
import { dtypeInfo } from '../../kernels/index.ts'
import { environmentVariable, hostProcess } from '../../protocol/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { ProcessMemory } from './directMemory.ts'
import { PART_BYTES, SharedGroup } from '../shared/sharedGroup.ts'
import type { SharedCollective } from '../shared/exchanges.ts'
import type { Handle, Mpi } from './library.ts'

/** The ranks of a group as those that share memory, and MPI's handle of the memory. */
export interface SharedWindow {
  readonly group: SharedGroup
  readonly handle: Handle
}

/**
 * Bytes of the largest collective that goes through shared memory: of those in which all ranks send, and of those in which one does. MPI copies more of these from one rank's memory to another's directly, which
 * takes less time; but in the former its ranks wait for each other more often.
 */
const [LARGEST_OF_ALL, LARGEST_OF_ONE] = [2 ** 22, 2 ** 18]

const bytesOf = (tensor: Tensor): number => tensor.numel * dtypeInfo[tensor.dtype].size

/** Whether a collective goes through shared memory. All ranks come to the same answer: an all-to-all never does, since each rank knows only its own counts. */
export function goesThroughMemory(collective: SharedCollective, size: number): boolean {
  switch (collective.kind) {
    case 'allreduce':
    case 'reduce':
      return bytesOf(collective.data) <= LARGEST_OF_ALL
    case 'allgather':
      return bytesOf(collective.input) * size <= LARGEST_OF_ALL
    case 'reducescatter':
      return bytesOf(collective.output) * size <= LARGEST_OF_ALL
    case 'broadcast':
      return bytesOf(collective.data) <= LARGEST_OF_ONE
    case 'gather':
      return bytesOf(collective.input) * size <= LARGEST_OF_ONE
    case 'scatter':
      return bytesOf(collective.output) * size <= LARGEST_OF_ONE
    case 'alltoall':
      return false
    case 'barrier':
      return true
  }
}

/** On how many machines the ranks are made to believe that they are, in equal parts; null if they look. A switch for tests of several machines on one. */
export function pretendedNodes(text: string | undefined): number | null {
  const nodes = Number(text)
  return Number.isSafeInteger(nodes) && nodes > 0 ? nodes : null
}

/** This rank in the world. */
interface Place {
  readonly rank: number
  readonly size: number
}

/** The same, where addresses of tensors are known. */
interface World extends Place {
  address(tensor: Tensor): number
}

/** How many ranks of a communicator are on the machine of this one. All its ranks must ask. */
export function ranksOnThisMachine(mpi: Mpi, world: Place, comm: Handle, rank: number): number {
  const [local, count] = [mpi.cell(0), new Int32Array(1)]
  const nodes = pretendedNodes(environmentVariable('TENSORFX_MPI_NODES'))
  if (nodes === null) mpi.call('MPI_Comm_split_type', comm, mpi.typeShared, rank, mpi.noInfo, local)
  else mpi.call('MPI_Comm_split', comm, Math.floor((world.rank * nodes) / world.size), rank, local)
  mpi.call('MPI_Comm_size', Number(local[0]), count)
  mpi.call('MPI_Comm_free', local)
  return count[0] ?? 1
}

/** The smallest of the ranks' numbers. All ranks of the communicator call it, so it also waits for them. */
function least(mpi: Mpi, comm: Handle, value: number): number {
  const agreed = Int32Array.of(value)
  mpi.call('MPI_Allreduce', mpi.inPlace, agreed, 1, mpi.types.int32, mpi.ops.min, comm)
  return agreed[0] ?? value
}

/** Memory that all ranks of a communicator share; null unless they are on one machine, which has some left. */
export function shareMemory(mpi: Mpi, world: World, comm: Handle, size: number, rank: number): SharedWindow | null {
  if (size === 1) return null
  const areTogether = ranksOnThisMachine(mpi, world, comm, rank) === size
  const [base, window, count] = [new BigInt64Array(1), mpi.cell(0), new Int32Array(1)]
  const isShared = areTogether && mpi.prepare('MPI_Win_allocate_shared')(PART_BYTES, 1, mpi.noInfo, comm, base, window) === 0
  const handle = Number(window[0])
  const buffers = !isShared
    ? []
    : Array.from({ length: size }, (_, i) => {
        mpi.call('MPI_Win_shared_query', handle, i, new BigInt64Array(1), count, base)
        return mpi.memoryAt(Number(base[0]), PART_BYTES)
      })
  const places = buffers.map((buffer) => ({ buffer, start: 0 }))
  const group = isShared ? new SharedGroup(places, rank) : null
  group?.reset()
  // Every rank must have it, and have reset its part, before one uses it.
  if (least(mpi, comm, group === null ? 0 : 1) === 0 || group === null) return null
  group.direct = openDirect(mpi, world, comm, buffers, rank)
  return { group, handle }
}

/** What a rank writes for the others, in its part of the memory, while that holds nothing else. */
const [PID, WORLD_RANK, ADDRESS, PROOF, WORDS] = [0, 1, 2, 3, 4]

/** A way to read the other ranks' memory; null unless each can read that of all: systems and containers may forbid it, or count processes in other ways. */
function openDirect(mpi: Mpi, world: World, comm: Handle, buffers: readonly ArrayBuffer[], rank: number): ProcessMemory | null {
  const words = buffers.map((buffer) => new Float64Array(buffer, buffer.byteLength - 8 * WORDS, WORDS))
  const { readProcess } = mpi
  const proof = Float64Array.of(Math.random())
  words[rank]?.set([hostProcess()?.pid ?? 0, world.rank, mpi.addressOf(proof.buffer), proof[0] ?? 0])
  least(mpi, comm, 1)
  const copy = new Float64Array(1)
  const canRead = (of: Float64Array): boolean =>
    readProcess !== null && readProcess(of[PID] ?? 0, mpi.addressOf(copy.buffer), of[ADDRESS] ?? 0, 8) === 8 && copy[0] === of[PROOF]
  const canReadAll = least(mpi, comm, words.every((of, i) => i === rank || canRead(of)) ? 1 : 0) === 1
  if (!canReadAll || readProcess === null) return null
  const peers = words.map((of) => ({ pid: of[PID] ?? 0, worldRank: of[WORLD_RANK] ?? 0 }))
  return new ProcessMemory(readProcess, peers, (tensor) => world.address(tensor))
}
