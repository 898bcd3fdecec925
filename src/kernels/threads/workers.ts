// The workers of the pool: Node's threads, or a browser's from a blob. They end with the process and never keep it alive.
import { STATE, WORD } from './control.ts'
import type { Control } from './control.ts'
import { MACHINE_CODE, SERVE } from './serve.ts'
import { hostProcess } from '../../protocol/index.ts'

/** A worker, and whether it may still take chunks. */
export interface PoolWorker {
  readonly index: number
  lost: boolean
  terminate(): void
}

interface NodeWorker {
  on(event: 'error' | 'exit', listener: (what: unknown) => void): unknown
  unref(): void
  terminate(): unknown
}

interface NodeThreads {
  readonly Worker: { new (source: string, options: object): NodeWorker }
}

/** How workers are made; tests put others in place. */
export interface WorkerHost {
  /** Starts a worker on that memory. `lost` is called once it has failed or ended, if the host says so. */
  start(start: WorkerStart, lost: (why: unknown) => void): { terminate(): void }
  /** Whether this thread may sleep: not the main thread of a page. */
  readonly maySleep: boolean
}

/** What a worker begins with. */
export interface WorkerStart {
  readonly memory: WebAssembly.Memory
  readonly buffer: SharedArrayBuffer
  readonly index: number
}

const nodeThreads = (): NodeThreads | null => globalThis.process?.getBuiltinModule?.('node:worker_threads') ?? null

/** The script of a thread of Node; tests put another text of `serve` in place. */
export const nodeScript = (serve: string = SERVE): string =>
  `${serve}\n${MACHINE_CODE}\nconst { memory, buffer, index } = require('node:worker_threads').workerData; serve(memory, buffer, index, machineCode(memory, buffer))`

const nodeHost = ({ Worker }: NodeThreads): WorkerHost => ({
  maySleep: true,
  start(start, lost) {
    const worker = new Worker(nodeScript(), { eval: true, workerData: start, execArgv: [], name: `tensorfx ${start.index}` })
    worker.on('error', lost)
    worker.on('exit', lost)
    worker.unref()
    return { terminate: () => void worker.terminate() }
  },
})

const pageHost: WorkerHost = {
  maySleep: 'DedicatedWorkerGlobalScope' in globalThis,
  start(start, lost) {
    const source = `${SERVE}\nonmessage = ({ data: { memory, buffer, index } }) => serve(memory, buffer, index)`
    const address = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }))
    const worker = new Worker(address, { name: `tensorfx ${start.index}` })
    worker.addEventListener('error', (event) => lost(event.message === '' ? 'its script was refused' : event.message))
    worker.postMessage(start)
    return { terminate: () => worker.terminate() }
  },
}

let chosen: WorkerHost | null = null

/** How workers are made here. */
export function workerHost(): WorkerHost {
  if (chosen !== null) return chosen
  const threads = hostProcess() === undefined ? null : nodeThreads()
  return (chosen = threads === null ? pageHost : nodeHost(threads))
}

/** Puts another way of making workers in place, for tests; null for the host's own. */
export function setWorkerHost(host: WorkerHost | null): void {
  chosen = host
}

/** The workers of one memory. */
export class Workers {
  readonly all: PoolWorker[] = []
  readonly #control: Control
  readonly #memory: WebAssembly.Memory

  constructor(control: Control, memory: WebAssembly.Memory) {
    this.#control = control
    this.#memory = memory
  }

  /** Starts workers until there are that many, those that were lost included: they are not replaced. Throws what the host throws. */
  start(count: number, lost: (why: unknown) => void): void {
    while (this.all.length < count) {
      const worker: PoolWorker = { index: this.all.length, lost: false, terminate: () => made.terminate() }
      const made = workerHost().start({ memory: this.#memory, buffer: this.#control.buffer, index: worker.index }, (why) => {
        if (worker.lost) return
        worker.lost = true
        lost(why)
      })
      this.all.push(worker)
    }
  }

  /** How many have started and may take chunks. */
  get ready(): number {
    let count = 0
    for (const { index, lost } of this.all) {
      const state = Atomics.load(this.#control.words, WORD.states + 16 * index)
      if (!lost && (state === STATE.ready || state === STATE.busy)) count++
    }
    return count
  }

  /** The workers that look at a job, or have a chunk. */
  busy(): readonly PoolWorker[] {
    return this.all.filter(({ index, lost }) => !lost && Atomics.load(this.#control.words, WORD.states + 16 * index) === STATE.busy)
  }
}
