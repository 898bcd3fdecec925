// Messages between two ranks of a thread world. Sending copies the message piece by piece into a mailbox; what arrives is kept until it is asked for, so
// that messages with different tags may be received in any order.
import { DistributedError } from '../errors.ts'
import type { Mailbox, SharedMemory } from './sharedMemory.ts'

interface Message {
  readonly channel: number
  readonly tag: number
  readonly bytes: Uint8Array
  /** Bytes that have arrived. */
  have: number
}

/** Something that makes progress in turns: yields when it has to wait for another rank. */
export type Steps = Generator<void, void, void>

/** Fields of a mailbox's header, after `full`. */
const [BYTES, TOTAL, CHANNEL, TAG] = [1, 2, 3, 4]

export class Messages {
  readonly #memory: SharedMemory
  readonly #mailboxes: readonly (readonly Mailbox[])[]
  readonly #rank: number
  /** Complete messages by sender, oldest first. */
  readonly #arrived: Message[][]
  readonly #arriving: (Message | null)[]

  constructor(memory: SharedMemory, rank: number) {
    this.#memory = memory
    this.#mailboxes = memory.mailboxes()
    this.#rank = rank
    this.#arrived = Array.from({ length: memory.size }, () => [])
    this.#arriving = Array.from({ length: memory.size }, () => null)
  }

  /** Takes what lies in the mailboxes. Returns whether anything did. */
  collect(): boolean {
    let any = false
    for (let from = 0; from < this.#memory.size; from++) {
      const mailbox = this.#mailboxes[from]?.[this.#rank]
      if (mailbox === undefined || this.#memory.load(mailbox.full) === 0) continue
      any = true
      const header = (field: number): number => this.#memory.load(mailbox.full + field)
      const message = this.#arriving[from] ?? { channel: header(CHANNEL), tag: header(TAG), bytes: new Uint8Array(header(TOTAL)), have: 0 }
      message.bytes.set(mailbox.data.subarray(0, header(BYTES)), message.have)
      message.have += header(BYTES)
      this.#memory.store(mailbox.full, 0)
      const complete = message.have === message.bytes.length
      this.#arriving[from] = complete ? null : message
      if (complete) this.#arrived[from]?.push(message)
    }
    return any
  }

  /** Sends a message to a world rank. */
  *send(to: number, channel: number, tag: number, bytes: () => Uint8Array): Steps {
    const mailbox = this.#mailboxes[this.#rank]?.[to]
    if (mailbox === undefined) throw new DistributedError(`send: there is no rank ${to}.`)
    const { control } = this.#memory
    const total = bytes().length
    let sent = 0
    do {
      while (this.#memory.load(mailbox.full) !== 0) yield
      const piece = bytes().subarray(sent, sent + mailbox.data.length)
      mailbox.data.set(piece)
      for (const [field, value] of [
        [BYTES, piece.length],
        [TOTAL, total],
        [CHANNEL, channel],
        [TAG, tag],
      ] as const)
        Atomics.store(control, mailbox.full + field, value)
      this.#memory.store(mailbox.full, 1)
      sent += piece.length
    } while (sent < total)
  }

  /** Receives a message from one of `senders` (world ranks), and says from which. */
  *receive(senders: readonly number[], channel: number, tag: number, bytes: () => Uint8Array, onSource: (sender: number) => void): Steps {
    for (;;) {
      for (const from of senders) {
        const messages = this.#arrived[from] ?? []
        const at = messages.findIndex((message) => message.channel === channel && message.tag === tag)
        const [message] = at < 0 ? [] : messages.splice(at, 1)
        if (message === undefined) continue
        const into = bytes()
        if (message.bytes.length !== into.length)
          throw new DistributedError(
            `recv: rank ${from} sent ${message.bytes.length} bytes, but the tensor has ${into.length}; both need the same shape and dtype.`,
          )
        into.set(message.bytes)
        onSource(from)
        return
      }
      yield
    }
  }
}
