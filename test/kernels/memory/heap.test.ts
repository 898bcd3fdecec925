// The allocator, on a heap of its own; spilled blocks; scratch memory.
import * as fc from 'fast-check'
import { beforeEach, describe, expect, test, vi } from 'vitest'

type Heap = typeof import('../../../src/kernels/memory/heap.ts') &
  typeof import('../../../src/kernels/memory/scratch.ts') &
  typeof import('../../../src/kernels/memory/outOfMemory.ts') &
  typeof import('../../../src/kernels/memory/budget.ts')
type Blocks = typeof import('../../../src/kernels/memory/storageBlock.ts') & typeof import('../../../src/kernels/memory/blockCopies.ts')

let heap: Heap
let blocks: Blocks
beforeEach(async () => {
  vi.resetModules()
  heap = {
    ...(await import('../../../src/kernels/memory/heap.ts')),
    ...(await import('../../../src/kernels/memory/scratch.ts')),
    ...(await import('../../../src/kernels/memory/outOfMemory.ts')),
    ...(await import('../../../src/kernels/memory/budget.ts')),
  }
  blocks = { ...(await import('../../../src/kernels/memory/storageBlock.ts')), ...(await import('../../../src/kernels/memory/blockCopies.ts')) }
  // The machine's own limit would be in the messages.
  heap.setMemoryLimit(4096 * MIB)
})

const MIB = 2 ** 20

