// Starts the ranks of a thread world: one worker each, which imports a module and calls its default export.
import { ArgumentError } from '../../errors/index.ts'
import { checkOptions, scriptAt, valueText, workerThreads } from '../../protocol/index.ts'
import type { Script } from '../../protocol/index.ts'
import { DistributedError } from '../errors.ts'
import { errorFailure, exitFailure, failureLine, failureText } from '../failures/report.ts'
import type { RankFailure } from '../failures/report.ts'
import type { ThreadWorld } from './backend.ts'
import { SHARED_BYTES, SharedMemory } from './sharedMemory.ts'

/** What a worker is told at its start. */
export interface RankStart {
  readonly world: ThreadWorld
  readonly module: string
  readonly args: readonly unknown[]
  /** Whether the rank ends when nothing is left to do, as a process does, and not when its function returns. */
  readonly isProgram: boolean
}

/** What it says at its end. */
export type RankResult = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly failure: RankFailure }

/** A worker of Node or of a browser. */
interface RankWorker {
  onEnd(result: (result: RankResult) => void): void
  terminate(): void
}

/** The workers' script. */
export const workerEntry: Script = scriptAt(() => new URL('../../entries/distributedWorker.js', import.meta.url))

/** Options of {@link runRanks}. */
export interface RunRanksOptions {
  /** What the module's default export is called with. They are copied to the workers (structured clone). */
  readonly args?: readonly unknown[]
  /** Bytes of memory that the ranks share. Default 256 MiB; only what is used is allocated. */
  readonly sharedBytes?: number
}

function startWorker(start: RankStart): RankWorker {
  const { rank, size } = start.world
  const failed = (error: unknown): RankResult => ({ ok: false, failure: errorFailure(rank, size, error) })
  const threads = workerThreads<RankStart, RankResult>()
  if (threads !== null) {
    const worker = new threads.Worker(new URL(workerEntry.url), { workerData: start })
    return {
      onEnd(report) {
        worker.on('message', report)
        // What the worker could not report itself: it ran out of memory, or its script could not be loaded.
        worker.on('error', (error) => report(failed(error)))
        worker.on('exit', (code) => report({ ok: false, failure: exitFailure(rank, size, code, '') }))
      },
      terminate: () => void worker.terminate(),
    }
  }
  // Written out, so that bundlers find the worker's script.
  const worker = new Worker(new URL('../../entries/distributedWorker.js', import.meta.url), { type: 'module' })
  worker.postMessage(start)
  return {
    onEnd(report) {
      worker.addEventListener('message', (event: MessageEvent<RankResult>) => report(event.data))
      worker.addEventListener('error', (event) => report(failed(event.error ?? event.message)))
    },
    terminate: () => worker.terminate(),
  }
}

/** How long ranks may go on after one has failed, to say where they were. Milliseconds. */
const GRACE = 500

/** What became of the ranks: what they returned, or how they failed, the first failure first. */
export type WorldResult = { readonly values: readonly unknown[] } | { readonly failures: readonly [RankFailure, ...RankFailure[]] }

/** Runs `module` as `worldSize` ranks. A program, unlike a function that has to return something, may call `process.exit(0)`. @internal */
export async function runWorld(worldSize: number, module: string, options: RunRanksOptions & { readonly isProgram: boolean }): Promise<WorldResult> {
  const buffer = new SharedArrayBuffer(options.sharedBytes ?? SHARED_BYTES)
  const memory = new SharedMemory(buffer, worldSize)
  const workers = Array.from({ length: worldSize }, (_, rank) =>
    startWorker({ world: { buffer, rank, size: worldSize }, module, args: options.args ?? [], isProgram: options.isProgram }),
  )
  try {
    return await collect(workers, memory)
  } finally {
    for (const worker of workers) worker.terminate()
  }
}

function collect(workers: readonly RankWorker[], memory: SharedMemory): Promise<WorldResult> {
  const results = new Map<number, RankResult>()
  return new Promise((resolve) => {
    const settle = (): void => {
      const failed = [...results.values()].flatMap((result) => (result.ok ? [] : [result.failure]))
      const [first, ...rest] = [...failed.filter(({ isEcho }) => !isEcho), ...failed.filter(({ isEcho }) => isEcho)]
      if (first !== undefined) return resolve({ failures: [first, ...rest] })
      const values = workers.map((_, rank) => {
        const result = results.get(rank)
        return result?.ok === true ? result.value : undefined
      })
      resolve({ values })
    }
    let isEnding = false
    workers.forEach((worker, rank) =>
      worker.onEnd((result) => {
        if (results.has(rank)) return
        results.set(rank, result)
        if (result.ok) memory.leave(rank)
        else if (!isEnding) {
          isEnding = true
          memory.abort(rank)
          setTimeout(settle, GRACE)
        }
        if (results.size === workers.length) settle()
      }),
    )
  })
}

/**
 * Runs a program as `worldSize` ranks, each in a worker thread: imports `module` there and calls its default export with `args`. Inside, `initProcessGroup()` joins
 * the world. Returns what the ranks returned (by structured clone). In browsers the page must be cross-origin isolated, for shared memory. PyTorch's
 * `torch.multiprocessing.spawn`.
 *
 * @throws DistributedError if a rank throws or ends; the others are stopped. The message begins with the rank that failed first, its error and stack; the others follow in a line each.
 * @example const losses = await runRanks(2, new URL('./train.mjs', import.meta.url))
 */
export async function runRanks(worldSize: number, module: URL | string, options: RunRanksOptions = {}): Promise<unknown[]> {
  checkOptions('runRanks', options, { args: true, sharedBytes: 'number' })
  if (!Number.isSafeInteger(worldSize) || worldSize < 1)
    throw new ArgumentError(`runRanks: worldSize must be a positive integer, got ${valueText(worldSize)}.`)
  if (typeof SharedArrayBuffer === 'undefined')
    throw new DistributedError(
      'runRanks: there is no shared memory here. Serve the page with the headers Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp.',
    )
  const result = await runWorld(worldSize, String(module), { ...options, isProgram: false })
  if ('values' in result) return [...result.values]
  const [first, ...others] = result.failures
  throw new DistributedError([failureText(first), ...others.map(failureLine)].join('\n'), { endedRank: first.rank })
}
