// While a program is traced, reading a parameter, buffer or other tensor from a module gives a traced value. The properties are replaced for the
// time of the trace and set back after it.
import type { Module } from '../module/index.ts'
import { STANDS_FOR, isParameter, isTensorLike } from '../protocol/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import { isProxy } from './proxy.ts'
import { TraceError } from './traceError.ts'

/** What reading a tensor at a path gives. */
export type ReadTensor = (path: string, value: TensorLike, kind: 'parameter' | 'buffer' | 'constant') => unknown

/** Replaces the tensors of a module tree by what `read` gives. Returns the function that sets them back. */
export function interceptTensors(root: Module, read: ReadTensor): () => void {
  const undo: (() => void)[] = []
  // The list first: walking the tree reads the very properties that are replaced here.
  for (const [path, module] of [...root.namedModules()]) {
    const buffers = new Set([...module.ownBuffers()].map(([name]) => name))
    for (const [name, value] of Object.entries(module)) {
      if (!isTensorLike(value)) continue
      const descriptor = Object.getOwnPropertyDescriptor(module, name)
      // Accessors of the user's own, and frozen properties, stay: what they give is a constant.
      if (descriptor?.configurable !== true || descriptor.get !== undefined) continue
      const full = path === '' ? name : `${path}.${name}`
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
          `the program assigns a traced value to '${name}' of a module: graphs have no assignment`,
          `Return the new value, or write it into the tensor: this.${name}.copy_(value).`,
        )
      current = next
    },
  })
  return () => void Object.defineProperty(module, name, descriptor)
}
