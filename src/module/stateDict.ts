// State dicts: reading and loading a module's parameters and persistent buffers by dotted name.
import { ArgumentError, TensorfxError } from '../errors/index.ts'
import type { ModuleParameter, ModuleTensor, TensorLike } from '../protocol/index.ts'
import { childPath, essence, isModule, isObject, isTensorLike, nearest, uncalledHint, valueText, weightLayoutHint } from '../protocol/index.ts'
import { runHooks } from './internals.ts'
import type { HookKind } from './internals.ts'

/** What state dicts need of a module. Class Module implements it. */
interface Stateful {
  readonly ['constructor']: { readonly name: string }
  namedModules(prefix?: string): Iterable<readonly [path: string, module: Stateful]>
  /** Without it, the paths are those of {@link namedModules}. */
  namedChildren?(): Iterable<readonly [name: string, module: Stateful]>
  ownParameters(): Iterable<readonly [name: string, parameter: ModuleParameter]>
  ownBuffers(): Iterable<readonly [name: string, buffer: ModuleTensor, persistent: boolean]>
}

/** The tensors of all modules in `root`, or its own, with dotted names after `prefix`. A shared one is listed under its first name. */
export function* listedOnce<T>(
  root: Stateful,
  tensorsOf: (module: Stateful) => Iterable<readonly [name: string, tensor: T, ...unknown[]]>,
  prefix: string,
  recurse: boolean,
): Generator<[string, T]> {
  const seen = new Set<unknown>()
  for (const [path, module] of recurse ? root.namedModules(prefix) : [[prefix, root] as const])
    for (const [name, value] of tensorsOf(module)) {
      if (seen.has(value)) continue
      seen.add(value)
      yield [childPath(path, name), value]
    }
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

/** All paths of the modules of a tree: a module that is there under two names has two. One that contains itself is not entered again. */
function* everyPath(module: Stateful, path = '', around: readonly Stateful[] = []): Generator<readonly [path: string, module: Stateful]> {
  if (around.includes(module)) return
  yield [path, module]
  for (const [name, child] of module.namedChildren?.() ?? []) yield* everyPath(child, childPath(path, name), [...around, module])
}

/** The parameters and persistent buffers of a module and all modules below it. What is there under two names is listed under both, as in PyTorch. */
export function collectState(module: Stateful): Map<string, TensorLike> {
  const state = new Map<string, TensorLike>()
  for (const [path, part] of module.namedChildren === undefined ? module.namedModules() : everyPath(module)) {
    for (const [name, value] of part.ownParameters()) state.set(childPath(path, name), value)
    for (const [name, value, persistent] of part.ownBuffers()) if (persistent) state.set(childPath(path, name), value)
  }
  return state
}

/** Shows a value to the hooks of all modules, with the prefix of each one's names. */
function runAll<T>(module: Stateful, kind: HookKind, value: T): T {
  for (const [path, part] of module.namedModules()) runHooks(part, kind, value, childPath(path, ''))
  return value
}

/** The same, as `stateDict` returns it: hooks may change it. */
export const hookedState = (module: Stateful): Map<string, TensorLike> => runAll(module, 'stateDict', collectState(module))

interface Writable extends TensorLike {
  copyFrom(source: TensorLike): void
}

const isWritable = (tensor: TensorLike): tensor is Writable => 'copyFrom' in tensor

/** What to do about names that do not match. */
function namesHint(unexpected: readonly string[], own: ReadonlyMap<string, unknown>): string {
  const [first = ''] = unexpected
  const alike = new Set([...own.keys()].map(essence))
  for (let dot = first.indexOf('.'); dot >= 0; dot = first.indexOf('.', dot + 1)) {
    const prefix = first.slice(0, dot + 1)
    if (unexpected.every((key) => key.startsWith(prefix) && alike.has(essence(key.slice(prefix.length)))))
      return `Without their prefix "${prefix}" the keys match: load them under key.slice(${prefix.length}).`
  }
  return 'With { strict: false }, only the names that match are loaded.'
}

/** What `loadStateDict` did not load. PyTorch's `IncompatibleKeys`. */
export interface LoadStateResult {
  /** Parameters and buffers of the module for which there was no value. */
  readonly missingKeys: readonly string[]
  /** Names of values that the module does not have. */
  readonly unexpectedKeys: readonly string[]
}

type State = ReadonlyMap<string, TensorLike> | Readonly<Record<string, TensorLike>>

/** The given values by the module's own names. PyTorch's `running_mean` is `runningMean` here, unless the module has both. */
function byOwnName(source: ReadonlyMap<string, TensorLike>, own: ReadonlyMap<string, unknown>): ReadonlyMap<string, TensorLike> {
  const spellings = new Map<string, string | null>()
  for (const key of own.keys()) spellings.set(essence(key), spellings.has(essence(key)) ? null : key)
  const values = new Map<string, TensorLike>()
  for (const [key, value] of source) {
    const other = own.has(key) ? key : (spellings.get(essence(key)) ?? key)
    values.set(source.has(other) ? key : other, value)
  }
  return values
}

/** Names in quotes, each with the one that it resembles. */
const listed = (names: readonly string[], others: readonly string[]): string =>
  names
    .map((name) => {
      const like = nearest(name, others)
      return like === null ? `"${name}"` : `"${name}" (did you mean "${like}"?)`
    })
    .join(', ')

/** Copies values into a module's parameters and buffers. Throws LoadStateError, before copying anything, if they do not match. */
export function loadState(module: Stateful, given: State, strict: boolean): LoadStateResult {
  // For callers in JavaScript.
  const copy: Map<string, TensorLike> | null =
    isObject(given) && !isTensorLike(given) && !isModule(given) && !(given instanceof Promise)
      ? new Map(given instanceof Map ? given : Object.entries(given))
      : null
  if (copy === null || [...copy.keys()].some((key) => typeof key !== 'string'))
    throw new ArgumentError(
      `loadStateDict: argument 'state' must be a Map or an object from string to Tensor, as stateDict() returns it, got ${valueText(given)}.${isModule(given) ? ' Write model.stateDict().' : uncalledHint(given)}`,
    )
  // The hooks first: lazy layers get the shapes of their tensors from the state.
  const hooked = runAll(module, 'loadStateDictPre', copy)
  const own = collectState(module)
  const source = byOwnName(hooked, own)
  const problems: string[] = []
  // The first name is enough for a tensor that has several, as in files that hold each tensor once.
  const found = new Set<TensorLike>()
  const missingKeys: string[] = []
  for (const [key, tensor] of own) {
    if (source.has(key)) found.add(tensor)
    else if (!found.has(tensor)) missingKeys.push(key)
  }
  const unexpectedKeys = [...source.keys()].filter((key) => !own.has(key))
  if (strict && missingKeys.length > 0) problems.push(`Missing key(s) in stateDict: ${listed(missingKeys, [])}.`)
  if (strict && unexpectedKeys.length > 0) problems.push(`Unexpected key(s) in stateDict: ${listed(unexpectedKeys, missingKeys)}.`)
  if (problems.length > 0) problems.push(namesHint(unexpectedKeys, own))
  const copies: (() => void)[] = []
  for (const [key, target] of own) {
    const value = source.get(key)
    if (value === undefined) continue
    if (!isTensorLike(value)) throw new ArgumentError(`loadStateDict: '${key}' must be a Tensor, got ${valueText(value)}.`)
    if (!isWritable(target)) throw new ArgumentError(`loadStateDict: '${key}' cannot be loaded, because the tensor has no method copyFrom.`)
    if (value.shape.join() !== target.shape.join()) {
      problems.push(
        `size mismatch for ${key}: copying a param with shape [${value.shape.join(', ')}] from the state dict, the shape in the current model is [${target.shape.join(', ')}].${weightLayoutHint('value', value.shape, target.shape)}`,
      )
    }
    copies.push(() => target.copyFrom(value))
  }
  if (problems.length > 0) throw new LoadStateError(module.constructor.name, problems)
  for (const load of copies) load()
  return runAll(module, 'loadStateDictPost', { missingKeys, unexpectedKeys })
}
