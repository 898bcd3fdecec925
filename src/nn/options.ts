// Constructor arguments of layers: PyTorch's positional ones, then one object with the rest by name.
import { ArgumentError } from '../errors/index.ts'
import type { Module } from '../module/index.ts'
import {
  checkArgument,
  checkCount,
  isCallable,
  isPlainObject,
  meantOption,
  ownCopy,
  uncalledHint,
  unknownOption,
  valueText,
} from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'

/** The arguments after the required ones: some of `P` by position, then perhaps an options object `O`. */
export type Trailing<P extends readonly unknown[], O> = P extends readonly [infer First, ...infer Rest]
  ? [] | [O] | [First, ...Trailing<Rest, O>]
  : [] | [O]

/** The options object among the arguments that `T` allows; never if there is none. */
type OptionsIn<T> = T extends readonly [infer A] ? Exclude<A, string | number | boolean | readonly unknown[] | Module | Tensor | null> : never

/** Required arguments by name. */
type Names<R extends readonly (readonly [string, unknown])[]> = { readonly [Pair in R[number] as Pair[0]]: Pair[1] }

/**
 * The arguments of a layer some of whose required ones, of the names and types `R`, are given by name, together with its options: those before them are given by position. `T` are the
 * arguments after the required ones.
 */
export type Named<R extends readonly (readonly [string, unknown])[], T> = R extends readonly [
  infer First extends readonly [string, unknown],
  ...infer Rest extends readonly (readonly [string, unknown])[],
]
  ? [options: Names<R> & ([OptionsIn<T>] extends [never] ? unknown : OptionsIn<T>)] | [First[1], ...Named<Rest, T>]
  : never

/**
 * The required arguments of a layer, `names` in order, and what was given after them. Those that were not given by position are taken from the options, as PyTorch takes every argument by
 * name. `hasOptions`: others may follow. Throws ArgumentError for an argument that is missing or given twice, and without options for more arguments.
 */
export function readRequired<R extends readonly unknown[], T extends readonly unknown[] = readonly unknown[]>(
  where: string,
  names: readonly string[],
  given: readonly unknown[],
  hasOptions = true,
): readonly [...R, ...T] {
  const last = given.at(-1)
  const positional = isPlainObject(last) ? given.slice(0, -1) : given
  let all = given
  if (isPlainObject(last) && !positional.some(isPlainObject)) {
    const options: Record<string, unknown> = { ...last }
    const required = names.map((name, i) => {
      const isNamed = Object.hasOwn(options, name)
      if (isNamed && i < positional.length) throw new ArgumentError(`${where}: '${name}' was given twice, by position and in the options.`)
      if (!isNamed && i >= positional.length) throw missing(where, names.slice(i), options)
      const value = isNamed ? options[name] : positional[i]
      delete options[name]
      return value
    })
    const [other] = Object.keys(options)
    if (other !== undefined && !hasOptions) throw unknownOption(where, other, names)
    all = [...required, ...positional.slice(names.length), ...(other === undefined ? [] : [options])]
  }
  if (!hasOptions) checkCount(where, all, names.length)
  // The layers check the values.
  return all as readonly unknown[] as readonly [...R, ...T]
}

/** The error for the first of these arguments, which is in no position and not among the options. */
function missing(where: string, names: readonly string[], options: object): ArgumentError {
  const [name = ''] = names
  const misspelled = Object.keys(options).find((option) => meantOption(option, [name]) !== null)
  if (misspelled !== undefined) return unknownOption(where, misspelled, names)
  return new ArgumentError(`${where}: argument '${name}' is missing. Give it by position, before the options, or by name: { ${name}: … }.`)
}

/** Options whose default is a number, and that may be a text. */
const TEXTS = new Set(['padding'])

/** What an option may be, by the type of its default. Layers check the rest: how many numbers, which texts. */
const KINDS: Readonly<Record<string, { readonly text: string; readonly holds: (value: unknown) => boolean }>> = {
  boolean: { text: 'true or false', holds: (value) => typeof value === 'boolean' },
  number: {
    text: 'a number',
    holds: (value) => value === null || typeof value === 'number' || (Array.isArray(value) && value.every((item) => typeof item === 'number')),
  },
  string: { text: 'a string', holds: (value) => typeof value === 'string' || isCallable(value) },
}

