// The thread world: every rank is a worker thread, and bytes go through shared memory. For browsers, for machines without MPI, and for tests.
import type { Backend, Channel, Ended, SlotStore, Task } from '../backend.ts'
import { tensorBytes } from '../bytes.ts'
import type { Collective } from '../collective.ts'
import { DistributedError } from '../errors.ts'
import { MemorySlots } from '../failures/slots.ts'
import { Patience } from '../patience.ts'
import { SharedGroup } from '../shared/sharedGroup.ts'
import type { PartPlace } from '../shared/sharedGroup.ts'
import { Messages } from './messages.ts'
import type { Steps } from './messages.ts'
import { SharedMemory } from './sharedMemory.ts'

/** What a worker gets to join its world. */
export interface ThreadWorld {
  readonly buffer: SharedArrayBuffer
  readonly rank: number
  readonly size: number
}

/** Milliseconds after which a rank that sleeps looks whether others are still there, if none has woken it. */
const SLEEP = 20

/** A message under way. */
class ThreadTask implements Task {
  readonly steps: Steps
  readonly #pump: () => void
  done = false
  /** Why it ended without a result. */
  failure: unknown = null
  source?: number

  constructor(steps: (task: ThreadTask) => Steps, pump: () => void) {
    this.#pump = pump
    this.steps = steps(this)
  }

  poll(): boolean {
    if (!this.done) this.#pump()
    if (this.failure !== null) throw this.failure
    return this.done
  }

  /** Goes on as far as it can, and tells whether it is over. */
  advance(): boolean {
    try {
      this.done = this.steps.next().done === true
    } catch (error) {
      this.failure = error
      this.done = true
    }
    return this.done
  }
}

/** Tasks that run one after the other. */
type Queue = ThreadTask[]

function push(queue: Queue, task: ThreadTask): Task {
  queue.push(task)
  return task
}

class ThreadChannel implements Channel {
  readonly #backend: ThreadBackend
  readonly #id: number
  readonly #shared: SharedGroup
  readonly #ranks: readonly number[]

  constructor(backend: ThreadBackend, id: number, parts: readonly PartPlace[], ranks: readonly number[]) {
    this.#backend = backend
    this.#id = id
    this.#ranks = ranks
    this.#shared = new SharedGroup(parts, ranks.indexOf(backend.rank), { onPost: () => backend.memory.ring(), onWait: () => backend.pump() })
    backend.groups.add(this.#shared)
  }

  start(collective: Collective): Task {
    const { messages } = this.#backend
    const id = this.#id
    if (collective.kind === 'send') {
      const to = this.#world(collective.peer)
      const task = this.#task(() => messages.send(to, id, collective.tag, () => tensorBytes(collective.data)))
      return push(this.#backend.outgoing(to), task)
    }
    if (collective.kind === 'recv') {
      const senders = collective.peer === null ? this.#ranks : [this.#world(collective.peer)]
      const bytes = (): Uint8Array => tensorBytes(collective.data)
      const task = this.#task((own) =>
        messages.receive(senders, id, collective.tag, bytes, (sender) => {
          own.source = this.#ranks.indexOf(sender)
        }),
      )
      return this.#backend.receive(task)
    }
    return this.#shared.start(collective)
  }

  absent(sequence: number): readonly number[] {
    return this.#shared.absent(sequence)
  }

  close(): void {
    this.#backend.groups.delete(this.#shared)
    this.#shared.close()
  }

  #task(steps: (task: ThreadTask) => Steps): ThreadTask {
    return new ThreadTask(steps, () => this.#backend.pump())
  }

  #world(rank: number): number {
    const world = this.#ranks[rank]
    if (world === undefined) throw new DistributedError(`there is no rank ${rank} in a group of ${this.#ranks.length}`)
    return world
  }
}

export class ThreadBackend implements Backend {
  readonly name = 'threads'
  readonly rank: number
  readonly size: number
  readonly memory: SharedMemory
  readonly messages: Messages
  /** The groups that this rank belongs to. */
  readonly groups: Set<SharedGroup> = new Set()
  readonly #receives: Set<ThreadTask> = new Set()
  readonly #patience: Patience
  /** Messages that are sent, by receiver. */
  readonly #outgoing: readonly Queue[]
  #channels = 0
  #heard = 0

  constructor({ buffer, rank, size }: ThreadWorld) {
    this.rank = rank
    this.size = size
    this.memory = new SharedMemory(buffer, size)
    this.messages = new Messages(this.memory, rank)
    this.#patience = new Patience(size)
    this.#outgoing = Array.from({ length: size }, () => [])
  }

  open(ranks: readonly number[]): Channel | null {
    const id = this.#channels++
    const parts = this.memory.parts(ranks.length)
    return ranks.includes(this.rank) ? new ThreadChannel(this, id, parts, ranks) : null
  }

  /** The tasks that send to a world rank. */
  outgoing(to: number): Queue {
    const queue = this.#outgoing[to]
    if (queue === undefined) throw new DistributedError(`there is no rank ${to}`)
    return queue
  }

  /** Adds a receive. They wait for different messages, so none waits for another. */
  receive(task: ThreadTask): Task {
    this.#receives.add(task)
    return task
  }

  /** Lets everything that is under way make what progress it can. Throws DistributedError when another rank has ended. */
  pump(): void {
    this.#heard = this.memory.bell()
    const ended = this.memory.aborted()
    if (ended !== null && ended !== this.rank) throw new DistributedError(`rank ${ended} ended, so this collective cannot.`, { endedRank: ended })
    while (this.messages.collect());
    for (const task of this.#receives) if (task.advance()) this.#receives.delete(task)
    for (const queue of this.#outgoing) while (queue[0]?.advance() === true) queue.shift()
    for (const group of this.groups) group.progress()
  }

  idle(attempt: number): void {
    if (this.#patience.overdue(attempt) > 0) this.memory.wait(this.#heard, SLEEP)
  }

  finalize(): void {
    this.groups.clear()
    this.#receives.clear()
  }

  abort(): void {
    this.memory.abort(this.rank)
  }

  openSlots(slots: number, slotBytes: number): SlotStore {
    return new MemorySlots(this.rank, slotBytes, this.memory.texts(slots * slotBytes))
  }

  ended(rank: number): Ended | null {
    return this.memory.hasLeft(rank) ? { cause: 'its program has ended', code: 0, progress: null } : null
  }
}
