// Arguments of public functions: what a message says about one that does not fit.
import { ArgumentError } from '../errors/index.ts'
import { isCallable, isClass, isFunction, isModule, isObject } from './kinds.ts'
import { valueText } from './valueText.ts'

/** The end of a message about a function, or a class, that took the place of what it gives; '' for other values. */
export const uncalledHint = (value: unknown): string =>
  !isFunction(value) ? '' : isClass(value) ? ` Make one: new ${value.name}(…).` : ' Call it if its result is meant.'

/** Throws ArgumentError unless `fits`. `where` is the function, `name` its argument, `expected` what it takes: `a GraphModule`. */
export function checkArgument(fits: boolean, where: string, name: string, expected: string, value: unknown): void {
  if (fits) return
  // Where a function or a class is expected, another one is meant.
  const hint = /function|class/.test(expected) ? '' : uncalledHint(value)
  throw new ArgumentError(`${where}: argument '${name}' must be ${expected}, got ${valueText(value)}.${hint}`)
}

/** Throws ArgumentError unless the argument is a function. */
export const checkCallable = (where: string, name: string, value: unknown): void => checkArgument(isCallable(value), where, name, 'a function', value)

/** Throws ArgumentError unless the argument is a Module. */
export const checkModule = (where: string, name: string, value: unknown): void => checkArgument(isModule(value), where, name, 'a Module', value)

/** Throws ArgumentError unless the argument is an array. */
export const checkArray = (where: string, name: string, value: unknown): void => checkArgument(Array.isArray(value), where, name, 'an array', value)

/** Throws ArgumentError unless the argument is an array, a Set or another iterable object. */
export const checkIterable = (where: string, name: string, value: unknown): void =>
  checkArgument(isObject(value) && isFunction(Reflect.get(value, Symbol.iterator)), where, name, 'an array (or another iterable)', value)

/** Throws ArgumentError unless the argument is a positive number. */
export const checkPositive = (where: string, name: string, value: unknown): void =>
  checkArgument(typeof value === 'number' && value > 0, where, name, 'a positive number', value)

/** Throws ArgumentError unless the argument is a string. */
export const checkString = (where: string, name: string, value: unknown): void =>
  checkArgument(typeof value === 'string', where, name, 'a string', value)

/** Throws ArgumentError if there are more than `most` arguments, which JavaScript would ignore. `where` is the function, or the layer whose forward it is. */
export function checkCount(where: string | { readonly constructor: { readonly name: string } }, given: ArrayLike<unknown>, most: number): void {
  if (given.length <= most) return
  const name = typeof where === 'string' ? where : `${where.constructor.name}.forward`
  // Callers pass by position what is an option here.
  const hint = most === 0 ? '' : ' Options are an object, the last argument.'
  const takes = most === 0 ? 'none' : String(most)
  throw new ArgumentError(
    `${name}: ${given.length} argument${given.length === 1 ? '' : 's'} given but it takes ${takes}; ${valueText(given[most])} is one too many.${hint}`,
  )
}
