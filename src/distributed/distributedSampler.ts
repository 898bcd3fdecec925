// Which samples of a data set each rank trains on.
import { ArgumentError } from '../errors/index.ts'
import { randperm } from '../ops/index.ts'
import { checkCount, checkMethod, checkOptions, valueText } from '../protocol/index.ts'
import { Generator } from '../tensor/index.ts'
import { getRank, getWorldSize } from './processGroup.ts'

/** Options of {@link DistributedSampler}. */
export interface DistributedSamplerOptions {
  /** Default: the number of ranks. */
  readonly numReplicas?: number
  /** Default: this process's rank. */
  readonly rank?: number
  /** Whether the order is drawn anew for each epoch. Default true. */
  readonly shuffle?: boolean
  /** Default 0; must be the same on all ranks. */
  readonly seed?: number
  /** Whether samples are left out so that all ranks have equally many; otherwise some are repeated. Default false. */
  readonly dropLast?: boolean
}

/**
 * The indices of the samples that this rank trains on in an epoch: every W-th of a common order, equally many on each rank. PyTorch's `DistributedSampler`, with
 * other random orders.
 *
 * @throws ArgumentError for a length, a rank or a number of ranks that is impossible.
 * @example
 * const sampler = new DistributedSampler(1000)
 * for (let epoch = 0; epoch < 3; epoch++) {
 *   sampler.setEpoch(epoch)
 *   for (const index of sampler) train(samples[index])
 * }
 */
export class DistributedSampler implements Iterable<number> {
  readonly #size: number
  readonly #replicas: number
  readonly #rank: number
  readonly #shuffle: boolean
  readonly #seed: number
  readonly #dropLast: boolean
  #epoch = 0

  /** `dataset`: what has the samples, or how many there are. Throws ArgumentError for no number of samples, no number of ranks, or a rank that is not among them. */
  constructor(dataset: number | { readonly length: number }, options: DistributedSamplerOptions = {}) {
    checkCount('DistributedSampler', arguments, 2)
    const where = 'DistributedSampler'
    checkOptions(where, options, { numReplicas: 'number', rank: 'number', shuffle: 'boolean', seed: 'number', dropLast: 'boolean' })
    const size = typeof dataset === 'number' ? dataset : dataset?.length
    if (!Number.isSafeInteger(size) || size < 0)
      throw new ArgumentError(`${where}: dataset must be a number of samples, or have a length, got ${valueText(dataset)}.`)
    const { numReplicas = getWorldSize(), shuffle = true, seed = 0, dropLast = false } = options
    if (!Number.isSafeInteger(numReplicas) || numReplicas < 1)
      throw new ArgumentError(`${where}: numReplicas must be a positive integer, got ${valueText(numReplicas)}.`)
    const rank = options.rank ?? getRank()
    if (!Number.isSafeInteger(rank) || rank < 0 || rank >= numReplicas)
      throw new ArgumentError(`Invalid rank ${valueText(rank)}, rank should be in the interval [0, ${numReplicas - 1}]`)
    this.#size = size
    this.#replicas = numReplicas
    this.#rank = rank
    this.#shuffle = shuffle
    this.#seed = seed
    this.#dropLast = dropLast
  }

  /** How many samples this rank gets. PyTorch's `num_samples`. */
  get length(): number {
    const each = this.#size / this.#replicas
    return this.#dropLast ? Math.floor(each) : Math.ceil(each)
  }

  /** To be called before each epoch, on all ranks: otherwise all epochs have one order. Throws ArgumentError for a negative number or a fraction. PyTorch's `set_epoch`. */
  setEpoch(epoch: number): void {
    checkMethod(this, 'setEpoch', arguments, 1)
    if (!Number.isSafeInteger(epoch) || epoch < 0)
      throw new ArgumentError(`DistributedSampler.setEpoch: epoch must be a non-negative integer, got ${valueText(epoch)}.`)
    this.#epoch = epoch
  }

  #order(): number[] {
    if (!this.#shuffle) return Array.from({ length: this.#size }, (_, i) => i)
    const generator = new Generator().manualSeed(this.#seed + this.#epoch)
    return [...randperm(this.#size, { generator }).toTypedArray()].map(Number)
  }

  *[Symbol.iterator](): IterableIterator<number> {
    const order = this.#order()
    for (let i = 0; i < this.length; i++) {
      // Past the end the order starts again.
      const index = order[(this.#rank + i * this.#replicas) % this.#size]
      if (index !== undefined) yield index
    }
  }
}
