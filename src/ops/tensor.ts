// torch.tensor: a tensor from data. It is not an operator: its argument is not a tensor, and a graph holds its result as a constant.
import { withoutModes } from '../dispatch/index.ts'
import { ArgumentError, ShapeError } from '../errors/index.ts'
import type { DType } from '../kernels/index.ts'
import { checkOptions, valueText } from '../protocol/index.ts'
import { Tensor, tensorFromValues } from '../tensor/index.ts'
import { asLeaf } from './creation.ts'
import type { CreationOptions } from './creation.ts'

/** What `torch.tensor` takes: a number, a boolean, nested arrays of them, or a typed array. */
export type TensorData = number | boolean | readonly TensorData[] | Float32Array | Float64Array | Int32Array | Uint8Array

/**
 * A tensor from numbers, nested arrays or a typed array (which is copied). Numbers become float32, booleans bool, and typed arrays keep their type,
 * unless `dtype` says otherwise. Throws ShapeError if the arrays are ragged, ArgumentError for anything but numbers and booleans in them, or for unknown
 * options. PyTorch's `torch.tensor`.
 */
export function tensor(data: TensorData, options: CreationOptions = {}): Tensor {
  if (typeof options === 'number')
    throw new ArgumentError(
      `torch.tensor: the data must be one array, got the numbers one by one; write torch.tensor([${valueText(data)}, ${valueText(options)}, …]).`,
    )
  checkOptions('torch.tensor', options, { dtype: true, requiresGrad: true })
  // The values are known, so the tensor is made at once, even while a mode captures or fakes.
  const made = withoutModes(() => fromData(data, options.dtype ?? null))
  return asLeaf('torch.tensor', made, options.requiresGrad === true)
}

function fromData(data: TensorData, dtype: DType | null): Tensor {
  if (data instanceof Float32Array) return tensorFromValues(data, [data.length], dtype ?? 'float32')
  if (data instanceof Float64Array) return tensorFromValues(data, [data.length], dtype ?? 'float64')
  if (data instanceof Int32Array) return tensorFromValues(data, [data.length], dtype ?? 'int32')
  if (data instanceof Uint8Array) return tensorFromValues(data, [data.length], dtype ?? 'bool')
  return fromNested(data, dtype)
}

/** How to write what was probably meant by data that is not numbers. */
function dataHint(value: unknown): string {
  if (value instanceof Tensor) return ' x.clone() copies a tensor, torch.stack([x, y]) makes one of several.'
  if (typeof value === 'string') return ' Convert texts first, with Number(text).'
  return typeof value === 'bigint' ? ' Convert it first, with Number(value).' : ''
}

function fromNested(data: unknown, dtype: DType | null): Tensor {
  const shape: number[] = []
  for (let level = data; Array.isArray(level); level = level[0]) shape.push(level.length)
  const flat: number[] = []
  let bool = true
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
    if (typeof value !== 'number' && typeof value !== 'boolean')
      throw new ArgumentError(
        `torch.tensor: expected numbers or booleans, as nested arrays or a typed array, got ${valueText(value)}.${dataHint(value)}`,
      )
    if (typeof value === 'number') bool = false
    flat.push(Number(value))
  }
  visit(data, 0)
  return tensorFromValues(flat, shape, dtype ?? (bool && flat.length > 0 ? 'bool' : 'float32'))
}
