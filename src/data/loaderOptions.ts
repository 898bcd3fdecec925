// The options of a DataLoader, checked as PyTorch does.
import { ArgumentError } from '../errors/index.ts'
import { checkArgument, checkCallable, checkOptions, isFunction, isObject, valueText } from '../protocol/index.ts'
import { Generator } from '../tensor/index.ts'
import type { Collation, FetchPlan } from './fetcher.ts'
import { hasIndices, isOnce, isStream } from './dataset.ts'
import type { DataSource } from './dataset.ts'
import { BatchSampler, RandomSampler, SequentialSampler } from './samplers.ts'

/** Options of a DataLoader. */
export interface DataLoaderOptions<T, N extends number | null, B> {
  /** Samples in a batch; null for single samples. Default 1. */
  readonly batchSize?: N
  /** Whether the order is drawn anew for each pass. Default false. */
  readonly shuffle?: boolean
  /** The indices in order: a sampler, or any iterable. */
  readonly sampler?: Iterable<number>
  /** Lists of indices: a sampler of batches, or any iterable. */
  readonly batchSampler?: Iterable<readonly number[]>
  /** Worker threads that read the dataset. Default 0: it is read in the thread of the loop. */
  readonly numWorkers?: number
  /** Makes a batch of samples, in the thread of the loop. Default: {@link defaultCollate}, in the worker. */
  readonly collateFn?: (samples: N extends null ? T : readonly T[]) => B | Promise<B>
  /** Whether an incomplete batch at the end is left out. Default false. */
  readonly dropLast?: boolean
  /** Milliseconds after which a worker that has not answered is an error. Default 0: never. */
  readonly timeout?: number
  /** Where orders and seeds are drawn from. Default: the default generator. */
  readonly generator?: Generator
  /** Batches that each worker reads ahead. Default 2. */
  readonly prefetchFactor?: number
  /** Whether workers start with the loader and stay from pass to pass. `close()` ends them. Default false: they start and end with each pass. */
  readonly persistentWorkers?: boolean
  /**
   * Whether the thread of the loop reads the first batch itself where workers have only just been started, and so need not wait until they have read the package and the dataset's
   * module. It is the same batch. The dataset must be one that this thread can read. Default false. PyTorch has no such option.
   */
  readonly readFirstHere?: boolean
}

/** What a loader does. */
export interface Plan extends FetchPlan {
  /** Indices, or lists of them; null for a stream. */
  readonly order: Iterable<number | readonly number[]> | null
  readonly numWorkers: number
  readonly collate: ((samples: unknown) => unknown) | null
  readonly collation: Collation
  readonly timeout: number
  readonly generator: Generator | null
  readonly prefetchFactor: number
  readonly persistentWorkers: boolean
  readonly readFirstHere: boolean
}

const where = 'DataLoader'

/** PyTorch's options that have no counterpart. */
const INSTEAD: Readonly<Record<string, string>> = {
  pinMemory: 'no memory is pinned here, leave it out',
  pinMemoryDevice: 'no memory is pinned here, leave it out',
  workerInitFn:
    'functions cannot be sent to worker threads: prepare them in the module that importDataset names, where getWorkerInfo() says which worker it is',
  multiprocessingContext: 'workers are threads, leave it out',
}

