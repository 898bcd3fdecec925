// Starts the ranks of a thread world: one worker each, which imports a module and calls its default export.
import { ArgumentError } from '../../errors/index.ts'
import { checkOptions, valueText } from '../../protocol/index.ts'
import { DistributedError } from '../errors.ts'
import { workerThreads } from '../host.ts'
import type { ThreadWorld } from './backend.ts'
import { SHARED_BYTES, SharedMemory } from './sharedMemory.ts'

/** What a worker is told at its start. */
export interface RankStart {
  readonly world: ThreadWorld
  readonly module: string
  readonly args: readonly unknown[]
}

/** What it says at its end. */
export type RankResult = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: string; readonly stack: string }

/** A worker of Node or of a browser. */
interface RankWorker {
  onEnd(result: (result: RankResult) => void): void
  terminate(): void
}

/** The workers' script. Tests that run on the sources point it at the built file, since Node 20 does not run TypeScript. */
export const workerEntry: { url: string } = { url: new URL('../../entries/distributedWorker.js', import.meta.url).href }

/** Options of {@link runRanks}. */
export interface RunRanksOptions {
  /** What the module's default export is called with. They are copied to the workers (structured clone). */
  readonly args?: readonly unknown[]
  /** Bytes of memory that the ranks share. Default 256 MiB; only what is used is allocated. */
  readonly sharedBytes?: number
}

function startWorker(start: RankStart): RankWorker {
  const threads = workerThreads()
  if (threads !== null) {
    const worker = new threads.Worker(new URL(workerEntry.url), { workerData: start })
    return {
      onEnd(report) {
        worker.on('message', report)
        worker.on('error', (error: Error) => report({ ok: false, error: error.message, stack: error.stack ?? '' }))
        worker.on('exit', (code) => report({ ok: false, error: `its thread ended with code ${code}`, stack: '' }))
      },
      terminate: () => void worker.terminate(),
    }
  }
  const worker = new Worker(workerEntry.url, { type: 'module' })
  worker.postMessage(start)
  return {
    onEnd(report) {
      worker.addEventListener('message', (event: MessageEvent<RankResult>) => report(event.data))
      worker.addEventListener('error', (event) => report({ ok: false, error: event.message, stack: '' }))
    },
    terminate: () => worker.terminate(),
  }
}

/** How long ranks may go on after one has failed, to say what they saw. Milliseconds. */
const GRACE = 2000

/**
 * Runs a program as `worldSize` ranks, each in a worker thread: imports `module` there and calls its default export with `args`. Inside, `initProcessGroup()` joins
 * the world. Returns what the ranks returned (by structured clone). In browsers the page must be cross-origin isolated, for shared memory. PyTorch's
 * `torch.multiprocessing.spawn`.
 *
 * @throws DistributedError if a rank throws or ends; the others are stopped.
 * @example const losses = await runRanks(2, new URL('./train.mjs', import.meta.url))
 */
export async function runRanks(worldSize: number, module: URL | string, options: RunRanksOptions = {}): Promise<unknown[]> {
  checkOptions('runRanks', options, { args: true, sharedBytes: true })
  if (!Number.isSafeInteger(worldSize) || worldSize < 1)
    throw new ArgumentError(`runRanks: worldSize must be a positive integer, got ${valueText(worldSize)}.`)
  if (typeof SharedArrayBuffer === 'undefined')
    throw new DistributedError(
      'runRanks: there is no shared memory here. Serve the page with the headers Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp.',
    )
  const buffer = new SharedArrayBuffer(options.sharedBytes ?? SHARED_BYTES)
  const memory = new SharedMemory(buffer, worldSize)
  const workers = Array.from({ length: worldSize }, (_, rank) =>
    startWorker({ world: { buffer, rank, size: worldSize }, module: String(module), args: options.args ?? [] }),
  )
  try {
    return await collect(workers, memory)
  } finally {
    for (const worker of workers) worker.terminate()
  }
}

function collect(workers: readonly RankWorker[], memory: SharedMemory): Promise<unknown[]> {
  const results = new Map<number, RankResult>()
  return new Promise((resolve, reject) => {
    let first: DistributedError | null = null
    const settle = (): void => {
      if (first !== null) reject(first)
      else
        resolve(
          workers.map((_, rank) => {
            const result = results.get(rank)
            return result?.ok === true ? result.value : undefined
          }),
        )
    }
    workers.forEach((worker, rank) =>
      worker.onEnd((result) => {
        if (results.has(rank)) return
        results.set(rank, result)
        if (!result.ok && first === null) {
          first = new DistributedError(`rank ${rank} of ${workers.length}: ${result.error}${result.stack === '' ? '' : `\n${result.stack}`}`)
          memory.abort(rank)
          setTimeout(settle, GRACE)
        }
        if (results.size === workers.length) settle()
      }),
    )
  })
}
