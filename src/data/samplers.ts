// Samplers: in which order a DataLoader takes the samples of a dataset. Any iterable of indices is one; these classes draw a new order each time they are read.
import { ArgumentError } from '../errors/index.ts'
import { multinomial, tensor } from '../ops/index.ts'
import { checkArgument, checkArray, checkCount, checkIterable, checkOptions, valueText } from '../protocol/index.ts'
import { Generator, Tensor, defaultGenerator, formatShape } from '../tensor/index.ts'
import { drawSeed, permutation, randomIndices } from './permutation.ts'

/** What has a length: a dataset, or an array. */
interface Sized {
  readonly length: number
}

const checkSized = (where: string, value: Sized): void =>
  checkArgument(Number.isSafeInteger(value?.length), where, 'dataset', 'a dataset or an array, with a length', value)

function checkGenerator(where: string, generator: unknown): void {
  if (generator !== undefined && !(generator instanceof Generator))
    throw new ArgumentError(`${where}: option 'generator' must be a torch.Generator, got ${valueText(generator)}.`)
}

/** Base class of samplers, which give indices; PyTorch's `torch.utils.data.Sampler`. */
export abstract class Sampler<T = number> implements Iterable<T> {
  /** Where the order is drawn from; null for the default generator. A DataLoader saves and restores its state. */
  readonly generator: Generator | null = null
  /** How many indices there are each time. */
  abstract readonly length: number;
  abstract [Symbol.iterator](): Iterator<T>
}

/** 0, 1, 2, …; PyTorch's `SequentialSampler`. */
export class SequentialSampler extends Sampler {
  readonly length: number

  constructor(dataset: Sized) {
    checkCount('SequentialSampler', arguments, 1)
    super()
    checkSized('SequentialSampler', dataset)
    this.length = dataset.length
  }

  *[Symbol.iterator](): Iterator<number> {
    for (let i = 0; i < this.length; i++) yield i
  }
}

/** Options of {@link RandomSampler}. */
export interface RandomSamplerOptions {
  /** Whether an index may come again before all have come. Default false. */
  readonly replacement?: boolean
  /** How many indices. Default: one for each sample. Without replacement, more than there are samples means several orders. */
  readonly numSamples?: number
  /** Default: a seed from the default generator for each order. */
  readonly generator?: Generator
}

/** The indices in random order; PyTorch's `RandomSampler`. */
export class RandomSampler extends Sampler {
  readonly length: number
  override readonly generator: Generator | null
  readonly replacement: boolean
  readonly #size: number

  constructor(dataset: Sized, options: RandomSamplerOptions = {}) {
    checkCount('RandomSampler', arguments, 2)
    super()
    checkSized('RandomSampler', dataset)
    checkOptions('RandomSampler', options, { replacement: 'boolean', numSamples: 'number', generator: true })
    checkGenerator('RandomSampler', options.generator)
    const { numSamples = dataset.length } = options
    if (!Number.isSafeInteger(numSamples) || numSamples < 1)
      throw new ArgumentError(
        `RandomSampler: numSamples should be a positive integer, got ${valueText(numSamples)}${options.numSamples === undefined ? ', the length of the dataset' : ''}.`,
      )
    this.#size = dataset.length
    this.length = numSamples
    this.generator = options.generator ?? null
    this.replacement = options.replacement ?? false
  }

