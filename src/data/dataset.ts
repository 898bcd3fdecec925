// Datasets: what has samples. One with a length gives the sample at any index; a stream gives one after the other.
import { ArgumentError } from '../errors/index.ts'
import { checkArgument, checkArray, checkCount, isFunction, isObject, valueText } from '../protocol/index.ts'

/** What has samples by index. Arrays are datasets too. */
export interface MapDataset<T> {
  /** How many samples there are. PyTorch's `__len__`. */
  readonly length: number
  /** The sample at an index from 0 to `length - 1`. PyTorch's `__getitem__`. */
  get(index: number): T | Promise<T>
}

/** What a DataLoader reads: a {@link Dataset} or whatever has its members, an array of samples, or a stream of samples. */
export type DataSource<T> = MapDataset<T> | readonly T[] | IterableSource<T>

/** A stream of samples: it can be read from its beginning each time. */
export type IterableSource<T> = Iterable<T> | AsyncIterable<T>

/**
 * Base class of datasets with samples by index; PyTorch's `torch.utils.data.Dataset`. Subclasses have `length` and `get`.
 *
 * @example
 * class Squares extends Dataset<number> {
 *   readonly length = 100
 *   get(index: number) {
 *     return index * index
 *   }
 * }
 */
export abstract class Dataset<T> implements MapDataset<T> {
  abstract readonly length: number
  abstract get(index: number): T | Promise<T>
}

/**
 * Base class of streams of samples; PyTorch's `torch.utils.data.IterableDataset`. With worker threads each has a stream of its own: {@link getWorkerInfo} says which
 * part of the samples to give.
 *
 * @example
 * class Lines extends IterableDataset<string> {
 *   async *[Symbol.asyncIterator]() {
 *     for (const line of await readLines('corpus.txt')) yield line
 *   }
 * }
 */
export abstract class IterableDataset<T> implements AsyncIterable<T> {
  abstract [Symbol.asyncIterator](): AsyncIterator<T>
}

/** Whether a value has samples by index. */
export const hasIndices = (source: unknown): source is MapDataset<unknown> | readonly unknown[] =>
  Array.isArray(source) || (isObject(source) && typeof Reflect.get(source, 'length') === 'number' && isFunction(Reflect.get(source, 'get')))

/** Whether a value is a stream of samples. */
export const isStream = (source: unknown): source is IterableSource<unknown> =>
  isObject(source) &&
  !hasIndices(source) &&
  (isFunction(Reflect.get(source, Symbol.asyncIterator)) || isFunction(Reflect.get(source, Symbol.iterator)))

/** Whether a value is a stream that can be read only once, as what a generator function gives. */
export const isOnce = (source: unknown): source is object => isStream(source) && isFunction(Reflect.get(source, 'next'))

/** Throws ArgumentError unless a value has samples by index. */
export function checkIndexed(where: string, name: string, value: unknown): void {
  if (isStream(value))
    throw new ArgumentError(`${where} does not support IterableDataset: '${name}' must have samples by index ('length' and 'get').`)
  checkArgument(hasIndices(value), where, name, "a Dataset, an array, or an object with 'length' and 'get(index)'", value)
}

/** The sample at an index. */
export const sampleOf = <T>(source: MapDataset<T> | readonly T[], index: number): T | Promise<T> =>
  isList(source) ? itemOf(source, index) : source.get(index)

const isList = <T>(source: MapDataset<T> | readonly T[]): source is readonly T[] => Array.isArray(source)

function itemOf<T>(list: readonly T[], index: number): T {
  // An array may hold undefined as a sample, so the index decides.
  for (const item of list.slice(index, index + 1)) return item
  throw outOfRange('array', index, list.length)
}

const outOfRange = (where: string, index: number, length: number): ArgumentError =>
  new ArgumentError(`${where}: the index must be an integer from 0 to ${length - 1}, got ${valueText(index)}.`)

/** The index, where negative ones count from the end. Throws ArgumentError for one that is out of range. */
export function checkIndex(where: string, index: number, length: number): number {
  if (!Number.isInteger(index) || index >= length || index < -length) throw outOfRange(where, index, length)
  return index < 0 ? index + length : index
}

/** The samples of another dataset at some indices; PyTorch's `Subset`. */
export class Subset<T> extends Dataset<T> {
  readonly dataset: MapDataset<T> | readonly T[]
  readonly indices: readonly number[]

