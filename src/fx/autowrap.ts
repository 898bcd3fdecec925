// Functions of objects that are patched while a trace runs, so that they record a node when they meet a traced value.
import { OVERRIDE, findOverride } from '../protocol/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import { _assert } from './assertions.ts'
import { wrap } from './wrap.ts'

/** Objects with functions, by the name under which graphs know them. */
export type AutowrapModules = Readonly<Record<string, object>>

/** Patches the functions of `objects`, and console.assert when asked to. Returns the function that sets everything back. */
export function patchObjects(objects: AutowrapModules, traceAsserts: boolean): () => void {
  const undo: (() => void)[] = []
  for (const [prefix, object] of Object.entries(objects)) {
    for (const name of Object.getOwnPropertyNames(object)) {
      const descriptor = Object.getOwnPropertyDescriptor(object, name)
      const fn: unknown = descriptor?.value
      // The namespace of an ES module cannot be patched, nor can a class be called.
      if (typeof fn !== 'function' || descriptor?.configurable !== true || isClass(fn)) continue
      replace(object, name, descriptor, wrap(fn as TargetFunction, { name: `${prefix}.${name}` }), undo)
    }
  }
  if (traceAsserts) {
    const descriptor = Object.getOwnPropertyDescriptor(console, 'assert') as PropertyDescriptor
    replace(console, 'assert', descriptor, recordingAssert(descriptor.value as TargetFunction), undo)
  }
  return () => {
    for (const step of undo.reverse()) step()
  }
}

function replace(object: object, name: string, descriptor: PropertyDescriptor, value: unknown, undo: (() => void)[]): void {
  Object.defineProperty(object, name, { ...descriptor, value })
  undo.push(() => void Object.defineProperty(object, name, descriptor))
}

const isClass = (fn: object): boolean => /^class\b/.test(String(fn))

/** console.assert, recorded for a traced condition. */
function recordingAssert(original: TargetFunction): TargetFunction {
  return (condition?: unknown, ...rest: readonly unknown[]): unknown => {
    const override = findOverride([condition])
    if (override === null) return original(condition, ...rest)
    return override[OVERRIDE]('function', _assert as TargetFunction, [condition, rest.map(String).join(' ')], {})
  }
}
