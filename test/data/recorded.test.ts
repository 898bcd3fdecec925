// Collation, samplers, datasets and DataLoaders against what PyTorch gives (test/goldens/around/data.json).
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { TensorfxError, torch } from 'tensorfx'
import type { DType } from 'tensorfx'
import {
  BatchSampler,
  ConcatDataset,
  DataLoader,
  Dataset,
  DistributedSampler,
  IterableDataset,
  RandomSampler,
  SequentialSampler,
  StackDataset,
  SubsetRandomSampler,
  TensorDataset,
  Subset,
  WeightedRandomSampler,
  defaultCollate,
  defaultConvert,
  randomSplit,
} from 'tensorfx/data'

type Value = null | boolean | string | { readonly [kind: string]: unknown }
interface Recorded {
  readonly name: string
  readonly input?: unknown
  readonly ok: boolean
  readonly out?: Value
  readonly message?: string
}
const recorded: readonly Recorded[] = JSON.parse(readFileSync(new URL('../goldens/around/data.json', import.meta.url), 'utf8'))

interface Stored {
  readonly dtype: DType
  readonly shape: readonly number[]
  readonly data: readonly number[]
}

/** How a recorded value of each kind is one of JavaScript: a tuple is an array, and a named tuple an object. */
const KINDS: Readonly<Record<string, (of: never) => unknown>> = {
  int: (of: number) => of,
  float: (of: number) => of,
  tensor: ({ dtype, shape, data }: Stored) => torch.tensor(data, { dtype }).reshape([...shape]),
  ndarray: ({ dtype, data }: Stored) => {
    expect(dtype).toBe('int32')
    return new Int32Array(data)
  },
  list: (of: readonly unknown[]) => of.map(decode),
  tuple: (of: readonly unknown[]) => of.map(decode),
  dict: (of: readonly (readonly [string, unknown])[]) => Object.fromEntries(of.map(([key, item]) => [key, decode(item)])),
  namedtuple: (of: object) => Object.fromEntries(Object.entries(of).map(([key, item]) => [key, decode(item)])),
}

function decode(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(decode)
  if (typeof value !== 'object' || value === null) return value
  const [[kind, of] = ['', null]] = Object.entries(value)
  const read = KINDS[kind]
  if (read === undefined) throw new Error(`no value of kind ${kind}`)
  return read(of as never)
}

/** A value with its tensors as data. */
const plain = (value: unknown): unknown => {
  if (value instanceof torch.Tensor)
    return { dtype: value.dtype, shape: [...value.shape], data: Array.from(value.reshape([-1]).toTypedArray(), Number) }
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value === 'object' && value !== null) return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]))
  return value
}

class Tens extends Dataset<number> {
  readonly length: number
  constructor(length = 10) {
    super()
    this.length = length
  }
  get(index: number): number {
    return index * 10
  }
}

class Stream extends IterableDataset<number> {
  async *[Symbol.asyncIterator](): AsyncGenerator<number> {
    for (let i = 0; i < 7; i++) yield i
  }
}

async function all<T>(loader: AsyncIterable<T>): Promise<T[]> {
  const batches: T[] = []
  for await (const batch of loader) batches.push(batch)
  return batches
}

const distributed = (name: string): number[] => {
  const [, size, numReplicas, rank, dropLast] = name.split('_')
  return [
    ...new DistributedSampler(Number(size), { numReplicas: Number(numReplicas), rank: Number(rank), shuffle: false, dropLast: dropLast === 'True' }),
  ]
}

class Broken extends Tens {
  override get(index: number): number {
    if (index === 3) throw new RangeError('sample 3 is broken')
    return index
  }
}

