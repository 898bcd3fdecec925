// Attributes of modules by name and by dotted path: `layer1.0.weight` is the `weight` of the `0` of `layer1`.
import { ArgumentError } from '../errors/index.ts'
import { checkString, isObject } from '../protocol/index.ts'
import type { ModuleParameter, ModuleTensor } from '../protocol/index.ts'

/** The value of a property; undefined if there is none, or if the owner is not an object. */
export function getAttribute(owner: unknown, name: string | symbol): unknown {
  return isObject(owner) ? Reflect.get(owner, name) : undefined
}

/** The value of an own property; undefined if there is none. Paths are read with it: they may come from a file, and must not lead to a prototype. */
export function ownAttribute(owner: unknown, name: string): unknown {
  return isObject(owner) && Object.hasOwn(owner, name) ? Reflect.get(owner, name) : undefined
}

/** The parameter that a property holds. While its module is traced, it is a traced value that stands for the parameter. */
export const readParameter = (owner: object, name: string): ModuleParameter => getAttribute(owner, name) as ModuleParameter

/** The buffer that a property holds, or what stands for it. */
export const readBuffer = (owner: object, name: string): ModuleTensor => getAttribute(owner, name) as ModuleTensor

/** Sets a property. Throws TypeError if it is read-only, and ArgumentError for `__proto__`. */
export function setAttribute(owner: object, name: string, value: unknown): void {
  if (name === '__proto__') throw new ArgumentError("an attribute cannot be called '__proto__', which would replace the prototype; rename it.")
  Object.assign(owner, { [name]: value })
}

/** The value at a dotted path of own properties; undefined if a part of the path is missing. */
export function attributeAt(root: object, path: string): unknown {
  checkString('an attribute', 'path', path)
  let value: unknown = root
  for (const part of path.split('.')) value = ownAttribute(value, part)
  return value
}

/** The path of the owner ('' for the root) and the name of the attribute: `['layer1.0', 'weight']`. */
export function splitPath(path: string): [owner: string, name: string] {
  checkString('an attribute', 'path', path)
  const dot = path.lastIndexOf('.')
  return dot < 0 ? ['', path] : [path.slice(0, dot), path.slice(dot + 1)]
}
