// Worker threads, errors, early ends and resuming of DataLoaders. Workers run on the built package.
import { execFileSync } from 'node:child_process'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { threadId } from 'node:worker_threads'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import {
  ConcatDataset,
  DataLoader,
  Dataset,
  RandomSampler,
  SampleError,
  StackDataset,
  Subset,
  TensorDataset,
  WorkerError,
  importDataset,
} from 'tensorfx/data'
import { bundledFile, bundledUrl } from '../../scripts/bundled.mjs'
import { workerEntry } from '../../src/data/pool.ts'

workerEntry.url = bundledUrl('entries/dataWorker.js')

const at = (name: string): URL => pathToFileURL(bundledFile(`test/data/fixtures/${name}.mjs`))
type Square = { square: number; row: Float32Array }
const squares = (...args: unknown[]): Promise<Dataset<Square>> => importDataset<Dataset<Square>>(at('datasets'), { exported: 'Squares', args })

async function all<T>(loader: AsyncIterable<T>): Promise<T[]> {
  const batches: T[] = []
  for await (const batch of loader) batches.push(batch)
  return batches
}
/** The worker threads of this process. */
const workersNow = (): number => (process.report.getReport() as unknown as { workers: unknown[] }).workers.length

afterEach(() => expect(workersNow(), 'no worker outlives the loop').toBe(workersAtStart))
const workersAtStart = workersNow()

describe('batches of workers', () => {
  it('come in the same order for 0, 1 and 2 workers, with nested values', async () => {
    const dataset = await squares(11)
    const orders = []
    const workers = [
      { numWorkers: 0 },
      { numWorkers: 1 },
      { numWorkers: 2 },
      { numWorkers: 1, readFirstHere: true },
      { numWorkers: 2, readFirstHere: true },
    ]
    for (const options of workers) {
      const generator = new torch.Generator(5)
      const batches = await all(new DataLoader(dataset, { batchSize: 3, shuffle: true, generator, ...options }))
      orders.push(batches.map(({ square, row }) => [square.toArray(), row.toArray(), square.dtype, row.dtype]))
    }
    expect(orders[0]).toHaveLength(4)
    for (const order of orders.slice(1)) expect(order).toEqual(orders[0])
  })

  it('are made in other threads', async () => {
    const dataset = await importDataset<Dataset<number>>(at('datasets'))
    const [here, there] = [
      await all(new DataLoader(dataset, { batchSize: null })),
      await all(new DataLoader(dataset, { batchSize: null, numWorkers: 2 })),
    ]
    expect(new Set(here).size).toBe(1)
    expect(new Set(there).size).toBe(2)
    expect(there).not.toContain(here[0])
  })

  it('come from all datasets that are data: arrays, tensors, and parts of these', async () => {
    const tensors = new TensorDataset(torch.arange(8).view(4, 2), torch.arange(4))
    const pairs: [Tensor, Tensor][] = [[torch.ones([2]), torch.tensor(9)]]
    const both = new ConcatDataset<readonly [Tensor, Tensor]>([new Subset(tensors, [3, 1]), pairs])
    const stacked = new StackDataset({ a: both, b: ['x', 'y', 'z'] })
    const read = async (numWorkers: number): Promise<unknown> =>
      (await all(new DataLoader(stacked, { batchSize: 2, numWorkers }))).map(({ a, b }) => [a.map((x) => x.toArray()), b])
    expect(await read(1)).toEqual(await read(0))
    expect(await read(0)).toEqual([
      [
        [
          [
            [6, 7],
            [2, 3],
          ],
          [3, 1],
        ],
        ['x', 'y'],
      ],
      [[[[1, 1]], [9]], ['z']],
    ])
  })

  it('of a stream are the shares that getWorkerInfo tells apart', async () => {
    const read = async (numWorkers: number): Promise<unknown> =>
      (
        await all(
          new DataLoader(await importDataset<Iterable<number>>(at('datasets'), { exported: 'shared', args: [11, 2] }), { batchSize: 2, numWorkers }),
        )
      ).map((x) => x.toArray())
    const here = await read(0)
    expect(here).toEqual([[0n, 1n], [2n, 3n], [4n, 5n], [6n, 7n], [8n, 9n], [10n]].map((row) => row.map(Number)))
    expect(await read(2)).toEqual(here)
    expect(await read(3)).toEqual(here)
  })

  it('but the first, which the thread of the loop reads while workers start, if it is to', async () => {
    const dataset = await importDataset<Dataset<number>>(at('datasets'))
    await using loader = new DataLoader(dataset, { batchSize: null, numWorkers: 2, persistentWorkers: true, readFirstHere: true })
    const [here, ...others] = await all(loader)
    expect(here).toBe(threadId)
    expect(others).not.toContain(threadId)
    expect(await all(loader), 'workers that run already read all').not.toContain(threadId)
    const broken = await squares(4, { broken: 0 })
    await expect(all(new DataLoader(broken, { numWorkers: 1, readFirstHere: true }))).rejects.toThrow('sample 0 of the dataset failed')
  })

  it('are collated by a function of the program in its own thread', async () => {
    const dataset = await squares(4)
    const collateFn = (samples: readonly Square[]): number => samples.reduce((sum, { square }) => sum + square, 0)
    const sums = await all(new DataLoader(dataset, { batchSize: 2, numWorkers: 1, collateFn }))
    expect(sums).toEqual([1, 13])
  })

  it('workers stay for the next pass if they are to, and close() ends them', async () => {
    const dataset = await importDataset<Dataset<number>>(at('datasets'))
    const loader = new DataLoader(dataset, { batchSize: null, numWorkers: 2, persistentWorkers: true })
    await vi.waitFor(() => expect(workersNow(), 'they start with the loader').toBe(workersAtStart + 2), 20_000)
    const first = new Set(await all(loader))
    for await (const _ of loader) break
    expect(new Set(await all(loader))).toEqual(first)
    expect(workersNow()).toBe(workersAtStart + 2)
    await loader.close()
  })
})

