// Options objects: a name that nothing reads is an error.
import { ArgumentError } from '../errors/index.ts'
import { nearest } from './nearest.ts'
import { entryOf } from './plainObject.ts'
import { valueText } from './valueText.ts'

/** The names of the options `O`, each as a key: a table that lacks one, or has another, is a compile error. */
export type OptionNames<O extends object> = { readonly [K in keyof O]-?: true }

/** Names of other libraries, or of PyTorch's other functions, for what an option may be called here. */
const ALIASES: Readonly<Record<string, string>> = { axis: 'dim', keepdims: 'keepdim', learningRate: 'lr', learning_rate: 'lr' }

/** What to say about options of PyTorch that have no counterpart. */
const NO_DEVICES = 'there are no devices here'
const NO_CHANGE = 'it would change nothing here'
const ABSENT: Readonly<Record<string, string>> = { device: NO_DEVICES, pin_memory: NO_DEVICES, foreach: NO_CHANGE, fused: NO_CHANGE }

/** The error for an option that does not exist. `where` is the function, `known` its options in the order to list them. */
export function unknownOption(where: string, name: string, known: readonly string[]): ArgumentError {
  const alias = entryOf(ALIASES, name)
  const near = alias !== undefined && known.includes(alias) ? alias : nearest(name, known)
  const absent = entryOf(ABSENT, name)
  const hint = near !== null ? `did you mean '${near}'? ` : absent === undefined ? '' : `${absent}, leave it out. `
  return new ArgumentError(`${where}: unknown option '${name}'; ${hint}${hint === '' ? 'known are' : 'Known are'} ${known.join(', ')}.`)
}

/** Throws ArgumentError unless `options` is an object all of whose keys are in `known`. `where` is the function that got it. */
export function checkOptions<O extends object>(where: string, options: O, known: OptionNames<O>): void {
  checkOptionNames(where, options, Object.keys(known))
}

/** {@link checkOptions} for names that are only known at run time. */
export function checkOptionNames(where: string, options: unknown, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new ArgumentError(`${where}: options must be an object such as { ${known[0] ?? ''}: … }, got ${valueText(options)}.`)
  for (const name of Object.keys(options)) if (!known.includes(name)) throw unknownOption(where, name, known)
}
