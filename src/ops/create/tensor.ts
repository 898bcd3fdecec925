// torch.tensor: a tensor from data. It is not an operator: its argument is not a tensor, and a graph holds its result as a constant.
import { checkDevice, moved, withoutModes } from '../../dispatch/index.ts'
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { complexDType, isComplexDType } from '../../kernels/index.ts'
import type { DType, ElementValue } from '../../kernels/index.ts'
import { checkCount, checkOptions, valueText } from '../../protocol/index.ts'
import { Tensor, getDefaultDtype, isComplexNumber, namesDType, notADType, tensorFromComplex, tensorFromValues } from '../../tensor/index.ts'
import type { ComplexNumber } from '../../tensor/index.ts'
import { asLeaf } from './creation.ts'
import type { CreationOptions } from './creation.ts'
import { to } from '../pointwise/cast.ts'

/** The typed arrays that `torch.tensor` takes. */
export type TensorArray = Float32Array | Float64Array | Int8Array | Uint8Array | Uint8ClampedArray | Int16Array | Int32Array | BigInt64Array

/** What `torch.tensor` takes: a number, a boolean, a bigint, a complex number `{ re, im }`, nested arrays of them, or a typed array. */
export type TensorData = number | boolean | bigint | ComplexNumber | readonly TensorData[] | TensorArray

/** The dtype of each kind of typed array, by its name. (Not every host has Float16Array.) */
const ARRAY_TYPES: Readonly<Record<string, DType>> = {
  Float16Array: 'float16',
  Float32Array: 'float32',
  Float64Array: 'float64',
  Int8Array: 'int8',
  Uint8Array: 'uint8',
  Uint8ClampedArray: 'uint8',
  Int16Array: 'int16',
  Int32Array: 'int32',
  BigInt64Array: 'int64',
}

/**
 * A tensor from numbers, nested arrays or a typed array (which is copied). Numbers have the default dtype (float32), booleans become bool, bigints int64, and
 * typed arrays keep their type, unless `dtype` says otherwise. PyTorch's `torch.tensor`.
 *
 * @throws ShapeError if the arrays are ragged.
 * @throws ArgumentError for other values in them, for arrays that contain themselves, for numbers together with bigints, for numbers that int64 cannot hold exactly, and for unknown options.
 * @example
 * torch.tensor([[1, 2], [3, 4]]).dtype // 'float32'
 * torch.tensor([1n, 2n]).dtype // 'int64'
 */
export function tensor(data: TensorData, options: CreationOptions = {}): Tensor {
  if (typeof options === 'number')
    throw new ArgumentError(
      `torch.tensor: the data must be one array, got the numbers one by one; write torch.tensor([${valueText(data)}, ${valueText(options)}, …]).`,
    )
  checkCount('torch.tensor', arguments, 2)
  checkOptions('torch.tensor', options, { dtype: true, requiresGrad: 'boolean', device: true })
  const { dtype = null } = options
  if ((dtype !== null && !namesDType(dtype)) || ('dtype' in options && options.dtype === undefined))
    throw new ArgumentError(`torch.tensor: option 'dtype': ${notADType(options.dtype)}`)
  // The values are known, so the tensor is made at once, even while a mode captures or fakes.
  const device = checkDevice('torch.tensor', options.device ?? 'cpu')
  const made = withoutModes(() => moved('torch.tensor', fromData(data, dtype), device))
  return asLeaf('torch.tensor', made, options.requiresGrad === true)
}

const isTypedArray = (data: unknown): data is TensorArray => ArrayBuffer.isView(data) && !(data instanceof DataView)

function fromData(data: TensorData, dtype: DType | null): Tensor {
  if (!isTypedArray(data)) return fromNested(data, dtype)
  const name = data[Symbol.toStringTag]
  const own = Object.hasOwn(ARRAY_TYPES, name) ? ARRAY_TYPES[name] : undefined
  if (own === undefined && dtype === null)
    throw new ArgumentError(
      `torch.tensor: no dtype corresponds to ${String(name)}; expected one of ${Object.keys(ARRAY_TYPES).join(', ')}, or the option dtype.`,
    )
  const wanted = dtype ?? own ?? getDefaultDtype()
  return isComplexDType(wanted) ? tensorFromComplex(data, [data.length], wanted) : tensorFromValues(data, [data.length], wanted)
}

