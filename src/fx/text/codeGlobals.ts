// The globals of generated code: functions by their qualified names, and constants that have no literal.
import { camelCase, isFunction, isIdentifier, isObject, isParameter, isTensorLike, remembered } from '../../protocol/index.ts'
import type { TargetFunction, TargetInfo } from '../../protocol/index.ts'
import { GraphError } from '../graph/errors.ts'
import type { Namespace } from '../graph/namespace.ts'

/** A namespace object: `torch`, `torch.nn`. */
type Holder = Record<string, unknown>

const holders = new WeakSet<object>()

const isHolder = (value: unknown): value is Holder => isObject(value) && holders.has(value)

/** The names of the values that generated code uses. */
export interface Globals {
  readonly values: ReadonlyMap<string, unknown>
  reserve(name: string, value: unknown): void
  callee(fn: TargetFunction, info: TargetInfo | undefined): string
  constant(value: unknown): string
}

/** The names that generated code refers to besides its parameters. */
export function newGlobals(namespace: Namespace): Globals {
  const values = new Map<string, unknown>()
  const texts = new Map<unknown, string>()
  /** The variables that hold libraries: `torch`, or another name if that is taken. */
  const roots = new Map<string, string>()
  for (const name of ['torch', 'operator']) {
    namespace.reserve(name)
    roots.set(name, name)
  }
  return { values, reserve, callee, constant }

  /** Adds a value under exactly this name. */
  function reserve(name: string, value: unknown): void {
    namespace.reserve(name)
    values.set(name, value)
  }

  /** How the code refers to a function: `torch.nn.functional.relu`, or a global of its own. Throws GraphError for a function without a name. */
  function callee(fn: TargetFunction, info: TargetInfo | undefined): string {
    return texts.get(fn) ?? remembered(texts, fn, () => (info === undefined ? null : pathOf(fn, info.name)) ?? variableOf(fn, info))
  }

  function variableOf(fn: TargetFunction, info: TargetInfo | undefined): string {
    const name = info?.shortName ?? fn.name
    if (name === '') throw new GraphError('Unable to represent an anonymous function in generated code: give it a name with fx.wrap(fn, { name }).')
    return add(name, fn)
  }

  /** Puts a function into nested namespace objects by its qualified name. Null if the name is not a path, or if something else takes a part of it. */
  function pathOf(fn: TargetFunction, qualifiedName: string): string | null {
    const [first = '', ...rest] = qualifiedName.split('.')
    // The namespace of user functions exists only to make their names unique; code reads better without it.
    if (rest.length === 0 || first === 'user' || !isIdentifier(first) || !rest.every(isIdentifier)) return null
    const between = rest.slice(0, -1)
    const last = camelCase(rest.at(-1) ?? '')
    const library = remembered(roots, first, (name) => namespace.create(name))
    let holder = step(values.get(library), (made) => void values.set(library, made))
    for (const part of between) {
      const outer = holder
      if (outer === null) return null
      holder = step(outer[part], (made) => void (outer[part] = made))
    }
    if (holder === null || (last in holder && holder[last] !== fn)) return null
    holder[last] = fn
    return [library, ...between, last].join('.')
  }

  /** The namespace object at a place: `value`, or a new one if it is undefined. Null if something else is there. */
  function step(value: unknown, set: (made: Holder) => void): Holder | null {
    if (value === undefined) {
      const made: Holder = Object.create(null)
      holders.add(made)
      set(made)
      return made
    }
    return isHolder(value) ? value : null
  }

  /** How the code refers to a value that has no literal: a global of its own. */
  function constant(value: unknown): string {
    return remembered(texts, value, () => add(constantName(value), value))
  }

  function add(candidate: string, value: unknown): string {
    const name = namespace.create(candidate)
    values.set(name, value)
    return name
  }
}

function constantName(value: unknown): string {
  if (isFunction(value)) return value.name
  if (!isTensorLike(value)) return '_constant'
  return isParameter(value) ? '_parameter' : '_tensor'
}
