// Options objects: a name that nothing reads is an error.
import { ArgumentError } from '../errors/index.ts'
import { uncalledHint } from './arguments.ts'
import { camelCase } from './names.ts'
import { nearest } from './nearest.ts'
import { entryOf } from './plainObject.ts'
import { valueText } from './valueText.ts'

/** What an option may be: a boolean, a number, or `true` for what the function checks itself. */
export type OptionKind = 'boolean' | 'number' | true

type KindOf<V> = null extends V ? true : [V] extends [boolean | undefined] ? 'boolean' : [V] extends [number | undefined] ? 'number' : true

/** The names of the options `O` with their kinds: a table that lacks one, has another or says another kind is a compile error. */
export type OptionNames<O extends object> = { readonly [K in keyof O]-?: KindOf<O[K]> }

const KIND_TEXTS = { boolean: 'true or false', number: 'a number' }

/** Names of other libraries, or of PyTorch's other functions, for what an option may be called here: the first that the function has. */
export const OPTION_ALIASES: Readonly<Record<string, readonly string[]>> = {
  axis: ['dim', 'dims'],
  axes: ['dim', 'dims'],
  keepdims: ['keepdim'],
  keepDims: ['keepdim'],
  learningRate: ['lr'],
  learning_rate: ['lr'],
  beta1: ['betas'],
  beta2: ['betas'],
  epsilon: ['eps'],
  rate: ['p', 'dropout'],
  useBias: ['bias'],
  use_bias: ['bias'],
  strides: ['stride'],
  dilationRate: ['dilation'],
  poolSize: ['kernelSize'],
  units: ['outFeatures', 'hiddenSize'],
  filters: ['outChannels'],
  inputDim: ['numEmbeddings', 'inFeatures'],
  outputDim: ['embeddingDim', 'outFeatures'],
  num: ['steps'],
  shape: ['size'],
  minval: ['low'],
  maxval: ['high'],
  reps: ['repeats', 'dims'],
  ddof: ['correction'],
}

/** What to say about options of PyTorch that have no counterpart. */
const NO_DEVICES = 'operators run where their tensors are'
const NO_CHANGE = 'it would change nothing here'
const ABSENT: Readonly<Record<string, string>> = { device: NO_DEVICES, pin_memory: NO_DEVICES, foreach: NO_CHANGE, fused: NO_CHANGE }

/** The option among `known` that an unknown name probably means; null if that is unclear. */
export const meantOption = (name: string, known: readonly string[]): string | null =>
  entryOf(OPTION_ALIASES, name)?.find((alias) => known.includes(alias)) ?? nearest(name, known)

/**
 * The error for an option that does not exist. `where` is the function, `known` its options in the order to list them, `instead` what to write for options that PyTorch's function has.
 */
export function unknownOption(where: string, name: string, known: readonly string[], instead: Readonly<Record<string, string>> = {}): ArgumentError {
  const own = entryOf(instead, camelCase(name))
  if (own !== undefined) return new ArgumentError(`${where}: there is no option '${name}'; ${own}. Known are ${known.join(', ')}.`)
  const near = meantOption(name, known)
  const absent = entryOf(ABSENT, name)
  const hint = near !== null ? `did you mean '${near}'? ` : absent === undefined ? '' : `${absent}, leave it out. `
  return new ArgumentError(`${where}: unknown option '${name}'; ${hint}${hint === '' ? 'known are' : 'Known are'} ${known.join(', ')}.`)
}

/**
 * Throws ArgumentError unless `options` is an object all of whose keys are in `known`, with values of these kinds. `where` is the function that got it, `instead` what to write for options
 * that PyTorch's function has, by our spelling of their names.
 */
export function checkOptions<O extends object>(where: string, options: O, known: OptionNames<O>, instead?: Readonly<Record<string, string>>): void {
  const kinds: Readonly<Record<string, OptionKind>> = known
  checkOptionNames(where, options, Object.keys(kinds), instead)
  for (const [name, value] of Object.entries(options)) {
    const kind = kinds[name]
    if (kind !== undefined && kind !== true && value !== undefined && typeof value !== kind)
      throw new ArgumentError(`${where}: option '${name}' must be ${KIND_TEXTS[kind]}, got ${valueText(value)}.${uncalledHint(value)}`)
  }
}

/** {@link checkOptions} for names that are only known at run time. */
export function checkOptionNames(where: string, options: unknown, known: readonly string[], instead?: Readonly<Record<string, string>>): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new ArgumentError(`${where}: options must be an object such as { ${known[0] ?? ''}: … }, got ${valueText(options)}.`)
  for (const name of Object.keys(options)) if (!known.includes(name)) throw unknownOption(where, name, known, instead)
}
