// Backends that a script names by their module, `./my.mjs#name`: an export of it, or a backend that it registers under that name.
import { InvalidBackend, isImportable, lookupBackend, registerBackend } from '../../dynamo/index.ts'
import type { Backend } from '../../dynamo/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { isCallable, isObject } from '../../protocol/index.ts'
import { describe } from '../common/describeError.ts'
import { nodeModule } from '../common/node.ts'

/** Whether a backend is named by its module. */
export const isModuleBackend = (backend: string): boolean => backend.lastIndexOf('#') > 0

/** The module as a URL: a path is relative to the working directory. A drive of Windows, of one letter, is no scheme. */
function urlOf(module: string): string {
  if (/^[a-z][a-z\d+.-]+:/i.test(module)) return module
  return nodeModule('node:url')?.pathToFileURL(module).href ?? module
}

/** A backend that its module has registered, and how other processes find it. */
export interface NamedBackend {
  readonly name: string
  /** What names it in any other process: the module as a URL, and the export or name. */
  readonly reference: string
  /** Modules that a process must import so that it has the backend. */
  readonly imports: readonly string[]
}

/**
 * Imports the module of `module#name`. A function that it exports under that name is registered as `url#name`; otherwise the module registers the name itself.
 * Throws ArgumentError if the module cannot be imported, or has neither.
 */
export async function importBackend(text: string): Promise<NamedBackend> {
  const at = text.lastIndexOf('#')
  const name = text.slice(at + 1)
  const url = urlOf(text.slice(0, at))
  let module: unknown
  try {
    module = await import(/* @vite-ignore */ url)
  } catch (error) {
    throw new ArgumentError(`the backend ${text}: its module cannot be imported: ${describe(error)}`, { cause: error })
  }
  const exported: unknown = isObject(module) ? Reflect.get(module, name) : undefined
  if (isBackend(exported)) {
    const registered = `${url}#${name}`
    registerBackend(registered, exported, { tags: ['debug'], module: url })
    return { name: registered, reference: registered, imports: [url] }
  }
  try {
    lookupBackend(name)
  } catch (error) {
    if (!(error instanceof InvalidBackend)) throw error
    throw new ArgumentError(`the backend ${text}: the module exports no function '${name}', and registers no backend with that name.`, {
      cause: error,
    })
  }
  return { name, reference: `${url}#${name}`, imports: [url] }
}

const isBackend = (value: unknown): value is Backend => isCallable(value)

/** Why a script cannot have the backend, and what to do about it; null if it can. */
export function whyNotNameable(label: string): string | null {
  if (isImportable(label)) return null
  return `the backend '${label}' is a function that a script cannot import. Register it in a module of its own, registerBackend(name, fn, { module: import.meta.url }), or run the script with --backend ./file.mjs#export`
}
