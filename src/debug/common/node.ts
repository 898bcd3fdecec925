// Node's built-in modules. The debugger writes files and starts processes in Node, and does neither in a browser.
import { checkArgument } from '../../protocol/arguments.ts'

interface BuiltinModules {
  'node:fs': typeof import('node:fs')
  'node:os': typeof import('node:os')
  'node:path': typeof import('node:path')
  'node:url': typeof import('node:url')
  'node:module': typeof import('node:module')
  'node:child_process': typeof import('node:child_process')
  'node:crypto': typeof import('node:crypto')
  'node:v8': typeof import('node:v8')
  'node:process': typeof import('node:process')
  'node:worker_threads': typeof import('node:worker_threads')
}

/** A built-in module, or null in a browser. */
export function nodeModule<K extends keyof BuiltinModules>(name: K): BuiltinModules[K] | null {
  return globalThis.process?.getBuiltinModule?.(name) ?? null
}

/** A path that is given as one or as a URL; null for none. Throws ArgumentError for anything else. */
export function pathOf(where: string, name: string, given: URL | string | null): string | null {
  if (given === null || typeof given === 'string') return given
  checkArgument(given instanceof URL, where, name, 'a path, a URL or null', given)
  return nodeModule('node:url')?.fileURLToPath(given) ?? given.href
}