/** The dtype of tensors that hold values of these types of JavaScript. */
function dtypeOf(types: ReadonlySet<string>): DType {
  if (types.has('complex')) return complexDType(getDefaultDtype())
  if (types.has('bigint')) {
    if (types.has('number'))
      throw new ArgumentError('torch.tensor: numbers and bigints are mixed; write all integers as bigints for int64, or give the option dtype.')
    return 'int64'
  }
  return types.size === 1 && types.has('boolean') ? 'bool' : getDefaultDtype()
}

/** How to write what was probably meant by data that is not numbers. */
function dataHint(value: unknown): string {
  if (value instanceof Tensor) return ' x.clone() copies a tensor, torch.stack([x, y]) makes one of several.'
  return typeof value === 'string' ? ' Convert texts first, with Number(text).' : ''
}

/** Whether values of these types of JavaScript have no complex numbers among them. */
const areReal = (values: readonly (ElementValue | ComplexNumber)[], types: ReadonlySet<string>): values is readonly ElementValue[] =>
  !types.has('complex') || !values.some(isComplexNumber)

/** PyTorch's limit for the dimensions of a tensor. */
const MAX_DEPTH = 64

function fromNested(data: unknown, dtype: DType | null): Tensor {
  const shape: number[] = []
  for (let level = data; Array.isArray(level); level = level[0]) {
    if (shape.push(level.length) > MAX_DEPTH)
      throw new ArgumentError(`torch.tensor: the arrays are nested more than ${MAX_DEPTH} deep; does one of them contain itself?`)
  }
  const flat: (number | bigint | ComplexNumber)[] = []
  const types = new Set<string>()
  const visit = (value: unknown, depth: number): void => {
    if (Array.isArray(value)) {
      if (depth >= shape.length || value.length !== shape[depth])
        throw new ShapeError(
          `torch.tensor: the nested arrays are ragged: expected ${shape[depth] ?? 'a number'} elements at depth ${depth}, got ${value.length}. All rows must have the same length: pad the shorter ones.`,
        )
      for (const item of value) visit(item, depth + 1)
      return
    }
    if (depth !== shape.length)
      throw new ShapeError(`torch.tensor: the nested arrays are ragged: expected an array at depth ${depth}, got ${valueText(value)}.`)
    if (typeof value !== 'number' && typeof value !== 'boolean' && typeof value !== 'bigint' && !isComplexNumber(value))
      throw new ArgumentError(
        `torch.tensor: expected numbers, booleans or bigints, as nested arrays or a typed array, got ${valueText(value)}.${dataHint(value)}`,
      )
    types.add(isComplexNumber(value) ? 'complex' : typeof value)
    flat.push(typeof value === 'boolean' ? Number(value) : value)
  }
  visit(data, 0)
  const wanted = dtype ?? dtypeOf(types)
  if (isComplexDType(wanted)) return tensorFromComplex(flat, shape, wanted)
  if (!areReal(flat, types))
    throw new ArgumentError(
      `torch.tensor: the data has complex numbers, which are not values of ${wanted}; ask for dtype 'complex64' or 'complex128'.`,
    )
  return tensorFromValues(flat, shape, wanted)
}

/**
 * The tensor itself, or a tensor of data like {@link tensor}; in the dtype `dtype` if it is given. PyTorch's `torch.as_tensor` and `torch.asarray`; data is always copied.
 *
 * @throws ArgumentError for what is neither a Tensor nor data, and for unknown options.
 * @example torch.asTensor([1, 2], { dtype: 'int64' }).dtype // 'int64'
 */
export function asTensor(data: TensorData | Tensor, options: { readonly dtype?: DType | null } = {}): Tensor {
  checkCount('torch.asTensor', arguments, 2)
  if (!(data instanceof Tensor)) return tensor(data, options)
  checkOptions('torch.asTensor', options, { dtype: true })
  const { dtype } = options
  return dtype === undefined || dtype === null || dtype === data.dtype ? data : to(data, dtype)
}
