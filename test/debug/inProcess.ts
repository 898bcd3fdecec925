// Programs that fail and the scripts that the debugger writes for them, in this process and on the sources. (processes.ts runs them on dist/, as users do.)
import { pathToFileURL } from 'node:url'
import { vi } from 'vitest'
import * as front from 'tensorfx'
import { config } from 'tensorfx/compile'
import * as debug from 'tensorfx/debug'
import type { LogLevel, MemoryFileStore } from 'tensorfx/debug'

const usual = { ...config }

/** Settings as they were when the tests began. */
export const resetConfig = (): void => void Object.assign(config, usual)

/** What `run` throws. */
export function thrownBy(run: () => unknown): Error & { readonly minifierPath?: string | null; readonly dumpProblem?: string | null } {
  try {
    run()
  } catch (error) {
    if (error instanceof Error) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

/** What the debugger says, from here on. */
export function listen(): [LogLevel, string][] {
  const said: [LogLevel, string][] = []
  debug.setLogSink((level, message) => void said.push([level, message]))
  return said
}

export const textOf = (store: MemoryFileStore, path: string): string => new TextDecoder().decode(store.files.get(path))

/** The only file of that name. */
export function pathOf(store: MemoryFileStore, name: string): string {
  const found = [...store.files.keys()].filter((path) => path.endsWith(`/${name}`))
  if (found.length !== 1) throw new Error(`there are ${found.length} files ${name}`)
  return String(found[0])
}

/** How a script ended. */
export interface Ran {
  readonly error: Error | null
  /** What it printed and logged. */
  readonly output: string
  /** What the script made of the process's exit code. */
  readonly exitCode: number | undefined
}

/** From here on, a process of its own with that command line: setting the real exit code would end the tests with it. */
export function processWith(argv: readonly string[]): { exitCode: number | undefined } {
  const host = Object.create(process, Object.getOwnPropertyDescriptors({ argv, exitCode: undefined })) as { exitCode: number | undefined }
  vi.stubGlobal('process', host)
  return host
}

const AsyncFunction: unknown = Object.getPrototypeOf(async () => {}).constructor

/** Runs a script that lies in the store, with these words on its command line. */
export async function runHere(store: MemoryFileStore, path: string, words: readonly string[] = []): Promise<Ran> {
  const body = textOf(store, path)
    .replace(
      /^import \{ (.*) \} from '(.*)'$/gm,
      (_, names: string, from: string) => `const { ${names} } = ${from.includes('debug') ? 'debug' : 'front'}`,
    )
    .replace(/^import '(.*)'$/gm, "await load('$1')")
    .replaceAll('import.meta.url', `'${pathToFileURL(path).href}'`)
  const output: unknown[] = []
  debug.setLogSink((_level, message) => void output.push(message))
  const host = processWith(['node', path, ...words])
  const spies = [vi.spyOn(console, 'log'), vi.spyOn(console, 'error')].map((spy) => spy.mockImplementation((...texts) => void output.push(...texts)))
  let error: Error | null = null
  try {
    const load = (url: string): Promise<unknown> => import(/* @vite-ignore */ url)
    const program = Reflect.construct(AsyncFunction as FunctionConstructor, ['front', 'debug', 'load', body])
    await program({ ...front, config }, debug, load)
  } catch (thrown) {
    error = thrown instanceof Error ? thrown : new Error(String(thrown))
  } finally {
    for (const spy of spies) spy.mockRestore()
    vi.unstubAllGlobals()
    debug.setLogSink(null)
  }
  return { error, output: output.join('\n'), exitCode: host.exitCode }
}
