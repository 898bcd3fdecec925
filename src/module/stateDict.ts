// State dicts: reading and loading a module's parameters and persistent buffers by dotted name.
import { ArgumentError, TensorfxError } from '../errors/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import { isTensorLike, valueText } from '../protocol/index.ts'

/** What state dicts need of a module. Class Module implements it. */
interface Stateful {
  readonly ['constructor']: { readonly name: string }
  namedModules(): Iterable<readonly [path: string, module: Stateful]>
  ownParameters(): Iterable<readonly [name: string, parameter: TensorLike]>
  ownBuffers(): Iterable<readonly [name: string, buffer: TensorLike, persistent: boolean]>
}

/**
 * A state dict does not match the module. Nothing was loaded.
 *
 * Fix: load into a module of the same structure, rename the keys, or pass `{ strict: false }` if only keys are missing or unexpected.
 */
export class LoadStateError extends TensorfxError {
  constructor(className: string, problems: readonly string[]) {
    super('TFX_LOAD_STATE', `Error(s) in loading stateDict for ${className}:\n\t${problems.join('\n\t')}`)
  }
}

/** The parameters and persistent buffers of a module and all modules below it. */
export function collectState(module: Stateful): Map<string, TensorLike> {
  const state = new Map<string, TensorLike>()
  for (const [path, part] of module.namedModules()) {
    const prefix = path === '' ? '' : `${path}.`
    for (const [name, value] of part.ownParameters()) state.set(prefix + name, value)
    for (const [name, value, persistent] of part.ownBuffers()) if (persistent) state.set(prefix + name, value)
  }
  return state
}

interface Writable extends TensorLike {
  copyFrom(source: TensorLike): void
}

const isWritable = (tensor: TensorLike): tensor is Writable => 'copyFrom' in tensor

/** What to do about names that do not match. */
function namesHint(unexpected: readonly string[], own: ReadonlyMap<string, unknown>): string {
  const [first = ''] = unexpected
  for (let dot = first.indexOf('.'); dot >= 0; dot = first.indexOf('.', dot + 1)) {
    const prefix = first.slice(0, dot + 1)
    if (unexpected.every((key) => key.startsWith(prefix) && own.has(key.slice(prefix.length))))
      return `Without their prefix "${prefix}" the keys match: load them under key.slice(${prefix.length}).`
  }
  return 'With { strict: false }, only the names that match are loaded.'
}

/** Copies values into a module's parameters and buffers. Throws LoadStateError, before copying anything, if they do not match. */
export function loadState(module: Stateful, given: ReadonlyMap<string, TensorLike> | Readonly<Record<string, TensorLike>>, strict: boolean): void {
  // For callers in JavaScript.
  if (typeof given !== 'object' || given === null || isTensorLike(given))
    throw new ArgumentError(
      `loadStateDict: expected a Map or an object from dotted name to Tensor, as stateDict() returns it, got ${valueText(given)}.`,
    )
  const source = given instanceof Map ? given : new Map(Object.entries(given))
  const own = collectState(module)
  const problems: string[] = []
  const missing = [...own.keys()].filter((key) => !source.has(key))
  const unexpected = [...source.keys()].filter((key) => !own.has(key))
  if (strict && missing.length > 0) problems.push(`Missing key(s) in stateDict: ${missing.map((k) => `"${k}"`).join(', ')}.`)
  if (strict && unexpected.length > 0) problems.push(`Unexpected key(s) in stateDict: ${unexpected.map((k) => `"${k}"`).join(', ')}.`)
  if (problems.length > 0) problems.push(namesHint(unexpected, own))
  for (const [key, target] of own) {
    const value = source.get(key)
    if (value !== undefined && value.shape.join() !== target.shape.join()) {
      problems.push(
        `size mismatch for ${key}: copying a param with shape [${value.shape.join(', ')}] from the state dict, the shape in the current model is [${target.shape.join(', ')}].`,
      )
    }
  }
  if (problems.length > 0) throw new LoadStateError(module.constructor.name, problems)
  for (const [key, target] of own) {
    const value = source.get(key)
    if (value === undefined) continue
    if (!isWritable(target)) throw new ArgumentError(`loadStateDict: '${key}' cannot be loaded, because the tensor has no method copyFrom.`)
    target.copyFrom(value)
  }
}
