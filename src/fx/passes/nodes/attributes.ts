// Attributes at dotted paths. PyTorch's torch.fx.passes.split_utils.
import { ArgumentError } from '../../../errors/index.ts'
import { attributeAt, setAttribute, splitPath } from '../../../module/index.ts'
import { checkCount, isObject } from '../../../protocol/index.ts'

/** The attribute at a dotted path; null if a step is missing. PyTorch's getattr_recursive. */
export const getattrRecursive = (root: object, path: string): unknown => attributeAt(root, path) ?? null

/** Sets the attribute at a dotted path. PyTorch's setattr_recursive. @throws ArgumentError if its owner is missing. */
export function setattrRecursive(root: object, path: string, value: unknown): void {
  checkCount('setattrRecursive', arguments, 3)
  const [ownerPath, name] = splitPath(path)
  const owner = ownerPath === '' ? root : attributeAt(root, ownerPath)
  if (!isObject(owner)) throw new ArgumentError(`setattrRecursive: cannot set '${path}', because '${ownerPath}' is missing; set that first.`)
  setAttribute(owner, name, value)
}
