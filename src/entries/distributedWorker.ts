// A rank of a thread world, which src/distributed/threads/spawn.ts starts: imports the program, calls its default export and reports what it returns.
import { offerBackend, ThreadBackend, workerThreads } from '../distributed/index.ts'
import type { RankResult, RankStart } from '../distributed/index.ts'
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

const { parentPort = null, workerData } = workerThreads() ?? {}
if (parentPort !== null) {
  parentPort.postMessage(await run(workerData))
} else {
  globalThis.addEventListener('message', (event: MessageEvent<RankStart>) => {
    void run(event.data).then((result) => globalThis.postMessage(result))
  })
}
