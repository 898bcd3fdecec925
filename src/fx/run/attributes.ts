// The attributes of a GraphModule: where values are put in its tree of modules.
import { ArgumentError } from '../../errors/index.ts'
import { Module, attributeAt, ownAttribute, setAttribute, splitPath } from '../../module/index.ts'
import { childPath, isParameter, isTensorLike } from '../../protocol/index.ts'

/** A module that only holds attributes: an inner node of the tree. `layer1.0.conv` needs a `layer1` and a `0`. */
export class Container extends Module {
  override getName(): string {
    return 'Module'
  }

  override forward(): never {
    throw new ArgumentError('this module only holds attributes of a GraphModule; call the GraphModule.')
  }
}

/**
 * Puts a value at a dotted path of `target`, and makes the containers on the way. A tensor that is not a parameter becomes a buffer. `source` is the module that
 * the value comes from, if any: where a module on the way is shared with it, the value is already there.
 */
export function placeAttribute(target: Module, path: string, value: unknown, source: Module | null): void {
  const [ownerPath, name] = splitPath(path)
  let owner = target
  let at = ''
  for (const part of ownerPath === '' ? [] : ownerPath.split('.')) {
    at = childPath(at, part)
    const next = childOrContainer(owner, part)
    if (source !== null && next === attributeAt(source, at)) return
    owner = next
  }
  if (isTensorLike(value) && !isParameter(value)) owner.registerBuffer(name, value)
  else setAttribute(owner, name, value)
}

/** The fields of modules that run graphs. */
const OWN_FIELDS: ReadonlySet<string> = new Set(['className', 'meta', 'training'])

/** Throws ArgumentError if a path in a module of that class contains a name that modules use themselves. */
export function checkFreeOf({ name, prototype }: { readonly name: string; readonly prototype: Module }, where: string, path: string): void {
  const [first = '', ...rest] = path.split('.')
  const taken = OWN_FIELDS.has(first) || first in prototype ? first : rest.find((part) => part in Container.prototype)
  if (taken !== undefined)
    throw new ArgumentError(
      `${where}: the attribute '${path}' cannot be called '${taken}', because every ${taken === first ? name : 'Module'} has a member of that name; rename it.`,
    )
}

/** The path, with a number appended if `owner` has another value than `value` there. */
export function freePath(owner: Module, path: string, value: unknown): string {
  let free = path
  for (let i = 1; isTaken(attributeAt(owner, free), value); i++) free = `${path}_${i}`
  return free
}

const isTaken = (present: unknown, value: unknown): boolean => present !== undefined && present !== value

function childOrContainer(owner: Module, name: string): Module {
  const child = ownAttribute(owner, name)
  if (child instanceof Module) return child
  const made = new Container()
  setAttribute(owner, name, made)
  return made
}
