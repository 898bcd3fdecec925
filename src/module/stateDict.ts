// State dicts: a module's parameters and persistent buffers by dotted name, out and in.
import { TensorfxError } from '../errors/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import type { Module } from './module.ts'

/** A state dict does not fit the module; nothing was loaded. */
export class LoadStateError extends TensorfxError {
  constructor(className: string, problems: readonly string[]) {
    super('TFX_LOAD_STATE', `Error(s) in loading stateDict for ${className}:\n\t${problems.join('\n\t')}`)
  }
}

export function collectState(module: Module): Map<string, TensorLike> {
  const state = new Map<string, TensorLike>()
  for (const [path, part] of module.namedModules()) {
    const prefix = path === '' ? '' : `${path}.`
    for (const [name, value] of part.ownParameters()) state.set(prefix + name, value)
    for (const [name, value, persistent] of part.ownBuffers()) if (persistent) state.set(prefix + name, value)
  }
  return state
}

interface Copyable {
  copyFrom(source: TensorLike): void
}

export function loadState(module: Module, given: ReadonlyMap<string, TensorLike> | Readonly<Record<string, TensorLike>>, strict: boolean): void {
  const source =
    given instanceof Map ? (given as ReadonlyMap<string, TensorLike>) : new Map(Object.entries(given as Readonly<Record<string, TensorLike>>))
  const own = collectState(module)
  const problems: string[] = []
  const missing = [...own.keys()].filter((key) => !source.has(key))
  const unexpected = [...source.keys()].filter((key) => !own.has(key))
  if (strict && missing.length > 0) problems.push(`Missing key(s) in stateDict: ${missing.map((k) => `"${k}"`).join(', ')}.`)
  if (strict && unexpected.length > 0) problems.push(`Unexpected key(s) in stateDict: ${unexpected.map((k) => `"${k}"`).join(', ')}.`)
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
    if (value !== undefined) (target as unknown as Copyable).copyFrom(value)
  }
}
