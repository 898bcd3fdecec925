// Which modules a call depends on: those that it calls, that are among its arguments, or that it is a call of, and all below them.
import { Module, setModuleCallHook } from '../module/index.ts'

/** Runs `fn`. Returns its result and the modules that it depends on; `given` are values that may be modules: what is called, and its arguments. */
export function watchingModules<T>(given: readonly unknown[], fn: () => T): { readonly result: T; readonly modules: readonly Module[] } {
  const called = new Set<unknown>(given)
  const outer = setModuleCallHook({
    callModule(module, forward) {
      called.add(module)
      return outer === null ? forward() : outer.callModule(module, forward)
    },
  })
  try {
    const result = fn()
    return { result, modules: modulesBelow(called) }
  } finally {
    setModuleCallHook(outer)
  }
}

/** The modules among some values, and all below them, each once. */
export function modulesBelow(values: Iterable<unknown>): readonly Module[] {
  const all = new Set<Module>()
  for (const value of values) if (value instanceof Module && !all.has(value)) for (const module of value.modules()) all.add(module)
  return [...all]
}
