// The globals of generated code: functions by their qualified names, and constants that have no literal.
import { camelCase, isFunction, isIdentifier, isObject, isParameter, isTensorLike, remembered } from '../../protocol/index.ts'
import type { TargetFunction, TargetInfo } from '../../protocol/index.ts'
import { GraphError } from '../graph/errors.ts'
import type { Namespace } from '../graph/namespace.ts'

/** A namespace object: `torch`, `torch.nn`. */
type Holder = Record<string, unknown>

const holders = new WeakSet<object>()

const isHolder = (value: unknown): value is Holder => isObject(value) && holders.has(value)

/** The names that generated code refers to besides its parameters, and their values. */
export class Globals {
  readonly #namespace: Namespace
  readonly #values = new Map<string, unknown>()
  readonly #texts = new Map<unknown, string>()
  /** The variables that hold libraries: `torch`, or another name if that is taken. */
  readonly #roots = new Map<string, string>()

  constructor(namespace: Namespace) {
    this.#namespace = namespace
    for (const name of ['torch', 'operator']) {
      namespace.reserve(name)
      this.#roots.set(name, name)
    }
  }

  get values(): ReadonlyMap<string, unknown> {
    return this.#values
  }

  /** Adds a value under exactly this name. */
  reserve(name: string, value: unknown): void {
    this.#namespace.reserve(name)
    this.#values.set(name, value)
  }

  /** How the code refers to a function: `torch.nn.functional.relu`, or a global of its own. Throws GraphError for a function without a name. */
  callee(fn: TargetFunction, info: TargetInfo | undefined): string {
    return (
      this.#texts.get(fn) ??
      remembered(this.#texts, fn, () => (info === undefined ? null : this.#pathOf(fn, info.name)) ?? this.#variableOf(fn, info))
    )
  }

  /** How the code refers to a value that has no literal: a global of its own. */
  constant(value: unknown): string {
    return remembered(this.#texts, value, () => this.#add(constantName(value), value))
  }

  #variableOf(fn: TargetFunction, info: TargetInfo | undefined): string {
    const name = info?.shortName ?? fn.name
    if (name === '') throw new GraphError('Unable to represent an anonymous function in generated code: give it a name with fx.wrap(fn, { name }).')
    return this.#add(name, fn)
  }

  /** Puts a function into nested namespace objects by its qualified name. Null if the name is not a path, or if something else takes a part of it. */
  #pathOf(fn: TargetFunction, qualifiedName: string): string | null {
    const [first = '', ...rest] = qualifiedName.split('.')
    // The namespace of user functions exists only to make their names unique; code reads better without it.
    if (rest.length === 0 || first === 'user' || !isIdentifier(first) || !rest.every(isIdentifier)) return null
    const between = rest.slice(0, -1)
    const last = camelCase(rest.at(-1) ?? '')
    const library = remembered(this.#roots, first, (name) => this.#namespace.create(name))
    let holder = step(this.#values.get(library), (made) => void this.#values.set(library, made))
    for (const part of between) {
      const outer = holder
      if (outer === null) return null
      holder = step(outer[part], (made) => void (outer[part] = made))
    }
    if (holder === null || (last in holder && holder[last] !== fn)) return null
    holder[last] = fn
    return [library, ...between, last].join('.')
  }

  #add(candidate: string, value: unknown): string {
    const name = this.#namespace.create(candidate)
    this.#values.set(name, value)
    return name
  }
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

function constantName(value: unknown): string {
  if (isFunction(value)) return value.name
  if (!isTensorLike(value)) return '_constant'
  return isParameter(value) ? '_parameter' : '_tensor'
}
