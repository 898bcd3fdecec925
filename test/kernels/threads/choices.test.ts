// Nested loops that threads could share at several levels: the outer one where it has enough iterations, otherwise what is inside; with the bits of one thread.
import { beforeEach, expect, test, vi } from 'vitest'
import type { Tensor } from '../../../src/index.ts'
import { onOne, onThreads, untilReady } from './fresh.ts'

beforeEach(() => void vi.resetModules())

const bytesOf = (x: Tensor): string => Buffer.from(new Uint8Array(x.contiguous().toTypedArray().buffer)).toString('base64')

type Torch = Awaited<ReturnType<typeof onThreads>>['torch']

/** What is computed, and how many launches that takes on two threads: one for many small problems, one for each loop that is inside of few. */
const calls: Readonly<Record<string, readonly [launches: readonly [from: number, to: number], compute: (torch: Torch) => () => Tensor]>> = {
  'many small products, each of which packs an operand': [
    [1, 1],
    (torch) => {
      const [a, b] = [torch.randn([64, 20, 30]), torch.randn([64, 30, 20])]
      return () => a.bmm(b)
    },
  ],
  'two products': [
    [2, 100],
    (torch) => {
      const [a, b] = [torch.randn([2, 60, 30]), torch.randn([2, 30, 80])]
      return () => a.bmm(b)
    },
  ],
  'many products of a few rows, whose sums are kept for a call': [
    [1, 1],
    (torch) => {
      const [a, b] = [torch.randn([40, 2, 50]), torch.randn([40, 50, 100])]
      return () => a.bmm(b)
    },
  ],
  'a product with one panel of columns': [
    [1, 10],
    (torch) => {
      const [a, b] = [torch.randn([300, 50]), torch.randn([50, 8])]
      return () => a.mm(b)
    },
  ],
  'softmax over the first dimension': [
    [1, 1],
    (torch) => {
      const x = torch.randn([30, 200])
      return () => x.softmax(0)
    },
  ],
  'sums so far along the first dimension': [
    [1, 1],
    (torch) => {
      const x = torch.randn([30, 200])
      return () => x.cumsum(0)
    },
  ],
}

test.each(Object.entries(calls))('%s', async (_, [[from, to], compute]) => {
  const pack = await onThreads(2)
  const ones = pack.torch.ones([4096])
  await untilReady(() => {
    ones.add(1)
    return pack.poolState.chunksByWorkers > 0
  })
  const run = compute(pack.torch)
  const wanted = onOne(pack, () => bytesOf(run()))
  for (let i = 0; i < 20; i++) {
    const before = pack.poolState.launches
    const got = run()
    const launches = pack.poolState.launches - before
    expect(bytesOf(got)).toBe(wanted)
    expect(launches).toBeGreaterThanOrEqual(from)
    expect(launches).toBeLessThanOrEqual(to)
  }
})
