// The numbers of memory: what is in use and has been at most, on the heap, outside of it and by what is not a tensor, and what torch.memory says of them.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import {
  budget,
  countSpilled,
  countUse,
  notePeak,
  noteReserved,
  peakBytes,
  refreshBudget,
  resetPeaks,
  scratchBytes,
  scratchUses,
} from '../../../src/kernels/memory/budget.ts'

const { memory } = torch

/** The numbers before a test; what a test adds to them it takes away again. */
let before = { heap: 0, spilled: 0, scratch: 0 }

const undo: (() => void)[] = []

beforeEach(() => {
  memory.emptyCache()
  resetPeaks(0)
  before = { heap: budget.heap, spilled: budget.spilled, scratch: scratchBytes() }
})

afterEach(() => {
  for (const back of undo.splice(0)) back()
  expect({ heap: budget.heap, spilled: budget.spilled, scratch: scratchBytes() }).toEqual(before)
  memory.resetPeakMemoryStats()
  refreshBudget()
})

/** Counts bytes of something that is no tensor, until the test ends. */
function using(use: string, bytes: number): void {
  countUse(use, bytes)
  undo.push(() => countUse(use, -bytes))
}

describe('peaks', () => {
  test('start from what is in use', () => {
    resetPeaks(1000)
    const { heap, spilled, scratch } = before
    expect(peakBytes()).toEqual({ total: heap + spilled, heap, spilled, scratch, reserved: 1000 + spilled })
    expect(budget.mark).toBe(heap)
  })

  test('of the heap and of both together stay where they were when less is in use', () => {
    const { heap, spilled } = before
    budget.heap += 500
    notePeak()
    budget.heap -= 500
    expect(peakBytes()).toMatchObject({ heap: heap + 500, total: heap + spilled + 500 })
    countSpilled(100, 0)
    // The next peak of both together comes before that of the heap.
    expect(budget.mark).toBe(heap + 400)
    refreshBudget()
    expect(budget.mark).toBe(heap + 400)
    expect(peakBytes()).toMatchObject({ heap: heap + 500, total: heap + spilled + 500 })
    countSpilled(-100, 0)
    notePeak()
    expect(budget.mark).toBe(heap + 500)
  })

  test('of what spilled and of what is reserved count bytes outside the heap when they come, not when they go', () => {
    const { heap, spilled } = before
    budget.quick = 7
    countSpilled(100, 5000)
    expect(budget.quick).toBe(-1)
    expect(budget.spilled).toBe(spilled + 100)
    expect(peakBytes()).toMatchObject({ spilled: spilled + 100, total: heap + spilled + 100, reserved: spilled + 5100 })
    noteReserved(4000)
    expect(peakBytes().reserved).toBe(spilled + 5100)
    noteReserved(6000)
    expect(peakBytes().reserved).toBe(spilled + 6100)
    budget.quick = 7
    countSpilled(-100, 9000)
    expect(budget.quick).toBe(-1)
    expect(peakBytes()).toMatchObject({ spilled: spilled + 100, total: heap + spilled + 100, reserved: spilled + 6100 })
  })

  test('of scratch memory add up its uses', () => {
    const { scratch } = before
    countUse('test: first', 10)
    countUse('test: second', 20)
    expect(scratchBytes()).toBe(scratch + 30)
    expect(scratchUses()).toContainEqual(['test: second', 20])
    countUse('test: first', -10)
    expect(scratchUses().map(([use]) => use)).not.toContain('test: first')
    countUse('test: second', 5)
    expect(scratchUses()).toContainEqual(['test: second', 25])
    countUse('test: second', -25)
    expect(scratchBytes()).toBe(scratch)
    expect(peakBytes().scratch).toBe(scratch + 30)
  })
})

describe('a program that starts', () => {
  /** The numbers of a program of its own. */
  const fresh = async (name: string): Promise<typeof import('../../../src/kernels/memory/budget.ts')> =>
    (await import(/* @vite-ignore */ `../../../src/kernels/memory/budget.ts?${name}`)) as typeof import('../../../src/kernels/memory/budget.ts')

  test('has used nothing, and looks at the budget at its first allocation', async () => {
    const own = await fresh('start')
    expect(own.budget).not.toBe(budget)
    expect(own.peakBytes()).toEqual({ total: 0, heap: 0, spilled: 0, scratch: 0, reserved: 0 })
    expect(own.budget.quick).toBe(-1)
    own.notePeak()
    expect(own.peakBytes().total).toBe(0)
  })

  test('counts what was in use after the last task, where the host says no more', async () => {
    const own = await fresh('tasks')
    own.setMemoryLimit(100)
    Object.assign(own.budget, { heap: 5, spilled: 3 })
    expect(own.isAffordable(1, 1000)).toBe(false)
    own.countAfterTasks()
    expect(own.isAffordable(100, 1000)).toBe(true)
    await new Promise((resolve) => setTimeout(resolve, 2))
    expect(own.isAffordable(92, 1000)).toBe(true)
    expect(own.isAffordable(93, 1000)).toBe(false)
    own.countAfterTasks()
    own.countAtOnce()
    await new Promise((resolve) => setTimeout(resolve, 2))
    expect(own.isAffordable(1, 1000)).toBe(false)
  })

  test('does not wait for the timer, whatever the host gives for one', async () => {
    const own = await fresh('timers')
    const unref = vi.fn<() => void>()
    const timers: readonly unknown[] = [{ unref }, {}, null, 5, { unref: 3 }, undefined]
    for (const timer of timers) {
      let run: () => void = () => {}
      const spy = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((fn: () => void) => {
        run = fn
        return timer
      }) as never)
      try {
        expect(own.countAfterTasks).not.toThrow()
      } finally {
        spy.mockRestore()
      }
      run()
    }
    expect(unref).toHaveBeenCalledTimes(1)
  })
})

