// Copies of data in the form that kernels read: when they are made, what they may take, and who gives way to whom.
import { describe, expect, test } from 'vitest'
import { heapStats, reclaimables } from '../../../src/kernels/index.ts'
import { CopiesOf, PackedCopies, PackedCopy } from '../../../src/kernels/memory/packedCopies.ts'

const BYTES = 4096

/** Copies that may take the memory of three. */
const ofThree = (): PackedCopies => new PackedCopies('copies of a test', 3 * BYTES, () => true)

/** Reads data that does not change, and makes the copy when it is due. Returns whether there is one. */
function read(copy: PackedCopy, writes = 0): boolean {
  if (copy.isDue(writes)) copy.make(BYTES)
  return copy.address !== 0
}

function readTimes(times: number, ...all: readonly PackedCopy[]): readonly boolean[] {
  let last: readonly boolean[] = []
  for (let i = 0; i < times; i++) last = all.map((copy) => read(copy))
  return last
}

const some = (count: number, copies: PackedCopies): PackedCopy[] => Array.from({ length: count }, () => new PackedCopy(copies))

/** Runs a test, and leaves neither copies nor those who would be asked for them. */
function alone(copies: PackedCopies, run: () => void): void {
  try {
    run()
  } finally {
    copies.reclaim()
    const at = reclaimables.indexOf(copies)
    if (at >= 0) reclaimables.splice(at, 1)
  }
}

describe('a copy', () => {
  test('is made at the third call that finds the data as it was, and given back when the data changes', () => {
    const copies = ofThree()
    alone(copies, () => {
      const copy = new PackedCopy(copies)
      const before = heapStats().inUse
      expect([read(copy, 5), read(copy, 5), read(copy, 5), read(copy, 5)]).toEqual([false, false, true, true])
      expect(heapStats().inUse - before).toBe(BYTES)
      expect(read(copy, 6)).toBe(false)
      expect(heapStats().inUse).toBe(before)
      expect([read(copy, 6), read(copy, 6)]).toEqual([false, true])
    })
  })

  test('of other data is another copy, though that has changed as often', () => {
    const copies = ofThree()
    alone(copies, () => {
      const copy = new PackedCopy(copies)
      readTimes(3, copy)
      copy.forget()
      expect([read(copy), read(copy), read(copy)]).toEqual([false, false, true])
    })
  })

  test('that finds no room is tried again, each time after twice as many calls', () => {
    const copies = ofThree()
    alone(copies, () => {
      const copy = new PackedCopy(copies)
      const due: number[] = []
      for (let call = 1; call <= 24; call++) {
        if (!copy.isDue(0)) continue
        due.push(call)
        copy.make(5 * BYTES)
      }
      expect(due).toEqual([3, 6, 12, 24])
      expect(copy.address).toBe(0)
    })
  })
})

describe('copies together', () => {
  test('take no more than they may: the one that has not been read since gives way, those that are read in turns do not', () => {
    const copies = ofThree()
    alone(copies, () => {
      const [a, b, c, d, e] = some(5, copies)
      if (a === undefined || b === undefined || c === undefined || d === undefined || e === undefined) throw new Error('there are five')
      // Four in turns: the first three are copied, and stay.
      for (let i = 0; i < 40; i++) {
        const made = [a, b, c, d].map((copy) => read(copy))
        if (i >= 2) expect(made).toEqual([true, true, true, false])
      }
      // From now on the first one is not read any more.
      const made = readTimes(60, b, c, d, e)
      expect(a.address).toBe(0)
      expect(made).toEqual([true, true, expect.anything(), expect.anything()])
      expect(made.filter(Boolean).length).toBe(3)
    })
  })

  test('give all memory back when they are asked to, unless they are being read', () => {
    let isIdle = false
    const copies = new PackedCopies('copies of a test', Infinity, () => isIdle)
    alone(copies, () => {
      const all = some(5, copies)
      readTimes(3, ...all)
      copies.reclaim()
      expect(all.every((copy) => copy.address !== 0)).toBe(true)
      isIdle = true
      copies.reclaim()
      expect(all.every((copy) => copy.address === 0)).toBe(true)
      // Those that are gone are not counted.
      expect(readTimes(3, ...all)).toEqual(all.map(() => true))
    })
    isIdle = true
    copies.reclaim()
  })

  test('of one memory are told apart by reader and numbers, and are a limited number', () => {
    const copies = ofThree()
    alone(copies, () => {
      const of = new CopiesOf()
      const [left, right] = [{}, {}]
      const first = of.of(left, [0, 7], copies)
      expect(of.of(left, [0, 7], copies)).toBe(first)
      expect(new Set([first, of.of(right, [0, 7], copies), of.of(left, [1, 7], copies), of.of(left, [0, 8], copies)]).size).toBe(4)
      if (first === null) throw new Error('there is a copy')
      readTimes(3, first)
      // A copy that has memory is not dropped for others.
      for (let i = 0; i < 500; i++) of.of(left, [i, 1000], copies)
      expect(of.of(left, [0, 7], copies)).toBe(first)
    })
  })
})
