// Arguments of public functions: what a message says about one that does not fit.
import { ArgumentError } from '../errors/index.ts'
import { isCallable, isClass, isFunction, isModule, isObject } from './kinds.ts'
import { isTensorLike } from './tensorLike.ts'
import { valueText } from './valueText.ts'

/** The end of a message about a function, or a class, that took the place of what it gives; '' for other values. */
export const uncalledHint = (value: unknown): string =>
  !isFunction(value) ? '' : isClass(value) ? ` Make one: new ${value.name}(…).` : ' Call it if its result is meant.'

/** Throws ArgumentError unless `fits`. `where` is the function, `name` its argument, `expected` what it takes: `a GraphModule`. */
export function checkArgument(fits: boolean, where: string, name: string, expected: string, value: unknown): void {
  if (fits) return
  throw new ArgumentError(`${where}: argument '${name}' must be ${expected}, got ${valueText(value)}.${kindHint(expected, value)}`)
}

/** What to write instead of a value of another kind; '' if that is unclear. */
function kindHint(expected: string, value: unknown): string {
  // Where a function or a class is expected, another one is meant.
  if (!/function|class/.test(expected)) return uncalledHint(value)
  return isTensorLike(value) ? ' Pass the function itself, not its result.' : ''
}

/** Throws ArgumentError unless the argument is a function. */
export const checkCallable = (where: string, name: string, value: unknown): void => checkArgument(isCallable(value), where, name, 'a function', value)

/** Throws ArgumentError unless the argument is a Module. */
export function checkModule(where: string, name: string, value: unknown): void {
  if (isObject(value) && !isModule(value) && isFunction(Reflect.get(value, 'next')))
    throw new ArgumentError(`${where}: argument '${name}' must be a Module, got ${valueText(value)}. Pass the model itself, not its parameters.`)
  checkArgument(isModule(value), where, name, 'a Module', value)
}

/** The end of a message if each of two arguments would fit in the place of the other; '' otherwise. `order` lists all arguments of the function as they belong. */
export const swappedHint = (areSwapped: boolean, first: string, second: string, order: string): string =>
  areSwapped ? ` Swap '${first}' and '${second}': the order is ${order}.` : ''

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
export function checkCount(
  where: string | { readonly constructor: { readonly name: string } } | undefined,
  given: ArrayLike<unknown>,
  most: number,
): void {
  if (where === undefined) throw withoutObject('forward')
  if (given.length <= most) return
  const name = typeof where === 'string' ? where : `${where.constructor.name}.forward`
  // Callers pass by position what is an option here.
  const hint = most === 0 ? '' : ' Options are an object, the last argument.'
  const takes = most === 0 ? 'none' : String(most)
  throw new ArgumentError(
    `${name}: ${given.length} argument${given.length === 1 ? '' : 's'} given but it takes ${takes}; ${valueText(given[most])} is one too many.${hint}`,
  )
}

/** {@link checkCount} for a method, which must be called on its object: `self` is `this`. */
export function checkMethod(self: unknown, where: string, given: ArrayLike<unknown>, most: number): void {
  if (self === undefined) throw withoutObject(where)
  checkCount(where, given, most)
}

function withoutObject(where: string): ArgumentError {
  const name = where.slice(where.lastIndexOf('.') + 1)
  return new ArgumentError(
    `${where}: called without its object, as after const { ${name} } = object. Write object.${name}(…), or (...args) => object.${name}(...args) where a function belongs.`,
  )
}
