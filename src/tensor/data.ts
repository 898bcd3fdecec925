// Methods that describe a tensor and read its data: sizes, values as arrays and numbers, text. The composition root installs them.
/// <reference lib="esnext.disposable" preserve="true" />
import { ArgumentError, DTypeError, ShapeError } from '../errors/index.ts'
import { dtypeInfo, isComplexDType } from '../kernels/index.ts'
import type { DType, TypedArray } from '../kernels/index.ts'
import { INSPECT, checkMethod } from '../protocol/index.ts'
import type { ComplexNumber } from './complexNumbers.ts'
import { elementAt, exactElementAt, exactElements, readElements, windowOf } from './elements.ts'
import { formatTensor } from './print.ts'
import { formatShape, wrapDim } from './shape.ts'
import { Storage } from './storage.ts'
import { Tensor } from './tensor.ts'

/** A tensor as JSON: what `JSON.stringify` writes. `torch.tensor(data, { dtype }).reshape(shape)` makes the tensor again. */
export interface TensorJson {
  readonly dtype: DType
  readonly shape: readonly number[]
  /** The elements in row-major order. JSON has no NaN and no infinities: `JSON.stringify` writes null for them. */
  readonly data: readonly (number | boolean | ComplexNumber)[]
}

/** Values nested like the tensor's dimensions: a number (boolean for bool, `{ re, im }` for complex numbers) for a scalar, an array of arrays for a matrix. */
export type NestedArray = number | boolean | ComplexNumber | readonly NestedArray[]

declare module './tensor.ts' {
  interface Tensor {
    /**
     * The values as nested arrays; numbers, booleans for bool, `{ re, im }` for complex numbers. PyTorch's `tolist`. Throws ArgumentError for a fake tensor, and for an int64 that has no exact
     * number.
     */
    toArray(): NestedArray
    /**
     * The values as numbers in row-major order, copied: float16 and bfloat16 as Float32Array, int64 as Float64Array, complex numbers as pairs of numbers. PyTorch's `numpy`. Throws ArgumentError for
     * a fake tensor, and for an int64 that has no exact number: {@link toBigIntArray} reads those.
     */
    toTypedArray(): TypedArray
    /** The integers in row-major order, copied, exactly. Throws DTypeError if the tensor is floating, ArgumentError if it is fake. */
    toBigIntArray(): BigInt64Array
    /**
     * The value of a tensor with one element: a number, or a boolean for bool or `{ re, im }` for a complex number, which TypeScript cannot tell: `mask.any().item<boolean>()`.
     * Throws ArgumentError for any other number of elements, and for an int64 that has no exact number. PyTorch's `Tensor.item`.
     */
    item<T extends number | boolean | ComplexNumber = number>(): T
    /**
     * {@link item}, once the value is here: a result of a graphics card comes late, and a page cannot wait for it. Takes every tensor, so that a program can read all its results in one way. Rejects
     * with what `item` throws, and with what kept the value from coming.
     */
    itemAsync<T extends number | boolean | ComplexNumber = number>(): Promise<T>
    /** {@link toArray}, once the values are here, as {@link itemAsync}. */
    toArrayAsync(): Promise<NestedArray>
    /** {@link toTypedArray}, once the values are here, as {@link itemAsync}. */
    toTypedArrayAsync(): Promise<TypedArray>
    /** {@link toBigIntArray}, once the values are here, as {@link itemAsync}. */
    toBigIntArrayAsync(): Promise<BigInt64Array>
    /** dtype, shape and data, for `JSON.stringify`. Throws ArgumentError for a fake tensor. */
    toJSON(): TensorJson
    /** The shape, or the size of one dimension. */
    size(): readonly number[]
    size(dim: number): number
    /** Number of dimensions. */
    dim(): number
    /** The strides in elements, or that of one dimension. */
    stride(): readonly number[]
    stride(dim: number): number
    isContiguous(): boolean
    isFloatingPoint(): boolean
    /** Whether the elements are complex numbers. PyTorch's `is_complex`. */
    isComplex(): boolean
    /** Bytes per element. */
    elementSize(): number
    /** PyTorch's `repr`: `tensor([1., 2.])`. */
    toString(): string
    /** `${x}` and `String(x)`: the number of a tensor without dimensions, otherwise like `toString()`. Throws ArgumentError for `x + 1`, `x > 0`, `+x`. */
    [Symbol.toPrimitive](hint: 'string' | 'number' | 'default'): string
  }
}