/**
 * The options that were given, and the defaults of the others. The order of the keys of `defaults` is that of the positional arguments. Throws ArgumentError
 * for an unknown option, an option that is given twice, too many arguments, options that are not the last argument, and a value of another kind than the default.
 */
export function readOptions<O extends object>(where: string, defaults: O, given: readonly unknown[]): O {
  const known = Object.keys(defaults)
  const last = given.at(-1)
  const options = isPlainObject(last) ? last : {}
  const positional = isPlainObject(last) ? given.slice(0, -1) : given
  const hint = positional.some(isPlainObject) ? ' Options are the last argument.' : ''
  if (positional.length > known.length)
    throw new ArgumentError(
      `${where}: ${positional.length - known.length} argument(s) too many. The optional arguments are ${known.join(', ')}.${hint}`,
    )
  const values: O = { ...defaults }
  const set = (what: string, name: string, value: unknown): void => {
    if (value === undefined) return
    const kind = KINDS[typeof Reflect.get(defaults, name)]
    if (kind !== undefined && !kind.holds(value) && !(typeof value === 'string' && TEXTS.has(name)))
      throw new ArgumentError(`${where}: ${what} '${name}' must be ${kind.text}, got ${valueText(value)}.${uncalledHint(value)}${hint}`)
    Reflect.set(values, name, ownCopy(value))
  }
  for (const [i, name] of known.entries()) if (i < positional.length) set('argument', name, positional[i])
  for (const [name, value] of Object.entries(options)) {
    const index = known.indexOf(name)
    if (index < 0) throw unknownOption(where, name, known)
    if (index < positional.length) throw new ArgumentError(`${where}: '${name}' was given twice, by position and in the options.`)
    set('option', name, value)
  }
  return values
}

/** Throws ArgumentError unless `value` is an integer of at least `least`. */
export function checkInteger(where: string, name: string, value: unknown, least = 1): void {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least)
    throw new ArgumentError(`${where}: ${name} must be an integer of at least ${least}, got ${valueText(value)}.${uncalledHint(value)}`)
}

/** `value` for each of `count` dimensions. Throws ArgumentError unless it is one integer of at least `least`, or `count` of them. */
export function perDimension(where: string, name: string, value: number | readonly number[], count: number, least: number): readonly number[] {
  const list = typeof value === 'number' ? Array.from({ length: count }, () => value) : value
  if (!Array.isArray(list) || list.length !== count || list.some((v) => !Number.isInteger(v) || v < least)) {
    throw new ArgumentError(
      `${where}: ${name} must be an integer of at least ${least}${count > 1 ? ` or an array of ${count}` : ''}, got ${valueText(value)}.${uncalledHint(value)}`,
    )
  }
  return [...list]
}

/** Throws ArgumentError unless `value` is a number for which `holds`. */
export function checkNumber(where: string, name: string, value: unknown, what: string, holds: (value: number) => boolean): void {
  if (typeof value !== 'number' || !holds(value))
    throw new ArgumentError(`${where}: ${name} must be ${what}, got ${valueText(value)}.${uncalledHint(value)}`)
}

/** The size that the caller of a layer wants for the result, as an argument or as an option. */
export type OutputSize = readonly number[] | { readonly outputSize?: readonly number[] | null } | null

/** The sizes in an argument of type {@link OutputSize}, or null. Throws ArgumentError unless it is an array. */
export function readOutputSize(where: string, given: OutputSize): readonly number[] | null {
  const defaults: { readonly outputSize: readonly number[] | null } = { outputSize: null }
  const sizes = readOptions(where, defaults, [given]).outputSize
  if (sizes === null) return null
  checkArgument(Array.isArray(sizes), where, 'outputSize', 'an array of sizes', sizes)
  return sizes
}

/** The row of a table of embeddings that is padding, counted from the start; null for none. Throws ArgumentError out of range. */
export function readPaddingIdx(where: string, paddingIdx: number | null, rows: number): number | null {
  if (paddingIdx === null) return null
  if (!Number.isInteger(paddingIdx) || paddingIdx < -rows || paddingIdx >= rows)
    throw new ArgumentError(`${where}: paddingIdx must be between ${-rows} and ${rows - 1}, got ${valueText(paddingIdx)}.`)
  return paddingIdx < 0 ? rows + paddingIdx : paddingIdx
}