describe('allocate', () => {
  test('gives aligned addresses above 0, and counts whole size classes', () => {
    for (const [bytes, counted] of [
      [1, 16],
      [16, 16],
      [17, 32],
      [64, 64],
      [65, 80],
      [128, 128],
      [129, 160],
      [1000, 1024],
      [65536, 65536],
      [65537, 69632],
      [MIB + 1, MIB + 4096],
    ] as const) {
      const before = heap.heapStats().inUse
      const address = heap.allocate(bytes)
      expect(address).toBeGreaterThan(0)
      expect(address % 16).toBe(0)
      expect([bytes, heap.heapStats().inUse - before]).toEqual([bytes, counted])
      heap.free(address, bytes)
      expect(heap.heapStats().inUse).toBe(before)
    }
  })

  test('gives a freed small block to the next of its class', () => {
    const [a, b] = [heap.allocate(100), heap.allocate(100)]
    expect(b - a).toBe(112)
    heap.free(a, 100)
    expect(heap.allocate(200)).not.toBe(a)
    expect(heap.allocate(112)).toBe(a)
  })

  test('merges neighbouring large runs, whichever is freed first', () => {
    for (const order of [
      [0, 1, 2],
      [2, 1, 0],
      [0, 2, 1],
      [1, 0, 2],
    ]) {
      const size = 100 * 4096
      const three = [heap.allocate(size), heap.allocate(size), heap.allocate(size)]
      // So that the last of the three does not end the heap.
      const fence = heap.allocate(size)
      expect(three[1]).toBe((three[0] ?? 0) + size)
      for (const i of order) heap.free(three[i] ?? 0, size)
      expect(heap.allocate(3 * size)).toBe(three[0])
      heap.free(three[0] ?? 0, 3 * size)
      heap.free(fence, size)
    }
  })

  test('splits a large run, and takes the rest for the next', () => {
    const size = 128 * 4096
    const a = heap.allocate(size)
    const fence = heap.allocate(size)
    heap.free(a, size)
    expect(heap.allocate(size / 4)).toBe(a)
    expect(heap.allocate((size * 3) / 4)).toBe(a + size / 4)
    expect(heap.allocate(size)).toBeGreaterThan(fence)
  })

  test('grows the heap, and says when it is full', () => {
    const { capacity } = heap.heapStats()
    expect(capacity).toBe(0)
    expect(heap.heapBytes().length).toBe(64 * 65536)
    const view = heap.heapView('float32')
    const large = heap.allocate(100 * MIB)
    expect(heap.heapStats().capacity).toBeGreaterThanOrEqual(100 * MIB)
    // A view on shared memory is not detached: it stays as long as it was.
    expect(view.length).toBe(heap.isHeapShared() ? 64 * 16384 : 0)
    expect(heap.heapView('float32').length * 4).toBe(heap.heapStats().capacity)
    expect(heap.heapBytes().length).toBe(heap.heapStats().capacity)
    for (const bytes of [2 ** 31, 2 ** 31 - 65536, 2 ** 32 + 100000, Infinity, NaN]) expect(heap.tryAllocate(bytes)).toBe(0)
    expect(heap.heapStats().inUse).toBe(100 * MIB)
    expect(() => heap.allocate(2 ** 31)).toThrow(heap.OutOfMemoryError)
    expect(() => heap.allocate(2 ** 31)).toThrow(
      'there is no room for 2147483648 bytes for a tensor: one tensor has at most 2147418112. Release tensors with dispose(), use smaller ones, or raise config.memoryLimit.',
    )
    expect(() => heap.allocate(2000 * MIB)).toThrow(
      'there is no room for 2097152000 bytes for a tensor: 104857600 of at most 4294967296 (config.memoryLimit) are in use, 104857600 by tensors; the largest free piece of the heap has 2042559488. Release',
    )
    heap.free(large, 100 * MIB)
    expect(heap.heapStats().inUse).toBe(0)
    // The end of the heap is free again, and is used first.
    expect(heap.allocate(100 * MIB)).toBe(large)
  })

  test('small blocks come from chunks of 1 MiB that are not shared', () => {
    const addresses = Array.from({ length: 40 }, () => heap.allocate(60000))
    const starts = [...addresses].sort((a, b) => a - b)
    starts.slice(1).forEach((address, i) => expect(address - (starts[i] ?? 0)).toBeGreaterThanOrEqual(60000))
    const large = heap.allocate(MIB)
    for (const address of addresses) expect(address + 61440 <= large || address >= large + MIB).toBe(true)
  })

  test('never gives overlapping memory, for random requests', () => {
    const size = fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 60000, max: 70000 }), fc.integer({ min: 1e5, max: 2e6 }))
    fc.assert(
      fc.property(fc.array(fc.tuple(size, fc.boolean(), fc.nat()), { maxLength: 60 }), (requests) => {
        const live: { start: number; bytes: number }[] = []
        const start = heap.heapStats().inUse
        for (const [bytes, release, which] of requests) {
          if (release && live.length > 0) {
            const [gone] = live.splice(which % live.length, 1)
            if (gone !== undefined) heap.free(gone.start, gone.bytes)
            continue
          }
          const made = { start: heap.allocate(bytes), bytes }
          for (const other of live)
            expect(made.start + Math.max(bytes, 1) <= other.start || other.start + Math.max(other.bytes, 1) <= made.start).toBe(true)
          live.push(made)
        }
        for (const { start: at, bytes } of live) heap.free(at, bytes)
        expect(heap.heapStats().inUse).toBe(start)
      }),
      { numRuns: 60 },
    )
  })
})

describe('views', () => {
  test('of all dtypes see the same memory', () => {
    const address = heap.allocate(16)
    heap.heapView('int32')[address / 4] = 0x3f800000
    expect(heap.heapView('float32')[address / 4]).toBe(1)
    expect(heap.heapView('bool')[address + 3]).toBe(0x3f)
    expect(heap.heapBytes()[address + 2]).toBe(0x80)
    heap.heapView('float64')[address / 8] = 1
    expect(heap.heapView('int32')[address / 4 + 1]).toBe(0x3ff00000)
  })
})

