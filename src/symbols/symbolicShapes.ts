// Questions and promises about sizes that may be symbols or plain numbers. PyTorch's torch.fx.experimental.symbolic_shapes.
import { ArgumentError } from '../errors/index.ts'
import { checkCount, valueText } from '../protocol/index.ts'
import { freeSymbols } from './expression.ts'
import type { SymbolExpr } from './expression.ts'
import { SymBool, SymFloat, SymInt } from './symValues.ts'
import type { BoolLike } from './symValues.ts'

function ask(name: string, condition: BoolLike, answer: (symbolic: SymBool) => boolean): boolean {
  if (typeof condition === 'boolean') return condition
  if (condition instanceof SymBool) return answer(condition)
  throw new ArgumentError(`${name}: argument 'condition' must be a boolean or a SymBool, got ${valueText(condition)}.`)
}

/** The truth of a condition, with a guard; false where it depends on data and is not known. PyTorch's `guard_or_false`. */
export function guardOrFalse(condition: BoolLike): boolean {
  checkCount('guardOrFalse', arguments, 1)
  return ask('guardOrFalse', condition, (symbolic) => symbolic.env.guardOrFalse(symbolic))
}

/** The truth of a condition, with a guard; true where it depends on data and is not known. PyTorch's `guard_or_true`. */
export function guardOrTrue(condition: BoolLike): boolean {
  checkCount('guardOrTrue', arguments, 1)
  return ask('guardOrTrue', condition, (symbolic) => symbolic.env.guardOrTrue(symbolic))
}

/** The truth of a condition, with a guard, where sizes that depend on data count as neither 0 nor 1. PyTorch's `guard_size_oblivious`. */
export function guardSizeOblivious(condition: BoolLike): boolean {
  checkCount('guardSizeOblivious', arguments, 1)
  return ask('guardSizeOblivious', condition, (symbolic) => symbolic.env.guardSizeOblivious(symbolic))
}

/** Whether a condition holds for all values that are possible. Makes no guard. PyTorch's `statically_known_true`. */
export function staticallyKnownTrue(condition: BoolLike): boolean {
  checkCount('staticallyKnownTrue', arguments, 1)
  return ask('staticallyKnownTrue', condition, ({ env, expr }) => env.alwaysValue(expr) === true)
}

/** Whether a condition holds for no value that is possible. Makes no guard. PyTorch's `statically_known_false`. */
export function staticallyKnownFalse(condition: BoolLike): boolean {
  checkCount('staticallyKnownFalse', arguments, 1)
  return !ask('staticallyKnownFalse', condition, ({ env, expr }) => env.alwaysValue(expr) !== false)
}

/**
 * Promises that a size is from `min` to `max`: its range is narrowed without a guard. PyTorch's `constrain_range`.
 *
 * @throws ArgumentError if a number is not in the range, or nothing is.
 */
export function constrainRange(size: SymInt | number, { min = -Infinity, max = Infinity }: { min?: number; max?: number } = {}): void {
  checkCount('constrainRange', arguments, 2)
  if (size instanceof SymInt) size.env.constrainRange(size, { min, max })
  else if (size < min || size > max) throw new ArgumentError(`constrainRange: ${size} is not from ${min} to ${max}.`)
}

/**
 * Promises that two sizes are equal, without a guard. PyTorch's `constrain_unify`.
 *
 * @throws ArgumentError if they are known to differ.
 */
export function constrainUnify(a: SymInt | number, b: SymInt | number): void {
  checkCount('constrainUnify', arguments, 2)
  if (a instanceof SymInt) a.env.constrainUnify(a, b)
  else if (b instanceof SymInt) b.env.constrainUnify(a, b)
  else if (a !== b) throw new ArgumentError(`constrainUnify: ${a} and ${b} are not equal.`)
}

/** What has symbols: symbolic numbers and truth values, the sizes of tensors, and lists and objects of these. */
function collect(value: unknown, into: Map<SymbolExpr, boolean>): void {
  if (value instanceof SymInt || value instanceof SymFloat || value instanceof SymBool) {
    for (const each of freeSymbols(value.expr)) into.set(each, value.env.isUnbacked(each))
  } else if (Array.isArray(value)) for (const one of value) collect(one, into)
  else if (typeof value === 'object' && value !== null) {
    if ('shape' in value) {
      collect(value.shape, into)
      if ('strides' in value) collect(value.strides, into)
    } else for (const one of Object.values(value)) collect(one, into)
  }
}

/** The symbols of a value: of a symbolic number or truth value, a tensor's sizes and strides, or a list or object of these. PyTorch's `free_symbols`. */
export function freeSymbolsOf(value: unknown): ReadonlySet<SymbolExpr> {
  checkCount('freeSymbolsOf', arguments, 1)
  const found = new Map<SymbolExpr, boolean>()
  collect(value, found)
  return new Set(found.keys())
}

/** The symbols of a value that depend on data, as {@link freeSymbolsOf}. PyTorch's `free_unbacked_symbols`. */
export function freeUnbackedSymbols(value: unknown): ReadonlySet<SymbolExpr> {
  checkCount('freeUnbackedSymbols', arguments, 1)
  const found = new Map<SymbolExpr, boolean>()
  collect(value, found)
  return new Set([...found].flatMap(([each, unbacked]) => (unbacked ? [each] : [])))
}

/** Whether there is a symbol in a value. PyTorch's `has_free_symbols`. */
export function hasFreeSymbols(value: unknown): boolean {
  checkCount('hasFreeSymbols', arguments, 1)
  return freeSymbolsOf(value).size > 0
}
