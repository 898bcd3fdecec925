// The program of `tensorfx run`, in one rank.
import { isMainThread, workerData } from 'node:worker_threads'
import { writeNow } from '../../distributed/failures/sync.ts'
import { hasJoined } from '../../distributed/processGroup.ts'
import type { RankStart } from '../../distributed/threads/spawn.ts'
import { isFunction } from '../../protocol/index.ts'
import { importScript } from '../script.ts'
import { LineSplitter } from './lines.ts'

/**
 * Imports the program as if Node had been started with it. A program that has not joined a world by then, and exports a function as default, is written for `runRanks`: the function is
 * called with the words of the command line.
 */
export async function runProgram(file: string, words: readonly string[]): Promise<void> {
  if (!isMainThread) tagOutput()
  const main = await importScript(file, words)
  if (isFunction(main) && !hasJoined()) await main(...words)
}

export default runProgram

/** Writes this thread's output at once, with its rank before each line. A thread's usual output only moves on while the thread waits for events, which ranks seldom do. */
function tagOutput(): void {
  const { world }: RankStart = workerData
  for (const [stream, descriptor] of [
    [process.stdout, 1],
    [process.stderr, 2],
  ] as const) {
    const lines = new LineSplitter((line) => writeNow(descriptor, `[${world.rank}] ${line}\n`))
    stream.write = (chunk: string | Uint8Array, ...rest: readonly unknown[]): boolean => {
      lines.add(typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk)
      const done = rest.find(isFunction)
      done?.()
      return true
    }
    // Before the end is reported, after which the thread may be stopped.
    process.prependListener('exit', () => lines.end())
  }
}
