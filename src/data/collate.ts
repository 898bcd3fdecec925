// Default collation: samples become one batch, in which tensors, numbers and booleans are tensors with a dimension more in front.
import { ArgumentError } from '../errors/index.ts'
import { stack, tensor } from '../ops/index.ts'
import type { TensorArray } from '../ops/index.ts'
import { checkArray, checkCount, isObject, isPlainObject, valueText } from '../protocol/index.ts'
import { Tensor, formatShape } from '../tensor/index.ts'

/** What {@link defaultCollate} makes of samples of type T. */
export type Collated<T> = T extends Tensor | number | bigint | boolean | TensorArray
  ? Tensor
  : T extends string
    ? string[]
    : T extends ReadonlyMap<infer K, infer V>
      ? Map<K, Collated<V>>
      : T extends readonly unknown[]
        ? { -readonly [K in keyof T]: Collated<T[K]> }
        : T extends object
          ? { -readonly [K in keyof T]: Collated<T[K]> }
          : never

/** What {@link defaultConvert} makes of a value of type T: typed arrays become tensors. */
export type Converted<T> = T extends TensorArray
  ? Tensor
  : T extends Tensor | string
    ? T
    : T extends readonly unknown[] | Readonly<Record<string, unknown>>
      ? { -readonly [K in keyof T]: Converted<T[K]> }
      : T

/** `torch.tensor` refuses the typed arrays whose dtype there is not. */
const isTypedArray = (value: unknown): value is TensorArray => ArrayBuffer.isView(value) && !(value instanceof DataView)

/**
 * Makes one batch of a list of samples. Tensors are stacked, and so are typed arrays; numbers become a tensor, int64 if all are integers and float64 otherwise; bigints and booleans become
 * one too; strings stay a list. Arrays, objects and Maps of these are taken apart. PyTorch's `default_collate`.
 *
 * @throws ArgumentError, which names the place in the sample, for samples that differ in structure or shape, and for values of other kinds.
 * @example defaultCollate([{ x: torch.ones([3]), label: 1 }, { x: torch.zeros([3]), label: 0 }]) // { x: [2, 3], label: int64 [2] }
 */
export function defaultCollate<T>(samples: readonly T[]): Collated<T> {
  checkCount('defaultCollate', arguments, 1)
  checkArray('defaultCollate', 'samples', samples)
  if (samples.length === 0) throw new ArgumentError("defaultCollate: argument 'samples' must have at least one sample, got an empty array.")
  // The type Collated says what each kind of sample becomes, case by case.
  return collate(samples, 'sample') as Collated<T>
}

/** `at`: the place in the samples, for messages. */
function collate(batch: readonly unknown[], at: string): unknown {
  const [first] = batch
  if (first instanceof Tensor)
    return stacked(
      batch.map((value) => (value instanceof Tensor ? value : differs(at, first, value))),
      at,
    )
  if (isTypedArray(first))
    return stacked(
      batch.map((value) => (isTypedArray(value) ? tensor(value) : differs(at, first, value))),
      at,
    )
  if (typeof first === 'number') return numbers(batch, at)
  if (typeof first === 'bigint')
    return tensor(
      batch.map((value) => (typeof value === 'bigint' ? value : differs(at, first, value))),
      { dtype: 'int64' },
    )
  if (typeof first === 'boolean')
    return tensor(
      batch.map((value) => (typeof value === 'boolean' ? value : differs(at, first, value))),
      { dtype: 'bool' },
    )
  if (typeof first === 'string') return [...batch]
  if (Array.isArray(first)) return lists(first, batch, at)
  if (first instanceof Map) {
    const entry = (key: unknown): unknown[] =>
      batch.map((value) => (value instanceof Map && value.has(key) ? value.get(key) : missing(at, String(key), value)))
    return new Map([...first.keys()].map((key): [unknown, unknown] => [key, collate(entry(key), `${at}.get(${String(key)})`)]))
  }
  if (isPlainObject(first)) {
    const property = (key: string): unknown[] =>
      batch.map((value) => (isPlainObject(value) && Object.hasOwn(value, key) ? value[key] : missing(at, key, value)))
    return Object.fromEntries(Object.keys(first).map((key) => [key, collate(property(key), `${at}.${key}`)]))
  }
  throw new ArgumentError(
    `defaultCollate: batch must contain tensors, typed arrays, numbers, booleans, strings, arrays, objects or Maps of these; ${at} is ${valueText(first)}. Leave it out of the sample, or pass a collateFn.`,
  )
}

/** Arrays of equal length, item by item. */
function lists(first: readonly unknown[], batch: readonly unknown[], at: string): unknown[] {
  const rows = batch.map((value): readonly unknown[] => (Array.isArray(value) ? value : differs(at, first, value)))
  const other = rows.find((row) => row.length !== first.length)
  if (other !== undefined)
    throw new ArgumentError(
      `defaultCollate: each element in list of batch should be of equal size: ${at} has ${first.length} in the first sample and ${other.length} in another. Give them one length, or pass a collateFn.`,
    )
  return first.map((_, i) =>
    collate(
      rows.map((row) => row[i]),
      `${at}[${i}]`,
    ),
  )
}

function stacked(tensors: readonly Tensor[], at: string): Tensor {
  const [first] = tensors
  for (const [i, { shape }] of tensors.entries())
    if (first !== undefined && formatShape(shape) !== formatShape(first.shape))
      throw new ArgumentError(
        `defaultCollate: stack expects each tensor to be equal size, but got ${formatShape(first.shape)} at entry 0 and ${formatShape(shape)} at entry ${i} (${at}). Pad or crop them in the dataset, or pass a collateFn.`,
      )
  return stack([...tensors])
}

/** Numbers as a tensor. JavaScript has one type of numbers, so whether all are integers decides, not the first one. */
function numbers(batch: readonly unknown[], at: string): Tensor {
  const values = batch.map((value) => (typeof value === 'number' ? value : differs(at, batch[0], value)))
  if (values.every(Number.isSafeInteger)) return tensor(values, { dtype: 'int64' })
  return tensor(values, { dtype: 'float64' })
}

function differs(at: string, first: unknown, value: unknown): never {
  throw new ArgumentError(
    `defaultCollate: ${at} is ${valueText(first)} in the first sample and ${valueText(value)} in another; samples of a batch must be alike, or pass a collateFn.`,
  )
}

function missing(at: string, key: string, value: unknown): never {
  throw new ArgumentError(`defaultCollate: ${at} has '${key}' in the first sample, but another is ${valueText(value)} without it.`)
}

/**
 * A sample as it is, with typed arrays as tensors, also within arrays and objects: what a DataLoader with `batchSize: null` does. PyTorch's `default_convert`.
 */
export function defaultConvert<T>(sample: T): Converted<T> {
  checkCount('defaultConvert', arguments, 1)
  return convert(sample) as Converted<T>
}

function convert(value: unknown): unknown {
  if (isTypedArray(value)) return tensor(value)
  if (Array.isArray(value)) return value.map(convert)
  if (isObject(value) && isPlainObject(value)) return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, convert(item)]))
  return value
}