describe('torch.memory', () => {
  test('adds what is outside the heap to what is on it', () => {
    countSpilled(1000, 0)
    const { allocated, reserved, heap, spill } = memory.stats()
    const figures = [memory.memoryAllocated(), memory.memoryReserved()]
    countSpilled(-1000, 0)
    expect(spill.allocated).toBe(before.spilled + 1000)
    expect(allocated).toBe(heap.allocated + spill.allocated)
    expect(reserved).toBe(heap.reserved + spill.allocated)
    expect(figures).toEqual([allocated, reserved])
    expect(memory.stats().peak).toBe(allocated)
    memory.resetPeakMemoryStats()
    const now = memory.stats()
    expect([now.peak, now.reservedPeak]).toEqual([now.allocated, now.reserved])
    expect([memory.maxMemoryAllocated(), memory.maxMemoryReserved()]).toEqual([now.allocated, now.reserved])
  })

  test('counts small tensors without what is no tensor', () => {
    const { small } = memory.snapshot()
    const made = [torch.ones([16]), torch.ones([16]), torch.ones([16])]
    const more = memory.snapshot().small
    expect(more.count).toBe(small.count + 3)
    expect(more.bytes).toBeGreaterThanOrEqual(small.bytes + 3 * 64)
    using('test: kernel', 64)
    expect(memory.snapshot().small).toEqual({ count: more.count - 1, bytes: more.bytes - 64 })
    for (const tensor of made) tensor.dispose()
  })

  test('lists the 20 largest owners', () => {
    const large: Tensor[] = Array.from({ length: 24 }, (_, i) => torch.ones([65536 + 1024 * i]))
    const small = torch.ones([16])
    const { owners, stats: now } = memory.snapshot()
    const lines = memory.memorySummary().split('\n')
    for (const tensor of [small, ...large]) tensor.dispose()
    expect(owners.length).toBeGreaterThanOrEqual(24)
    const listed = lines.slice(lines.indexOf('owners') + 1)
    expect(listed).toHaveLength(20 + Object.keys(now.scratch.uses).length + 1)
    expect(listed[0]).toContain('[')
    expect(lines[1]).toBe(`${' '.repeat(10)}   allocated        peak`)
  })

  test('ends the list with small tensors, if there are any', () => {
    const tensor = torch.ones([16])
    const { count } = memory.snapshot().small
    expect(memory.memorySummary().split('\n').at(-1)).toMatch(new RegExp(` {2}${count} small tensors$`))
    // Enough pieces of the heap that are no tensors.
    for (let i = 0; i <= count; i++) using(`test: piece ${i}`, 1)
    expect(memory.snapshot().small.count).toBe(0)
    expect(memory.memorySummary().split('\n').at(-1)).toMatch(new RegExp(` {2}test: piece ${count}$`))
    tensor.dispose()
  })

  test('names the function and the argument', () => {
    expect(() => memory.recordMemoryHistory('all' as never)).toThrow(
      "torch.memory.recordMemoryHistory: argument 'enabled' must be true or false, got 'all'.",
    )
    const refused: readonly (readonly [() => unknown, string])[] = [
      [() => Reflect.apply(memory.recordMemoryHistory, undefined, [true, 2]), 'torch.memory.recordMemoryHistory: 2 arguments given'],
      [() => Reflect.apply(memory.snapshot, undefined, [1]), 'torch.memory.snapshot: 1 argument given'],
      [() => Reflect.apply(memory.stats, undefined, [1]), 'torch.memory.stats: 1 argument given'],
      [() => Reflect.apply(memory.emptyCache, undefined, [1]), 'torch.memory.emptyCache: 1 argument given'],
      [() => Reflect.apply(memory.memorySummary, undefined, [1]), 'torch.memory.memorySummary: 1 argument given'],
    ]
    for (const [run, said] of refused) expect(run).toThrow(said)
  })
})
