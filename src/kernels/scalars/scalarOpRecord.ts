// The columns of the table of scalar operations (scalarOps.ts).
import type { ComputeDType } from '../numbers/dtype.ts'
import type { WasmScalar } from '../wasm/scalarCode.ts'

/** Computes an operation on numbers of a dtype; the caller rounds the result to the dtype. Operands beyond the operation's arity are NaN. */
type Reference = (dtype: Exclude<ComputeDType, 'int64'>, a: number, b: number, c: number) => number

/** Computes an operation on int64; the caller wraps the result around. Operands beyond the operation's arity are 0. */
type BigintReference = (a: bigint, b: bigint, c: bigint) => bigint | boolean

/**
 * How an operation extends to the dtypes that are computed in a wider one: its result is `rounded` to the narrow dtype, or is `closed` because it is in the
 * narrow dtype already, or there is `none`, because it depends on the number of bits.
 */
type NarrowRule = 'rounded' | 'closed' | 'none'

/** The facts about a scalar operation. */
export interface ScalarOpRecord {
  /** Number of operands. */
  readonly arity: 1 | 2 | 3
  /** How many leading operands are conditions, which are bools whatever the dtype. */
  readonly conditions: 0 | 1
  /** The dtypes that it is computed in. Its operands all have the same dtype, except for conditions. See `isDefinedFor` for the dtypes of operands. */
  readonly dtypes: readonly ComputeDType[]
  readonly narrow: NarrowRule
  /** Whether the result is a bool. Otherwise it has the operands' dtype. */
  readonly yieldsBool: boolean
  /** What it costs, compared with an addition. */
  readonly cost: number
  /** The infix operator that prints it, or null when it prints as a call. */
  readonly symbol: string | null
  /** Its definition, except on int64. Bools are 0 and 1. */
  readonly reference: Reference
  /** Its definition on int64, or null. */
  readonly bigint: BigintReference | null
  /** Its WebAssembly code for each of `dtypes`. */
  readonly wasm: Readonly<Partial<Record<ComputeDType, WasmScalar>>>
}

/** A record as the table writes it: each emitter's column must have an entry for every dtype in `dtypes`. */
export interface Definition<D extends ComputeDType> extends Omit<ScalarOpRecord, 'dtypes' | 'wasm' | 'bigint'> {
  readonly dtypes: readonly D[]
  readonly bigint: 'int64' extends D ? BigintReference : null
  readonly wasm: Readonly<Record<D, WasmScalar>>
}

/** A record, with the type of every column checked. */
export const operation = <D extends ComputeDType>(definition: Definition<D>): ScalarOpRecord => definition

/** The cost of an elementary function. It is higher than that of storing a value and loading it again. */
export const FUNCTION = 20