  *[Symbol.iterator](): Iterator<number> {
    const generator = this.generator ?? new Generator(drawSeed(defaultGenerator))
    if (this.replacement) {
      yield* randomIndices(this.#size, this.length, generator)
      return
    }
    for (let left = this.length; left > 0; left -= this.#size) yield* permutation(this.#size, generator).slice(0, left)
  }
}

/** Some indices in random order; PyTorch's `SubsetRandomSampler`. */
export class SubsetRandomSampler extends Sampler {
  readonly indices: readonly number[]
  override readonly generator: Generator | null

  constructor(indices: readonly number[], options: { readonly generator?: Generator } = {}) {
    checkCount('SubsetRandomSampler', arguments, 2)
    super()
    checkArray('SubsetRandomSampler', 'indices', indices)
    checkOptions('SubsetRandomSampler', options, { generator: true })
    checkGenerator('SubsetRandomSampler', options.generator)
    this.indices = [...indices]
    this.generator = options.generator ?? null
  }

  get length(): number {
    return this.indices.length
  }

  *[Symbol.iterator](): Iterator<number> {
    for (const at of permutation(this.indices.length, this.generator)) yield* this.indices.slice(at, at + 1)
  }
}

/** Indices from 0 to `weights.length - 1`, each with a probability in proportion to its weight; PyTorch's `WeightedRandomSampler`. */
export class WeightedRandomSampler extends Sampler {
  readonly weights: Tensor
  readonly length: number
  readonly replacement: boolean
  override readonly generator: Generator | null

  constructor(
    weights: readonly number[] | Tensor,
    numSamples: number,
    options: { readonly replacement?: boolean; readonly generator?: Generator } = {},
  ) {
    checkCount('WeightedRandomSampler', arguments, 3)
    super()
    const where = 'WeightedRandomSampler'
    checkOptions(where, options, { replacement: 'boolean', generator: true })
    checkGenerator(where, options.generator)
    if (!(weights instanceof Tensor)) checkArray(where, 'weights', weights)
    if (!Number.isSafeInteger(numSamples) || numSamples < 1)
      throw new ArgumentError(`${where}: numSamples should be a positive integer, got ${valueText(numSamples)}.`)
    const all = weights instanceof Tensor ? weights.detach().to('float64') : tensor(weights, { dtype: 'float64' })
    if (all.ndim !== 1)
      throw new ArgumentError(`${where}: weights should be a 1d sequence, but the given weights have shape ${formatShape(all.shape)}.`)
    this.weights = all
    this.length = numSamples
    this.replacement = options.replacement ?? true
    this.generator = options.generator ?? null
    if (!this.replacement && numSamples > all.numel)
      throw new ArgumentError(`${where}: cannot draw ${numSamples} of ${all.numel} indices without replacement; draw fewer.`)
  }

  *[Symbol.iterator](): Iterator<number> {
    const { weights, length, replacement, generator } = this
    yield* Array.from(multinomial(weights, length, replacement, { generator }).toTypedArray(), Number)
  }
}

/** The indices of a sampler in batches; PyTorch's `BatchSampler`. */
export class BatchSampler extends Sampler<readonly number[]> {
  readonly sampler: Iterable<number>
  readonly batchSize: number
  readonly dropLast: boolean

  constructor(sampler: Iterable<number>, batchSize: number, options: { readonly dropLast?: boolean } = {}) {
    checkCount('BatchSampler', arguments, 3)
    super()
    checkIterable('BatchSampler', 'sampler', sampler)
    checkOptions('BatchSampler', options, { dropLast: 'boolean' })
    if (!Number.isSafeInteger(batchSize) || batchSize < 1)
      throw new ArgumentError(`BatchSampler: batchSize should be a positive integer, got ${valueText(batchSize)}.`)
    this.sampler = sampler
    this.batchSize = batchSize
    this.dropLast = options.dropLast ?? false
  }

  get length(): number {
    const each = lengthOf(this.sampler) / this.batchSize
    return this.dropLast ? Math.floor(each) : Math.ceil(each)
  }

  *[Symbol.iterator](): Iterator<readonly number[]> {
    let batch: number[] = []
    for (const index of this.sampler) {
      batch.push(index)
      if (batch.length < this.batchSize) continue
      yield batch
      batch = []
    }
    if (batch.length > 0 && !this.dropLast) yield batch
  }
}

/** How many indices a sampler gives. Throws ArgumentError for one that does not say it. */
export function lengthOf(sampler: Iterable<unknown>): number {
  const length: unknown = Reflect.get(sampler, 'length') ?? Reflect.get(sampler, 'size')
  if (typeof length === 'number') return length
  throw new ArgumentError("DataLoader.length: the sampler has no 'length'.")
}

/** The generator that a sampler, or the one within it, draws its order from; null for the default generator. */
export function generatorOfSampler(sampler: Iterable<unknown>): Generator | null {
  const own: unknown = Reflect.get(sampler, 'generator')
  if (own instanceof Generator) return own
  return sampler instanceof BatchSampler ? generatorOfSampler(sampler.sampler) : null
}
