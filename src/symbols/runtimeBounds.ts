// What the range of a symbol says, as truth values to be checked when its number is there.
import { number } from './expression.ts'
import type { Expr, SymbolExpr } from './expression.ts'
import type { Range } from './ranges.ts'
import { isFinite, signOf } from './rational.ts'
import { ge, le } from './relations.ts'

/** A bound of a symbol. */
export interface RuntimeBound {
  readonly expr: Expr
  /** Whether it says only that the number is not negative, which holds for every size of a tensor. */
  readonly isAlwaysTrue: boolean
}

/** `u0 >= 2` and `u0 <= 8` for the range from 2 to 8; nothing for a side without a bound. */
export function runtimeBounds(of: SymbolExpr, range: Range | undefined): readonly RuntimeBound[] {
  if (range?.kind !== 'exact') return []
  const { lower, upper } = range
  return [
    ...(isFinite(lower) ? [{ expr: ge(of, number(lower)), isAlwaysTrue: signOf(lower) <= 0 }] : []),
    ...(isFinite(upper) ? [{ expr: le(of, number(upper)), isAlwaysTrue: false }] : []),
  ]
}
