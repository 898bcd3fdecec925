// config.memoryLimit, OutOfMemoryError and torch.memory: what may be in use, who has it, and what happens when there is no more.
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { ArgumentError, Tensor, compile, config, torch } from 'tensorfx'
import { withConfig } from 'tensorfx/compile'
import { OutOfMemoryError, ScratchMemory, heapStats, setSoftLimit, setSynchronousCollection } from 'tensorfx/kernels'
import { limitWithin } from '../../src/kernels/memory/hostMemory.ts'
import { turn } from '../helpers/rotation.ts'

const MIB = 2 ** 20
const { memory } = torch

const given = config.memoryLimit
beforeEach(() => memory.emptyCache())
afterEach(() => {
  config.memoryLimit = given
  config.memoryHistory = false
})

/** Limits memory to `mib` more than is in use. */
function allow(mib: number): void {
  memory.emptyCache()
  config.memoryLimit = memory.memoryAllocated() + mib * MIB
}

/** The error of making 1 MiB tensors without end, which are released then. */
function exhaust(make: () => unknown = () => torch.ones([2 ** 18])): OutOfMemoryError {
  const kept: unknown[] = []
  try {
    for (let i = 0; i < 50_000; i++) kept.push(make())
  } catch (error) {
    if (error instanceof OutOfMemoryError) return error
    throw error
  }
  throw new Error('memory has no limit')
}

describe('config.memoryLimit', () => {
  test('ends allocations beyond it, and the program goes on (difference: memory-of-the-host)', () => {
    allow(20)
    const error = exhaust()
    expect(error.code).toBe('TFX_OUT_OF_MEMORY')
    expect(error).toMatchObject({ bytes: MIB, limit: config.memoryLimit })
    expect(error.allocated).toBeGreaterThan(config.memoryLimit - 1.1 * MIB)
    expect(error.allocated).toBeLessThanOrEqual(config.memoryLimit)
    expect(
      torch
        .ones([2 ** 18])
        .sum()
        .item(),
    ).toBe(2 ** 18)
  })

  test('does not end a loop whose tensors die, however much they are together', () => {
    allow(20)
    const before = memory.stats().counts
    for (let i = 0; i < 100; i++) torch.ones([2 ** 18]).add(1)
    const after = memory.stats().counts
    expect(after.retries).toBeGreaterThan(before.retries)
    expect(after.outOfMemory).toBe(before.outOfMemory)
  })

  test.each(turn([1, 5, 16, 100]))('holds for tensors of %d KiB, on the heap and outside it', (kib) => {
    for (const soft of [Infinity, 4 * MIB, 0]) {
      const { softLimit } = heapStats()
      setSoftLimit(soft)
      allow(12)
      memory.resetPeakMemoryStats()
      exhaust(() => torch.empty([kib * 256]))
      setSoftLimit(softLimit)
      expect(memory.maxMemoryAllocated(), `soft limit ${soft}`).toBeLessThanOrEqual(config.memoryLimit)
      expect(memory.maxMemoryAllocated(), `soft limit ${soft}`).toBeGreaterThan(config.memoryLimit - MIB)
      memory.emptyCache()
    }
  })

  test('gives back scratch memory that nothing uses, before a tensor fails', () => {
    allow(20)
    new ScratchMemory('a test').reserve(15 * MIB)
    expect(memory.stats().scratch.uses).toMatchObject({ 'a test': 15 * MIB })
    expect(torch.empty([10 * 2 ** 18]).numel).toBe(10 * 2 ** 18)
    expect(memory.stats().scratch.uses).not.toHaveProperty('a test')
    const inUse = new ScratchMemory('another test', () => false)
    memory.emptyCache()
    inUse.reserve(5 * MIB)
    expect(() => torch.empty([18 * 2 ** 18])).toThrow(/\d by another test/)
    inUse.release()
  })

  test('may be lowered below what is in use, and raised again', () => {
    const kept = torch.ones([4 * 2 ** 18])
    config.memoryLimit = MIB
    expect(() => torch.ones([2 ** 18])).toThrow(OutOfMemoryError)
    expect(() => kept.sum()).toThrow(OutOfMemoryError)
    config.memoryLimit = given
    expect(kept.sum().item()).toBe(4 * 2 ** 18)
  })

  test('is a number of bytes', () => {
    for (const wrong of [0, -1, NaN, 0.5]) expect(() => (config.memoryLimit = wrong), `${wrong}`).toThrow(ArgumentError)
    expect(() => Object.assign(config, { memoryLimit: '512MB' })).toThrow(
      "config.memoryLimit must be a number of bytes, at least 1, such as 536870912 (512 MiB), or Infinity for no limit; got '512MB'.",
    )
    expect(config.memoryLimit).toBe(given)
    expect(withConfig({ memoryLimit: Infinity }, () => config.memoryLimit)).toBe(Infinity)
    expect(config.memoryLimit).toBe(given)
  })

  test('is by default what the container or the machine has, minus a tenth, at least 256 MiB and at most half', () => {
    expect(limitWithin({ total: 10_000 * MIB, container: undefined })).toBe(9000 * MIB)
    expect(limitWithin({ total: 10_000 * MIB, container: 2 ** 64 })).toBe(9000 * MIB)
    expect(limitWithin({ total: 10_000 * MIB, container: 0 })).toBe(9000 * MIB)
    expect(limitWithin({ total: 10_000 * MIB, container: 1000 * MIB })).toBe(744 * MIB)
    expect(limitWithin({ total: 10_000 * MIB, container: 400 * MIB })).toBe(200 * MIB)
    expect(limitWithin({ total: undefined, container: undefined })).toBe(4096 * MIB)
  })

  test('where dead tensors cannot be found within a task, counts what was in use when the last one ended', async () => {
    const before = setSynchronousCollection(false)
    onTestFinished(() => void setSynchronousCollection(before))
    allow(20)
    for (let i = 0; i < 60; i++) torch.ones([2 ** 18])
    const kept = Array.from({ length: 60 }, () => torch.ones([2 ** 18]))
    await new Promise((resolve) => setTimeout(resolve, 5))
    expect(() => torch.ones([2 ** 18])).toThrow(OutOfMemoryError)
    expect(() => kept.at(-1)?.sum()).toThrow(OutOfMemoryError)
    for (const tensor of kept) tensor.dispose()
  })
})

