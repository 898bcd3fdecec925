// The thread world: every rank is a worker thread, and bytes go through shared memory. For browsers, for machines without MPI, and for tests.
import { withoutModes } from '../../dispatch/index.ts'
import type { Backend, Channel, Ended, Task } from '../backend.ts'
import { tensorBytes } from '../bytes.ts'
import type { Collective } from '../collective.ts'
import { DistributedError } from '../errors.ts'
import { Messages } from './messages.ts'
import type { Steps } from './messages.ts'
import { SharedMemory } from './sharedMemory.ts'
import { Group, stepsOf } from './steps.ts'

/** What a worker gets to join its world. */
export interface ThreadWorld {
  readonly buffer: SharedArrayBuffer
  readonly rank: number
  readonly size: number
}

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
  readonly #group: Group
  readonly #ranks: readonly number[]
  readonly #queue: Queue = []
  #started = 0

  constructor(backend: ThreadBackend, id: number, group: Group, ranks: readonly number[]) {
    this.#backend = backend
    this.#id = id
    this.#group = group
    this.#ranks = ranks
    backend.queues.add(this.#queue)
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
    this.#backend.memory.store(this.#own.started, ++this.#started)
    const task = this.#task(() => stepsOf(this.#group, collective))
    return push(this.#queue, task)
  }

  absent(sequence: number): readonly number[] {
    return this.#group.posts.flatMap(({ started }, rank) => (this.#backend.memory.load(started) < sequence ? [rank] : []))
  }

  close(): void {
    this.#backend.queues.delete(this.#queue)
  }

  get #own(): Group['posts'][number] {
    const own = this.#group.posts[this.#group.me]
    if (own === undefined) throw new DistributedError('this rank is not in the group')
    return own
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
  /** Tasks in progress: a queue per group, and one per receiver of messages. */
  readonly queues: Set<Queue> = new Set()
  readonly #receives: Set<ThreadTask> = new Set()
  readonly #outgoing: Queue[]
  #channels = 0
  #heard = 0

  constructor({ buffer, rank, size }: ThreadWorld) {
    this.rank = rank
    this.size = size
    this.memory = new SharedMemory(buffer, size)
    this.messages = new Messages(this.memory, rank)
    this.#outgoing = Array.from({ length: size }, () => [])
    for (const queue of this.#outgoing) this.queues.add(queue)
  }

  open(ranks: readonly number[]): Channel | null {
    const id = this.#channels++
    const posts = this.memory.posts(ranks.length)
    const own = posts[ranks.indexOf(this.rank)]
    return own === undefined ? null : new ThreadChannel(this, id, new Group(this.memory, posts, own), ranks)
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

  /** Lets every task make what progress it can. Throws DistributedError when another rank has ended. */
  pump(): void {
    this.#heard = this.memory.bell()
    const ended = this.memory.aborted()
    if (ended !== null && ended !== this.rank) throw new DistributedError(`rank ${ended} ended, so this collective cannot.`, { endedRank: ended })
    while (this.messages.collect());
    withoutModes(() => {
      for (const task of this.#receives) if (task.advance()) this.#receives.delete(task)
      for (const queue of this.queues) while (queue[0]?.advance() === true) queue.shift()
    })
  }

  idle(attempt: number): void {
    if (attempt > 200) this.memory.wait(this.#heard, 20)
  }

  finalize(): void {
    this.queues.clear()
    this.#receives.clear()
  }

  abort(): void {
    this.memory.abort(this.rank)
  }

  ended(rank: number): Ended | null {
    return this.memory.hasLeft(rank) ? { cause: 'its program has ended', code: 0, progress: null } : null
  }
}
