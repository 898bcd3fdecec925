// The GPU in a thread of its own (Node): requests are posted there, and this thread waits for the answer, as WebGPU alone does not let it.
import { TensorfxError, UnsupportedError } from '../errors/index.ts'
import { scriptAt, workerThreads } from '../protocol/index.ts'
import type { ChannelEnd, Script } from '../protocol/index.ts'
import { OutOfMemoryError } from '../kernels/index.ts'
import { DeviceError, DeviceLostError } from './errors.ts'
import type { DeviceAnswer, DeviceRequest } from './requests.ts'

/** What the thread is told at its start: where its answers go, and the words that it counts them in. */
export interface ThreadStart {
  readonly port: ChannelEnd<ThreadAnswer>
  /** How many answers there were, and 1 as soon as the thread runs. */
  readonly answers: Int32Array<SharedArrayBuffer>
}

/** A request, and its number, which the answer has too. */
export interface ThreadRequest {
  readonly number: number
  readonly request: DeviceRequest
}

/** What the thread answers. */
export type ThreadAnswer = { readonly number: number } & (
  | { readonly ok: true; readonly answer: DeviceAnswer }
  | { readonly ok: false; readonly failure: Failure }
)

/** An error, as it is sent. */
export interface Failure {
  readonly name: string
  readonly message: string
  readonly stack: string
  readonly nodes: readonly string[]
  readonly reason: string
  /** What was asked for, may be and is in use, if there was no memory for it. */
  readonly memory: { readonly bytes: number; readonly limit: number; readonly allocated: number } | null
}

/** An error as it is sent; {@link errorOf} makes it an error again. */
export function failureOf(error: unknown): Failure {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error))
  const nodes = error instanceof DeviceError ? error.nodes : []
  const { bytes, limit, allocated } = error instanceof OutOfMemoryError ? error : { bytes: 0, limit: 0, allocated: 0 }
  const memory = error instanceof OutOfMemoryError ? { bytes, limit, allocated } : null
  return { name, message, stack: stack ?? '', nodes, memory, reason: error instanceof DeviceLostError ? error.reason : '' }
}

/** The error that was sent. */
export function errorOf({ name, message, stack, nodes, reason, memory }: Failure): Error {
  if (memory !== null) return new OutOfMemoryError(memory.bytes, 'the GPU', { ...memory, message })
  const cause = Object.assign(new Error(message), { name, stack })
  if (name === 'DeviceError') return new DeviceError(message, nodes, { cause })
  if (name === 'DeviceLostError') return new DeviceLostError(message, reason, { cause })
  if (name === 'UnsupportedError') return new UnsupportedError(message, { cause })
  return new TensorfxError('TFX_INTERNAL', `the thread of the GPU failed: ${message}`, { cause })
}

/** The thread's script. */
export const threadEntry: Script = scriptAt(() => new URL('../entries/webgpuThread.js', import.meta.url))

/** How long the thread may take to read its modules, in milliseconds. */
const START = 60_000

/** How many requests may be on their way. */
const WAITING = 256

const closed = (): DeviceLostError => new DeviceLostError('WebGPU: the thread of the GPU has ended. Call await init() again.', 'destroyed')

const threadsHere = (): ReturnType<typeof workerThreads<ThreadStart, ThreadAnswer, ThreadRequest>> => workerThreads()

/** Whether the GPU can have a thread that this one waits for. */
export const hasThreads = (): boolean => threadsHere() !== null

/** What is moved to the thread, rather than copied. */
function sentWith(request: DeviceRequest): ArrayBuffer[] {
  if (request.kind === 'run') return request.uploads.map(({ words }) => words.buffer)
  if (request.kind === 'call') return [request.uniforms.buffer]
  return request.kind === 'write' ? [request.words.buffer] : []
}

/** A thread that has the GPU. */
export class DeviceThread {
  readonly #answers = new Int32Array(new SharedArrayBuffer(8))
  readonly #timeout: number
  readonly #send: (request: ThreadRequest) => void
  readonly #receive: () => ThreadAnswer | undefined
  readonly #end: () => void
  /** Who hears of the answers that nothing waits for, by their numbers. */
  readonly #posted = new Map<number, (error: unknown) => void>()
  #asked = 0
  #isClosed = false

  /** Starts the thread. Throws UnsupportedError where there are none. */
  constructor(timeout: number) {
    this.#timeout = timeout
    const threads = threadsHere()
    if (threads === null)
      throw new UnsupportedError('WebGPU: there are no worker threads here, so that nothing can wait for the GPU. Call init({ thread: false }).')
    const { port1, port2 } = new threads.MessageChannel()
    const start: ThreadStart = { port: port2, answers: this.#answers }
    const options = { workerData: start, transferList: [port2] }
    const worker = new threads.Worker(new URL(threadEntry.url), options)
    worker.unref()
    const ended = (): void => {
      this.#isClosed = true
    }
    worker.on('error', ended)
    worker.on('exit', ended)
    this.#send = (asked) => worker.postMessage(asked, sentWith(asked.request))
    this.#receive = () => threads.receiveMessageOnPort(port1)?.message
    // It ends itself when it is done: a thread that is terminated while WebGPU's package works takes the process with it.
    this.#end = () => worker.postMessage({ number: 0, request: { kind: 'close' } })
  }

  /** Whether it was ended, as it is when it does not answer in time. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Sends a request and waits for the answer. Throws the errors of `DeviceHost.answer`, and DeviceLostError if there is no answer in time. */
  ask(request: DeviceRequest): DeviceAnswer {
    if (this.#isClosed) throw closed()
    const number = ++this.#asked
    this.#send({ number, request })
    const limit = Atomics.load(this.#answers, 1) === 0 ? Math.max(START, this.#timeout) : this.#timeout
    const message = this.#answerTo(number, limit)
    if (message === null) {
      this.close()
      throw new DeviceLostError(
        `WebGPU: the GPU did not answer within ${limit} ms (request '${request.kind}'), and its thread was ended. If a kernel takes that long, compile smaller graphs, or raise init({ timeout }).`,
        'timeout',
      )
    }
    if (message.ok) return message.answer
    throw errorOf(message.failure)
  }

  /** Sends a request and goes on. `ended` gets what went wrong, or null, when a later call hears of it: before any later request is answered. */
  post(request: DeviceRequest, ended: (error: unknown) => void): void {
    if (this.#isClosed) throw closed()
    const number = ++this.#asked
    this.#posted.set(number, ended)
    this.#send({ number, request })
    for (let message = this.#receive(); message !== undefined; message = this.#receive()) this.#pass(message)
    // A program that never waits would fill the thread's memory.
    if (this.#posted.size > WAITING) this.ask({ kind: 'read', heap: null, reads: [] })
  }

  /** An answer that nothing waits for. */
  #pass(message: ThreadAnswer): void {
    this.#posted.get(message.number)?.(message.ok ? null : errorOf(message.failure))
    this.#posted.delete(message.number)
  }

  /** Waits for the answer to a request; null if it does not come in time. An answer to an earlier request, which an error kept from being taken, is passed over. */
  #answerTo(number: number, limit: number): ThreadAnswer | null {
    const end = performance.now() + limit
    for (;;) {
      const known = Atomics.load(this.#answers, 0)
      const message = this.#receive()
      if (message?.number === number) return message
      if (message !== undefined) {
        this.#pass(message)
        continue
      }
      const left = end - performance.now()
      if (left <= 0) return null
      Atomics.wait(this.#answers, 0, known, left)
    }
  }

  /** Ends the thread, and with it what lies on the GPU. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#end()
  }
}
