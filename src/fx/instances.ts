// Instances of classes as arguments of nodes. What only holds traced values in its fields (PyTorch's dataclasses) is built again by the graph;
// classes made by `proxyable` record their own construction.
import { ArgumentError } from '../errors/index.ts'
import { OVERRIDE, findOverride, nameTarget } from '../protocol/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import { Node } from './node.ts'
import { isProxy, splitKwargs } from './proxy.ts'

const builders = new WeakMap<object, TargetFunction>()

/** The function that makes an instance like `value` from its fields, by the name of its class. */
export function instanceBuilder(value: object): TargetFunction {
  const prototype = Object.getPrototypeOf(value) as object
  let builder = builders.get(prototype)
  if (builder === undefined) {
    builder = (fields: object): object => Object.assign(Object.create(prototype) as object, fields)
    Object.defineProperty(builder, 'name', { value: value.constructor.name })
    builders.set(prototype, builder)
  }
  return builder
}

/** Whether a traced value stands in the fields of an object, directly or nested. */
export function holdsTraced(value: object): boolean {
  const seen = new Set<object>([value])
  // The set grows while it is walked.
  for (const object of seen) {
    const items: Iterable<unknown> = object instanceof Map ? object.values() : Object.values(object)
    for (const item of items) {
      if (isProxy(item) || item instanceof Node) return true
      if (typeof item === 'object' && item !== null) seen.add(item)
    }
  }
  return false
}

/** Prototypes of the classes that {@link proxyable} made. */
const proxyables = new WeakSet<object>()

/** Whether a value is an instance of a proxyable class. */
export const isProxyableInstance = (value: object): boolean => proxyables.has(Object.getPrototypeOf(value) as object)

// eslint-disable-next-line typescript/no-explicit-any -- a class of any arguments
type AnyClass = abstract new (...args: any[]) => object

/**
 * Makes the construction of a class recordable: `new C(…)` with a traced argument becomes a call_function node. It returns the class to use
 * instead, and also works as a decorator. PyTorch's ProxyableClassMeta.
 *
 *     const TensorPair = proxyable(class TensorPair { … })
 */
export function proxyable<C extends AnyClass>(cls: C, options: { readonly name?: string } | ClassDecoratorContext = {}): C {
  if (typeof cls !== 'function') throw new ArgumentError('proxyable: expected a class; it returns the class to use instead.')
  const name = ('name' in options ? options.name : undefined) ?? cls.name
  if (name === '') throw new ArgumentError('proxyable: an anonymous class needs a name: proxyable(cls, { name }).')
  const construct = (...args: readonly unknown[]): object => Reflect.construct(cls, args) as object
  Object.defineProperty(construct, 'name', { value: name })
  nameTarget(construct, { name: name.includes('.') ? name : `user.${name}` })
  const made = new Proxy(cls, {
    construct(target, args: readonly unknown[], newTarget) {
      const override = findOverride(args)
      // A subclass is a class of its own.
      if (override === null || newTarget !== made) return Reflect.construct(target, args, newTarget) as object
      const [positional, kwargs] = splitKwargs(args)
      return override[OVERRIDE]('function', construct, positional, kwargs) as object
    },
  })
  proxyables.add(cls.prototype as object)
  return made
}
