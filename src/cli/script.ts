// Scripts that a command runs in its own process, as if Node had been started with them.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { placeOf } from '../distributed/failures/report.ts'
import { ArgumentError } from '../errors/index.ts'
import { isFunction } from '../protocol/index.ts'
import type { Result } from './line.ts'

/** Imports a script, whose words are in `process.argv`. Returns its default export. */
export async function importScript(file: string, words: readonly string[]): Promise<unknown> {
  const path = resolve(file)
  process.argv = [process.execPath, path, ...words]
  const { href } = pathToFileURL(path)
  const program: { readonly default?: unknown } = await import(href).catch((error: unknown) => {
    addPlace(error, href)
    throw error
  })
  return program.default
}

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

/** The script and its words of a command that runs one. Throws ArgumentError if there is none. */
export function scriptOf([file, ...words]: readonly string[]): { readonly file: string; readonly words: readonly string[] } {
  if (file === undefined) throw new ArgumentError('the script is missing: name its file.')
  if (!existsSync(file)) throw new ArgumentError(`there is no file '${file}'.`)
  return { file, words }
}

/**
 * Runs a script (and calls its default export with its words, if that is a function), and then reports on it: also if it throws, or ends the process. `quietly`: what it prints to
 * standard output goes to standard error, so that nothing but the report is there.
 */
export async function reportOn(file: string, words: readonly string[], quietly: boolean, report: () => Result): Promise<Result> {
  const { write } = process.stdout
  if (quietly) process.stdout.write = process.stderr.write.bind(process.stderr)
  // A script that ends the process gets its report too.
  const atExit = (): void => {
    process.stdout.write = write
    const { text, data } = report()
    process.stdout.write(`${quietly ? JSON.stringify(data, null, 2) : text}\n`)
  }
  process.once('exit', atExit)
  let failure: unknown = null
  try {
    const main = await importScript(file, words)
    if (isFunction(main)) await main(...words)
  } catch (error) {
    failure = error ?? new Error('undefined was thrown')
  } finally {
    process.off('exit', atExit)
    process.stdout.write = write
  }
  const result = report()
  if (failure === null) return result
  const text = failure instanceof Error ? (failure.stack ?? String(failure)) : String(failure)
  return { text: `${result.text}\nThe script failed: ${text}`, code: 1, data: { ...Object(result.data), error: text } }
}