describe('errors', () => {
  it('name the sample, in the main thread and in a worker (e_sample_worker)', async () => {
    const dataset = await squares(2000, { broken: 1234 })
    for (const numWorkers of [0, 2]) {
      const error = await all(new DataLoader(dataset, { batchSize: 100, numWorkers })).then(
        () => null,
        (thrown: unknown) => thrown,
      )
      expect(error).toBeInstanceOf(SampleError)
      if (!(error instanceof SampleError)) continue
      expect(error.index).toBe(1234)
      expect(error.message).toContain('sample 1234 of the dataset failed: square 1234 is broken')
      expect(error.cause).toMatchObject({ name: 'RangeError', message: 'square 1234 is broken' })
      expect(String((error.cause as Error).stack)).toContain('datasets.mjs')
    }
  })

  it('name a worker that ends, and one that does not answer', async () => {
    await expect(all(new DataLoader(await squares(4, { exits: 2 }), { numWorkers: 2 }))).rejects.toThrow('worker 0 ended with code 3')
    const slow = new DataLoader(await squares(4, { hangs: 3 }), { numWorkers: 2, timeout: 700 })
    await expect(all(slow)).rejects.toThrow(WorkerError)
    await expect(
      all(new DataLoader(await importDataset(at('datasets'), { exported: 'unsendable' }), { batchSize: null, numWorkers: 1 })),
    ).rejects.toThrow('a batch cannot be sent to the main thread')
  })

  it('say what to do with a dataset whose code cannot be sent', () => {
    class Mine extends Dataset<number> {
      length = 3
      get = (index: number): number => index
    }
    const loader = new DataLoader(new Mine(), { numWorkers: 1 })
    return expect(all(loader)).rejects.toThrow(
      /the code of .*Mine.* cannot be sent to them\. Put it into a module of its own and make it with await importDataset/,
    )
  })

  it('say what a module does not export', async () => {
    await expect(importDataset(at('datasets'), { exported: 'Sqares' })).rejects.toThrow(
      "must export a class or a function as 'Sqares', got undefined. It exports Noisy, Squares",
    )
    await expect(importDataset(at('datasets'), { exported: 'noDataset' })).rejects.toThrow('must give a dataset')
  })

  it('of a sample that comes later are not seen by a loop that ends before', async () => {
    for await (const _ of new DataLoader(await squares(20, { broken: 5 }), { numWorkers: 2, prefetchFactor: 4 })) break
    await new Promise((resolve) => setTimeout(resolve, 20))
  })
})