describe('scratch memory', () => {
  test('stays while it is large enough, and grows when it is not', () => {
    const scratch = new heap.ScratchMemory()
    const first = scratch.reserve(10)
    expect(heap.heapStats().inUse).toBe(65536)
    expect(scratch.reserve(65536)).toBe(first)
    scratch.reserve(MIB)
    expect(heap.heapStats().inUse).toBe(MIB)
    expect(scratch.reserve(5)).toBe(scratch.reserve(MIB))
  })

  test('that could not grow is free, and can be reserved again', () => {
    const scratch = new heap.ScratchMemory()
    scratch.reserve(10)
    expect(() => scratch.reserve(2 ** 31)).toThrow(heap.OutOfMemoryError)
    expect(heap.heapStats().inUse).toBe(0)
    expect(scratch.reserve(10)).toBeGreaterThan(0)
    expect(heap.heapStats().inUse).toBe(65536)
  })

  test('is named in the message when memory runs out, with what else uses the heap', () => {
    new heap.ScratchMemory('packed operands').reserve(MIB)
    const tensors = heap.allocate(100 * MIB)
    const temporaries = new heap.ScratchMemory('the temporaries of a program')
    expect(() => temporaries.reserve(2000 * MIB)).toThrow(
      `there is no room for ${2000 * MIB} bytes for the temporaries of a program: ${101 * MIB} of at most ${4096 * MIB} (config.memoryLimit) are in use, ${100 * MIB} by tensors, ${MIB} by packed operands; the largest free piece of the heap has`,
    )
    heap.free(tensors, 100 * MIB)
  })
})

