// Element types and the facts about each that storage, kernels and printing need. Everything else that depends on a dtype reads this table.

/** Element type of a tensor, spelled as PyTorch prints it without the `torch.` prefix. A `bool` takes one byte, 0 or 1. */
export type DType = 'float32' | 'float64' | 'int32' | 'bool'

/** The typed arrays that hold elements: Float32Array, Float64Array, Int32Array, and Uint8Array (0 or 1) for bool. */
export type TypedArray = Float32Array | Float64Array | Int32Array | Uint8Array

/** Makes typed arrays of one kind: a new one of a given length, or a view of a whole buffer. */
export interface TypedArrayConstructor {
  new (length: number): TypedArray
  new (buffer: ArrayBufferLike): TypedArray
}

export interface DTypeInfo {
  /** Bytes per element. */
  readonly size: number
  readonly floating: boolean
  /** PyTorch's abbreviation in readable graphs: f32, i32, … */
  readonly short: string
  /** Order in type promotion: the higher one wins. */
  readonly rank: number
  /** The smallest value, from which a maximum starts. */
  readonly lowest: number
  /** The greatest value, from which a minimum starts. */
  readonly highest: number
  /** The typed array that holds elements. */
  readonly array: TypedArrayConstructor
}

export const dtypeInfo: Readonly<Record<DType, DTypeInfo>> = {
  bool: { size: 1, floating: false, short: 'b8', rank: 0, lowest: 0, highest: 1, array: Uint8Array },
  int32: { size: 4, floating: false, short: 'i32', rank: 1, lowest: -2147483648, highest: 2147483647, array: Int32Array },
  float32: { size: 4, floating: true, short: 'f32', rank: 2, lowest: -Infinity, highest: Infinity, array: Float32Array },
  float64: { size: 8, floating: true, short: 'f64', rank: 3, lowest: -Infinity, highest: Infinity, array: Float64Array },
}

/** Whether `value` names a dtype. */
export function isDType(value: unknown): value is DType {
  return typeof value === 'string' && Object.hasOwn(dtypeInfo, value)
}

/** The dtype that a binary operator computes in: PyTorch's `torch.promote_types`. */
export function promoteTypes(a: DType, b: DType): DType {
  return dtypeInfo[a].rank >= dtypeInfo[b].rank ? a : b
}
