// The pool: launches a loop in chunks, which the calling thread and the workers take one after the other. The caller takes chunks until none is left and then waits for those that workers
// have begun, so a launch ends when its work is done, whether workers came or not.
import { InternalError } from '../../errors/index.ts'
import { hostProcess } from '../../protocol/index.ts'
import { refused } from '../engine/refusals.ts'
import { refuseThreads } from '../engine/threads.ts'
import { heapMemory, holdingHeap } from '../memory/heap.ts'
import { CLOSED, GENERATIONS, MODULES_BYTES, MOST_CHUNKS, REFUSED, WORD, newControl } from './control.ts'
import type { Control } from './control.ts'
import { runJob } from './runJob.ts'
import { Workers, workerHost } from './workers.ts'

/** A module that workers load by its number. */
export interface PoolModule {
  readonly number: number
  /** WebAssembly, or the text of a {@link SharedLibrary}. */
  readonly bytes: Uint8Array
  /** Tells a library where the heap is, before each launch; null for WebAssembly. */
  readonly locate: (() => void) | null
  /** Where it was written to the ring, counted without end; -1 for never. */
  writtenAt: number
}

/** Machine code that workers load themselves. */
export interface SharedLibrary {
  /** The script of koffi, and the file of the library. */
  readonly koffi: string
  readonly file: string
  /** Its functions, with the types of their parameters. */
  readonly names: readonly (readonly [name: string, types: readonly string[]])[]
}

/** How many milliseconds a process that ends waits for its threads. */
const LEAVING = 1000

let modules = 0

/** WebAssembly for workers. */
export const wasmModule = (bytes: Uint8Array): PoolModule => ({ number: modules++, bytes, locate: null, writtenAt: -1 })
/** A library for workers. `locate` tells it where the heap is. */
export const libraryModule = (library: SharedLibrary, locate: () => void): PoolModule => ({
  number: modules++,
  bytes: new TextEncoder().encode(JSON.stringify(library)),
  locate,
  writtenAt: -1,
})

/** A loop in chunks. */
export interface Job {
  readonly module: PoolModule
  readonly part: number
  /** The arguments of the first worker, and what each further worker's are apart. */
  readonly args: readonly number[]
  readonly apart: readonly number[]
  /** In values of the loop variable. */
  readonly extent: number
  readonly chunk: number
  /** Whether a chunk may be run again that was begun. */
  readonly repeatable: boolean
  /** Runs a range on this thread. */
  readonly run: (first: number, count: number) => void
}

/** Times of the pool in milliseconds, and how often what happened; tests read them, and set times. */
export const poolState: { spin: number; patience: number; nativePatience: number; launches: number; chunksByWorkers: number; redone: number } = {
  /** How long workers look for another job before they sleep: as long as what lies between two launches of a step of training often takes. */
  spin: 0.1,
  /** How long the caller waits for a chunk that a worker has begun, at least, before it takes the worker for lost. */
  patience: 5000,
  /** The same for machine code, which cannot be stopped: a thread that was given up and comes back would write to memory that may be another tensor's by then. */
  nativePatience: 60_000,
  launches: 0,
  chunksByWorkers: 0,
  redone: 0,
}

export class Pool {
  readonly #control: Control = newControl()
  readonly #workers: Workers
  #generation = 0
  #ring = 0
  #launching = false
  #isRefusalTold = false

