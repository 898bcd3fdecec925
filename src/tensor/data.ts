// What Tensor tells about itself and its data: sizes, values as arrays and numbers, text. Importing this file installs the methods.
import { ArgumentError } from '../errors/index.ts'
import { disposeBlock } from '../kernels/index.ts'
import { readElements, windowOf } from './elements.ts'
import type { TypedArray } from './elements.ts'
import { formatTensor } from './print.ts'
import { formatShape, wrapDim } from './shape.ts'
import { Tensor } from './tensor.ts'

/** Values nested as the tensor's dimensions: a number (boolean for bool) for a scalar, an array of arrays for a matrix. */
export type NestedArray = number | boolean | readonly NestedArray[]

declare module './tensor.ts' {
  interface Tensor {
    /** The values as nested arrays; numbers, or booleans for bool. PyTorch's `tolist`. Throws ArgumentError for a fake tensor. */
    toArray(): NestedArray
    /** The values in row-major order, copied. PyTorch's `numpy`. Throws ArgumentError for a fake tensor. */
    toTypedArray(): TypedArray
    /** The value of a tensor with one element. Throws ArgumentError for any other number of elements. */
    item(): number | boolean
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
    /** Bytes per element. */
    elementSize(): number
    /** PyTorch's `repr`. */
    toString(): string
    /** Gives the memory back now, also that of views on it. Never needed: dead tensors are collected. */
    dispose(): void
    [Symbol.dispose](): void
  }
}

function nest(values: TypedArray, tensor: Tensor, dim: number, start: number, block: number): NestedArray {
  const one = (i: number): number | boolean => (tensor.dtype === 'bool' ? values[i] !== 0 : (values[i] as number))
  if (dim === tensor.ndim) return one(start)
  const size = tensor.shape[dim] as number
  const step = size === 0 ? 0 : block / size
  return Array.from({ length: size }, (_, i) =>
    step === 1 && dim === tensor.ndim - 1 ? one(start + i) : nest(values, tensor, dim + 1, start + i * step, step),
  )
}

const methods: Record<string | symbol, (this: Tensor, ...args: never[]) => unknown> = {
  toArray(this: Tensor): NestedArray {
    return nest(readElements(this), this, 0, 0, this.numel)
  },
  toTypedArray(this: Tensor): TypedArray {
    return readElements(this)
  },
  item(this: Tensor): number | boolean {
    if (this.numel !== 1)
      throw new ArgumentError(
        `item: a tensor of shape ${formatShape(this.shape)} has ${this.numel} elements, not one; use toArray(), or reduce it first.`,
      )
    const { data, base } = windowOf(this)
    const value = data[base + this.offset] as number
    return this.dtype === 'bool' ? value !== 0 : value
  },
  size(this: Tensor, dim?: number): readonly number[] | number {
    return dim === undefined ? this.shape : (this.shape[wrapDim('Tensor.size', dim, this.ndim)] as number)
  },
  dim(this: Tensor): number {
    return this.ndim
  },
  stride(this: Tensor, dim?: number): readonly number[] | number {
    return dim === undefined ? this.strides : (this.strides[wrapDim('Tensor.stride', dim, this.ndim)] as number)
  },
  isContiguous(this: Tensor): boolean {
    return this.contiguousLayout
  },
  isFloatingPoint(this: Tensor): boolean {
    return this.dtype === 'float32' || this.dtype === 'float64'
  },
  elementSize(this: Tensor): number {
    return this.dtype === 'bool' ? 1 : this.dtype === 'float64' ? 8 : 4
  },
  toString(this: Tensor): string {
    return formatTensor(this)
  },
  dispose(this: Tensor): void {
    if (this.storage !== null) disposeBlock(this.storage.block)
  },
  [Symbol.for('nodejs.util.inspect.custom')](this: Tensor): string {
    return formatTensor(this)
  },
  // Nothing reads data behind the user's back: `x > 0`, `+x` and `${x}` are mistakes.
  valueOf(this: Tensor): never {
    throw coercion('used as a number')
  },
  [Symbol.toPrimitive](hint: 'string' | 'number' | 'default'): never {
    throw coercion(hint === 'string' ? 'put into a string' : hint === 'number' ? 'used as a number' : 'used in an expression')
  },
}

const coercion = (how: string): ArgumentError =>
  new ArgumentError(
    `a tensor was ${how}. JavaScript's operators do not work on tensors: write x.gt(0) for x > 0, x.add(y) for x + y, x.item() for the number of a one-element tensor, x.toString() for its text.`,
  )

// Node 20 has Symbol.dispose; browsers that lack it go without `using`.
if (typeof Symbol.dispose === 'symbol') methods[Symbol.dispose] = methods.dispose as (this: Tensor) => unknown

for (const key of Reflect.ownKeys(methods)) {
  Object.defineProperty(Tensor.prototype, key, { value: methods[key as string], configurable: true, writable: true })
}
