// Values that took the place of parameters, buffers and children. PyTorch refuses `linear.weight = torch.zeros([2, 2])`. JavaScript does not ask a module before it assigns a
// property, so this is told when the module is used next: when it is first called, and whenever its tree is listed (parameters(), stateDict(), train(), …).
import { ArgumentError } from '../errors/index.ts'
import { isModule, isParameter, isTensorLike, LEAF_MODULE, valueText } from '../protocol/index.ts'
import { heldBy, keepHeld, knownBuffers } from './internals.ts'
import type { Held } from './internals.ts'

/** What to write instead, by what belongs at the name. */
const FIXES = {
  Parameter: (name: string) => `Write module.${name} = new nn.Parameter(tensor), or copy the values: noGrad(() => module.${name}.copy_(tensor)).`,
  Module: (name: string) => `Write module.${name} = new nn.Identity(), or another Module, or null.`,
  Tensor: (name: string) => `Write module.${name} = torch.tensor(data), or null.`,
}

/** Modules with tensors that the library put in place of their parameters. */
const lent = new WeakSet<object>()

/** Says that the library puts tensors in place of a module's parameters, until the returned function is called. */
export function lend(module: object): () => void {
  if (lent.has(module)) return () => {}
  lent.add(module)
  return () => void lent.delete(module)
}

/** Throws ArgumentError if a property that holds a parameter, a buffer or a child by its class or by what was seen before has a value of another kind. */
export function checkReplaced(module: object): void {
  if (lent.has(module)) return
  const before = heldBy(module)
  const buffers = knownBuffers(module)
  const isLayer = Reflect.get(module, LEAF_MODULE) === true
  const held = new Map<string, Held>()
  for (const name of Object.keys(module)) {
    const { value } = Object.getOwnPropertyDescriptor(module, name) ?? {}
    const kind: Held | null = isModule(value) ? 'Module' : isParameter(value) ? 'Parameter' : null
    if (kind !== null) held.set(name, kind)
    if (kind !== null || value === undefined || value === null) continue
    const known = before?.get(name)
    if (buffers?.has(name) === true) {
      if (!isTensorLike(value)) throw replaced(module, name, 'Tensor', value)
    } else if (known !== undefined || (isLayer && isTensorLike(value))) throw replaced(module, name, known ?? 'Parameter', value)
  }
  keepHeld(module, held)
}

function replaced(module: object, name: string, kind: keyof typeof FIXES, value: unknown): ArgumentError {
  const what = { Parameter: 'a Parameter', Module: 'a Module', Tensor: 'a buffer, a Tensor' }[kind]
  return new ArgumentError(`${module.constructor.name}.${name} must be ${what}, or null, but was assigned ${valueText(value)}. ${FIXES[kind](name)}`)
}
