// A thread of a child process that sees what the main thread cannot, which may loop for ever: it ends the process when its parent is gone, and tells the parent how much
// processor time the process has used.
import { hostProcess } from '../../protocol/host.ts'
import { nodeModule } from '../common/node.ts'
import { progressLine } from './pipes.ts'

const PERIOD_MS = 200

/** Starts the thread: it ends this process when the process `parent` ends, and writes reports to the file descriptor `reportTo`. Does nothing where there are no threads. */
export function startWatchdog(parent: number, reportTo: number | null): void {
  const threads = nodeModule('node:worker_threads')
  if (threads === null) return
  // The thread imports this module and nothing else of the library.
  const program = `import { watch } from ${JSON.stringify(import.meta.url)}\nwatch(${parent}, ${reportTo})`
  const worker = new threads.Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`))
  // Without the thread the main thread still sees the end of its input, unless it loops.
  worker.on('error', () => {})
  worker.unref()
}

/** Ends this process as soon as `parent` is no longer its parent, and reports its processor time until then. */
export function watch(parent: number, reportTo: number | null): void {
  setInterval(() => {
    if (!isParent(parent)) process.kill(process.pid, 'SIGKILL')
    else if (reportTo !== null) report(reportTo)
  }, PERIOD_MS)
}

/** The processor time that this process has used in all its threads, in milliseconds; null where it is not known. */
export function processorTime(): number | null {
  const usage = hostProcess()?.cpuUsage?.()
  return usage === undefined ? null : (usage.user + usage.system) / 1000
}

/** Writes the processor time as a line of JSON, as `pipes.ts` reads it. The thread writes by itself, since its console goes through the main thread. */
function report(fd: number): void {
  const cpuMs = processorTime()
  if (cpuMs === null) return
  try {
    nodeModule('node:fs')?.writeSync(fd, progressLine({ cpuMs }))
  } catch {
    // A parent that does not read is slow, or about to end.
  }
}

/** A process whose parent ends gets another one, except on Windows, where the number is that of a process that does not exist. */
function isParent(parent: number): boolean {
  if (process.ppid !== parent) return false
  try {
    process.kill(parent, 0)
    return true
  } catch {
    return false
  }
}
