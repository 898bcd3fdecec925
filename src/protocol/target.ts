// The target-name protocol: a function that may stand in a graph carries its qualified name (`torch.relu`),
// by which printing, code generation, JSON and imports find it again.
import { ArgumentError } from '../errors/index.ts'
import type { FunctionSchema } from './schema.ts'

/** Key under which a function carries its {@link TargetInfo}. */
export const TARGET: unique symbol = Symbol.for('tensorfx.target') as never

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- a target is any function; its schema, not its type, describes it
export type TargetFunction = (...args: any[]) => unknown

/** What calling a function does besides computing its result; dead-code elimination, CSE and constant folding read it. */
export type Effects = 'pure' | 'random' | 'mutates' | 'io'

export interface TargetInfo {
  /** Qualified name, e.g. `torch.relu`, `torch.nn.functional.gelu`, `operator.add`, or `user.myFunction`. Unique. */
  readonly name: string
  /** The node-name candidate, PyTorch's `__name__`: the last part of `name` unless given. */
  readonly shortName: string
  readonly effects: Effects
  /** PyTorch's schema, for functions of the operator table. */
  readonly schema?: FunctionSchema
}

// A registry and not module state in fx: graphs from JSON and generated code resolve names without importing the room that defined them.
const registry = new Map<string, TargetFunction>()

/** Gives `fn` a qualified name and registers it. Throws ArgumentError when the name already belongs to another function. */
export function nameTarget<F extends TargetFunction>(
  fn: F,
  info: { name: string; shortName?: string; effects?: Effects; schema?: FunctionSchema },
): F {
  const known = registry.get(info.name)
  if (known !== undefined && known !== fn)
    throw new ArgumentError(`nameTarget: the name '${info.name}' already belongs to another function; choose another name.`)
  const full: TargetInfo = {
    name: info.name,
    shortName: info.shortName ?? info.name.slice(info.name.lastIndexOf('.') + 1),
    effects: info.effects ?? 'pure',
    ...(info.schema === undefined ? {} : { schema: info.schema }),
  }
  Object.defineProperty(fn, TARGET, { value: full, configurable: true })
  registry.set(info.name, fn)
  return fn
}

/** The info that `fn` carries, or undefined for a function that was never named. */
export function targetInfo(fn: unknown): TargetInfo | undefined {
  return typeof fn === 'function' ? (fn as { [TARGET]?: TargetInfo })[TARGET] : undefined
}

/** The function with that qualified name, or undefined. */
export function lookupTarget(name: string): TargetFunction | undefined {
  return registry.get(name)
}

const declared = new WeakMap<TargetFunction, Effects>()

/** Says what calls of a function do, named or not; it wins over what the function was named with. */
export function declareEffects(fn: TargetFunction, effects: Effects): void {
  declared.set(fn, effects)
}

/** What calls of a function do: as declared, or as it was named with; 'pure' for one that nothing is known of. */
export function effectsOf(fn: TargetFunction): Effects {
  return declared.get(fn) ?? targetInfo(fn)?.effects ?? 'pure'
}