  constructor(dataset: MapDataset<T> | readonly T[], indices: readonly number[]) {
    checkCount('Subset', arguments, 2)
    super()
    checkIndexed('Subset', 'dataset', dataset)
    checkArray('Subset', 'indices', indices)
    for (const index of indices) checkIndex('Subset', index, dataset.length)
    this.dataset = dataset
    this.indices = indices.map((index) => checkIndex('Subset', index, dataset.length))
  }

  get length(): number {
    return this.indices.length
  }

  get(index: number): T | Promise<T> {
    checkCount('Subset.get', arguments, 1)
    const at = this.indices[checkIndex('Subset.get', index, this.length)]
    return sampleOf(this.dataset, at ?? 0)
  }
}

/** Several datasets, one after the other; PyTorch's `ConcatDataset`. */
export class ConcatDataset<T> extends Dataset<T> {
  readonly datasets: readonly (MapDataset<T> | readonly T[])[]
  /** Where each dataset ends. PyTorch's `cumulative_sizes`. */
  readonly cumulativeSizes: readonly number[]

  constructor(datasets: readonly (MapDataset<T> | readonly T[])[]) {
    checkCount('ConcatDataset', arguments, 1)
    super()
    checkArray('ConcatDataset', 'datasets', datasets)
    if (datasets.length === 0) throw new ArgumentError("ConcatDataset: argument 'datasets' must have at least one dataset, got an empty array.")
    let end = 0
    this.cumulativeSizes = datasets.map((dataset, i) => {
      checkIndexed('ConcatDataset', `datasets[${i}]`, dataset)
      return (end += dataset.length)
    })
    this.datasets = [...datasets]
  }

  get length(): number {
    return this.cumulativeSizes.at(-1) ?? 0
  }

  get(index: number): T | Promise<T> {
    checkCount('ConcatDataset.get', arguments, 1)
    const at = checkIndex('ConcatDataset.get', index, this.length)
    const which = this.cumulativeSizes.findIndex((end) => at < end)
    const dataset = this.datasets[which]
    if (dataset === undefined) throw outOfRange('ConcatDataset.get', index, this.length)
    return sampleOf(dataset, at - (this.cumulativeSizes[which - 1] ?? 0))
  }
}

/** What the samples of {@link StackDataset} are made of. */
type Parts = readonly (MapDataset<unknown> | readonly unknown[])[] | Readonly<Record<string, MapDataset<unknown> | readonly unknown[]>>

/** The sample of each part. */
type PartSamples<P> = { -readonly [K in keyof P]: P[K] extends MapDataset<infer T> ? T : P[K] extends readonly (infer T)[] ? T : never }

/**
 * Samples made of one sample each of several datasets of equal length: an array of them, or an object by name. PyTorch's `StackDataset`.
 *
 * @example new StackDataset({ image: images, text: captions }).get(0) // { image: …, text: … }
 */
export class StackDataset<const P extends Parts> extends Dataset<PartSamples<P>> {
  readonly datasets: P
  readonly length: number

  constructor(datasets: P) {
    checkCount('StackDataset', arguments, 1)
    super()
    checkArgument(isObject(datasets), 'StackDataset', 'datasets', 'an array of datasets, or an object of them', datasets)
    const parts = Object.entries(datasets)
    for (const [name, part] of parts) checkIndexed('StackDataset', `datasets.${name}`, part)
    const [first] = parts
    if (first === undefined) throw new ArgumentError("StackDataset: argument 'datasets' must have at least one dataset, got none.")
    this.length = first[1].length
    for (const [name, part] of parts)
      if (part.length !== this.length)
        throw new ArgumentError(
          `StackDataset: Size mismatch between datasets: '${first[0]}' has ${this.length} samples, '${name}' has ${part.length}.`,
        )
    this.datasets = datasets
  }

  async get(index: number): Promise<PartSamples<P>> {
    checkCount('StackDataset.get', arguments, 1)
    const at = checkIndex('StackDataset.get', index, this.length)
    const { datasets } = this
    const samples: [string, unknown][] = []
    for (const [name, part] of Object.entries(datasets)) samples.push([name, await sampleOf(part, at)])
    const made: unknown = Array.isArray(datasets) ? samples.map(([, sample]) => sample) : Object.fromEntries(samples)
    // The type is that of the parts, which TypeScript cannot follow through Object.entries.
    return made as PartSamples<P>
  }
}