/** The program of each recorded name. */
const programs: Readonly<Record<string, () => unknown>> = {
  batches: () => all(new DataLoader(new Tens(), { batchSize: 3 })),
  drop_last: () => all(new DataLoader(new Tens(), { batchSize: 3, dropLast: true })),
  no_batch: () => all(new DataLoader(new Tens(), { batchSize: null })),
  iterable_drop: () => all(new DataLoader(new Stream(), { batchSize: 3, dropLast: true })),
  batch_sampler: () => all(new DataLoader(new Tens(), { batchSampler: [[0, 3], [5]] })),
  sampler_list: () => all(new DataLoader(new Tens(), { batchSize: 2, sampler: [4, 2, 0] })),
  BatchSampler: () => [...new BatchSampler(new SequentialSampler(new Tens(7)), 3)],
  BatchSampler_drop: () => [...new BatchSampler(new SequentialSampler(new Tens(7)), 3, { dropLast: true })],
  Sequential: () => [...new SequentialSampler(new Tens())],
  SubsetRandom_len: () => new SubsetRandomSampler([1, 5, 7]).length,
  Weighted_noreplace_sorted: () => [...new WeightedRandomSampler([0.1, 0.5, 0.4], 3, { replacement: false })].sort((a, b) => a - b),
  Random_len: () => [
    new RandomSampler(new Tens()).length,
    new RandomSampler(new Tens(), { numSamples: 25 }).length,
    [...new RandomSampler(new Tens(), { numSamples: 25 })].length,
  ],
  Subset: () => [0, 1].map((i) => new Subset(new Tens(), [3, 1]).get(i)),
  Concat: () => {
    const both = new ConcatDataset([new Tens(2), new Tens(3)])
    return [0, 1, 2, 4, -1, -3].map((i) => both.get(i))
  },
  Concat_sizes: () => new ConcatDataset([new Tens(2), new Tens(3)]).cumulativeSizes,
  add: () => new ConcatDataset([new Tens(2), new Tens(3)]).length,
  Stack: () => Promise.all([new StackDataset([new Tens(), new Tens()]).get(1), new StackDataset({ a: new Tens(), b: new Tens() }).get(2)]),
  TensorDataset_slice: () => new TensorDataset(torch.arange(6, { dtype: 'int64' }).view(3, 2), torch.arange(3, { dtype: 'float32' })).slice(1, 3),
  split_lengths: () => randomSplit(new Tens(), [3, 7]).map((part) => part.length),
  split_fractions_11: () => randomSplit(new Tens(11), [0.5, 0.3, 0.2]).map((part) => part.length),
  e_batch_sampler_size: () => new DataLoader(new Tens(), { batchSampler: [[0]], batchSize: 2 }),
  e_none_drop: () => new DataLoader(new Tens(), { batchSize: null, dropLast: true }),
  e_workers: () => new DataLoader(new Tens(), { numWorkers: -1 }),
  e_timeout: () => new DataLoader(new Tens(), { timeout: -1 }),
  e_prefetch: () => new DataLoader(new Tens(), { prefetchFactor: 2 }),
  e_persistent: () => new DataLoader(new Tens(), { persistentWorkers: true }),
  e_iter_shuffle: () => new DataLoader(new Stream(), { shuffle: true }),
  e_iter_sampler: () => new DataLoader(new Stream(), { sampler: [1] }),
  e_split_sum: () => randomSplit(new Tens(), [3, 8]),
  e_split_fraction: () => randomSplit(new Tens(), [0.5, 0.7]),
  e_concat_empty: () => new ConcatDataset([]),
  e_concat_iter: () => new ConcatDataset([new Stream() as never]),
  e_concat_range: () => new ConcatDataset([new Tens(2)]).get(2),
  e_weighted_2d: () => new WeightedRandomSampler(torch.ones([1, 1]), 1),
  e_random_n: () => new RandomSampler(new Tens(), { numSamples: 0 }),
  e_random_empty: () => new RandomSampler([]),
  e_dist_rank: () => new DistributedSampler(10, { numReplicas: 2, rank: 2 }),
  e_sample: () => all(new DataLoader(new Broken(), { batchSize: 2 })),
  e_stack: () => new StackDataset([new Tens(2), new Tens(3)]),
}

/** Recorded of what JavaScript does not have, or elsewhere: `e_sample_worker` is in workers.test.ts. */
const ABSENT = new Set(['collate_object', 'collate_set', 'collate_str_ndarray', 'collate_complex', 'collate_int_overflow', 'e_sample_worker'])
/** Numbers of JavaScript are of one type: 1.0 is 1, and the first one of a batch does not decide. */
const ONE_NUMBER_TYPE = new Set(['collate_mixed_first_float', 'collate_mixed_first_int'])

const runOf = ({ name, input }: Recorded): (() => unknown) => {
  if (name.startsWith('collate_')) return () => defaultCollate(decode(input) as unknown[])
  if (name.startsWith('convert_')) return () => defaultConvert(decode(input))
  if (name.startsWith('Distributed_')) return () => distributed(name)
  const program = programs[name]
  if (program === undefined) throw new Error(`no program for ${name}`)
  return program
}

describe('as PyTorch', () => {
  for (const one of recorded) {
    if (ABSENT.has(one.name) || ONE_NUMBER_TYPE.has(one.name)) continue
    const run = runOf(one)
    if (one.ok) it(`${one.name} gives the same`, async () => expect(plain(await run())).toEqual(plain(decode(one.out))))
    else it(`${one.name} is refused`, async () => expect(async () => run()).rejects.toBeInstanceOf(TensorfxError))
  }

  it('numbers are integers if all of a batch are, and float64 otherwise (difference: collated-numbers)', () => {
    expect(defaultCollate([1, 2]).dtype).toBe('int64')
    expect(defaultCollate([1, 2.5]).dtype).toBe('float64')
    expect(defaultCollate([2.5, 1]).dtype).toBe('float64')
  })

  it('the order of a DistributedSampler is drawn for each epoch, and all ranks share it', () => {
    const of = (rank: number, epoch: number): number[] => {
      const sampler = new DistributedSampler(9, { numReplicas: 2, rank })
      sampler.setEpoch(epoch)
      return [...sampler]
    }
    expect(new Set([...of(0, 1), ...of(1, 1)]).size).toBe(9)
    expect(of(0, 1)).not.toEqual(of(0, 2))
  })
})

describe('refused samples', () => {
  it('the message names the place in the sample', () => {
    const sample = (x: unknown): object => ({ image: { x } })
    expect(() => defaultCollate([sample(1), sample('a')])).toThrow("defaultCollate: sample.image.x is 1 in the first sample and 'a' in another")
    expect(() => defaultCollate([[1, null]])).toThrow('sample[1] is null')
    expect(() => defaultCollate([{ x: torch.ones([1]) }, { x: torch.ones([2]) }])).toThrow('got [1] at entry 0 and [2] at entry 1 (sample.x)')
    expect(() => defaultCollate([[1], [1, 2]])).toThrow('should be of equal size')
  })
})