/** The complex number of index `i` among numbers in pairs. */
const pairAt = (pairs: TypedArray, i: number): ComplexNumber => ({ re: pairs[2 * i] ?? NaN, im: pairs[2 * i + 1] ?? NaN })

/** The `count` elements from `start` on, nested from dimension `dim` on; `values` holds all elements in row-major order. */
function nest(values: TypedArray, tensor: Tensor, dim: number, start: number, count: number): NestedArray {
  const size = tensor.sizes[dim]
  if (size === undefined) {
    if (isComplexDType(tensor.dtype)) return pairAt(values, start)
    const value = values[start] ?? NaN
    return tensor.dtype === 'bool' ? value !== 0 : value
  }
  const step = size === 0 ? 0 : count / size
  return Array.from({ length: size }, (_, i) => nest(values, tensor, dim + 1, start + i * step, step))
}

/** The entry of `list` (a shape or strides) at `dim`. Throws ShapeError naming `op`. */
function along(op: string, list: readonly number[], dim: number): number {
  const value = list[wrapDim(op, dim, list.length)]
  if (value === undefined) throw new ShapeError(`${op}: dim ${dim} is out of range for a tensor without dimensions.`)
  return value
}

/** The value of a tensor that has one element. */
function onlyElement(tensor: Tensor): number | boolean | ComplexNumber {
  if (isComplexDType(tensor.dtype)) return pairAt(readElements(tensor), 0)
  const value = elementAt(windowOf(tensor), tensor.offset)
  return tensor.dtype === 'bool' ? value !== 0 : value
}

/** The tensor when its data is here; of one on a device a copy of what it holds now. */
async function arrived(tensor: Tensor): Promise<Tensor> {
  const { storage } = tensor
  const late = tensor.isFake ? null : tensor.realize().lateData
  if (storage === null || late === null) return tensor
  if (late.onDevice === undefined) {
    await late.arrive()
    return tensor
  }
  const bytes = await late.onDevice.readLater()
  const copy = Storage.allocate(bytes.length, tensor.sizes, tensor.dtype)
  copy.writeBytes(bytes)
  return new Tensor(tensor.sizes, tensor.dtype, copy, tensor.steps, tensor.offset)
}

/** What modes set: what a program reads of a tensor without data, by `item()` or with `whole` by `toArray()`. Undefined: nothing, which is an error. */
export const valuesOfFakes: { read: ((tensor: Tensor, whole: boolean) => unknown) | null } = { read: null }

