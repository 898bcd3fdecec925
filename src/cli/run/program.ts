// The program of `tensorfx run`, in one rank.
import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isMainThread, workerData } from 'node:worker_threads'
import { placeOf } from '../../distributed/failures/report.ts'
import { writeNow } from '../../distributed/failures/sync.ts'
import { hasJoined } from '../../distributed/processGroup.ts'
import type { RankStart } from '../../distributed/threads/spawn.ts'
import { isFunction } from '../../protocol/index.ts'
import { LineSplitter } from './lines.ts'

/**
 * Imports the program as if Node had been started with it. A program that has not joined a world by then, and exports a function as default, is written for `runRanks`: the function is
 * called with the words of the command line.
 */
export async function runProgram(file: string, words: readonly string[]): Promise<void> {
  if (!isMainThread) tagOutput()
  const path = resolve(file)
  process.argv = [process.execPath, path, ...words]
  const { href } = pathToFileURL(path)
  const program: { readonly default?: unknown } = await import(href).catch((error: unknown) => {
    addPlace(error, href)
    throw error
  })
  if (isFunction(program.default) && !hasJoined()) await program.default(...words)
}

export default runProgram

/**
 * Puts the place of a syntax error before its stack, as Node does for CommonJS. For modules Node only says it where nothing catches the error, so another process links the program: it
 * reads all files that the program imports by `import` statements, and runs none, since what is evaluated first is a module that exits.
 */
function addPlace(error: unknown, program: string): void {
  if (!(error instanceof SyntaxError) || placeOf(error.stack ?? '') !== '') return
  const link = `import 'data:text/javascript,process.exit(0)'; import ${JSON.stringify(program)}`
  const { stderr } = spawnSync(process.execPath, [...process.execArgv, '--input-type=module', '--eval', link], { encoding: 'utf8' })
  const place = placeOf(stderr)
  if (place !== '') error.stack = `${place}\n${error.stack ?? ''}`
}

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
