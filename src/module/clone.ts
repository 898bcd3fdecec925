// Copies of module trees.
import { isFunction, isModule, isPlainObject, isTensorLike, setOwn } from '../protocol/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import { setAttribute } from './attributes.ts'
import { makeCallable } from './callable.ts'
import { copyInternals } from './internals.ts'

/** A module that copies itself, because it has state besides its properties. */
export interface SelfCloning {
  cloneWith(copy: (value: unknown) => unknown): object
}

const isSelfCloning = (value: object): value is SelfCloning => 'cloneWith' in value && isFunction(value.cloneWith)

/** An empty module of the same class. */
const makeModule = (like: object): object => makeCallable(Object.getPrototypeOf(like))

/**
 * A copy of a module tree. Each module, array, Map, Set, plain object and tensor (by `copyTensor`) is copied once, so that sharing is preserved; other values are shared
 * with the original, unless `copyOther` copies them. Hooks and buffer registrations are kept. PyTorch's copy.deepcopy.
 */
export function cloneModule<M extends object>(
  module: M,
  copyTensor: (tensor: TensorLike) => TensorLike,
  copyOther: (value: unknown, copy: (value: unknown) => unknown) => unknown = (value) => value,
): M {
  const seen = new Map<unknown, unknown>()
  const copy = (value: unknown): unknown => {
    if (seen.has(value)) return seen.get(value)
    const remember = <T>(made: T): T => {
      seen.set(value, made)
      return made
    }
    if (isTensorLike(value)) return remember(copyTensor(value))
    if (isModule(value)) {
      const made = remember(isSelfCloning(value) ? value.cloneWith(copy) : makeModule(value))
      if (!isSelfCloning(value)) for (const [key, item] of Object.entries(value)) setAttribute(made, key, copy(item))
      copyInternals(value, made)
      return made
    }
    // The copies are filled after they are remembered, because values may contain each other.
    if (Array.isArray(value)) {
      const made = remember<unknown[]>([])
      for (const item of value) made.push(copy(item))
      return made
    }
    if (value instanceof Map) {
      const made = remember(new Map<unknown, unknown>())
      for (const [key, item] of value) made.set(copy(key), copy(item))
      return made
    }
    if (value instanceof Set) {
      const made = remember(new Set<unknown>())
      for (const item of value) made.add(copy(item))
      return made
    }
    if (isPlainObject(value)) {
      const made = remember<Record<string, unknown>>({})
      for (const [key, item] of Object.entries(value)) setOwn(made, key, copy(item))
      return made
    }
    return remember(copyOther(value, copy))
  }
  return copy(module) as M
}