describe('blocks', () => {
  const spilled = (...values: number[]): InstanceType<Blocks['Block']> => {
    heap.setSoftLimit(0)
    blocks.setSynchronousCollection(false)
    const block = blocks.newBlock(values.length)
    blocks.writeBlock(block, 0, Uint8Array.from(values))
    return block
  }

  test('are on the heap up to the soft limit, and spill beyond it', () => {
    expect(heap.heapStats().softLimit).toBe(512 * MIB)
    blocks.setSynchronousCollection(false)
    heap.setSoftLimit(1024)
    const [a, b, c] = [blocks.newBlock(512), blocks.newBlock(512), blocks.newBlock(512)]
    expect([a.ptr > 0, b.ptr > 0, c.ptr]).toEqual([true, true, 0])
    expect([a.spill, c.spill?.byteLength, c.nbytes]).toEqual([null, 512, 512])
    blocks.disposeBlock(a)
    expect([a.ptr, a.spill]).toEqual([0, null])
    expect(blocks.newBlock(512).ptr).toBeGreaterThan(0)
  })

  test('of dead tensors are returned by a collection when the limit is reached, where the host can collect', () => {
    expect(blocks.setSynchronousCollection(true)).toBe(true)
    heap.setSoftLimit(8 * MIB)
    let kept = blocks.newBlock(16)
    for (let i = 0; i < 40; i++) kept = blocks.newBlock(MIB)
    expect(kept.ptr).toBeGreaterThan(0)
    expect(heap.heapStats().inUse).toBeLessThanOrEqual(8 * MIB)
    expect(blocks.setSynchronousCollection(false)).toBe(true)
    expect(blocks.setSynchronousCollection(false)).toBe(false)
  })

  test('that are large are returned too', () => {
    blocks.setSynchronousCollection(true)
    heap.setSoftLimit(64 * MIB)
    let kept = blocks.newBlock(16)
    for (let i = 0; i < 40; i++) kept = blocks.newBlock(5 * MIB)
    expect(kept.ptr).toBeGreaterThan(0)
    expect(heap.heapStats().inUse).toBeLessThanOrEqual(64 * MIB)
  })

  test('that were disposed are not freed again when they are collected', () => {
    blocks.setSynchronousCollection(true)
    heap.setSoftLimit(MIB)
    for (let i = 0; i < 200; i++) {
      const block = blocks.newBlock(20000)
      blocks.disposeBlock(block)
      blocks.disposeBlock(block)
    }
    const live = Array.from({ length: 40 }, () => blocks.newBlock(20000))
    for (let i = 0; i < 200; i++) blocks.newBlock(20000)
    // A block that was freed twice would have been given to two of them.
    const addresses = live.filter((block) => block.ptr > 0).map((block) => block.ptr)
    expect(new Set(addresses).size).toBe(addresses.length)
    expect(heap.heapStats().inUse).toBeGreaterThanOrEqual(addresses.length * 20000)
  })

  test('of impossible sizes are refused with the same error, whatever the soft limit', () => {
    for (const softLimit of [512 * MIB, 0, Infinity]) {
      heap.setSoftLimit(softLimit)
      for (const bytes of [2 ** 31, 2 ** 32 + 100, 4e15, 2 ** 62, Infinity, NaN, -1])
        expect(() => blocks.newBlock(bytes), `${bytes}`).toThrow(heap.OutOfMemoryError)
    }
    expect(heap.heapStats().inUse).toBe(0)
    expect(heap.allocate(16)).toBeGreaterThan(0)
  })

  test('that the host has no memory for, outside the heap, are an OutOfMemoryError', () => {
    heap.setSoftLimit(0)
    blocks.setSynchronousCollection(false)
    const host = vi.spyOn(globalThis, 'ArrayBuffer').mockImplementation(function fail() {
      throw new RangeError('Array buffer allocation failed')
    })
    try {
      // The heap is not for that much, but before a failure it is used.
      expect(blocks.newBlock(1000).ptr).toBeGreaterThan(0)
      heap.setMemoryLimit(heap.heapStats().inUse + 8 * MIB)
      expect(() => blocks.newBlock(20 * MIB)).toThrow(/there is no room for 20971520 bytes for a tensor/)
    } finally {
      host.mockRestore()
    }
  })

  test('free their copies when a later copy has no room, and the message counts copies', () => {
    const [first, second] = [spilled(1, 2), spilled(3, 4)]
    const before = heap.heapStats().inUse
    let allocations = 0
    heap.setHeapGuard({
      get inUse() {
        return before
      },
      allocate: (bytes, take) => (allocations++ === 0 ? take(bytes) : 0),
      free: (address, bytes, give) => give(address, bytes),
      spill: () => {},
      kernel: (_name, _params, _body, run) => run,
    })
    expect(() => blocks.withPointers([first, second], [false, true], () => {})).toThrow(
      /no room for 2 bytes for copies of tensors outside the heap: .*, 2 by copies of tensors outside the heap, 4 outside the heap;/,
    )
    heap.setHeapGuard(null)
    expect(heap.heapStats().inUse).toBe(before)
  })

  test('that were disposed get memory again, and lose it once, at a collection', () => {
    blocks.setSynchronousCollection(true)
    heap.setSoftLimit(MIB)
    for (let round = 0; round < 4; round++) {
      const revived = Array.from({ length: 20 }, () => blocks.newBlock(20000))
      for (const block of revived) {
        for (let i = 0; i < 5; i++) {
          blocks.disposeBlock(block)
          expect(() => blocks.readBlock(block, 0, 1)).toThrow(/disposed/)
          blocks.reviveBlock(block)
          blocks.reviveBlock(block)
          blocks.writeBlock(block, 0, Uint8Array.of(i))
          expect([...blocks.readBlock(block, 0, 1)]).toEqual([i])
        }
      }
    }
    for (let i = 0; i < 200; i++) blocks.newBlock(20000)
    const live = Array.from({ length: 40 }, () => blocks.newBlock(20000))
    const addresses = live.filter((block) => block.ptr > 0).map((block) => block.ptr)
    expect(new Set(addresses).size).toBe(addresses.length)
    expect(addresses.length).toBeGreaterThan(30)
  })

  test('that get memory again beyond the soft limit are off the heap', () => {
    const block = blocks.newBlock(16)
    blocks.disposeBlock(block)
    heap.setSoftLimit(0)
    blocks.setSynchronousCollection(false)
    blocks.reviveBlock(block)
    expect([block.ptr, block.spill?.byteLength, blocks.blockBytes(block).length]).toEqual([0, 16, 16])
  })

  test('are read and written in part, on and off the heap', () => {
    const onHeap = blocks.newBlock(4)
    blocks.writeBlock(onHeap, 0, Uint8Array.of(1, 2, 3, 4))
    for (const block of [onHeap, spilled(1, 2, 3, 4)]) {
      blocks.writeBlock(block, 2, Uint8Array.of(9))
      expect([...blocks.readBlock(block, 0, 4)]).toEqual([1, 2, 9, 4])
      expect([...blocks.readBlock(block, 1, 3)]).toEqual([2, 9])
    }
  })

  test('that are spilled have copies while a kernel runs, which are copied back where it writes', () => {
    const [read, written] = [spilled(1, 2, 3), spilled(4, 5, 6)]
    const before = heap.heapStats().inUse
    blocks.withPointers([read, written, written], [false, true, true], ([a = 0, b = 0, c = 0]) => {
      expect(c).toBe(b)
      expect([...heap.heapBytes().slice(a, a + 3), ...heap.heapBytes().slice(b, b + 3)]).toEqual([1, 2, 3, 4, 5, 6])
      heap.heapBytes().set([7, 8, 9], a)
      heap.heapBytes().set([7, 8, 9], b)
    })
    expect([...blocks.readBlock(read, 0, 3), ...blocks.readBlock(written, 0, 3)]).toEqual([1, 2, 3, 7, 8, 9])
    expect(heap.heapStats().inUse).toBe(before)
  })

  test('that are on the heap are passed as they are', () => {
    const block = blocks.newBlock(8)
    blocks.withPointers([block], [true], (pointers) => expect(pointers).toEqual([block.ptr]))
  })

  test('keep their data when the kernel fails, and the copies are freed', () => {
    const block = spilled(1, 2)
    const before = heap.heapStats().inUse
    const fails = (): void =>
      blocks.withPointers([block], [true], ([address = 0]) => {
        heap.heapBytes().set([9, 9], address)
        throw new Error('trap')
      })
    expect(fails).toThrow('trap')
    expect([...blocks.readBlock(block, 0, 2)]).toEqual([1, 2])
    expect(heap.heapStats().inUse).toBe(before)
  })

  test('are copied back in between where asked', () => {
    const block = spilled(1, 2)
    const copies = new blocks.BlockCopies()
    const address = copies.address(block)
    expect(copies.address(block)).toBe(address)
    heap.heapBytes().set([5, 6], address)
    copies.writeBack()
    expect([...blocks.readBlock(block, 0, 2)]).toEqual([1, 2])
    copies.written(block)
    copies.writeBack()
    expect([...blocks.readBlock(block, 0, 2)]).toEqual([5, 6])
    heap.heapBytes().set([7, 8], address)
    copies.finish()
    expect([...blocks.readBlock(block, 0, 2)]).toEqual([7, 8])
    expect(heap.heapStats().inUse).toBe(0)
  })

  test('that were disposed have no data, on or off the heap', () => {
    const gone = [spilled(1), blocks.newBlock(1)]
    for (const block of gone) {
      blocks.disposeBlock(block)
      const message = /this tensor has been disposed, so its data is gone; dispose\(\) it later, or clone\(\) what is still needed first\./
      expect(() => blocks.spillOf(block)).toThrow(message)
      expect(() => blocks.readBlock(block, 0, 1)).toThrow(message)
      expect(() => blocks.writeBlock(block, 0, Uint8Array.of(1))).toThrow(message)
      expect(() => new blocks.BlockCopies().address(block)).toThrow(message)
    }
    expect(heap.heapStats().inUse).toBe(0)
    expect(blocks.spillOf(new blocks.Block(0, 0, null)).byteLength).toBe(0)
  })
})
