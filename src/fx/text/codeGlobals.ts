// The globals of generated code: functions by their qualified names, and constants that have no literal.
import { camelCase, isFunction, isIdentifier, isObject, isParameter, isTensorLike, remembered } from '../../protocol/index.ts'
import type { TargetFunction, TargetInfo } from '../../protocol/index.ts'
import { GraphError } from '../graph/errors.ts'
import type { Namespace } from '../graph/namespace.ts'

/** A namespace object: `torch`, `torch.nn`. */
type Holder = Record<string, unknown>

const holders = new WeakSet<object>()

const isHolder = (value: unknown): value is Holder => isObject(value) && holders.has(value)

/** The names that generated code refers to besides its parameters. */
export class Globals {
  /** Values by name, in order of first use. */
  readonly values: Map<string, unknown> = new Map()
  readonly #namespace: Namespace
  readonly #texts = new Map<unknown, string>()
  readonly #roots = new Map<string, string>()

  constructor(namespace: Namespace) {
    this.#namespace = namespace
    // No variable takes the name of a library, whether or not this graph uses it.
    for (const name of ['torch', 'operator']) {
      this.#namespace.reserve(name)
      this.#roots.set(name, name)
    }
  }

  /** Adds a value under exactly this name. */
  reserve(name: string, value: unknown): void {
    this.#namespace.reserve(name)
    this.values.set(name, value)
  }

  /** How the code refers to a function: `torch.nn.functional.relu`, or a global of its own. Throws GraphError for a function without a name. */
  callee(fn: TargetFunction, info: TargetInfo | undefined): string {
    return remembered(this.#texts, fn, () => (info === undefined ? null : this.#path(fn, info.name)) ?? this.#named(fn, info))
  }

  #named(fn: TargetFunction, info: TargetInfo | undefined): string {
    const name = info?.shortName ?? fn.name
    if (name === '') throw new GraphError('Unable to represent an anonymous function in generated code: give it a name with fx.wrap(fn, { name }).')
    return this.#add(name, fn)
  }

  /** Puts a function into nested namespace objects by its qualified name. Null if the name is not a path, or if something else takes a part of it. */
  #path(fn: TargetFunction, qualifiedName: string): string | null {
    const [first = '', ...rest] = qualifiedName.split('.')
    // The namespace of user functions exists only to make their names unique; code reads better without it.
    if (rest.length === 0 || first === 'user' || !isIdentifier(first) || !rest.every(isIdentifier)) return null
    const between = rest.slice(0, -1)
    const last = camelCase(rest.at(-1) ?? '')
    const root = remembered(this.#roots, first, (name) => this.#namespace.create(name))
    let holder = this.#step(this.values.get(root), (made) => void this.values.set(root, made))
    for (const part of between) {
      const outer = holder
      if (outer === null) return null
      holder = this.#step(outer[part], (made) => void (outer[part] = made))
    }
    if (holder === null || (last in holder && holder[last] !== fn)) return null
    holder[last] = fn
    return [root, ...between, last].join('.')
  }

  /** The namespace object at a place: `value`, or a new one if it is undefined. Null if something else is there. */
  #step(value: unknown, set: (made: Holder) => void): Holder | null {
    if (value === undefined) {
      const made: Holder = Object.create(null)
      holders.add(made)
      set(made)
      return made
    }
    return isHolder(value) ? value : null
  }

  /** How the code refers to a value that has no literal: a global of its own. */
  constant(value: unknown): string {
    return remembered(this.#texts, value, () => this.#add(constantName(value), value))
  }

  #add(candidate: string, value: unknown): string {
    const name = this.#namespace.create(candidate)
    this.values.set(name, value)
    return name
  }
}

function constantName(value: unknown): string {
  if (isFunction(value)) return value.name
  if (!isTensorLike(value)) return '_constant'
  return isParameter(value) ? '_parameter' : '_tensor'
}
