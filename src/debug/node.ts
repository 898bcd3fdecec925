// Node's built-in modules, where there are any: the debugger writes files and starts processes there, and does neither in a browser.

interface BuiltinModules {
  'node:fs': typeof import('node:fs')
  'node:path': typeof import('node:path')
  'node:url': typeof import('node:url')
  'node:module': typeof import('node:module')
  'node:child_process': typeof import('node:child_process')
  'node:crypto': typeof import('node:crypto')
}

/** A built-in module, or null in a browser. */
export function nodeModule<K extends keyof BuiltinModules>(name: K): BuiltinModules[K] | null {
  const host = globalThis as { process?: { getBuiltinModule?: (id: string) => unknown } }
  return (host.process?.getBuiltinModule?.(name) as BuiltinModules[K] | undefined) ?? null
}