/** Throws ArgumentError for options that do not fit together. */
export function readOptions<T, N extends number | null, B>(source: DataSource<T>, options: DataLoaderOptions<T, N, B>): Plan {
  const indexed = hasIndices(source)
  checkArgument(indexed || isStream(source), where, 'dataset', 'a Dataset, an array, or an iterable of samples', source)
  if (isOnce(source))
    throw new ArgumentError(
      `${where}: argument 'dataset' is ${valueText(source)}, which can be read only once: a second pass would be empty. Pass an object that starts anew, such as { [Symbol.iterator]: () => samples() }.`,
    )
  checkOptions<object>(where, options, KNOWN, INSTEAD)
  const { sampler, batchSampler, generator = null, collateFn, dropLast = false, numWorkers = 0, timeout = 0 } = options
  const { shuffle = false, persistentWorkers = false, readFirstHere = false } = options
  const batchSize: number | null = options.batchSize === undefined ? 1 : options.batchSize
  checkCounts(options, batchSize)
  if (generator !== null && !(generator instanceof Generator))
    throw new ArgumentError(`${where}: option 'generator' must be a torch.Generator, got ${valueText(generator)}.`)
  if (collateFn !== undefined) checkCallable(where, 'collateFn', collateFn)
  for (const [name, value] of Object.entries({ sampler, batchSampler }))
    if (value !== undefined && !(isObject(value) && isFunction(Reflect.get(value, Symbol.iterator))))
      throw new ArgumentError(`${where}: option '${name}' must be a sampler, an array or another iterable, got ${valueText(value)}.`)
  if (!indexed)
    for (const [name, value, isSet] of [
      ['shuffle', shuffle, shuffle],
      ['sampler', sampler, sampler !== undefined],
      ['batchSampler', batchSampler, batchSampler !== undefined],
      ['readFirstHere', readFirstHere, readFirstHere],
    ] as const)
      if (isSet)
        throw new ArgumentError(
          `${where} with IterableDataset: expected unspecified ${name} option, but got ${name}=${valueText(value)}; a stream has an order of its own.`,
        )
  if (sampler !== undefined && shuffle) throw new ArgumentError(`${where}: sampler option is mutually exclusive with shuffle; leave out one of them.`)
  if (batchSampler !== undefined && (batchSize !== 1 || shuffle || sampler !== undefined || dropLast))
    throw new ArgumentError(`${where}: batchSampler option is mutually exclusive with batchSize, shuffle, sampler, and dropLast.`)
  if (batchSize === null && dropLast) throw new ArgumentError(`${where}: batchSize: null disables batches and is mutually exclusive with dropLast.`)
  return {
    batchSize,
    dropLast,
    order: indexed ? orderOf(source, { sampler, batchSampler, shuffle, generator, batchSize, dropLast }) : null,
    numWorkers,
    // What the function takes follows from batchSize, as its type says.
    collate: (collateFn as Plan['collate'] | undefined) ?? null,
    collation: collateFn === undefined ? 'default' : 'none',
    timeout,
    generator,
    prefetchFactor: options.prefetchFactor ?? 2,
    persistentWorkers,
    readFirstHere,
  }
}

const KNOWN = {
  batchSize: true,
  shuffle: 'boolean',
  sampler: true,
  batchSampler: true,
  numWorkers: 'number',
  collateFn: true,
  dropLast: 'boolean',
  timeout: 'number',
  generator: true,
  prefetchFactor: 'number',
  persistentWorkers: 'boolean',
  readFirstHere: 'boolean',
} as const

/** Checks the numbers. */
function checkCounts(
  options: Pick<DataLoaderOptions<unknown, null, unknown>, 'numWorkers' | 'timeout' | 'prefetchFactor' | 'persistentWorkers' | 'readFirstHere'>,
  batchSize: number | null,
): void {
  const { numWorkers = 0, timeout = 0, prefetchFactor, persistentWorkers = false, readFirstHere = false } = options
  const isCount = (value: unknown, least: number): boolean => typeof value === 'number' && Number.isSafeInteger(value) && value >= least
  if (batchSize !== null && !isCount(batchSize, 1))
    throw new ArgumentError(`${where}: batchSize should be a positive integer, or null for single samples, got ${valueText(batchSize)}.`)
  if (!isCount(numWorkers, 0))
    throw new ArgumentError(
      `${where}: numWorkers option should be a non-negative integer; use numWorkers: 0 to read in this thread, got ${valueText(numWorkers)}.`,
    )
  if (!(timeout >= 0)) throw new ArgumentError(`${where}: timeout option should be non-negative, in milliseconds, got ${valueText(timeout)}.`)
  if (prefetchFactor !== undefined && numWorkers === 0)
    throw new ArgumentError(`${where}: prefetchFactor needs numWorkers > 0: without workers nothing is read ahead; leave it out.`)
  if (prefetchFactor !== undefined && !isCount(prefetchFactor, 1))
    throw new ArgumentError(`${where}: prefetchFactor should be a positive integer, got ${valueText(prefetchFactor)}.`)
  if (persistentWorkers && numWorkers === 0) throw new ArgumentError(`${where}: persistentWorkers option needs numWorkers > 0.`)
  if (readFirstHere && numWorkers === 0)
    throw new ArgumentError(`${where}: readFirstHere needs numWorkers > 0: without workers this thread reads all batches; leave it out.`)
}

/** The order of the samples. */
function orderOf(
  source: { readonly length: number },
  given: {
    readonly sampler: Iterable<number> | undefined
    readonly batchSampler: Iterable<readonly number[]> | undefined
    readonly shuffle: boolean
    readonly generator: Generator | null
    readonly batchSize: number | null
    readonly dropLast: boolean
  },
): Iterable<number | readonly number[]> {
  if (given.batchSampler !== undefined) return given.batchSampler
  const { generator } = given
  const drawn = (): Iterable<number> =>
    given.shuffle ? new RandomSampler(source, generator === null ? {} : { generator }) : new SequentialSampler(source)
  const single = given.sampler ?? drawn()
  return given.batchSize === null ? single : new BatchSampler(single, given.batchSize, { dropLast: given.dropLast })
}