describe('OutOfMemoryError', () => {
  test('names the request, what is in use, and the largest owners', () => {
    allow(10)
    const kept = [torch.zeros([3, 2 ** 18]), torch.ones([2 ** 18]).exp()]
    const error = exhaust(() => torch.zeros([2 ** 18]).add(1))
    expect(error.message).toMatch(
      /^there is no room for 1048576 bytes for a float32 tensor of shape \[262144\], which torch\.(zeros|add) makes: \d+ of at most \d+ \(config\.memoryLimit\) are in use/,
    )
    expect(error.message).toContain('     3.0 MiB  float32 [3, 262144] by torch.zeros')
    expect(error.message).toMatch(/\d x float32 \[262144\] by torch.add/)
    expect(error.message).toContain('set config.memoryHistory = true')
    expect(error.owners).toContainEqual({
      operator: 'torch.exp',
      shape: [2 ** 18],
      dtype: 'float32',
      count: 1,
      bytes: MIB,
      place: 'heap',
      frames: null,
    })
    expect(kept.length).toBe(2)
  })

  test('shows the lines that made the tensors, if they are recorded', () => {
    config.memoryHistory = true
    allow(10)
    const keeper = (): Tensor => torch.zeros([2 ** 18])
    const error = exhaust(keeper)
    expect(error.message).toMatch(/\d+ x float32 \[262144\] by torch.zeros, .*limit\.test\.ts:\d+ in keeper/)
    expect(error.message).not.toContain('config.memoryHistory')
    expect(error.owners[0]?.frames?.at(-1)).toMatchObject({ fn: 'keeper' })
  })

  test('names the operator that the program called, backward passes, and compiled functions', () => {
    allow(12)
    const x = torch.ones([2 ** 18]).requiresGrad_()
    expect(exhaust(() => torch.softmax(torch.ones([2, 2 ** 17]), 1)).message).toContain('by torch.softmax')
    memory.emptyCache()
    const loss = x.exp().sum()
    expect(exhaust(() => torch.autograd.grad(loss, x, { retainGraph: true })).message).toMatch(/by torch\.\w+ in backward \(\w+\)/)
    memory.emptyCache()
    const twice = compile((value: Tensor) => value.mul(2))
    const input = x.detach()
    twice(input)
    expect(exhaust(() => twice(input)).owners.map(({ operator }) => operator)).toContain('a compiled function')
  })

  test('says that a tensor can be too large for any limit', () => {
    expect(() => torch.empty([2 ** 30])).toThrow(
      'there is no room for 4294967296 bytes for a float32 tensor of shape [1073741824], which torch.empty makes: one tensor has at most 2147418112.',
    )
  })
})

