// Kernels on threads in this process: the same bits, under stress too, and what happens where workers are refused, die or come late.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { WorkerHost } from '../../../src/kernels/threads/workers.ts'
import { SERVE } from '../../../src/kernels/threads/serve.ts'
import { onOne, onThreads, untilReady } from './fresh.ts'

type Package = Awaited<ReturnType<typeof onThreads>>
type Torch = Package['torch']

beforeEach(() => void vi.resetModules())
afterEach(() => void vi.restoreAllMocks())

const bytesOf = (tensor: { toTypedArray(): ArrayBufferView }): string => {
  const { buffer } = tensor.toTypedArray()
  return Buffer.from(buffer as ArrayBuffer).toString('base64')
}

/** Some of each kind of kernel: pointwise, copies, reductions, products, in place. */
function results(torch: Torch, rows: number, columns: number): readonly string[] {
  torch.manualSeed(rows)
  const x = torch.randn([rows, columns])
  const y = [x.add(1), x.t().contiguous(), x.softmax(0), x.matmul(x.t()), x.sum(0), x.clone().mul_(3), x.cumsum(1), x.gt(0)]
  return y.map(bytesOf)
}

async function ready(pack: Package): Promise<void> {
  const x = pack.torch.ones([4096])
  await untilReady(() => {
    x.add(1).dispose()
    return pack.poolState.chunksByWorkers > 0
  })
}

test('many launches of all sizes, to workers that look for jobs and to workers that sleep, give the bits of one thread', async () => {
  const pack = await onThreads(3)
  await ready(pack)
  const before = pack.poolState.launches
  for (let round = 0; round < 60; round++) {
    const [rows, columns] = [1 + ((round * 7) % 40), 1 + ((round * 13) % 70)]
    const wanted = onOne(pack, () => results(pack.torch, rows, columns))
    expect(results(pack.torch, rows, columns)).toEqual(wanted)
    // Every third time workers have gone to sleep.
    if (round % 3 === 0) await new Promise((resolve) => setTimeout(resolve, 2))
  }
  expect(pack.poolState.launches - before).toBeGreaterThan(200)
  expect(pack.poolState.redone).toBe(0)
})

/** The host of the package, with another text for workers. */
function withText({ workerHost, setWorkerHost }: Package, serve: string): void {
  const { Worker } = process.getBuiltinModule('node:worker_threads')
  const host: WorkerHost = {
    maySleep: workerHost().maySleep,
    start(start, lost) {
      const worker = new Worker(
        `${serve}\nconst { memory, buffer, index } = require('node:worker_threads').workerData; serve(memory, buffer, index)`,
        {
          eval: true,
          workerData: start,
          execArgv: [],
        },
      )
      worker.on('error', lost)
      worker.on('exit', lost)
      worker.unref()
      return { terminate: () => void worker.terminate() }
    },
  }
  setWorkerHost(host)
}

