// Element types and the facts about each that storage, kernels and printing need. Everything else that depends on a dtype reads this table.
import { ArgumentError } from '../../errors/index.ts'

/** The element types that kernels know, as {@link DType} without the complex ones. */
export type RealDType = 'bool' | 'uint8' | 'int8' | 'int16' | 'int32' | 'int64' | 'float16' | 'bfloat16' | 'float32' | 'float64'

/** The element types of two floating-point numbers: the real part, then the imaginary one. */
export type ComplexDType = 'complex64' | 'complex128'

/** Element type of a tensor, spelled as PyTorch prints it without the `torch.` prefix. A `bool` takes one byte, 0 or 1. */
export type DType = RealDType | ComplexDType

/** The dtypes that kernels compute in. The others are stored as such and computed in a wider one of these, whose results are then rounded. */
export type ComputeDType = 'bool' | 'int32' | 'int64' | 'float32' | 'float64'

/** The typed arrays that hold numbers. */
export type TypedArray = Float32Array | Float64Array | Int8Array | Int16Array | Int32Array | Uint8Array | Uint16Array

/** The typed arrays that hold elements: one for each dtype, with the bits of float16 and bfloat16 as Uint16Array, and 0 or 1 for bool. */
export type StorageArray = TypedArray | BigInt64Array

/** Makes typed arrays of one kind: a new one of a given length, or a view of a whole buffer. */
export interface StorageArrayConstructor {
  new (length: number): StorageArray
  new (buffer: ArrayBufferLike): StorageArray
}

/** The value of an element of a real dtype: a bigint for int64, otherwise a number (0 or 1 for bool). */
export type ElementValue = number | bigint

/** Booleans, integers, floating-point numbers, complex numbers: in promotion the later kind wins. */
export type DTypeKind = 'bool' | 'integer' | 'floating' | 'complex'

/** What is known of a dtype. */
export interface DTypeInfo {
  /** Bytes per element. */
  readonly size: 1 | 2 | 4 | 8 | 16
  readonly kind: DTypeKind
  /** Whether the kind is floating. */
  readonly floating: boolean
  /** Whether tensors may have gradients: the kind is floating or complex. */
  readonly differentiable: boolean
  readonly signed: boolean
  /** PyTorch's abbreviation in readable graphs: f32, i32, … */
  readonly short: string
  /** The smallest value, from which a maximum starts. */
  readonly lowest: ElementValue
  /** The greatest value, from which a minimum starts. */
  readonly highest: ElementValue
  /** The typed array that holds elements; two of its numbers for each complex one. */
  readonly array: StorageArrayConstructor
  /** The dtype that values are computed in; for a complex dtype, that of its two numbers. */
  readonly compute: ComputeDType
}

const integer = (short: string, size: 1 | 2 | 4 | 8, array: StorageArrayConstructor, compute: ComputeDType): DTypeInfo => {
  const signed = short.startsWith('i')
  const highest = (1n << BigInt(signed ? 8 * size - 1 : 8 * size)) - 1n
  const lowest = signed ? -highest - 1n : 0n
  const range = size === 8 ? { lowest, highest } : { lowest: Number(lowest), highest: Number(highest) }
  return { size, kind: 'integer', floating: false, differentiable: false, signed, short, ...range, array, compute }
}

const floating = (short: string, size: 2 | 4 | 8 | 16, array: StorageArrayConstructor, compute: ComputeDType): DTypeInfo => ({
  size,
  kind: 'floating',
  floating: true,
  differentiable: true,
  signed: true,
  short,
  lowest: -Infinity,
  highest: Infinity,
  array,
  compute,
})

const complex = (short: string, size: 8 | 16, array: StorageArrayConstructor, compute: 'float32' | 'float64'): DTypeInfo => ({
  ...floating(short, size, array, compute),
  kind: 'complex',
  floating: false,
})

