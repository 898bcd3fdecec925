// The fake world: one process plays one of W ranks, and the others are taken to hold the same data. It runs graphs with collectives in one process, for shapes,
// repros and the minifier; the numbers are not those of a real world. With one rank it is the world of a program that was not launched by anything.
import type { Backend, Channel, Task } from '../backend.ts'
import { tensorBytes } from '../bytes.ts'
import type { Collective } from '../collective.ts'
import { DistributedError } from '../errors.ts'

const DONE: Task = { poll: () => true, source: 0 }

class FakeChannel implements Channel {
  readonly #size: number
  readonly #rank: number

  constructor(size: number, rank: number) {
    this.#size = size
    this.#rank = rank
  }

  start(collective: Collective): Task {
    const copies = (bytes: Uint8Array): Uint8Array[] => Array.from({ length: this.#size }, () => bytes)
    switch (collective.kind) {
      case 'allgather':
      case 'gather':
        if (collective.output !== null) {
          const part = tensorBytes(collective.input).slice()
          copies(part).forEach((bytes, i) => tensorBytes(collective.output ?? collective.input).set(bytes, i * part.length))
        }
        return DONE
      case 'reducescatter':
      case 'scatter':
        if (collective.input !== null) {
          const bytes = tensorBytes(collective.output).length
          tensorBytes(collective.output).set(tensorBytes(collective.input).slice(this.#rank * bytes, (this.#rank + 1) * bytes))
        }
        return DONE
      case 'alltoall':
        tensorBytes(collective.output).set(tensorBytes(collective.input).slice(0, tensorBytes(collective.output).length))
        return DONE
      case 'allreduce':
      case 'reduce':
      case 'broadcast':
      case 'barrier':
        return DONE
      case 'send':
      case 'recv':
        throw new DistributedError(`${collective.kind}: a world of size 1 has no other ranks; start the program with several ranks.`)
    }
  }

  absent(): readonly number[] {
    return []
  }

  close(): void {}
}

export class FakeBackend implements Backend {
  readonly name: 'fake' | 'single'
  readonly rank: number
  readonly size: number

  /** A world of `size` ranks, of which this process is `rank`. */
  constructor(size = 1, rank = 0) {
    this.name = size === 1 ? 'single' : 'fake'
    this.size = size
    this.rank = rank
  }

  open(ranks: readonly number[]): Channel | null {
    const me = ranks.indexOf(this.rank)
    return me < 0 ? null : new FakeChannel(ranks.length, me)
  }

  idle(): void {}
  finalize(): void {}

  abort(): void {}
}
