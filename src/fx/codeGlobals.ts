// What generated code refers to besides its parameters: functions by their qualified names, constants that cannot be written down.
import { isParameter, isTensorLike } from '../protocol/index.ts'
import type { TargetFunction, TargetInfo } from '../protocol/index.ts'
import { GraphError } from './errors.ts'
import { isIdentifier } from './namespace.ts'
import type { Namespace } from './namespace.ts'

/** PyTorch spells `log_softmax`, JavaScript `logSoftmax`. */
const camelCase = (name: string): string => name.replace(/([a-z0-9])_+([a-z0-9])/g, (_, a: string, b: string) => a + b.toUpperCase())

/** A namespace object: `torch`, `torch.nn`. */
type Holder = Record<string, unknown>

const holders = new WeakSet<object>()

export class Globals {
  /** Names and values, in order of first use. */
  readonly values: Map<string, unknown> = new Map()
  readonly #namespace: Namespace
  readonly #texts = new Map<unknown, string>()
  readonly #roots = new Map<string, string>()

  constructor(namespace: Namespace) {
    this.#namespace = namespace
    // No variable takes the names of the libraries, whether or not this graph uses them.
    for (const name of ['torch', 'operator']) this.#namespace.reserve(name)
    for (const name of ['torch', 'operator']) this.#roots.set(name, name)
  }

  /** Takes a name as it is. */
  reserve(name: string, value: unknown): void {
    this.#namespace.reserve(name)
    this.values.set(name, value)
  }

  /** How the code writes a function: `torch.nn.functional.relu`, or a global of its own. Throws GraphError for one without a name. */
  callee(fn: TargetFunction, info: TargetInfo | undefined): string {
    let text = this.#texts.get(fn)
    if (text === undefined) {
      text = (info === undefined ? null : this.#path(fn, info.name)) ?? this.#named(fn, info)
      this.#texts.set(fn, text)
    }
    return text
  }

  #named(fn: TargetFunction, info: TargetInfo | undefined): string {
    const name = info?.shortName ?? fn.name
    if (name === '') throw new GraphError('Unable to represent an anonymous function in generated code: give it a name with fx.wrap(fn, { name }).')
    return this.#add(name, fn)
  }

  /** A qualified name as nested objects; null when it is none, or when a part of the path is taken by something else. */
  #path(fn: TargetFunction, name: string): string | null {
    const parts = name.split('.')
    // What users register has its namespace only to be unique; their code reads better without it.
    if (parts.length < 2 || parts[0] === 'user' || !parts.every(isIdentifier)) return null
    const last = camelCase(parts.at(-1) as string)
    const root = this.#root(parts[0] as string)
    let holder = this.#step(this.values.get(root), (made) => void this.values.set(root, made))
    for (const part of parts.slice(1, -1)) {
      const outer = holder
      if (outer === null) return null
      holder = this.#step(outer[part], (made) => void (outer[part] = made))
    }
    if (holder === null || (last in holder && holder[last] !== fn)) return null
    holder[last] = fn
    return [root, ...parts.slice(1, -1), last].join('.')
  }

  #step(value: unknown, set: (made: Holder) => void): Holder | null {
    if (value === undefined) {
      const made = Object.create(null) as Holder
      holders.add(made)
      set(made)
      return made
    }
    return typeof value === 'object' && value !== null && holders.has(value) ? (value as Holder) : null
  }

  #root(wish: string): string {
    let name = this.#roots.get(wish)
    if (name === undefined) {
      name = this.#namespace.create(wish)
      this.#roots.set(wish, name)
    }
    return name
  }

  /** How the code writes a value that has no literal: a global of its own. */
  constant(value: object): string {
    const known = this.#texts.get(value)
    if (known !== undefined) return known
    const wish =
      typeof value === 'function'
        ? (value as { readonly name: string }).name
        : isTensorLike(value)
          ? isParameter(value)
            ? '_parameter'
            : '_tensor'
          : '_constant'
    const name = this.#add(wish, value)
    this.#texts.set(value, name)
    return name
  }

  #add(wish: string, value: unknown): string {
    const name = this.#namespace.create(wish)
    this.values.set(name, value)
    return name
  }
}