  constructor() {
    this.#workers = new Workers(this.#control, heapMemory())
    Atomics.store(this.#control.words, WORD.next, CLOSED)
    this.#control.flags.fill(-1)
    hostProcess()?.on?.('exit', () => this.#leave())
  }

  /** The process ends: no chunk is begun any more, and it waits a moment for those that were. A thread that ends while it enters or leaves machine code takes the process down with an error. */
  #leave(): void {
    const { words } = this.#control
    Atomics.or(words, WORD.next, CLOSED)
    for (let i = 0; i < LEAVING && this.#workers.busy().length > 0; i++) Atomics.wait(words, WORD.done, Atomics.load(words, WORD.done), 1)
  }

  /** Starts workers until there are `count`, and returns how many can take part now. Without any that could, the pool is closed with a message. */
  workers(count: number): number {
    if (this.#workers.all.length < count) {
      this.#control.words[WORD.spin] = Math.round(1000 * poolState.spin)
      try {
        this.#workers.start(count, (why) => this.#lost(why))
      } catch (error) {
        refuseThreads(`workers cannot be started (${String(error)})`)
        return 0
      }
    }
    return Math.min(count, this.#workers.ready)
  }

  #lost(why: unknown): void {
    if (this.#workers.all.every(({ lost }) => lost)) refuseThreads(`the workers have ended (${String(why)})`)
  }

  /** Whether workers look for a job now, so that a launch costs little. */
  get isAwake(): boolean {
    return Atomics.load(this.#control.words, WORD.sleepers) < this.#workers.ready
  }

  /** Runs a loop. Returns false, with nothing done, where it cannot be given to workers now. */
  launch(job: Job): boolean {
    const chunks = Math.ceil(job.extent / job.chunk)
    const { locate } = job.module
    if (this.#launching || chunks > MOST_CHUNKS || (locate !== null && this.#refusesMachineCode())) return false
    if (!this.#write(job.module) || !this.#nextGeneration()) return false
    locate?.()
    this.#launching = true
    poolState.launches++
    try {
      holdingHeap(() => this.#run(job, chunks))
    } finally {
      this.#launching = false
    }
    return true
  }

  /** Whether a worker has said that it cannot run machine code. The reason is told once. */
  #refusesMachineCode(): boolean {
    const { words, reason } = this.#control
    const state = Atomics.load(words, WORD.refused)
    if (state === REFUSED.told && !this.#isRefusalTold) {
      this.#isRefusalTold = true
      const why = new TextDecoder().decode(reason.slice(0, words[WORD.reasonBytes]))
      refused('machine code on threads', why)
      console.warn(`tensorfx: machine code runs on one thread, since another one cannot load it (${why}). The results are the same.`)
    }
    return state !== 0
  }

  #run(job: Job, chunks: number): void {
    const { module, part, args, apart, extent, chunk } = job
    const fields = [module.number, module.writtenAt % MODULES_BYTES, module.bytes.length, part, args.length, chunks, chunk, extent]
    const { maySleep } = workerHost()
    const patience = module.locate === null ? poolState.patience : poolState.nativePatience
    const waiting = { maySleep, patience, now: () => performance.now() }
    const run = (index: number): void => runChunk(job, index)
    const { error, ended, byWorkers } = runJob(this.#control, this.#generation, { fields, args, apart, chunks, run }, waiting)
    poolState.chunksByWorkers += byWorkers
    if (ended === 'unfinished') this.#abandon()
    if (error !== null) throw error.thrown
    if (ended !== 'done') this.#redo(job, chunks)
  }

  /** Ends the workers that do not finish. */
  #abandon(): void {
    const busy = this.#workers.busy()
    for (const worker of busy) {
      worker.lost = true
      worker.terminate()
    }
    const text = busy.length === 1 ? 'one of its threads has' : `${busy.length} of its threads have`
    console.warn(`tensorfx: ${text} not finished in time and will no longer be used. The results are the same.`)
    this.#lost('they have not finished')
  }

  /** Runs the chunks that workers have not finished. */
  #redo(job: Job, chunks: number): void {
    if (!job.repeatable) throw new InternalError('a thread failed while it changed a tensor in place: the values of that tensor are lost')
    for (let chunk = 0; chunk < chunks; chunk++) {
      if (Atomics.load(this.#control.flags, chunk) === this.#generation) continue
      poolState.redone++
      runChunk(job, chunk)
    }
  }

  /** A number for the next job. Before numbers begin again no worker may be behind, which could take an old number for the new one. */
  #nextGeneration(): boolean {
    const next = (this.#generation + 1) % GENERATIONS
    if (next === 0) {
      if (this.#workers.busy().length > 0) return false
      this.#control.flags.fill(-1)
    }
    this.#generation = next
    return true
  }

  /** Writes a module to the ring unless it is still there; false for one that is too large. */
  #write(module: PoolModule): boolean {
    const { bytes } = module
    if (bytes.length > MODULES_BYTES / 2) return false
    if (module.writtenAt >= 0 && this.#ring - module.writtenAt <= MODULES_BYTES) return true
    const left = MODULES_BYTES - (this.#ring % MODULES_BYTES)
    if (left < bytes.length) this.#ring += left
    this.#control.modules.set(bytes, this.#ring % MODULES_BYTES)
    module.writtenAt = this.#ring
    this.#ring += bytes.length
    return true
  }
}

const runChunk = ({ chunk, extent, run }: Job, index: number): void => run(index * chunk, Math.min(chunk, extent - index * chunk))
