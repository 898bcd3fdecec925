// Classes that the program has registered, so that their instances are nested values instead of leaves.
import { checkArgument, checkCallable, isObject } from '../protocol/index.ts'
import { ArgumentError } from '../errors/index.ts'

/** How to flatten and unflatten instances of a class. */
export interface PytreeNodeType {
  /** The name of the class in the text of a structure. */
  readonly name: string
  /** The children of an instance, and whatever else is needed to rebuild it. */
  readonly flatten: (value: object) => { readonly children: readonly unknown[]; readonly context: unknown }
  readonly unflatten: (children: readonly unknown[], context: unknown) => unknown
  /** Whether two contexts are equal. Default: Object.is. */
  readonly sameContext?: (a: unknown, b: unknown) => boolean
}

/** The class of a registered value. */
export type PytreeClass<T extends object> = abstract new (...args: never[]) => T

const types = new Map<object, PytreeNodeType>()

/**
 * Makes the instances of a class, but not of its subclasses, nested values. Returns a function that undoes it. Throws ArgumentError if the class already is a
 * nested value. PyTorch's register_pytree_node.
 */
export function registerPytreeNode<T extends object, C = unknown>(
  cls: PytreeClass<T>,
  how: {
    readonly flatten: (value: T) => { readonly children: readonly unknown[]; readonly context: C }
    readonly unflatten: (children: readonly unknown[], context: C) => T
    readonly sameContext?: (a: C, b: C) => boolean
  },
): () => void {
  checkCallable('registerPytreeNode', 'cls', cls)
  checkArgument(isObject(how), 'registerPytreeNode', 'how', 'an object { flatten, unflatten }', how)
  const prototype = cls.prototype
  if (types.has(prototype) || prototype === Object.prototype || prototype === Array.prototype || prototype === Map.prototype) {
    throw new ArgumentError(`registerPytreeNode: instances of ${cls.name} are already nested values.`)
  }
  types.set(prototype, { ...(how as PytreeNodeType), name: cls.name })
  return () => void types.delete(prototype)
}

/** How to flatten a value; null if its class is not registered. */
export function nodeTypeOf(value: object): PytreeNodeType | null {
  return types.size === 0 ? null : (types.get(Object.getPrototypeOf(value)) ?? null)
}
