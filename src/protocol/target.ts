// The target-name protocol: a function that a graph can call carries a qualified name (`torch.relu`), by which printing, code generation, JSON and imports
// find it again.
import { ArgumentError } from '../errors/index.ts'
import type { FunctionSchema } from './schema.ts'

/** Key under which a function carries its {@link TargetInfo}. */
export const TARGET: unique symbol = Symbol.for('tensorfx.target')

/** Any function that a graph can call. Its schema describes it, not its type. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- parameters of any types
export type TargetFunction = (...args: any[]) => unknown

/** What a call does besides computing its result. Dead-code elimination, CSE and constant folding read it. */
export type Effects = 'pure' | 'random' | 'mutates' | 'io'

export interface TargetInfo {
  /** Qualified name, e.g. `torch.relu`, `torch.nn.functional.gelu`, `operator.add`, or `user.myFunction`. Unique. */
  readonly name: string
  /** The candidate for node names, PyTorch's `__name__`: the last part of `name` unless given. */
  readonly shortName: string
  readonly effects: Effects
  /** PyTorch's schema, for functions of the operator table. */
  readonly schema?: FunctionSchema
  /** URL of a module that registers the function when imported: repro scripts and isolated processes import it. */
  readonly module?: string
  /** The property of its first argument that the function reads: generated code writes `x.shape[0]` for a call of `torch.symSize`. */
  readonly reads?: string
}

// Graphs from JSON and generated code resolve names here, without importing the room that defines the function.
const registry = new Map<string, TargetFunction>()

/** Gives `fn` a qualified name and registers it. Throws ArgumentError if the name already belongs to another function. */
export function nameTarget<F extends TargetFunction>(
  fn: F,
  info: { name: string; shortName?: string; effects?: Effects; schema?: FunctionSchema; module?: string; reads?: string },
): F {
  const known = registry.get(info.name)
  if (known !== undefined && known !== fn)
    throw new ArgumentError(`nameTarget: the name '${info.name}' already belongs to another function; choose another name.`)
  const full: TargetInfo = {
    name: info.name,
    shortName: info.shortName ?? info.name.slice(info.name.lastIndexOf('.') + 1),
    effects: info.effects ?? 'pure',
    ...(info.schema === undefined ? {} : { schema: info.schema }),
    ...(info.module === undefined ? {} : { module: info.module }),
    ...(info.reads === undefined ? {} : { reads: info.reads }),
  }
  Object.defineProperty(fn, TARGET, { value: full, configurable: true })
  registry.set(info.name, fn)
  return fn
}

const infoOf = (fn: { readonly name: string; readonly [TARGET]?: TargetInfo }): TargetInfo | undefined => fn[TARGET]

/** What is known about a named function; undefined for one without a name. */
export function targetInfo(fn: unknown): TargetInfo | undefined {
  return typeof fn === 'function' ? infoOf(fn) : undefined
}

/** The function with that qualified name; undefined if there is none. */
export function lookupTarget(name: string): TargetFunction | undefined {
  return registry.get(name)
}

/** A function that has this qualified name and nothing else: it is not registered, and throws when it is called. For graphs that are only shown. */
export function namedOnly(name: string): TargetFunction {
  const fn = (): never => {
    throw new ArgumentError(`'${name}' is only a name here: this graph is shown and cannot run.`)
  }
  const info: TargetInfo = { name, shortName: name.slice(name.lastIndexOf('.') + 1), effects: 'pure' }
  return Object.defineProperty(fn, TARGET, { value: info })
}

let explainMissing: ((name: string) => string) | null = null
let areAllThere = false

/** What to do about a qualified name that no function has, as the end of a sentence. */
export const missingTarget = (name: string): string => explainMissing?.(name) ?? 'import the module that registers it first'

/** Sets what {@link missingTarget} says while some of tensorfx's operators are not loaded; null: all are. For the composition root, which knows their groups. */
export function explainMissingTargets(explain: ((name: string) => string) | null): void {
  areAllThere ||= explain === null
  explainMissing = areAllThere ? null : explain
}

/** All functions that have a qualified name. */
export const namedTargets = (): Iterable<TargetFunction> => registry.values()

const declared = new WeakMap<TargetFunction, Effects>()

/** Declares the effects of a function, named or not. This takes precedence over the effects it was named with. */
export function declareEffects(fn: TargetFunction, effects: Effects): void {
  declared.set(fn, effects)
}

/** The effects of a function: as declared, or as it was named with; 'pure' for an unknown function. */
export function effectsOf(fn: TargetFunction): Effects {
  return declared.get(fn) ?? targetInfo(fn)?.effects ?? 'pure'
}
