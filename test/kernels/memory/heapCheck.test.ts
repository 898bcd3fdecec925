// The checked heap and injected failures, on a heap of their own.
import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { HeapCheck } from '../../../src/kernels/memory/heapCheck.ts'

type Kernels = typeof import('../../../src/kernels/index.ts')

let k: Kernels
let heap: HeapCheck
beforeEach(async () => {
  vi.resetModules()
  k = await import('../../../src/kernels/index.ts')
  heap = k.checkHeap()
})

/** A kernel that copies n elements, `ahead` elements further than it should. */
function copyKernel(ahead: number): ReturnType<Kernels['compileKernel']> {
  const n = k.sizeParam('n')
  const i = k.loopVar('i', n)
  const [out, a] = [k.bufferParam('out', 'float32', 'write'), k.bufferParam('a', 'float32')]
  const store = k.store(out, { ...k.at([i, 1]), base: ahead }, k.load(a, k.at([i, 1])))
  return k.compileKernel({ name: 'copy', params: [out, a, n], body: [k.forLoop(i, 'serial', [store])] })
}

describe('the checked heap', () => {
  test('gives memory that is NaN, and counts what was asked for', () => {
    const address = k.allocate(100)
    expect(address % 16).toBe(0)
    expect([...k.heapBytes().slice(address, address + 100)]).toEqual(new Array(100).fill(0xff))
    expect(k.heapStats().inUse).toBe(112)
    k.free(address, 100)
    expect(k.heapStats().inUse).toBe(0)
    heap.verify()
  })

  test('notices what is written before and behind a block', () => {
    for (const at of [-1, -64, 10, 73]) {
      const address = k.allocate(10)
      k.heapBytes()[address + at] = 1
      const message = new RegExp(`checked heap: something wrote to byte ${at} of a block of 10 bytes`)
      expect(() => heap.verify(), `${at}`).toThrow(message)
      expect(() => k.free(address, 10)).toThrow(message)
      k.heapBytes()[address + at] = 0xfb
      k.free(address, 10)
    }
  })

  test('notices what is written after it was freed, and that memory is freed twice or with another size', () => {
    const address = k.allocate(1000)
    expect(() => k.free(address, 999)).toThrow('the block at')
    k.free(address, 1000)
    expect(k.heapBytes()[address + 500]).toBe(0xff)
    heap.verify()
    expect(() => k.free(address, 1000)).toThrow('were freed before')
    expect(() => k.free(address + 16, 1000)).toThrow('no block begins there')
    k.heapBytes()[address + 500] = 3
    expect(() => heap.verify()).toThrow('byte 500 of a block of 1000 bytes was written after it was freed')
    expect(() => heap.release()).toThrow('was written after it was freed')
  })

  test('keeps freed memory for a while, but not for ever', () => {
    const first = k.allocate(100)
    k.free(first, 100)
    expect(k.allocate(100)).not.toBe(first)
    for (let i = 0; i < 5000; i++) k.free(k.allocate(100), 100)
    expect(new Set(Array.from({ length: 200 }, () => k.allocate(100))).size).toBe(200)
    const capacity = k.heapStats().capacity
    for (let i = 0; i < 100; i++) k.free(k.allocate(2 ** 20), 2 ** 20)
    expect(k.heapStats().capacity).toBeLessThan(capacity + 64 * 2 ** 20)
  })

  test('stops a launch that would leave its blocks, before the kernel runs', () => {
    const [a, b] = [k.allocate(64), k.allocate(64)]
    const copy = copyKernel(0)
    copy.run(a, b, 16)
    expect(heap.launches).toBe(1)
    expect(() => copy.run(a, b, 17)).toThrow('kernel copy: a would be accessed from byte 0 to 68 of a block of 64 bytes')
    expect(() => copy.run(a + 4, b, 16)).toThrow('kernel copy: out would be accessed from byte 4 to 68 of a block of 64 bytes')
    expect(() => copy.run(a - 4, b, 1)).toThrow('kernel copy: out would be accessed from byte -4')
    expect(() => copy.run(16, b, 1)).toThrow('kernel copy: out would be accessed at 16, where there is no block')
    expect(() => copy.run(a, b, 2 ** 32)).toThrow('the size n is 4294967296')
    copy.run(16, 16, 0)
    expect(() => copyKernel(1).run(a, b, 16)).toThrow('out would be accessed from byte 4 to 68')
    copyKernel(1).run(a, b, 15)
    k.free(a, 64)
    expect(() => copy.run(a, b, 1)).toThrow('kernel copy: out is in a block that was freed')
  })

  test('knows the range of computed indices, and leaves those that are read from memory to their margins', () => {
    const n = k.sizeParam('n')
    const i = k.loopVar('i', n)
    const [out, at] = [k.bufferParam('out', 'int32', 'write'), k.bufferParam('at', 'int32')]
    const kernel = (value: Parameters<Kernels['cast']>[0], name: string): ReturnType<Kernels['compileKernel']> =>
      k.compileKernel({
        name,
        params: [out, at, n],
        body: [k.forLoop(i, 'serial', [k.store(out, { base: 0, terms: [], dynamic: [{ value, stride: 2 }] }, k.load(at, k.at([i, 1])))])],
      })
    const [a, b] = [k.allocate(40), k.allocate(400)]
    const last = k.call('min', k.iota(i), k.constant('int32', 4))
    kernel(last, 'clamped').run(a, b, 50)
    expect(() => kernel(k.iota(i), 'doubled').run(a, b, 6)).toThrow('kernel doubled: out would be accessed from byte 0 to 44 of a block of 40')
    kernel(k.iota(i), 'doubled').run(a, b, 5)
    k.heapView('int32')[b / 4] = 7
    expect(() => kernel(k.load(at, k.at([i, 1])), 'gathered').run(a, b, 1)).toThrow('kernel gathered wrote to byte 56 of a block of 40 bytes')
  })

  test('says no at the same size as the heap itself', () => {
    for (const bytes of [2 ** 31, NaN, Infinity, -1]) expect(() => k.allocate(bytes)).toThrow(k.OutOfMemoryError)
    const address = k.allocate(2 ** 20)
    k.free(address, 2 ** 20)
    expect(k.heapStats().inUse).toBe(0)
  })

  test('is started once', () => {
    expect(k.checkHeap()).toBe(heap)
  })
})