describe('torch.memory', () => {
  test('stats count what is in use, and peaks since they were reset', () => {
    const before = memory.memoryAllocated()
    const x = torch.empty([2 ** 19])
    expect(memory.memoryAllocated() - before).toBe(2 * MIB)
    memory.resetPeakMemoryStats()
    x.dispose()
    expect(memory.memoryAllocated()).toBe(before)
    expect(memory.maxMemoryAllocated() - before).toBe(2 * MIB)
    const { heap, spill, limit, reserved, allocated, peak } = memory.stats()
    expect({ limit, spill, allocated, peak }).toEqual({
      limit: given,
      spill: { allocated: 0, peak: 0, tensors: 0 },
      allocated: before,
      peak: before + 2 * MIB,
    })
    expect(heap).toMatchObject({ allocated: before, peak: before + 2 * MIB, reserved })
    expect(memory.memoryReserved()).toBe(reserved)
    expect(memory.maxMemoryReserved()).toBeGreaterThanOrEqual(reserved)
  })

  test('stats count tensors outside the heap until they die', async () => {
    const { softLimit } = heapStats()
    setSoftLimit(0)
    onTestFinished(() => setSoftLimit(softLimit))
    const before = memory.memoryAllocated()
    let kept: Tensor[] = [torch.ones([1000]), torch.ones([2 ** 18])]
    memory.emptyCache()
    expect(memory.stats().spill).toMatchObject({ allocated: 4000 + MIB, tensors: 2 })
    kept[0]?.dispose()
    expect(memory.stats().spill).toMatchObject({ allocated: MIB, tensors: 1 })
    kept = []
    await new Promise((resolve) => setImmediate(resolve))
    memory.emptyCache()
    expect(memory.stats().spill).toMatchObject({ allocated: 0, tensors: 0 })
    expect(memory.memoryAllocated()).toBeLessThanOrEqual(before)
  })

  test('the snapshot has the owners, with lines of small tensors too while they are recorded', () => {
    const large = torch.zeros([512, 512])
    memory.recordMemoryHistory()
    const small = torch.arange(10)
    const { owners, stats, small: unrecorded } = memory.snapshot()
    memory.recordMemoryHistory(false)
    const find = (name: string): unknown =>
      owners.find(({ operator, shape }) => operator === name && shape?.length === (name === 'torch.zeros' ? 2 : 1))
    expect(find('torch.zeros')).toMatchObject({ shape: [512, 512], bytes: MIB, frames: null })
    expect(find('torch.arange')).toMatchObject({ shape: [10], count: 1, frames: [{ file: expect.stringContaining('limit.test.ts') }] })
    const recorded = owners.reduce((sum, { bytes }) => sum + bytes, 0)
    expect(recorded + unrecorded.bytes + stats.scratch.allocated).toBeGreaterThanOrEqual(stats.allocated - 64)
    expect([large.numel, small.numel]).toEqual([512 * 512, 10])
    expect(memory.snapshot().owners.every(({ frames }) => frames === null || frames.length > 0)).toBe(true)
  })

  test('the summary is a text', () => {
    const x = torch.zeros([512, 512])
    expect(memory.memorySummary()).toMatch(
      /^limit .* retries, \d+ out of memory\n.*allocated +peak\nall .*\nheap .*\nspill .*\nscratch .*\nreserved .*\nowners\n[^]* 1\.0 MiB  float32 \[512, 512\] by torch\.zeros/,
    )
    expect(x.numel).toBe(512 * 512)
  })
})
