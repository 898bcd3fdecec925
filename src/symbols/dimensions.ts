// How the dimensions of a tensor become symbols, and what makes them.
import type { Expr } from './expression.ts'
import type { ExactRange } from './ranges.ts'
import type { SymInt } from './symValues.ts'

/** How a dimension becomes a symbol: always a fresh one, the same one for the same size, or none at all. */
export type DimDynamic = 'dynamic' | 'duck' | 'static'

/** What is promised of a dimension: a range in which all sizes work, or only that it is not a single number. */
export type Constraint = { readonly kind: 'strict'; readonly range: ExactRange } | { readonly kind: 'relaxed' }

/** The part of a ShapeEnv that makes symbols. */
export interface SymbolMaker {
  createSymbol(value: number, dynamic?: DimDynamic, constraint?: Constraint | null): Expr
  toSymInt(expr: Expr): SymInt | number
}
