// What is patched while a program is traced, and restored afterwards: reads of a module's tensors give traced values, and functions of objects and console.assert
// are recorded when they get a traced value.
import type { Module } from '../../module/index.ts'
import { childPath, findOverride, isFunction, isParameter, isTensorLike, OVERRIDE, STANDS_FOR } from '../../protocol/index.ts'
import type { TargetFunction, TensorLike } from '../../protocol/index.ts'
import { TraceError } from '../graph/errors.ts'
import { isClass } from '../graph/node.ts'
import { _assert } from '../values/assertions.ts'
import { isProxy } from '../values/proxy.ts'
import { wrap } from '../values/wrap.ts'

/** The value that reading a tensor of a module gives. */
export type ReadTensor = (path: string, value: TensorLike, kind: 'parameter' | 'buffer' | 'constant') => unknown

/** Replaces the tensors of a module tree by what `read` returns. Returns a function that restores them. */
export function interceptTensors(root: Module, read: ReadTensor): () => void {
  const undo: (() => void)[] = []
  // List the modules first, because walking the tree reads the properties that are replaced here.
  for (const [path, module] of [...root.namedModules()]) {
    const buffers = new Set([...module.ownBuffers()].map(([name]) => name))
    for (const [name, value] of Object.entries(module)) {
      if (!isTensorLike(value)) continue
      const descriptor = Object.getOwnPropertyDescriptor(module, name)
      // The user's own accessors and frozen properties stay; the tensors that they give are constants.
      if (descriptor?.configurable !== true || descriptor.get !== undefined) continue
      const full = childPath(path, name)
      const kind = isParameter(value) ? 'parameter' : buffers.has(name) ? 'buffer' : 'constant'
      undo.push(intercept(module, name, descriptor, () => read(full, value, kind)))
    }
  }
  return () => {
    for (const step of undo) step()
  }
}

function intercept(module: Module, name: string, descriptor: PropertyDescriptor, read: () => unknown): () => void {
  const value: unknown = descriptor.value
  let current = value
  Object.defineProperty(module, name, {
    configurable: true,
    enumerable: true,
    get: Object.assign(() => (current === value ? read() : current), { [STANDS_FOR]: value }),
    set: (next: unknown) => {
      if (isProxy(next))
        throw new TraceError(
          `the program assigns a traced value to '${name}' of a module, but graphs have no assignments`,
          `Return the new value, or write it into the tensor: this.${name}.copy_(value).`,
        )
      current = next
    },
  })
  return () => void Object.defineProperty(module, name, descriptor)
}

/** Objects whose functions are recorded, by the name under which graphs know them. */
export type AutowrapModules = Readonly<Record<string, object>>

/** Patches the functions of `objects`, and console.assert if asked to. Returns a function that restores them. */
export function patchObjects(objects: AutowrapModules, traceAsserts: boolean): () => void {
  const undo: (() => void)[] = []
  for (const [prefix, object] of Object.entries(objects)) {
    for (const name of Object.getOwnPropertyNames(object)) {
      const descriptor = Object.getOwnPropertyDescriptor(object, name)
      const fn: unknown = descriptor?.value
      // The namespace of an ES module cannot be patched, and a class cannot be called.
      if (!isFunction(fn) || descriptor?.configurable !== true || isClass(fn)) continue
      replace(object, name, descriptor, wrap(fn, { name: `${prefix}.${name}` }), undo)
    }
  }
  const descriptor = traceAsserts ? Object.getOwnPropertyDescriptor(console, 'assert') : undefined
  if (descriptor !== undefined) replace(console, 'assert', descriptor, recordingAssert(descriptor.value), undo)
  return () => {
    for (const step of undo.reverse()) step()
  }
}

function replace(object: object, name: string, descriptor: PropertyDescriptor, value: unknown, undo: (() => void)[]): void {
  Object.defineProperty(object, name, { ...descriptor, value })
  undo.push(() => void Object.defineProperty(object, name, descriptor))
}

/** console.assert, which is recorded if the condition is traced. */
function recordingAssert(original: TargetFunction): TargetFunction {
  return (condition?: unknown, ...rest: readonly unknown[]): unknown => {
    const override = findOverride([condition])
    if (override === null) return original(condition, ...rest)
    return override[OVERRIDE]('function', _assert, [condition, rest.map(String).join(' ')], {})
  }
}