describe('a worker that takes a chunk and', () => {
  const begins = 'kernel(...args, first, Math.min(chunk, extent - first))'
  const ends: Readonly<Record<string, string>> = {
    'never comes back': 'if (index === 0) for (;;);',
    'dies in the middle': `if (index === 0) { ${begins}; process.exit(1) }`,
    'fails in it': "if (index === 0) throw new Error('broken')",
  }
  test.each(Object.entries(ends))('%s: its chunks are done by the caller, with one notice at most, and the others go on', async (name, does) => {
    const warned = vi.spyOn(console, 'warn').mockReturnValue()
    const pack = await onThreads(3)
    pack.poolState.patience = 100
    withText(
      pack,
      SERVE.replace(begins, () => `${does}\n${begins}`),
    )
    const x = pack.torch.randn([200, 50])
    const compute = (): string => bytesOf(x.t().contiguous())
    const wanted = onOne(pack, compute)
    for (let i = 0; i < 2000 && pack.poolState.redone === 0; i++) {
      expect(compute()).toBe(wanted)
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    expect(pack.poolState.redone).toBeGreaterThan(0)
    const before = pack.poolState.chunksByWorkers
    await untilReady(() => {
      expect(compute()).toBe(wanted)
      return pack.poolState.chunksByWorkers > before + 5
    })
    expect(warned.mock.calls.length).toBe(name === 'fails in it' ? 0 : 1)
  })
})

test('where launches lose time, kernels stay on one thread, for longer each time', async () => {
  const pack = await onThreads(2)
  const begins = 'kernel(...args, first, Math.min(chunk, extent - first))'
  withText(
    pack,
    SERVE.replace(begins, () => `for (const end = performance.now() + 20; performance.now() < end;);\n${begins}`),
  )
  const x = pack.torch.randn([300, 300])
  const compute = (): void => x.t().contiguous().dispose()
  await untilReady(() => {
    compute()
    return pack.poolState.chunksByWorkers > 0
  })
  Object.assign(pack.threadCosts, { learns: true, chunk: 0.004 })
  const start = performance.now()
  let [calls, slow] = [0, 0]
  for (let now = start; now - start < 600; calls++) {
    compute()
    const end = performance.now()
    if (end - now > 15) slow++
    now = end
  }
  // Each launch of which a worker takes a part takes 20 ms; rests take 50, 100, 200, 400.
  expect(slow).toBeGreaterThan(0)
  expect(slow).toBeLessThan(8)
  expect(calls).toBeGreaterThan(50)
})

test('blocks of the attention of one head, each of which is little work, stay on one thread', async () => {
  const pack = await onThreads(2)
  Object.assign(pack.threadCosts, { awake: 0, asleep: 0, learns: true })
  const q = pack.torch.randn([1, 1, 128, 32])
  const product = (): unknown => q.matmul(q.mT)
  await untilReady(() => {
    product()
    return pack.poolState.launches > 0
  })
  const before = pack.poolState.launches
  for (let i = 0; i < 100; i++) pack.torch.nn.functional.scaledDotProductAttention(q, q, q)
  expect(pack.poolState.launches).toBe(before)
})

test('workers that are refused: one notice, one thread, the same results', async () => {
  const warned = vi.spyOn(console, 'warn').mockReturnValue()
  const pack = await onThreads(2)
  pack.setWorkerHost({
    maySleep: false,
    start: () => {
      throw new Error('Refused to create a worker')
    },
  })
  const wanted = onOne(pack, () => results(pack.torch, 20, 30))
  expect(results(pack.torch, 20, 30)).toEqual(wanted)
  expect(results(pack.torch, 20, 30)).toEqual(wanted)
  expect(pack.torch.getNumThreads()).toBe(1)
  expect(pack.poolState.launches).toBe(0)
  expect(warned.mock.calls).toEqual([
    [expect.stringContaining('2 threads were asked for, but one computes: workers cannot be started (Error: Refused to create a worker)')],
  ])
})

test('the main thread of a page never waits', async () => {
  const pack = await onThreads(2)
  const host = pack.workerHost()
  pack.setWorkerHost({ maySleep: false, start: host.start.bind(host) })
  const waits = vi.spyOn(Atomics, 'wait').mockImplementation(() => {
    throw new Error('Atomics.wait cannot be called in this context')
  })
  await ready(pack)
  const wanted = onOne(pack, () => results(pack.torch, 60, 50))
  for (let i = 0; i < 20; i++) expect(results(pack.torch, 60, 50)).toEqual(wanted)
  expect(waits).not.toHaveBeenCalled()
  expect(pack.poolState.chunksByWorkers).toBeGreaterThan(0)
})

test('the heap does not grow while threads work on it, and does afterwards', async () => {
  const pack = await onThreads(2)
  await ready(pack)
  const { holdingHeap, heapStats, tryAllocate, free } = await import('../../../src/kernels/memory/heap.ts')
  const more = heapStats().capacity + 1
  let during = -1
  holdingHeap(() => (during = tryAllocate(more)))
  expect(during).toBe(0)
  const after = tryAllocate(more)
  expect(after).toBeGreaterThan(0)
  free(after, more)
  // Workers see what was added.
  const x = pack.torch.ones([1_000_000])
  const before = pack.poolState.chunksByWorkers
  await untilReady(() => {
    expect(x.add(1).sum().item()).toBe(2_000_000)
    return pack.poolState.chunksByWorkers > before
  })
})

test('without room for the scratch memory of workers, one thread computes', async () => {
  const pack = await onThreads(2)
  await ready(pack)
  const { threadScratch } = await import('../../../src/kernels/threads/launch.ts')
  const { OutOfMemoryError } = await import('../../../src/kernels/memory/outOfMemory.ts')
  const x = pack.torch.randn([130, 140])
  const compute = (): string => bytesOf(x.matmul(x.t()))
  const wanted = onOne(pack, compute)
  const reserve = vi.spyOn(threadScratch, 'reserve').mockImplementation((bytes) => {
    throw new OutOfMemoryError(bytes, 'scratch memory of threads')
  })
  const before = pack.poolState.launches
  expect(compute()).toBe(wanted)
  expect(reserve).toHaveBeenCalled()
  expect(pack.poolState.launches).toBe(before)
  reserve.mockRestore()
  expect(compute()).toBe(wanted)
  expect(pack.poolState.launches).toBeGreaterThan(before)
})

test('views on the heap are renewed when it has grown', async () => {
  const { kernels, torch } = await onThreads(2)
  const x = torch.arange(10, { dtype: 'float32' })
  const [bytes, floats] = [kernels.heapBytes(), kernels.heapView('float32')]
  const y = torch.ones([2 ** 23])
  expect(kernels.heapBytes().length).toBeGreaterThan(bytes.length)
  expect(kernels.heapView('float32').length).toBeGreaterThan(floats.length)
  // The old ones are not detached, as those of memory that is not shared are.
  expect(bytes.length).toBeGreaterThan(0)
  expect(y.sum().item()).toBe(2 ** 23)
  expect([...x.toTypedArray()]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
})
