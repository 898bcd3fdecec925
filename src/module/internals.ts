// What a module has besides its properties: which of them are buffers, what they held when it was last used, hooks, and whether its code was made anew.
import { BUFFER, checkCallable, isTensorLike, remembered } from '../protocol/index.ts'

/** Any hook; the methods that register hooks know their types. */
export type Hook = (...args: never[]) => unknown

/** When hooks run. */
export type HookKind = 'forwardPre' | 'forward' | 'stateDict' | 'loadStateDictPre' | 'loadStateDictPost'

/** What a property of a module holds, apart from buffers. */
export type Held = 'Parameter' | 'Module'

interface Internals {
  /** Names of buffers, and whether they are persistent. */
  readonly buffers: Map<string, boolean>
  readonly hooks: Map<HookKind, Set<Hook>>
  /** The names of parameters and children when the module was last looked at; null before it was used. */
  held: ReadonlyMap<string, Held> | null
  /** How often the code of its forward was made anew. */
  codeVersion: number
  /** How often its hooks or its code have changed. */
  changes: number
}

/** Undoes a registration. */
export interface RemovableHandle {
  remove(): void
}

const internals = new WeakMap<object, Internals>()

function newInternals(module: object): Internals {
  const made: Internals = { buffers: new Map(), hooks: new Map(), held: null, codeVersion: 0, changes: 0 }
  internals.set(module, made)
  return made
}

/** What a module has. Every call of a module asks. */
export const internalsOf = (module: object): Internals => internals.get(module) ?? newInternals(module)

/** The buffers of a module, to add one. */
export const buffersOf = (module: object): Map<string, boolean> => internalsOf(module).buffers

/** What the properties of a module held when it was last looked at; null before. */
export const heldBy = (module: object): ReadonlyMap<string, Held> | null => internals.get(module)?.held ?? null

/** Keeps what the properties of a module hold. */
export function keepHeld(module: object, held: ReadonlyMap<string, Held>): void {
  internalsOf(module).held = held
}

/** Makes properties that hold an `nn.Buffer` buffers. They stay buffers when they are assigned another tensor. */
function adoptBuffers(module: object): void {
  for (const name of Object.keys(module)) {
    const value: unknown = Object.getOwnPropertyDescriptor(module, name)?.value
    if (!isTensorLike(value)) continue
    const persistent: unknown = Reflect.get(value, BUFFER)
    if (typeof persistent === 'boolean' && internals.get(module)?.buffers.has(name) !== true) buffersOf(module).set(name, persistent)
  }
}

/** The buffers of a module; undefined if it has none. */
export function knownBuffers(module: object): ReadonlyMap<string, boolean> | undefined {
  adoptBuffers(module)
  return internals.get(module)?.buffers
}

/** Hooks of a kind; undefined if there are none. */
export function hooksOf(module: object, kind: HookKind): ReadonlySet<Hook> | undefined {
  const hooks = internals.get(module)?.hooks.get(kind)
  return hooks === undefined || hooks.size === 0 ? undefined : hooks
}

const REGISTER: Readonly<Record<HookKind, string>> = {
  forwardPre: 'registerForwardPreHook',
  forward: 'registerForwardHook',
  stateDict: 'registerStateDictPostHook',
  loadStateDictPre: 'registerLoadStateDictPreHook',
  loadStateDictPost: 'registerLoadStateDictPostHook',
}

/** Adds a hook. Throws ArgumentError unless it is a function. */
export function addHook(module: object, kind: HookKind, hook: Hook): RemovableHandle {
  checkCallable(REGISTER[kind], 'hook', hook)
  const known = internalsOf(module)
  remembered(known.hooks, kind, () => new Set<Hook>()).add(hook)
  known.changes++
  return { remove: () => removeHook(module, kind, hook) }
}

/** Removes a hook, if the module has it: also one that it was copied with. */
export function removeHook(module: object, kind: HookKind, hook: Hook): void {
  const known = internalsOf(module)
  known.hooks.get(kind)?.delete(hook)
  known.changes++
}

/** Runs the hooks of a kind. */
export function runHooks(module: object, kind: HookKind, ...args: readonly unknown[]): void {
  for (const hook of hooksOf(module, kind) ?? []) Reflect.apply(hook, undefined, [module, ...args])
}

/** How often the code of a module's forward was made anew: not at all, unless it is generated. */
export const codeVersion = (module: object): number => internals.get(module)?.codeVersion ?? 0

/** Notes that the forward of a module has other code from now on. */
export function noteNewCode(module: object): void {
  const known = internalsOf(module)
  known.codeVersion++
  known.changes++
}

/** How often the hooks or the code of a module have changed: while this is the same, they are. */
export const changesOf = (module: object): number => internals.get(module)?.changes ?? 0

/** Gives a copy what the original has. */
export function copyInternals(from: object, to: object): void {
  adoptBuffers(from)
  const own = internals.get(from)
  if (own !== undefined)
    internals.set(to, {
      buffers: new Map(own.buffers),
      hooks: new Map([...own.hooks].map(([kind, hooks]) => [kind, new Set(hooks)])),
      held: own.held,
      codeVersion: own.codeVersion,
      changes: own.changes,
    })
}
