// functionalCall: calls a module as a function of its parameters and buffers.
import { ArgumentError } from '../errors/index.ts'
import {
  checkArgument,
  checkCount,
  checkOptions,
  childPath,
  isModule,
  isPlainObject,
  isTensorLike,
  swappedHint,
  valueText,
} from '../protocol/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import type { Module } from './module.ts'
import { lend } from './replaced.ts'

/** Options of {@link functionalCall}. */
export interface FunctionalCallOptions {
  /** Require a value for every parameter and buffer. Default false: those without one keep theirs. */
  readonly strict?: boolean
  /** Replace a tensor that the module has under several names under all of them. Default true. */
  readonly tieWeights?: boolean
}

/**
 * Calls a module with other parameters and buffers, which are given by dotted name. Afterwards the module has its own tensors again, even if the call throws.
 * Gradients flow to the given tensors. Throws ArgumentError for names that the module does not have, for values that are not tensors, for two different values
 * for one shared tensor, and with `strict` for missing names. PyTorch's torch.func.functional_call.
 *
 *     functionalCall(model, { 'fc.weight': w }, [x])
 */
export function functionalCall(
  module: Module,
  state: Readonly<Record<string, TensorLike>>,
  args: readonly unknown[],
  options: FunctionalCallOptions = {},
): unknown {
  checkCount('functionalCall', arguments, 4)
  if (!isModule(module))
    throw new ArgumentError(
      `functionalCall: argument 'module' must be a Module, got ${valueText(module)}.${swappedHint(isModule(state), 'module', 'state', 'module, state, args')}`,
    )
  checkArgument(isPlainObject(state), 'functionalCall', 'state', 'an object of tensors by name', state)
  if (!Array.isArray(args))
    throw new ArgumentError(
      `functionalCall: argument 'args' must be an array of arguments, got ${valueText(args)}. Put a single argument into an array: [x].`,
    )
  checkOptions('functionalCall', options, { strict: 'boolean', tieWeights: 'boolean' })
  const places = placesOf(module)
  checkNames(places, state, options.strict ?? false)
  const values = new Map<Place, TensorLike>()
  for (const [name, value] of Object.entries(state)) {
    const own = places.get(name)
    if (own === undefined) continue
    for (const place of options.tieWeights === false ? [own] : places.values()) {
      if (place !== own && place.tensor !== own.tensor) continue
      const other = values.get(place)
      if (other !== undefined && other !== value)
        throw new ArgumentError(`functionalCall: '${name}' is the same tensor as another given name, but has another value; give it once.`)
      values.set(place, value)
    }
  }
  const undo: (() => void)[] = []
  try {
    for (const [{ owner, key }, value] of values) undo.push(exchange(owner, key, value))
    return Reflect.apply(module.call, module, args)
  } finally {
    for (const restore of undo.reverse()) restore()
  }
}

/** The property of a module that holds a tensor. */
interface Place {
  readonly owner: Module
  readonly key: string
  readonly tensor: TensorLike
}

/** All parameters and buffers by name; shared ones under all their names. */
function placesOf(module: Module): Map<string, Place> {
  const places = new Map<string, Place>()
  for (const [path, owner] of module.namedModules()) {
    const own = [...owner.ownParameters(), ...owner.ownBuffers()]
    for (const [key, tensor] of own) places.set(childPath(path, key), { owner, key, tensor })
  }
  return places
}

function checkNames(places: ReadonlyMap<string, Place>, state: Readonly<Record<string, TensorLike>>, strict: boolean): void {
  const problems: string[] = []
  const unexpected = Object.keys(state).filter((name) => !places.has(name))
  const missing = strict ? [...places.keys()].filter((name) => !Object.hasOwn(state, name)) : []
  if (unexpected.length > 0) problems.push(`Unexpected key(s): ${unexpected.join(', ')}`)
  if (missing.length > 0) problems.push(`Missing key(s): ${missing.join(', ')}`)
  for (const [name, value] of Object.entries(state)) if (!isTensorLike(value)) problems.push(`${name} is not a tensor`)
  if (problems.length > 0)
    throw new ArgumentError(
      `functionalCall: Error(s) in the given parameters and buffers: ${problems.join('; ')}. The module has ${[...places.keys()].join(', ') || 'none'}.`,
    )
}

/** Sets a property, bypassing a tracer that intercepts it. Returns a function that restores it. */
function exchange(owner: Module, key: string, value: TensorLike): () => void {
  const before = Object.getOwnPropertyDescriptor(owner, key)
  const giveBack = lend(owner)
  Object.defineProperty(owner, key, { value, writable: true, enumerable: true, configurable: true })
  return () => {
    giveBack()
    if (before === undefined) Reflect.deleteProperty(owner, key)
    else Object.defineProperty(owner, key, before)
  }
}
