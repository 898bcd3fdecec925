// Unification of the objects of classes. PyTorch's torch.fx.experimental.unification.more.
import { ArgumentError } from '../../../errors/index.ts'
import { isFunction, valueText } from '../../../protocol/index.ts'
import { reify, unify } from './core.ts'
import type { Substitution } from './core.ts'
import { registerParts } from './parts.ts'
import type { ClassOfValues, ObjectRule } from './parts.ts'

/** An object's own properties, and a new object of the same class with others. */
const byProperties: ObjectRule = {
  keys: (value) => Object.keys(value),
  build: (value, properties) => Object.assign(Object.create(Object.getPrototypeOf(value)), properties),
}

/**
 * Makes the objects of a class unify by their properties, as plain objects do, and returns the class. Objects of other classes unify only with themselves. PyTorch's
 * unifiable.
 *
 *     class Edge { constructor(from, to) { Object.assign(this, { from, to }) } }
 *     unifiable(Edge)
 *     unify(new Edge(1, 2), new Edge(1, Var('x')))  // {~x: 2}
 *
 * @throws ArgumentError for anything but a class.
 */
export function unifiable<C extends ClassOfValues>(of: C): C {
  if (!isFunction(of)) throw new ArgumentError(`unifiable: expected a class, got ${valueText(of)}.`)
  registerParts(of, byProperties)
  return of
}

/** Unifies two objects by their properties; false for objects of different classes. PyTorch's unify_object. */
export function unifyObject(u: object, v: object, substitution: ReadonlyMap<unknown, unknown> = new Map()): Substitution | false {
  if (Object.getPrototypeOf(u) !== Object.getPrototypeOf(v)) return false
  return unify({ ...u }, { ...v }, substitution)
}

/** The object with the values of a substitution in its properties: itself if nothing changes, otherwise a new object of its class. PyTorch's reify_object. */
export function reifyObject<T extends object>(value: T, substitution: ReadonlyMap<unknown, unknown>): T {
  const changed = Object.entries(value).flatMap(([key, property]) => {
    const reified = reify(property, substitution)
    return Object.is(reified, property) ? [] : [[key, reified] as const]
  })
  if (changed.length === 0) return value
  return Object.assign(Object.create(Object.getPrototypeOf(value)), value, Object.fromEntries(changed))
}
