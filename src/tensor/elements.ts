// Reads the elements of a tensor from JavaScript, through its strides and without a kernel; makes tensors from values and bytes.
import { ArgumentError, InternalError } from '../errors/index.ts'
import { allocating, dtypeInfo, heapView, isComplexDType, readElement, readNumber, realDType, spillOf, writeElement } from '../kernels/index.ts'
import { valueText } from '../protocol/index.ts'
import type { ComplexDType, DType, ElementValue, StorageArray, TypedArray } from '../kernels/index.ts'
import { isComplexNumber, noted, pairsOf } from './complexNumbers.ts'
import type { ComplexNumber } from './complexNumbers.ts'
import { contiguousStrides, formatShape, numelOf, reachOf } from './shape.ts'
import { Storage } from './storage.ts'
import { Tensor } from './tensor.ts'

/** Where the elements currently are: element i of the storage is that of `data` at `base + i`. Valid until the next allocation. */
export interface ElementWindow {
  readonly dtype: DType
  readonly data: StorageArray
  readonly base: number
}

/** The window on a tensor's storage; computes a pending tensor first. Throws ArgumentError for a fake or disposed tensor. */
export function windowOf(tensor: Tensor): ElementWindow {
  const storage = tensor.realize()
  const { dtype } = tensor
  if (isComplexDType(dtype)) throw new InternalError(`the elements of a ${dtype} tensor are read in pairs: pairsOf(tensor)`)
  const { size, array } = dtypeInfo[dtype]
  if (storage.onDevice !== null) return { dtype, data: new array(storage.onDevice.read().buffer), base: 0 }
  const { block } = storage
  if (block.ptr !== 0) return { dtype, data: heapView(dtype), base: block.ptr / size }
  return { dtype, data: new array(spillOf(block)), base: 0 }
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

/** The element at a position of the storage, exactly: a bigint for int64, otherwise a number. */
export function exactElementAt({ dtype, data, base }: ElementWindow, position: number): ElementValue {
  const value = readElement(dtype, data, base + position)
  if (value === undefined) throw new InternalError(`position ${position} is outside the data of this tensor`)
  return value
}

/** The element at a position of the storage, as a number. Throws ArgumentError for an int64 that has no exact number. */
export function elementAt({ dtype, data, base }: ElementWindow, position: number): number {
  const value = readNumber(dtype, data, base + position)
  if (value === undefined) throw new InternalError(`position ${position} is outside the data of this tensor`)
  return value
}

/** The elements as they are stored, in row-major order, copied; of complex tensors the numbers in pairs. */
export function storedElements(given: Tensor): StorageArray {
  const tensor = isComplexDType(given.dtype) ? pairsOf(given) : given
  const { data, base } = windowOf(tensor)
  const start = base + tensor.offset
  if (tensor.contiguousLayout) return data.slice(start, start + tensor.numel)
  const out = new dtypeInfo[tensor.dtype].array(tensor.numel)
  forEachElement(tensor.sizes, tensor.steps, tensor.offset, (position, k) => {
    const value = data[base + position]
    if (typeof value === 'bigint') {
      if (out instanceof BigInt64Array) out[k] = value
    } else if (value !== undefined && !(out instanceof BigInt64Array)) out[k] = value
  })
  return out
}

/** The elements as numbers in row-major order, copied; of complex tensors the numbers in pairs. Throws ArgumentError for an int64 that has no exact number. */
export function readElements(tensor: Tensor): TypedArray {
  const { dtype } = tensor
  const data = storedElements(tensor)
  if (data instanceof BigInt64Array) return Float64Array.from(data, (_, k) => elementAt({ dtype, data, base: 0 }, k))
  return dtypeInfo[dtype].floating && dtypeInfo[dtype].size === 2 ? Float32Array.from(data, (_, k) => elementAt({ dtype, data, base: 0 }, k)) : data
}

/** The elements in row-major order, exactly: bigints for int64, otherwise numbers. */
export function exactElements(tensor: Tensor): ArrayLike<ElementValue> {
  const data = storedElements(tensor)
  return data instanceof BigInt64Array ? data : readElements(tensor)
}

/**
 * A new contiguous tensor holding `values`, in row-major order, cast to `dtype`. Throws ArgumentError for a number that becomes an int64 although it is not
 * exact as one.
 */
export function tensorFromValues(values: ArrayLike<ElementValue>, shape: readonly number[], dtype: DType): Tensor {
  const tensor = Tensor.empty([...shape], dtype)
  if (values.length !== tensor.numel) throw new InternalError(`${values.length} values for a tensor of shape ${formatShape(shape)}`)
  const { data, base } = windowOf(tensor)
  // Storing into an Int32Array truncates towards zero, as PyTorch's conversion does.
  if ((dtype === 'float32' || dtype === 'float64' || dtype === 'int32') && !(data instanceof BigInt64Array) && areNumbers(values))
    data.set(values, base)
  else
    for (let i = 0; i < values.length; i++) writeElement(dtype, data, base + i, dtype === 'int64' ? exactInteger(values[i] ?? 0) : (values[i] ?? 0))
  return tensor
}

/** A new contiguous complex tensor holding `values`, in row-major order; real ones have the imaginary part 0. */
export function tensorFromComplex(values: ArrayLike<ElementValue | ComplexNumber>, shape: readonly number[], dtype: ComplexDType): Tensor {
  const pairs = tensorFromFunction([...shape, 2], realDType(dtype), (i) => {
    const value = values[i >> 1] ?? 0
    if (!isComplexNumber(value)) return i % 2 === 0 ? value : 0
    return i % 2 === 0 ? value.re : value.im
  })
  return new Tensor([...shape], noted(dtype), pairs.realize())
}

/** A new contiguous tensor whose element i, in row-major order, is `value(i)`. Its memory comes first: a shape that there is no room for is refused before anything is computed. */
export function tensorFromFunction(shape: readonly number[], dtype: DType, value: (i: number) => ElementValue): Tensor {
  const tensor = Tensor.empty([...shape], dtype)
  const { data, base } = windowOf(tensor)
  for (let i = 0; i < tensor.numel; i++) writeElement(dtype, data, base + i, value(i))
  return tensor
}

/** Whether there are no bigints among the values. */
function areNumbers(values: ArrayLike<ElementValue>): values is ArrayLike<number> {
  for (let i = 0; i < values.length; i++) if (typeof values[i] !== 'number') return false
  return true
}

/** The value, which becomes an int64. Throws ArgumentError for a number that is not exact, and for a bigint of more than 64 bits. */
export function exactInteger(value: ElementValue): ElementValue {
  if (typeof value === 'bigint') {
    if (BigInt.asIntN(64, value) === value) return value
    throw new ArgumentError(
      `the bigint ${valueText(value)} does not fit in int64, whose values are from -(2^63) to 2^63 - 1; give the option dtype: 'float64'.`,
    )
  }
  if (Number.isSafeInteger(Math.trunc(value))) return value
  throw new ArgumentError(
    `the number ${value} is not exact as int64 (numbers are up to ±${Number.MAX_SAFE_INTEGER}); write it as a bigint, e.g. torch.tensor([2n ** 60n]).`,
  )
}

/** What makes the tensors of data that a program or a file has. */
const FROM_DATA = { qualname: 'torch.tensor' }

/**
 * A tensor over new storage that holds exactly `bytes` (little-endian elements of `dtype`). `strides` may leave gaps or overlap. Throws ArgumentError when they
 * reach past the end.
 */
export function tensorFromBytes(bytes: Uint8Array, shape: readonly number[], dtype: DType, strides?: readonly number[]): Tensor {
  const { size } = dtypeInfo[noted(dtype)]
  const layout = strides === undefined ? contiguousStrides(shape) : [...strides]
  const [lowest, highest] = reachOf(shape, layout, 0) ?? [0, -1]
  // Written so that a stride that is not a number fails too.
  if (!(lowest >= 0 && (highest + 1) * size <= bytes.length) || !layout.every(Number.isSafeInteger)) {
    throw new ArgumentError(
      `tensorFromBytes: a ${dtype} tensor of shape ${formatShape(shape)} and strides ${formatShape(layout)} needs ${(highest + 1) * size} bytes, got ${bytes.length}.`,
    )
  }
  const outer = allocating.operator
  allocating.operator = FROM_DATA
  const storage = Storage.allocate(bytes.length, shape, dtype)
  allocating.operator = outer
  storage.writeBytes(bytes)
  return new Tensor([...shape], dtype, storage, layout)
}
