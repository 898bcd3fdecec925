// Reading elements of a tensor from JavaScript: through its strides, without a kernel.
import { ArgumentError } from '../errors/index.ts'
import { dtypeInfo, heapF32, heapF64, heapI32, heapU8 } from '../kernels/index.ts'
import type { DType } from '../kernels/index.ts'
import { contiguousStrides, formatShape } from './shape.ts'
import { Storage } from './storage.ts'
import { Tensor } from './tensor.ts'

/** The typed arrays of the dtypes: Float32Array, Float64Array, Int32Array, and Uint8Array (0 or 1) for bool. */
export type TypedArray = Float32Array | Float64Array | Int32Array | Uint8Array

/** A new typed array for elements of `dtype`. */
export function typedArrayOf(dtype: DType, length: number): TypedArray {
  if (dtype === 'float32') return new Float32Array(length)
  if (dtype === 'float64') return new Float64Array(length)
  return dtype === 'int32' ? new Int32Array(length) : new Uint8Array(length)
}

function heapOf(dtype: DType): TypedArray {
  if (dtype === 'float32') return heapF32()
  if (dtype === 'float64') return heapF64()
  return dtype === 'int32' ? heapI32() : heapU8()
}

function spillOf(dtype: DType, buffer: ArrayBuffer): TypedArray {
  if (dtype === 'float32') return new Float32Array(buffer)
  if (dtype === 'float64') return new Float64Array(buffer)
  return dtype === 'int32' ? new Int32Array(buffer) : new Uint8Array(buffer)
}

/** Where the elements lie now: element i of the storage is `data[base + i]`. Valid until the next allocation. */
export interface ElementWindow {
  readonly data: TypedArray
  readonly base: number
}

/** The window on a tensor's storage; computes a pending tensor first. Throws ArgumentError for a fake or disposed tensor. */
export function windowOf(tensor: Tensor): ElementWindow {
  const { block } = tensor.realize()
  if (block.ptr !== 0) return { data: heapOf(tensor.dtype), base: block.ptr / dtypeInfo[tensor.dtype].size }
  if (block.spill === null)
    throw new ArgumentError(
      'the data of this tensor was given back with dispose(); keep the tensor, or clone() what is still needed, before disposing.',
    )
  return { data: spillOf(tensor.dtype, block.spill), base: 0 }
}

/** Calls `visit` with the storage position of every element, in row-major order of the tensor's shape. */
export function forEachElement(
  shape: readonly number[],
  strides: readonly number[],
  offset: number,
  visit: (position: number, index: number) => void,
): void {
  const rank = shape.length
  let total = 1
  for (const size of shape) total *= size
  if (total === 0) return
  const index = new Array<number>(rank).fill(0)
  let position = offset
  for (let k = 0; k < total; k++) {
    visit(position, k)
    for (let d = rank - 1; d >= 0; d--) {
      const next = (index[d] as number) + 1
      if (next < (shape[d] as number)) {
        index[d] = next
        position += strides[d] as number
        break
      }
      position -= (index[d] as number) * (strides[d] as number)
      index[d] = 0
    }
  }
}

/** The elements in row-major order, copied. */
export function readElements(tensor: Tensor): TypedArray {
  const { data, base } = windowOf(tensor)
  if (tensor.contiguousLayout) return data.slice(base + tensor.offset, base + tensor.offset + tensor.numel)
  const out = typedArrayOf(tensor.dtype, tensor.numel)
  forEachElement(tensor.shape, tensor.strides, tensor.offset, (position, k) => {
    out[k] = data[base + position] as number
  })
  return out
}

/** Writes `values`, in row-major order, into the tensor's elements. Raises no version: callers that change a tensor in use do. */
export function writeElements(tensor: Tensor, values: ArrayLike<number>): void {
  const { data, base } = windowOf(tensor)
  if (tensor.contiguousLayout) {
    data.set(values, base + tensor.offset)
    return
  }
  forEachElement(tensor.shape, tensor.strides, tensor.offset, (position, k) => {
    data[base + position] = values[k] as number
  })
}

/** A new contiguous tensor holding `values`, in row-major order, cast to `dtype`. */
export function tensorFromValues(values: ArrayLike<number>, shape: readonly number[], dtype: DType): Tensor {
  const tensor = Tensor.empty(shape, dtype)
  const { data, base } = windowOf(tensor)
  if (dtype === 'bool') for (let i = 0; i < values.length; i++) data[base + i] = values[i] === 0 ? 0 : 1
  // Storing into an Int32Array truncates towards zero, as PyTorch's conversion does.
  else data.set(values, base)
  return tensor
}

/** A tensor over new storage that holds exactly `bytes` (little-endian elements of `dtype`); `strides` may leave gaps or overlap. Throws ArgumentError when they reach past the end. */
export function tensorFromBytes(bytes: Uint8Array, shape: readonly number[], dtype: DType, strides?: readonly number[]): Tensor {
  const { size } = dtypeInfo[dtype]
  const layout = strides ?? contiguousStrides(shape)
  const reach = shape.includes(0) ? 0 : shape.reduce((last, n, i) => last + (n - 1) * (layout[i] as number), 1)
  if (bytes.length < reach * size) {
    throw new ArgumentError(
      `tensorFromBytes: a ${dtype} tensor of shape ${formatShape(shape)} and strides ${formatShape(layout)} needs ${reach * size} bytes, got ${bytes.length}.`,
    )
  }
  const storage = Storage.allocate(bytes.length)
  storage.writeBytes(bytes)
  return new Tensor(shape, dtype, storage, layout)
}
