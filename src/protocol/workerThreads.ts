// Threads beside the program's: Node's worker threads, and the scripts that threads and child processes run. Written out, so that users' programs need no types of Node.
import { UnsupportedError } from '../errors/index.ts'

/** A thread, as the one that started it sees it: it is asked `Q` and answers with `A`. */
interface NodeWorker<Q, A> {
  on(event: 'message', listener: (answer: A) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'exit', listener: (code: number) => void): unknown
  postMessage(message: Q, transfer?: readonly ArrayBuffer[]): void
  terminate(): unknown
  ref(): void
  unref(): void
}

/** An end of a channel; it takes messages of type `M` out of the order of events. */
export interface ChannelEnd<M> {
  postMessage(message: M, transfer?: readonly ArrayBuffer[]): void
  close(): void
}

/** The part of node:worker_threads that is used. Threads start with a value of type `S`. */
interface WorkerThreads<S, A, Q> {
  readonly isMainThread: boolean
  readonly Worker: { new (url: URL, options: { readonly workerData: S; readonly execArgv?: string[] }): NodeWorker<Q, A> }
  readonly parentPort: {
    postMessage(message: A, transfer?: readonly ArrayBuffer[]): void
    on(event: 'message', listener: (question: Q) => void): void
    close(): void
  } | null
  readonly workerData: S
  readonly MessageChannel: { new (): { readonly port1: ChannelEnd<A>; readonly port2: ChannelEnd<A> } }
  /** The next message that an end has, without waiting for it. */
  receiveMessageOnPort(port: ChannelEnd<A>): { readonly message: A } | undefined
}

/** Node's worker threads; null in a browser. */
export const workerThreads = <S = never, A = never, Q = never>(): WorkerThreads<S, A, Q> | null =>
  globalThis.process?.getBuiltinModule?.('node:worker_threads') ?? null

/** The script of a thread or a child process. */
export interface Script {
  /** Its address. Tests that run on the sources set the address of the built file, since Node 20 does not run TypeScript. Throws UnsupportedError where the program is in no folder. */
  url: string
}

/**
 * The script at an address beside a module: `scriptAt(() => new URL('./worker.js', import.meta.url))`, in these words, by which bundlers find it. The address is resolved when it is
 * read, since a bundle in an inline script, a blob or a `data:` address is in no folder, and works without threads.
 */
export function scriptAt(resolve: () => URL): Script {
  let chosen: string | null = null
  return {
    get url(): string {
      if (chosen !== null) return chosen
      try {
        return resolve().href
      } catch {
        throw new UnsupportedError(
          'The script of a worker cannot be found: this program is an inline script, a blob or a data: address, which is in no folder. Load it from a file or a server to use workers.',
        )
      }
    },
    set url(address: string) {
      chosen = address
    },
  }
}