describe('resuming', () => {
  it('goes on with the batches that are left, in any place, with own and default generators', async () => {
    const dataset = Array.from({ length: 10 }, (_, i) => i)
    for (const own of [true, false]) {
      const make = (): DataLoader<number, number> =>
        new DataLoader<number, number>(dataset, { batchSize: 3, shuffle: true, ...(own ? { generator: new torch.Generator(1) } : {}) })
      /** Three passes, stopped after `stop` batches and gone on by a new loader with the state, as after a crash. */
      const run = async (stop: number): Promise<unknown[]> => {
        torch.manualSeed(4)
        let loader = make()
        const seen: unknown[] = []
        for (let pass = 0; pass < 3;) {
          let isStopped = false
          for await (const batch of loader) {
            seen.push(batch.toArray())
            torch.rand([2])
            if (seen.length === stop) {
              isStopped = true
              break
            }
          }
          if (!isStopped) {
            pass++
            continue
          }
          const [state, rng] = [structuredClone(loader.stateDict()), torch.getRngState()]
          torch.manualSeed(999)
          loader = make()
          loader.loadStateDict(state)
          torch.setRngState(rng)
          stop = -1
        }
        return seen
      }
      const calm = await run(-1)
      expect(new Set(calm.flat()).size).toBe(10)
      expect(calm[0]).not.toEqual(calm[4])
      for (const stop of [1, 3, 4, 5, 8, 12]) expect(await run(stop), `stopped at ${stop}`).toEqual(calm)
    }
  })

  it('between passes goes on with the next one', async () => {
    const make = (): DataLoader<number, number> => new DataLoader<number, number>([1, 2, 3, 4], { shuffle: true, generator: new torch.Generator(1) })
    const loader = make()
    await all(loader)
    const state = loader.stateDict()
    expect(state.pass).toBe(null)
    const next = await all(loader)
    const other = make()
    other.loadStateDict(state)
    expect((await all(other)).map((x) => x.item())).toEqual(next.map((x) => x.item()))
  })

  it('a stream starts again in workers that stay', async () => {
    const stream = await importDataset<Iterable<number>>(at('datasets'), { exported: 'shared', args: [9, 1] })
    await using loader = new DataLoader(stream, { batchSize: null, numWorkers: 2, persistentWorkers: true })
    const seen: number[] = []
    for await (const x of loader) {
      seen.push(x)
      if (seen.length === 4) break
    }
    loader.loadStateDict(loader.stateDict())
    seen.push(...(await all(loader)))
    expect(seen).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8])
  })

  it('refuses the state of another kind of loader', () => {
    const state = new DataLoader([1], { generator: new torch.Generator() }).stateDict()
    expect(() => new DataLoader([1]).loadStateDict(state)).toThrow('make it with the same options')
    expect(() => new DataLoader([1]).loadStateDict({ passes: -1 } as never)).toThrow('passes must be an integer from 0 on')
  })

  it('a sample draws the same numbers with any number of workers and after resuming (difference: data-draws)', () => {
    const cases = ['Noisy', 'Waiting', 'noise'].flatMap((exported) => [
      [0, exported, -1],
      [0, exported, 2],
      ...(exported !== 'noise'
        ? [
            [1, exported, -1],
            [2, exported, 5],
            [2, exported, 2, 'here'],
          ]
        : []),
    ])
    // With a flag of V8, which belongs to the whole process.
    const words = ['--max-old-space-size=2000', fileURLToPath(at('draws')), JSON.stringify(cases)]
    const printed = execFileSync(process.execPath, words, { encoding: 'utf8' })
    const runs: Readonly<Record<string, unknown[]>> = JSON.parse(printed)
    for (const exported of ['Noisy', 'Waiting'])
      for (const other of [`0 ${exported} 2`, `1 ${exported} -1`, `2 ${exported} 5`, `2 ${exported} 2 here`])
        expect(runs[other], other).toEqual(runs[`0 ${exported} -1`])
    expect(runs['0 noise 2']).toEqual(runs['0 noise -1'])
    expect(new Set((runs['0 Noisy -1'] ?? []).flat(3)).size).toBe(40)
  })
})

it('a stream that can be read only once is refused', () => {
  function* once(): Generator<number> {
    yield 1
  }
  expect(() => new DataLoader(once())).toThrow('can be read only once: a second pass would be empty')
})

it('the length is that of the sampler or of the batches', () => {
  expect(new DataLoader([1, 2, 3], { batchSize: 2 }).length).toBe(2)
  expect(new DataLoader([1, 2, 3], { batchSize: 2, dropLast: true }).length).toBe(1)
  expect(new DataLoader([1, 2, 3], { sampler: new RandomSampler([1, 2, 3], { numSamples: 8 }), batchSize: 4 }).length).toBe(2)
  expect(() => new DataLoader({ *[Symbol.iterator]() {} }).length).toThrow("the stream has no 'length'")
})

describe('streams that are read at once', () => {
  const draw = (): number => torch.rand([1]).item()
  /** Reads a stream of two samples, the first of which waits for `release`; `late` draws after it has waited. */
  const read = (seed: number, late: boolean, release: Promise<void>): Promise<number[]> => {
    const stream: AsyncIterable<number> = {
      async *[Symbol.asyncIterator]() {
        const first = draw()
        await release
        yield late ? draw() : first
        yield draw()
      },
    }
    return all(new DataLoader(stream, { batchSize: null, generator: new torch.Generator(seed) }))
  }

  it('draw what each draws alone: one goes on while the other, which began before, ends', async () => {
    const now = Promise.resolve()
    const alone = [await read(1, false, now), await read(2, true, now)]
    torch.manualSeed(3)
    const program = [draw(), draw()]
    torch.manualSeed(3)
    const again = [draw()]
    const releases: (() => void)[] = []
    const reads = [1, 2].map((seed, i) =>
      read(
        seed,
        i === 1,
        new Promise<void>((resolve) => {
          releases.push(resolve)
        }),
      ),
    )
    await new Promise((resolve) => setTimeout(resolve, 20))
    const together: number[][] = []
    for (const [i, one] of reads.entries()) {
      releases[i]?.()
      together.push(await one)
    }
    expect(together).toEqual(alone)
    again.push(draw())
    expect(again).toEqual(program)
  })
})
