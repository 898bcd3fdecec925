// Kinds of values. A module can be called, so its typeof is 'function'. Whatever treats functions and objects differently asks here, not typeof.
import type { TargetFunction } from './target.ts'

/** true on the prototype of class Module. */
export const MODULE: unique symbol = Symbol.for('tensorfx.module')

/** What all modules have, for rooms that do not import class Module. */
export interface ModuleLike {
  readonly [MODULE]: true
}

/** Whether a function has the mark of modules. Every function has a name, so that functions without the mark fit the type. */
const hasMark = (fn: { readonly name: string; readonly [MODULE]?: unknown }): boolean => fn[MODULE] === true

/** Whether a value is a module. */
export const isModule = (value: unknown): value is ModuleLike => typeof value === 'function' && hasMark(value)

/** Whether a value is a function, or a class; a module is none. */
export const isFunction = (value: unknown): value is TargetFunction => typeof value === 'function' && !isModule(value)

/** Whether a value can be called: a function or a module. */
export const isCallable = (value: unknown): value is TargetFunction => typeof value === 'function'

/** Whether a value is an object, which includes modules and excludes null and functions. */
export const isObject = (value: unknown): value is object => (typeof value === 'object' && value !== null) || isModule(value)

/** What messages add to a value of another copy of this library; the composition root sets it. */
let copyText: (value: object) => string = () => ''

/** Sets what messages add to an object or a module. */
export function setCopyText(text: (value: object) => string): void {
  copyText = text
}

/** The class of an object, for messages. */
export const classText = (value: object): string => (isIterator(value) ? 'iterator' : value.constructor.name + copyText(value))

/** Whether a value is what a generator function gives: its class has no name. */
const isIterator = (value: object): boolean => Object.prototype.toString.call(value) === '[object Generator]'

/** What a value is, for messages: `null`, `number`, `function`, and for an object or a module its class. */
export const kindOf = (value: unknown): string =>
  value === null ? 'null' : isObject(value) && Object.getPrototypeOf(value) !== null ? classText(value) : typeof value

/** A value in a message: `number 3`, `an object of class Linear`. */
export const described = (value: unknown): string =>
  value === null ? 'null' : isObject(value) ? `an object of class ${kindOf(value)}` : `${typeof value} ${String(value)}`

/** Whether a function is a class, which cannot be called. */
export const isClass = (fn: object): boolean => /^class\b/.test(Function.prototype.toString.call(fn))