describe('withFailingAllocation', () => {
  test('lets the n-th request fail, and no other', () => {
    const three = (): number[] => [k.allocate(10), k.allocate(20), k.allocate(30)]
    expect(k.countAllocations(three)).toBe(3)
    for (const nth of [1, 2, 3]) {
      const { requests, failed, outcome } = k.withFailingAllocation(nth, three)
      expect([requests, failed]).toEqual([nth, true])
      expect(outcome).toHaveProperty(
        'threw.message',
        expect.stringMatching(new RegExp(`no room for ${10 * nth} bytes for a request that a test lets fail`)),
      )
    }
    const { failed, outcome } = k.withFailingAllocation(4, three)
    expect(failed).toBe(false)
    expect(outcome).toHaveProperty('returned.length', 3)
    expect(k.allocate(10)).toBeGreaterThan(0)
  })

  test('counts memory outside the heap too', () => {
    k.setSoftLimit(0)
    k.setSynchronousCollection(false)
    expect(k.withFailingAllocation(1, () => k.newBlock(10)).outcome).toHaveProperty('threw.code', 'TFX_OUT_OF_MEMORY')
    expect(k.countAllocations(() => k.newBlock(10))).toBe(1)
  })

  test('goes on after the failure, as a function that catches it does', () => {
    const { outcome } = k.withFailingAllocation(1, () => {
      expect(() => k.allocate(10)).toThrow(k.OutOfMemoryError)
      return k.allocate(10)
    })
    expect(outcome).toHaveProperty('returned')
  })
})
