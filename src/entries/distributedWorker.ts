// A rank of a thread world, which src/distributed/threads/spawn.ts starts: imports the program, calls its default export and reports what it returns.
import { workerThreads } from '../distributed/host.ts'
import { offerBackend } from '../distributed/processGroup.ts'
import { ThreadBackend } from '../distributed/threads/backend.ts'
import type { RankResult, RankStart } from '../distributed/threads/spawn.ts'
import { installDistributed } from '../install/distributed.ts'
import { isFunction } from '../protocol/index.ts'

installDistributed()

async function run({ world, module, args }: RankStart): Promise<RankResult> {
  const backend = new ThreadBackend(world)
  try {
    offerBackend(backend)
    const program: { readonly default?: unknown } = await import(/* @vite-ignore */ module)
    if (!isFunction(program.default)) throw new TypeError(`${module} must export a function as default`)
    return { ok: true, value: await program.default(...args) }
  } catch (error) {
    backend.abort()
    const { message, stack = '' } = error instanceof Error ? error : new Error(String(error))
    return { ok: false, error: message, stack }
  }
}

const threads = workerThreads()
if (threads !== null && threads.parentPort !== null) {
  threads.parentPort.postMessage(await run(threads.workerData))
} else {
  globalThis.addEventListener('message', (event: MessageEvent<RankStart>) => {
    void run(event.data).then((result) => globalThis.postMessage(result))
  })
}
