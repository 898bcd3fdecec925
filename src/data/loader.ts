// DataLoader: the samples of a dataset in batches, in the order of a sampler, read here or by worker threads.
/// <reference lib="esnext.disposable" preserve="true" />
import { ArgumentError, messageOf } from '../errors/index.ts'
import { checkCount, checkMethod } from '../protocol/index.ts'
import { Generator, defaultGenerator } from '../tensor/index.ts'
import type { Collated, Converted } from './collate.ts'
import type { DataSource } from './dataset.ts'
import { END, Fetcher } from './fetcher.ts'
import type { Request } from './fetcher.ts'
import { readOptions } from './loaderOptions.ts'
import type { DataLoaderOptions, Plan } from './loaderOptions.ts'
import { readState } from './loaderState.ts'
import type { DataLoaderState } from './loaderState.ts'
import { drawSeed } from './permutation.ts'
import { WorkerPool } from './pool.ts'
import { recipeOf } from './recipe.ts'
import { generatorOfSampler, lengthOf } from './samplers.ts'
import { SampleError } from './errors.ts'

/** A pass over the data. */
interface Pass {
  readonly number: number
  readonly seed: number
  /** The state of the sampler's generator before it drew the order. */
  readonly start: { readonly seed: number; readonly offset: number }
  /** Batches that the loop has got. */
  batches: number
}

/** A request of a pass, and who answers it. */
interface Asked {
  readonly worker: number
  readonly answer: Promise<unknown>
}

/**
 * The samples of a dataset in batches: an async iterable, which reads the dataset anew each time. PyTorch's `torch.utils.data.DataLoader`.
 *
 * With `numWorkers`, worker threads read ahead; batches come in the same order with any number of workers. Their dataset is an array, a TensorDataset, what
 * {@link importDataset} makes, or a Subset, ConcatDataset or StackDataset of these. Workers end with the loop, also after `break` or an error.
 *
 * @throws ArgumentError for options that do not fit together, and for a dataset that cannot be sent to workers.
 * @throws SampleError, in the loop, if the dataset throws: the message names the sample. WorkerError if a worker ends or does not answer in time.
 * @example
 * const loader = new DataLoader(new TensorDataset(inputs, targets), { batchSize: 32, shuffle: true })
 * for await (const [x, y] of loader) step(x, y)
 */
export class DataLoader<T, const N extends number | null = 1, B = N extends null ? Converted<T> : Collated<T>> implements AsyncIterable<B> {
  readonly dataset: DataSource<T>
  readonly batchSize: number | null
  readonly numWorkers: number
  readonly #plan: Plan
  /** Workers that are kept from pass to pass. */
  #pool: WorkerPool | null = null
  #passes = 0
  /** Passes that this loader has read, those of loaded states among them. */
  #begun = 0
  #current: Pass | null = null
  /** Where the next pass goes on. */
  #resumed: Pass | null = null

