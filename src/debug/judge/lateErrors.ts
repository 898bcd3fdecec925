// Errors that come after a call has returned: a promise of the backend's that is rejected and that nothing awaits, a callback of the next turn. Node ends the program
// for them, so they count as failures of the code that has left them behind.
import { isCallable } from '../../protocol/index.ts'
import { nodeModule } from '../common/node.ts'

const LATE = ['unhandledRejection', 'uncaughtException'] as const

/** Turns of the event loop that callbacks get. */
const TURNS = 2

/** What ran, and the first error that came after it. */
export interface Settled<T> {
  readonly result: T
  readonly late: { readonly thrown: unknown } | null
}

/** Runs `fn`, and waits for what it leaves behind. Throws what `fn` throws. In pages, where such errors end nothing, it does not wait. */
export async function settled<T>(fn: () => T): Promise<Settled<T>> {
  const host = nodeModule('node:process')
  if (host === null || !isCallable(globalThis.setImmediate)) return { result: fn(), late: null }
  let late: Settled<T>['late'] = null
  const take = (thrown: unknown): void => void (late ??= { thrown })
  for (const name of LATE) host.on(name, take)
  try {
    const result = fn()
    for (let turn = 0; turn < TURNS; turn++) await new Promise((resolve) => setImmediate(resolve))
    return { result, late }
  } finally {
    for (const name of LATE) host.off(name, take)
  }
}