/** What is known of each dtype. */
export const dtypeInfo: Readonly<Record<DType, DTypeInfo>> = {
  bool: {
    size: 1,
    kind: 'bool',
    floating: false,
    differentiable: false,
    signed: false,
    short: 'b8',
    lowest: 0,
    highest: 1,
    array: Uint8Array,
    compute: 'bool',
  },
  uint8: integer('u8', 1, Uint8Array, 'int32'),
  int8: integer('i8', 1, Int8Array, 'int32'),
  int16: integer('i16', 2, Int16Array, 'int32'),
  int32: integer('i32', 4, Int32Array, 'int32'),
  int64: integer('i64', 8, BigInt64Array, 'int64'),
  float16: floating('f16', 2, Uint16Array, 'float32'),
  bfloat16: floating('bf16', 2, Uint16Array, 'float32'),
  float32: floating('f32', 4, Float32Array, 'float32'),
  float64: floating('f64', 8, Float64Array, 'float64'),
  complex64: complex('c64', 8, Float32Array, 'float32'),
  complex128: complex('c128', 16, Float64Array, 'float64'),
}

/** The dtypes that kernels know: bool, the integers and the floats by size. */
export const DTYPES: readonly RealDType[] = ['bool', 'uint8', 'int8', 'int16', 'int32', 'int64', 'float16', 'bfloat16', 'float32', 'float64']

/** Whether `value` names a dtype. */
export function isDType(value: unknown): value is DType {
  return typeof value === 'string' && Object.hasOwn(dtypeInfo, value)
}

/** Whether a dtype is complex. */
export const isComplexDType = (dtype: unknown): dtype is ComplexDType => dtype === 'complex64' || dtype === 'complex128'

/** The dtype of the two numbers of which a complex one consists; any other dtype itself. */
export function realDType(dtype: Exclude<DType, 'int64'>): Exclude<RealDType, 'int64'>
export function realDType(dtype: DType): RealDType
export function realDType(dtype: DType): RealDType {
  return dtype === 'complex64' ? 'float32' : dtype === 'complex128' ? 'float64' : dtype
}

/** The complex dtype whose numbers hold those of `dtype`: complex128 for float64 and complex128, complex64 for all others. */
export const complexDType = (dtype: DType): ComplexDType => (dtype === 'float64' || dtype === 'complex128' ? 'complex128' : 'complex64')

/** Whether values of a dtype are computed in another one and then rounded to it. */
export const isNarrow = (dtype: DType): boolean => dtypeInfo[dtype].compute !== dtype

/** The place of each kind in type promotion: the higher one wins. PyTorch's categories. */
export const kindRank: Readonly<Record<DTypeKind, number>> = { bool: 0, integer: 1, floating: 2, complex: 3 }

/**
 * The dtype that a binary operator computes in. The later kind wins (bool, integer, floating), and among dtypes of a kind the larger one. Two of one size have
 * the next larger one in common: int16 for uint8 and int8, float32 for float16 and bfloat16. PyTorch's `torch.promote_types`. Throws ArgumentError if one of them is not a dtype.
 *
 * @example promoteTypes('uint8', 'int8') // 'int16'
 */
export function promoteTypes(a: DType, b: DType): DType {
  if (a === b && isDType(a)) return a
  if (!isDType(a) || !isDType(b))
    throw new ArgumentError(
      `promoteTypes: expected two dtypes such as 'float32', got ${typeof (isDType(a) ? b : a) === 'string' ? `'${isDType(a) ? b : a}'` : typeof (isDType(a) ? b : a)}.`,
    )
  const [x, y] = [dtypeInfo[a], dtypeInfo[b]]
  if (x.kind === 'complex' || y.kind === 'complex')
    return a === 'float64' || b === 'float64' || a === 'complex128' || b === 'complex128' ? 'complex128' : 'complex64'
  const order = kindRank[x.kind] - kindRank[y.kind] || x.size - y.size
  if (order === 0) return x.floating ? 'float32' : 'int16'
  return order > 0 ? a : b
}

/** The dtype that a sum of elements is accumulated in: integers and bools in int64, float16 and bfloat16 in float32. */
export function accumulationType(dtype: DType): DType {
  const { floating, compute } = dtypeInfo[dtype]
  return floating ? compute : 'int64'
}