  constructor(dataset: DataSource<T>, options: DataLoaderOptions<T, N, B> = {}) {
    checkCount('DataLoader', arguments, 2)
    this.#plan = readOptions(dataset, options)
    this.dataset = dataset
    this.batchSize = this.#plan.batchSize
    this.numWorkers = this.#plan.numWorkers
    if (this.#plan.persistentWorkers) this.#pool = this.#newPool()
  }

  /** How many batches a pass has. PyTorch's `len(loader)`. Throws ArgumentError for a stream or a sampler without a length. */
  get length(): number {
    const { order, batchSize, dropLast } = this.#plan
    if (order !== null) return lengthOf(order)
    const length: unknown = Reflect.get(this.dataset, 'length')
    if (typeof length !== 'number') throw new ArgumentError("DataLoader.length: the stream has no 'length'.")
    const each = length / (batchSize ?? 1)
    return dropLast ? Math.floor(each) : Math.ceil(each)
  }

  [Symbol.asyncIterator](): AsyncGenerator<B, void, undefined> {
    return this.#read(this.#begin())
  }

  /** The pass that begins, where a loaded state left it, and the requests that are left of it. */
  #begin(): { readonly pass: Pass; readonly requests: Iterator<Request>; readonly skipped: number } {
    const { order, generator } = this.#plan
    const source = this.#orderGenerator()
    const resumed = this.#resumed
    this.#resumed = null
    const seed = resumed?.seed ?? drawSeed(generator ?? defaultGenerator)
    const pass = resumed ?? { number: this.#passes++, seed, start: source.getState(), batches: 0 }
    this.#current = pass
    const skipped = pass.batches
    if (order === null) return { pass, requests: streamRequests(this.#begun++, pass.seed), skipped }
    // A sampler draws its order when it is first read: from the state of that time, which the generator then leaves.
    const now = source.getState()
    if (resumed !== null) source.setState(pass.start)
    const requests = indexRequests(order, pass, skipped)
    const first = requests.next()
    if (resumed !== null) source.setState(now)
    return { pass, requests: withFirst(first, requests), skipped: 0 }
  }

  /** The generator that the order is drawn from. */
  #orderGenerator(): Generator {
    const { order } = this.#plan
    return (order === null ? null : generatorOfSampler(order)) ?? defaultGenerator
  }

  async *#read(begun: { readonly pass: Pass; readonly requests: Iterator<Request>; readonly skipped: number }): AsyncGenerator<B, void, undefined> {
    const { pass, requests } = begun
    let { skipped } = begun
    const batches = this.numWorkers === 0 ? this.#here(requests) : this.#byWorkers(requests)
    for await (const batch of batches) {
      // A stream has to be read up to where it goes on.
      if (skipped-- > 0) continue
      pass.batches++
      yield await this.#finished(batch)
    }
    if (this.#current === pass) this.#current = null
  }

  /** What the loop gets. */
  async #finished(batch: unknown): Promise<B> {
    const { collate } = this.#plan
    try {
      // The type B is what the options say that a batch is.
      return (collate === null ? batch : await collate(batch)) as B
    } catch (error) {
      const text = messageOf(error)
      throw new SampleError(`DataLoader: collateFn failed: ${text}`, null, { cause: error })
    }
  }

  async *#here(requests: Iterator<Request>): AsyncGenerator<unknown, void, undefined> {
    const fetcher = new Fetcher(this.dataset, this.#plan)
    for (;;) {
      const next = requests.next()
      const batch = next.done === true ? END : await fetcher.fetch(next.value)
      if (batch === END) return
      yield batch
    }
  }

  async *#byWorkers(requests: Iterator<Request>): AsyncGenerator<unknown, void, undefined> {
    const { persistentWorkers, prefetchFactor, order, readFirstHere } = this.#plan
    const pool = this.#pool ?? this.#newPool()
    if (persistentWorkers) this.#pool = pool
    const pending: Asked[] = []
    const askNext = (worker: number): void => {
      const next = requests.next()
      if (next.done !== true) pending.push({ worker, answer: pool.ask(worker, next.value) })
    }
    try {
      const first = readFirstHere && !pool.hasAnswered ? requests.next() : null
      for (let i = 0; i < pool.size * prefetchFactor; i++) askNext(i % pool.size)
      if (first?.done === false) yield await new Fetcher(this.dataset, this.#plan).fetch(first.value)
      for (let asked = pending.shift(); asked !== undefined; asked = pending.shift()) {
        const batch = await pool.wait(asked.worker, asked.answer)
        // The other workers' streams may go on.
        if (batch === END && order === null) continue
        askNext(asked.worker)
        yield batch
      }
    } catch (error) {
      this.#pool = null
      await pool.close()
      throw error
    } finally {
      if (!persistentWorkers) await pool.close()
    }
  }

  #newPool(): WorkerPool {
    const { numWorkers, timeout } = this.#plan
    const { batchSize, dropLast, collation } = this.#plan
    return new WorkerPool(recipeOf(this.dataset), { batchSize, dropLast, collation }, numWorkers, timeout)
  }

  /** Ends the workers that `persistentWorkers` keeps. */
  async close(): Promise<void> {
    checkMethod(this, 'DataLoader.close', arguments, 0)
    const pool = this.#pool
    this.#pool = null
    await pool?.close()
  }

  /** {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** Where the loader is: in a loop, after the batch that the loop has got last. It is plain data. PyTorch's StatefulDataLoader has it too. */
  stateDict(): DataLoaderState {
    checkMethod(this, 'DataLoader.stateDict', arguments, 0)
    const pass = this.#current ?? this.#resumed
    const { order, generator } = this.#plan
    const sampler = order === null ? null : generatorOfSampler(order)
    return {
      passes: this.#passes,
      pass: pass === null ? null : { ...pass, start: { ...pass.start } },
      generator: generator?.getState() ?? null,
      sampler: sampler?.getState() ?? null,
    }
  }

  /**
   * Goes on where a loader on the same dataset with the same options was: the next loop gets the batches that are left of its pass, in the same order and with the same random
   * numbers. A stream is read from its beginning, and what was read before is passed over. Throws ArgumentError for a state of another kind of loader.
   */
  loadStateDict(state: DataLoaderState): void {
    checkMethod(this, 'DataLoader.loadStateDict', arguments, 1)
    const { order, generator } = this.#plan
    const sampler = order === null ? null : generatorOfSampler(order)
    const read = readState(state, { hasGenerator: generator !== null, hasSampler: sampler !== null })
    this.#passes = read.passes
    this.#current = null
    this.#resumed = read.pass === null ? null : { ...read.pass }
    if (read.generator !== null) generator?.setState(read.generator)
    if (read.sampler !== null) sampler?.setState(read.sampler)
  }
}

/** Requests of a stream, which starts again for another number. */
function* streamRequests(pass: number, seed: number): IterableIterator<Request> {
  for (;;) yield { pass, seed }
}

function* indexRequests(order: Iterable<number | readonly number[]>, pass: Pass, skipped: number): IterableIterator<Request> {
  let position = 0
  let left = skipped
  for (const item of order) {
    const indices = typeof item === 'number' ? [item] : item
    if (left-- <= 0) yield { indices, position, seed: pass.seed }
    position += indices.length
  }
}

function* withFirst<T>(first: IteratorResult<T>, rest: Iterator<T>): IterableIterator<T> {
  for (let next = first; next.done !== true; next = rest.next()) yield next.value
}
