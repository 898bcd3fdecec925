// Instances of classes as arguments of nodes. If an instance only has traced values in its fields (PyTorch's dataclasses), the graph rebuilds it. Classes made by
// `proxyable` record their construction.
import { ArgumentError } from '../../errors/index.ts'
import {
  checkArgument,
  checkCount,
  checkOptions,
  checkString,
  findOverride,
  isFunction,
  isObject,
  nameTarget,
  OVERRIDE,
  remembered,
  withName,
} from '../../protocol/index.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import { Node } from '../graph/node.ts'
import { isProxy, splitKwargs } from './proxy.ts'

const builders = new WeakMap<object, TargetFunction>()

/** A function that makes an instance of the class of `value` from its fields. It has the name of the class. */
export function instanceBuilder(value: object): TargetFunction {
  const prototype = Object.getPrototypeOf(value)
  return remembered(builders, prototype, () =>
    withName((fields: object): object => Object.assign(Object.create(prototype), fields), value.constructor.name),
  )
}

/** Whether the fields of an object contain a traced value, directly or nested. */
export function holdsTraced(value: object): boolean {
  const seen = new Set<object>([value])
  // The set grows during the iteration.
  for (const object of seen) {
    const items: Iterable<unknown> = object instanceof Map ? object.values() : Object.values(object)
    for (const item of items) {
      if (isProxy(item) || item instanceof Node) return true
      if (isObject(item)) seen.add(item)
    }
  }
  return false
}

/** The prototypes of the classes that {@link proxyable} made. */
const proxyables = new WeakSet<object>()

/** Whether a value is an instance of a proxyable class. */
export const isProxyableInstance = (value: object): boolean => proxyables.has(Object.getPrototypeOf(value))

// eslint-disable-next-line typescript/no-explicit-any -- any constructor
type AnyClass = abstract new (...args: any[]) => object

/**
 * Makes the construction of a class recordable: `new C(…)` with a traced argument becomes a call_function node. Returns the class to use instead; also works as
 * a decorator. Throws ArgumentError for anything but a class, and for an anonymous class without `options.name`. PyTorch's ProxyableClassMeta.
 *
 *     const TensorPair = proxyable(class TensorPair { … })
 */
export function proxyable<C extends AnyClass>(cls: C, options: { readonly name?: string } | ClassDecoratorContext = {}): C {
  checkCount('proxyable', arguments, 2)
  checkArgument(isObject(options), 'proxyable', 'options', 'an object such as { name }', options)
  checkArgument(isFunction(cls) && isObject(cls.prototype), 'proxyable', 'cls', 'a class', cls)
  // As a decorator, it gets a context.
  if (!('kind' in options)) checkOptions('proxyable', options, { name: true })
  const name = ('name' in options ? options.name : undefined) ?? cls.name
  checkString('proxyable', 'options.name', name)
  if (name === '') throw new ArgumentError('proxyable: an anonymous class needs a name: proxyable(cls, { name }).')
  const construct = withName((...args: readonly unknown[]): object => Reflect.construct(cls, args), name)
  nameTarget(construct, { name: name.includes('.') ? name : `user.${name}` })
  const made = new Proxy(cls, {
    construct(target, args: readonly unknown[], newTarget) {
      const override = findOverride(args)
      // A subclass is not recorded.
      if (override === null || newTarget !== made) return Reflect.construct(target, args, newTarget)
      const [positional, kwargs] = splitKwargs(args)
      const value: unknown = override[OVERRIDE]('function', construct, positional, kwargs)
      return Object(value)
    },
  })
  proxyables.add(cls.prototype)
  return made
}
