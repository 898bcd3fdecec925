// The garbage collector: flags of V8 belong to the process, so neither importing the library nor making tensors may leave them changed.
import { runInNewContext } from 'node:vm'
import { setFlagsFromString } from 'node:v8'
import { expect, onTestFinished, test, vi } from 'vitest'

/** What contexts made now see of V8's flags. */
const flags = (): unknown => runInNewContext('[typeof gc, typeof FinalizationRegistry.prototype.cleanupSome].join()')

test('importing the library and making tensors leaves the flags of V8 as they were', async () => {
  vi.resetModules()
  expect(flags()).toBe('undefined,undefined')
  const { torch } = await import('../../../src/index.ts')
  expect(flags()).toBe('undefined,undefined')
  expect(torch.ones([10]).sum().item()).toBe(10)
  expect(flags()).toBe('undefined,undefined')
})

test('a program that was started with --expose-gc keeps it', async () => {
  setFlagsFromString('--expose-gc')
  onTestFinished(() => setFlagsFromString('--no-expose-gc'))
  vi.resetModules()
  const { collectBlocks, newBlock } = await import('../../../src/kernels/memory/storageBlock.ts')
  newBlock(10)
  expect(collectBlocks()).toBe(true)
  expect(flags()).toBe('function,undefined')
})

test('a loop that makes empty blocks frees those that the collector has found', async () => {
  vi.resetModules()
  setFlagsFromString('--expose-gc')
  onTestFinished(() => setFlagsFromString('--no-expose-gc'))
  const { newBlock } = await import('../../../src/kernels/memory/storageBlock.ts')
  const { heapStats } = await import('../../../src/kernels/memory/heap.ts')
  const collect: unknown = runInNewContext('gc')
  for (let i = 0; i < 200_000; i++) newBlock(0)
  expect(heapStats().inUse).toBe(200_000 * 16)
  if (typeof collect === 'function') collect()
  for (let i = 0; i < 100_000; i++) newBlock(0)
  expect(heapStats().inUse).toBeLessThan(150_000 * 16)
})

test('blocks that nothing refers to are freed by a collection', async () => {
  vi.resetModules()
  const { collectBlocks, newBlock } = await import('../../../src/kernels/memory/storageBlock.ts')
  const { heapStats } = await import('../../../src/kernels/memory/heap.ts')
  const kept = newBlock(1000)
  for (let i = 0; i < 100; i++) newBlock(1000)
  expect(heapStats().inUse).toBe(101 * 1024)
  expect(collectBlocks()).toBe(true)
  expect(heapStats().inUse).toBeLessThanOrEqual(2 * 1024)
  expect(kept.ptr).toBeGreaterThan(0)
})
