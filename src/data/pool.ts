// Worker threads that read a dataset. Each has its copy of the dataset and answers requests in order; what it answers is kept until it is asked for.
import { hostProcess, scriptAt, workerThreads } from '../protocol/index.ts'
import type { Script } from '../protocol/index.ts'
import { END } from './fetcher.ts'
import type { FetchPlan, Request } from './fetcher.ts'
import { SampleError, WorkerError } from './errors.ts'
import { decodeMessage } from './messages.ts'
import type { Encoded } from './messages.ts'
import type { Recipe } from './recipe.ts'

/** What a worker is told at its start. */
export interface WorkerStart {
  readonly recipe: Recipe
  readonly plan: FetchPlan
  readonly id: number
  readonly numWorkers: number
}

/** What it is asked. */
export interface Question {
  readonly ticket: number
  readonly request: Request
}

/** What it answers. */
export type Answer =
  | { readonly ticket: number; readonly kind: 'batch'; readonly batch: Encoded }
  | { readonly ticket: number; readonly kind: 'end' }
  | { readonly ticket: number; readonly kind: 'error'; readonly failure: Failure }

/** An error, as it is sent. */
export interface Failure {
  readonly message: string
  /** Of a SampleError, the index of the sample; undefined for another error. */
  readonly index?: number | null
  readonly causeName: string
  readonly causeMessage: string
  readonly causeStack: string
}

/** The workers' script. */
export const workerEntry: Script = scriptAt(() => new URL('../entries/dataWorker.js', import.meta.url))

/**
 * Node's flags for workers, as an option. Workers have those of the process by themselves. Only a process whose program is on the command line names its flags here, without the one that
 * says of what kind that program is, since Node refuses it for files; and without those that belong to the whole process, such as --max-old-space-size, since Node refuses to be given them.
 */
function workerFlags(): { readonly execArgv?: string[] } {
  const flags = hostProcess()?.execArgv ?? []
  const isKind = (flag: string, i: number): boolean => flag.startsWith('--input-type') || flags[i - 1] === '--input-type'
  return flags.some(isKind) ? { execArgv: flags.filter((flag, i) => !isKind(flag, i) && !/^--(?:max|min|stack|expose)[-_]/.test(flag)) } : {}
}

/** A worker of Node or of a browser. */
interface Thread {
  ask(question: Question): void
  /** Whether the program goes on as long as the worker does. */
  hold(isHeld: boolean): void
  terminate(): Promise<void>
}

interface Listeners {
  readonly answer: (answer: Answer) => void
  readonly ended: (why: string, cause?: unknown) => void
}

function startThread(start: WorkerStart, { answer, ended }: Listeners): Thread {
  const threads = workerThreads<WorkerStart, Answer, Question>()
  if (threads !== null) {
    const worker = new threads.Worker(new URL(workerEntry.url), { workerData: start, ...workerFlags() })
    worker.unref()
    worker.on('message', answer)
    worker.on('error', (error) => ended(`failed: ${error.message}`, error))
    worker.on('exit', (code) => ended(`ended with code ${code}`))
    return {
      ask: (question) => worker.postMessage(question),
      hold: (isHeld) => (isHeld ? worker.ref() : worker.unref()),
      async terminate() {
        await worker.terminate()
      },
    }
  }
  // Written out, so that bundlers find the worker's script.
  const worker = new Worker(new URL('../entries/dataWorker.js', import.meta.url), { type: 'module' })
  worker.addEventListener('message', (event: MessageEvent<Answer>) => answer(event.data))
  worker.addEventListener('error', (event) => ended(`failed: ${event.message}`, event.error))
  worker.postMessage(start)
  return {
    ask: (question) => worker.postMessage(question),
    hold() {},
    async terminate() {
      worker.terminate()
    },
  }
}

interface Waiting {
  readonly worker: number
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

/** Worker threads by number. They must be closed. */
export class WorkerPool {
  readonly #threads: readonly Thread[]
  /** Requests without an answer, by their tickets. */
  readonly #waiting = new Map<number, Waiting>()
  /** Why a worker is gone. */
  readonly #gone = new Map<number, Error>()
  readonly #timeout: number
  #nextTicket = 0
  #isClosed = false
  /** Whether a worker has answered: the first answer comes late, after the worker has read its modules. */
  hasAnswered = false

  constructor(recipe: Recipe, plan: FetchPlan, numWorkers: number, timeout: number) {
    this.#timeout = timeout
    this.#threads = Array.from({ length: numWorkers }, (_, id) =>
      startThread({ recipe, plan, id, numWorkers }, { answer: (answer) => this.#settle(answer), ended: (why, cause) => this.#lose(id, why, cause) }),
    )
  }

  get size(): number {
    return this.#threads.length
  }

  /** Asks a worker; the promise is for what it answers, END after the end of a stream. It may stay unread. */
  ask(worker: number, request: Request): Promise<unknown> {
    const answer = new Promise<unknown>((resolve, reject) => {
      const gone = this.#gone.get(worker)
      if (gone !== undefined) return reject(gone)
      const ticket = this.#nextTicket++
      this.#waiting.set(ticket, { worker, resolve, reject })
      this.#threads[worker]?.ask({ ticket, request })
    })
    // An error is reported when its batch is due, or never if the loop ends before.
    answer.catch(() => {})
    return answer
  }

  /** Waits for an answer of a worker, and meanwhile keeps the program alive. Throws WorkerError if it takes longer than the timeout. */
  async wait(worker: number, answer: Promise<unknown>): Promise<unknown> {
    const thread = this.#threads[worker]
    thread?.hold(true)
    let timer: ReturnType<typeof setTimeout> | undefined
    try {
      if (this.#timeout === 0) return await answer
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(
          () =>
            reject(
              new WorkerError(
                `DataLoader: worker ${worker} did not answer within ${this.#timeout} ms; raise 'timeout', or look at what its dataset waits for.`,
              ),
            ),
          this.#timeout,
        )
      })
      return await Promise.race([answer, late])
    } finally {
      clearTimeout(timer)
      thread?.hold(false)
    }
  }

  #settle(answer: Answer): void {
    this.hasAnswered = true
    const waiting = this.#waiting.get(answer.ticket)
    if (waiting === undefined) return
    this.#waiting.delete(answer.ticket)
    if (answer.kind === 'batch') {
      try {
        waiting.resolve(decodeMessage(answer.batch))
      } catch (error) {
        waiting.reject(error instanceof Error ? error : new WorkerError(String(error)))
      }
    } else if (answer.kind === 'end') waiting.resolve(END)
    else waiting.reject(errorOf(waiting.worker, answer.failure))
  }

  #lose(worker: number, why: string, cause: unknown): void {
    if (this.#isClosed || this.#gone.has(worker)) return
    const error = new WorkerError(`DataLoader: worker ${worker} ${why}.`, cause === undefined ? {} : { cause })
    this.#gone.set(worker, error)
    for (const [ticket, waiting] of this.#waiting) {
      if (waiting.worker !== worker) continue
      this.#waiting.delete(ticket)
      waiting.reject(error)
    }
  }

  /** Ends the workers, and waits until they have. */
  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all(this.#threads.map((thread) => thread.terminate()))
  }
}

/** The error that a worker sent. */
function errorOf(worker: number, { message, index, causeName, causeMessage, causeStack }: Failure): Error {
  const cause = new Error(causeMessage)
  cause.name = causeName
  cause.stack = causeStack
  const text = `${message} (in worker ${worker})`
  return index === undefined ? new WorkerError(text, { cause }) : new SampleError(text, index, { cause })
}