/** Reading and describing tensors. */
export const dataMethods: Record<string | symbol, (this: Tensor, ...args: never[]) => unknown> = {
  toArray(this: Tensor): unknown {
    checkMethod(this, 'toArray', arguments, 0)
    const traced = this.isFake ? valuesOfFakes.read?.(this, true) : undefined
    if (traced !== undefined) return traced
    return nest(readElements(this), this, 0, 0, this.numel)
  },
  toTypedArray(this: Tensor): TypedArray {
    checkMethod(this, 'toTypedArray', arguments, 0)
    return readElements(this)
  },
  toBigIntArray(this: Tensor): BigInt64Array {
    checkMethod(this, 'toBigIntArray', arguments, 0)
    if (dtypeInfo[this.dtype].differentiable)
      throw new DTypeError(
        `Tensor.toBigIntArray: expected an integer tensor, got ${this.dtype}; use toTypedArray(), or convert it first, e.g. x.long().`,
      )
    return BigInt64Array.from(exactElements(this), BigInt)
  },
  item(this: Tensor): unknown {
    checkMethod(this, 'item', arguments, 0)
    const traced = this.isFake ? valuesOfFakes.read?.(this, false) : undefined
    if (traced !== undefined) return traced
    if (this.numel !== 1)
      throw new ArgumentError(
        `item: a tensor of shape ${formatShape(this.sizes)} has ${this.numel} elements, not one; use toArray(), or reduce it first.`,
      )
    return onlyElement(this)
  },
  async itemAsync(this: Tensor): Promise<unknown> {
    checkMethod(this, 'itemAsync', arguments, 0)
    return (await arrived(this)).item()
  },
  async toArrayAsync(this: Tensor): Promise<unknown> {
    checkMethod(this, 'toArrayAsync', arguments, 0)
    return (await arrived(this)).toArray()
  },
  async toTypedArrayAsync(this: Tensor): Promise<TypedArray> {
    checkMethod(this, 'toTypedArrayAsync', arguments, 0)
    return (await arrived(this)).toTypedArray()
  },
  async toBigIntArrayAsync(this: Tensor): Promise<BigInt64Array> {
    checkMethod(this, 'toBigIntArrayAsync', arguments, 0)
    return (await arrived(this)).toBigIntArray()
  },
  toJSON(this: Tensor): TensorJson {
    const numbers = readElements(this)
    if (isComplexDType(this.dtype))
      return { dtype: this.dtype, shape: [...this.sizes], data: Array.from({ length: this.numel }, (_, i) => pairAt(numbers, i)) }
    const values = Array.from<number>(numbers)
    return { dtype: this.dtype, shape: [...this.sizes], data: this.dtype === 'bool' ? values.map((value) => value !== 0) : values }
  },
  size(this: Tensor, dim?: number): readonly number[] | number {
    checkMethod(this, 'size', arguments, 1)
    return dim === undefined ? this.shape : along('Tensor.size', this.shape, dim)
  },
  dim(this: Tensor): number {
    checkMethod(this, 'dim', arguments, 0)
    return this.ndim
  },
  stride(this: Tensor, dim?: number): readonly number[] | number {
    checkMethod(this, 'stride', arguments, 1)
    return dim === undefined ? this.strides : along('Tensor.stride', this.strides, dim)
  },
  isContiguous(this: Tensor): boolean {
    checkMethod(this, 'isContiguous', arguments, 0)
    return this.contiguousLayout
  },
  isFloatingPoint(this: Tensor): boolean {
    checkMethod(this, 'isFloatingPoint', arguments, 0)
    return dtypeInfo[this.dtype].floating
  },
  isComplex(this: Tensor): boolean {
    checkMethod(this, 'isComplex', arguments, 0)
    return isComplexDType(this.dtype)
  },
  elementSize(this: Tensor): number {
    checkMethod(this, 'elementSize', arguments, 0)
    return dtypeInfo[this.dtype].size
  },
  toString(this: Tensor): string {
    return formatTensor(this)
  },
  [INSPECT](this: Tensor): string {
    return formatTensor(this)
  },
  valueOf(this: Tensor): never {
    throw coercion('used as a number')
  },
  // Printing is harmless. `x > 0`, `+x` and `x + y` are mistakes, and `x + 'text'` cannot be told from them.
  [Symbol.toPrimitive](this: Tensor, hint: 'string' | 'number' | 'default'): string {
    if (hint !== 'string') throw coercion(hint === 'number' ? 'used as a number' : 'used in an expression')
    // JavaScript turns keys into strings too, so that `table[index]` finds the entry.
    if (this.ndim > 0 || this.isFake || isComplexDType(this.dtype)) return formatTensor(this)
    return String(this.dtype === 'int64' ? exactElementAt(windowOf(this), this.offset) : onlyElement(this))
  },
}

const coercion = (how: string): ArgumentError =>
  new ArgumentError(
    `a tensor was ${how}. JavaScript's operators do not work on tensors: write x.gt(0) for x > 0, x.add(y) for x + y, x.eq(y) for x == y, x.item() for the number of a one-element tensor, and \`\${x}\` or x.toString() for its text.`,
  )
