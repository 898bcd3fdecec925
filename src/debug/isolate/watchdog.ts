// Ends a child process when its parent is gone. It runs in a thread of its own, since the main thread of a child may loop for ever and then sees nothing.
import { hostProcess } from '../../protocol/index.ts'
import { nodeModule } from '../node.ts'

const PERIOD_MS = 200

/** Starts the thread that ends this process when the process `parent` ends. Does nothing where there are no threads. */
export function startWatchdog(parent: number): void {
  const threads = nodeModule('node:worker_threads')
  if (threads === null) return
  // The thread imports this module and nothing else of the library.
  const program = `import { watchParent } from ${JSON.stringify(import.meta.url)}\nwatchParent(${parent})`
  const worker = new threads.Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`))
  // Without the thread the main thread still sees the end of its input, unless it loops.
  worker.on('error', () => {})
  worker.unref()
}

/** Ends this process as soon as `parent` is no longer its parent. */
export function watchParent(parent: number): void {
  setInterval(() => {
    if (isParent(parent)) return
    hostProcess()?.kill?.(hostProcess()?.pid ?? 0, 'SIGKILL')
  }, PERIOD_MS)
}

/** A process whose parent ends gets another one, except on Windows, where the number is that of a process that does not exist. */
function isParent(parent: number): boolean {
  if (hostProcess()?.ppid !== parent) return false
  try {
    hostProcess()?.kill?.(parent, 0)
    return true
  } catch {
    return false
  }
}
