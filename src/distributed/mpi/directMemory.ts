// Reads the memory of other processes on this machine, as MPI libraries do for large messages: bytes are copied once, from one rank's tensor to another's.
import type { Tensor } from '../../tensor/index.ts'
import { DistributedError } from '../errors.ts'
import type { DirectMemory } from '../shared/exchanges.ts'

/** A process whose memory is read. */
export interface Peer {
  readonly pid: number
  /** Its rank in the world. */
  readonly worldRank: number
}

/** Reads bytes at an address of another process to one of this, and returns how many it has read. */
export type ReadProcess = (pid: number, to: number, from: number, bytes: number) => number

/** What it takes: Linux, and the right to look into each other's memory. */
export class ProcessMemory implements DirectMemory {
  readonly #read: ReadProcess
  readonly #peers: readonly Peer[]
  readonly #addressOf: (tensor: Tensor) => number

  constructor(read: ReadProcess, peers: readonly Peer[], addressOf: (tensor: Tensor) => number) {
    this.#read = read
    this.#peers = peers
    this.#addressOf = addressOf
  }

  addressOf(tensor: Tensor): number {
    return this.#addressOf(tensor)
  }

  copy(rank: number, from: number, to: Tensor, toAt: number, bytes: number): void {
    const { pid = 0, worldRank = rank } = this.#peers[rank] ?? {}
    const start = this.#addressOf(to) + toAt
    for (let done = 0; done < bytes;) {
      const read = this.#read(pid, start + done, from + done, bytes - done)
      if (!(read > 0)) throw new DistributedError(`the memory of rank ${worldRank} cannot be read any more.`, { endedRank: worldRank })
      done += read
    }
  }
}
