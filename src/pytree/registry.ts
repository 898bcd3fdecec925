// Classes whose instances are nested values rather than leaves, as the program has registered them.
import { ArgumentError } from '../errors/index.ts'

/** How the instances of a class are taken apart and put together. */
export interface PytreeNodeType {
  /** For texts of structures. */
  readonly name: string
  /** The nested values of an instance, and what else is needed to build it again. */
  readonly flatten: (value: object) => { readonly children: readonly unknown[]; readonly context: unknown }
  readonly unflatten: (children: readonly unknown[], context: unknown) => unknown
  /** Whether two contexts mean the same structure. Default: Object.is. */
  readonly sameContext?: (a: unknown, b: unknown) => boolean
}

/** The class of a registered value. */
export type PytreeClass<T extends object> = abstract new (...args: never[]) => T

const types = new Map<object, PytreeNodeType>()

/**
 * Makes the instances of a class nested values; PyTorch's register_pytree_node. Subclasses are not included.
 * Returns a function that takes it back. Throws ArgumentError for a class that is registered already.
 */
export function registerPytreeNode<T extends object, C = unknown>(
  cls: PytreeClass<T>,
  how: {
    readonly flatten: (value: T) => { readonly children: readonly unknown[]; readonly context: C }
    readonly unflatten: (children: readonly unknown[], context: C) => T
    readonly sameContext?: (a: C, b: C) => boolean
  },
): () => void {
  const prototype = cls.prototype as object
  if (types.has(prototype) || prototype === Object.prototype || prototype === Array.prototype || prototype === Map.prototype) {
    throw new ArgumentError(`registerPytreeNode: ${cls.name} is a nested value already.`)
  }
  types.set(prototype, { ...(how as unknown as PytreeNodeType), name: cls.name })
  return () => void types.delete(prototype)
}

/** How to take a value apart; null for a leaf. */
export function nodeTypeOf(value: object): PytreeNodeType | null {
  return types.size === 0 ? null : (types.get(Object.getPrototypeOf(value) as object) ?? null)
}
