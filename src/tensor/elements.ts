// Reads the elements of a tensor from JavaScript, through its strides and without a kernel; makes tensors from values and bytes.
import { ArgumentError, InternalError } from '../errors/index.ts'
import { dtypeInfo, heapView, spillOf } from '../kernels/index.ts'
import type { DType, TypedArray } from '../kernels/index.ts'
import { contiguousStrides, formatShape, numelOf } from './shape.ts'
import { Storage } from './storage.ts'
import { Tensor } from './tensor.ts'

/** Where the elements currently are: element i of the storage is `data[base + i]`. Valid until the next allocation. */
export interface ElementWindow {
  readonly data: TypedArray
  readonly base: number
}

/** The window on a tensor's storage; computes a pending tensor first. Throws ArgumentError for a fake or disposed tensor. */
export function windowOf(tensor: Tensor): ElementWindow {
  const { block } = tensor.realize()
  const { size, array } = dtypeInfo[tensor.dtype]
  if (block.ptr !== 0) return { data: heapView(tensor.dtype), base: block.ptr / size }
  return { data: new array(spillOf(block)), base: 0 }
}

/** Calls `visit` with the storage position of every element, in row-major order of the tensor's shape. */
function forEachElement(
  shape: readonly number[],
  strides: readonly number[],
  offset: number,
  visit: (position: number, index: number) => void,
): void {
  const total = numelOf(shape)
  if (total === 0) return
  const index = new Array<number>(shape.length).fill(0)
  let position = offset
  for (let k = 0; k < total; k++) {
    visit(position, k)
    for (let d = shape.length - 1; d >= 0; d--) {
      const at = index[d] ?? 0
      const stride = strides[d] ?? 0
      if (at + 1 < (shape[d] ?? 1)) {
        index[d] = at + 1
        position += stride
        break
      }
      position -= at * stride
      index[d] = 0
    }
  }
}

/** The element at a position of the storage. */
export function elementAt({ data, base }: ElementWindow, position: number): number {
  const value = data[base + position]
  if (value === undefined) throw new InternalError(`position ${position} is outside the data of this tensor`)
  return value
}

/** The elements in row-major order, copied. */
export function readElements(tensor: Tensor): TypedArray {
  const window = windowOf(tensor)
  const start = window.base + tensor.offset
  if (tensor.contiguousLayout) return window.data.slice(start, start + tensor.numel)
  const out = new dtypeInfo[tensor.dtype].array(tensor.numel)
  forEachElement(tensor.shape, tensor.strides, tensor.offset, (position, k) => {
    out[k] = elementAt(window, position)
  })
  return out
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

/**
 * A tensor over new storage that holds exactly `bytes` (little-endian elements of `dtype`). `strides` may leave gaps or overlap. Throws ArgumentError when they
 * reach past the end.
 */
export function tensorFromBytes(bytes: Uint8Array, shape: readonly number[], dtype: DType, strides?: readonly number[]): Tensor {
  const { size } = dtypeInfo[dtype]
  const layout = strides ?? contiguousStrides(shape)
  const reach = shape.includes(0) ? 0 : shape.reduce((last, n, i) => last + (n - 1) * (layout[i] ?? 0), 1)
  if (bytes.length < reach * size) {
    throw new ArgumentError(
      `tensorFromBytes: a ${dtype} tensor of shape ${formatShape(shape)} and strides ${formatShape(layout)} needs ${reach * size} bytes, got ${bytes.length}.`,
    )
  }
  const storage = Storage.allocate(bytes.length)
  storage.writeBytes(bytes)
  return new Tensor(shape, dtype, storage, layout)
}
