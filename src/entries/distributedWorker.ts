// A rank of a thread world, which src/distributed/threads/spawn.ts starts: imports the program, calls its default export and reports what it returns.
import { UNSETTLED, exitFailure } from '../distributed/failures/report.ts'
import { failRank, watchRank } from '../distributed/failures/watch.ts'
import { offerBackend } from '../distributed/processGroup.ts'
import { ThreadBackend } from '../distributed/threads/backend.ts'
import type { RankResult, RankStart } from '../distributed/threads/spawn.ts'
import { installDistributed } from '../install/distributed.ts'
import { isFunction, workerThreads } from '../protocol/index.ts'

installDistributed()

async function run({ world, module, args, isProgram }: RankStart, report: (result: RankResult) => void): Promise<void> {
  const backend = new ThreadBackend(world)
  let hasReturned = false
  watchRank({
    rank: world.rank,
    size: world.size,
    fail(failure) {
      backend.abort()
      report({ ok: false, failure })
    },
    leave(failure) {
      const hasCalledExit = failure.stack !== ''
      if (isProgram && (hasReturned || hasCalledExit)) report({ ok: true, value: undefined })
      else report({ ok: false, failure: hasCalledExit ? failure : exitFailure(world.rank, world.size, UNSETTLED, '') })
    },
  })
  try {
    offerBackend(backend)
    const program: { readonly default?: unknown } = await import(/* @vite-ignore */ module)
    if (!isFunction(program.default)) throw new TypeError(`${module} must export a function as default`)
    const value: unknown = await program.default(...args)
    hasReturned = true
    if (!isProgram) report({ ok: true, value })
  } catch (error) {
    failRank(error)
  }
}

const threads = workerThreads<RankStart, RankResult>()
const port = threads?.parentPort ?? null
if (threads !== null && port !== null) void run(threads.workerData, (result) => port.postMessage(result))
else globalThis.addEventListener('message', (event: MessageEvent<RankStart>) => void run(event.data, (result) => globalThis.postMessage(result)))
