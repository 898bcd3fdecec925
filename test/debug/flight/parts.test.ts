// The parts of a flight recorder by themselves: bad elements, losses that jump, and copies made when memory is written to.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { FakeTensorMode, withMode } from 'tensorfx/dispatch'
import { badnessOf, badnessOfBytes, elementAt, indexOf, isBad, largestOf, onBytes } from '../../../src/debug/flight/badness.ts'
import { Copies } from '../../../src/debug/flight/copies.ts'
import { Losses, lossOf, lossValue, median } from '../../../src/debug/flight/trouble.ts'

const t = torch.tensor

describe('bad elements', () => {
  it.each(['float64', 'float32', 'float16', 'bfloat16'] as const)('of %s are found, the first of each kind', (dtype) => {
    const of = (...values: number[]): unknown => badnessOf(t(values, { dtype }))
    expect(of(1, 0, -0, 60_000)).toEqual({ nan: null, infinite: null, isPositive: true })
    expect(of(1, NaN, 2, NaN)).toEqual({ nan: 1, infinite: null, isPositive: false })
    expect(of(1, 2, Infinity, -Infinity)).toEqual({ nan: null, infinite: 2, isPositive: true })
    expect(of(-Infinity, Infinity)).toEqual({ nan: null, infinite: 0, isPositive: false })
    expect(of(1, Infinity, NaN, NaN, -Infinity)).toEqual({ nan: 2, infinite: 1, isPositive: true })
    expect(of(NaN, NaN, -Infinity)).toEqual({ nan: 0, infinite: 2, isPositive: false })
  })

  it('are those of a view, in its order, and of other bytes with its layout', () => {
    const base = t([
      [1, NaN, 3],
      [Infinity, 5, 6],
    ])
    expect([badnessOf(base.t()), badnessOf(base.select(1, 2)), badnessOf(base.select(0, 1))]).toEqual([
      { nan: 2, infinite: 1, isPositive: true },
      { nan: null, infinite: null, isPositive: true },
      { nan: null, infinite: 0, isPositive: true },
    ])
    const bytes = base.storage?.readBytes() ?? new Uint8Array()
    const like = torch.zeros([2, 3])
    expect(badnessOfBytes(like.t(), bytes)).toMatchObject({ nan: 2, infinite: 1 })
    expect(onBytes(like.select(0, 1), bytes).toArray()).toEqual([Infinity, 5, 6])
    base.fill_(0)
    expect(onBytes(like, bytes).toArray()).toEqual([
      [1, NaN, 3],
      [Infinity, 5, 6],
    ])
  })

  it('are not looked for in integers and in values that are not there', () => {
    const fake = withMode(new FakeTensorMode(), () => torch.ones([2]))
    for (const tensor of [t([1], { dtype: 'int64' }), t([true]), fake, torch.zeros([0])]) expect(isBad(badnessOf(tensor))).toBe(false)
    expect([isBad(badnessOf(t([NaN]))), isBad(badnessOf(t([Infinity])))]).toEqual([true, true])
  })

  it('have an index, by which they are read', () => {
    const x = torch.arange(24).reshape([2, 3, 4])
    for (let place = 0; place < 24; place++) {
      const index = indexOf(x.shape, place)
      expect([index.length, elementAt(x, index), elementAt(x.permute([2, 0, 1]), [index[2] ?? 0, index[0] ?? 0, index[1] ?? 0])]).toEqual([
        3,
        place,
        place,
      ])
    }
    expect([indexOf([], 0), elementAt(t(7), [])]).toEqual([[], 7])
  })

  it('do not count as the largest', () => {
    expect([largestOf(t([1, -7, 3])), largestOf(t([NaN, Infinity, -2])), largestOf(t([NaN])), largestOf(torch.zeros([0]))]).toEqual([7, 2, 0, 0])
  })
})

describe('losses', () => {
  it('have a median', () => {
    expect([median([3]), median([9, 1, 2]), median([4, 1, 3, 10])]).toEqual([3, 2, 3.5])
  })

  it('are a step result, or where it has them', () => {
    const loss = t([2])
    for (const result of [loss, [loss, 'more'], { loss }, { loss: [loss] }, [{ loss }]]) expect(lossOf(result)).toBe(loss)
    expect([lossOf(3), lossOf([3]), lossOf({ loss: 3 })]).toEqual([3, 3, 3])
    for (const none of [null, undefined, 'text', [], {}, torch.ones([2]), [torch.ones([2])], { other: 3 }, () => 3]) expect(lossOf(none)).toBeNull()
    expect([lossValue(null), lossValue(3), lossValue(loss), lossValue(t(4))]).toEqual([null, 3, 2, 4])
    const fake = withMode(new FakeTensorMode(), () => torch.ones([]))
    expect(lossValue(fake)).toBeNull()
  })

  it('jump only after five, far above the median, the spread and the beginning', () => {
    const jumps = (values: readonly number[], factor: number | null = 10, window = 20): readonly number[] => {
      const losses = new Losses(factor, window)
      return values.flatMap((loss, i) => (losses.isJump(loss) ? [i] : []))
    }
    expect(jumps([1, 1, 1, 1, 1000])).toEqual([])
    expect(jumps([1, 1, 1, 1, 1, 1000])).toEqual([5])
    expect(jumps([1, 1, 1, 1, 1, 1000], null)).toEqual([])
    expect(jumps([1, 1, 1, 1, 1, 9])).toEqual([])
    // A jump does not become usual.
    expect(jumps([1, 1, 1, 1, 1, 1000, 1, 1000, 1])).toEqual([5, 7])
    // NaN and infinities are other trouble.
    expect(jumps([1, 1, 1, 1, 1, NaN, Infinity, 1, 1000])).toEqual([8])
    // Back to where the training began is no jump.
    expect([29, 31].map((last) => jumps([50, 40, 30, 20, 10, 1, 1, 1, 1, 1, 1, 1, last], 10, 5))).toEqual([[], [12]])
    // Losses of small batches that differ much.
    expect(jumps([1, 20, 1, 20, 1, 20, 60])).toEqual([])
  })
})

describe('copies', () => {
  const content = (copy: { content(): Uint8Array }): number[] => [...new Float32Array(copy.content().slice().buffer)]

  it('are made at the next write, and hold what was there', () => {
    const copies = new Copies()
    const x = t([1, 2])
    const first = copies.hold(x, false)
    expect([copies.size, first.bytes, content(first)]).toEqual([0, null, [1, 2]])
    expect(copies.hold(x, false)).toBe(first)
    x.add_(1)
    expect([copies.size, content(first)]).toEqual([8, [1, 2]])
    x.add_(1)
    const second = copies.hold(x, false)
    expect([second === first, content(first), content(second), copies.size]).toEqual([false, [1, 2], [3, 4], 8])
    x.mul_(2)
    expect([content(second), copies.size, first.isLost, second.isLost]).toEqual([[3, 4], 16, false, false])
    first.restore()
    expect([x.toArray(), content(second)]).toEqual([
      [1, 2],
      [3, 4],
    ])
    copies.release(first)
    expect(copies.size).toBe(16)
    copies.release(first)
    expect(copies.size).toBe(8)
    copies.release(second)
    expect(copies.size).toBe(0)
  })

  it('that are released before a write are never made', () => {
    const copies = new Copies()
    const x = t([1, 2])
    const copy = copies.hold(x, false)
    copies.release(copy)
    x.add_(1)
    expect([copies.size, copy.bytes]).toEqual([0, null])
    expect(copies.hold(x, false)).not.toBe(copy)
  })

  it('count memory that only the record keeps alive', () => {
    const copies = new Copies()
    const x = t([1, 2])
    const copy = copies.hold(x, true)
    expect(copies.size).toBe(8)
    x.add_(1)
    expect(copies.size).toBe(8)
    copies.release(copy)
    expect(copies.size).toBe(0)
  })

  it('of what is written without a word are lost, and nothing is restored from them', () => {
    const copies = new Copies()
    const x = t([1, 2])
    const copy = copies.hold(x, false)
    const { storage } = x
    if (storage === null) throw new Error('no memory')
    storage.version++
    expect(copy.isLost).toBe(true)
    copy.restore()
    expect(x.toArray()).toEqual([1, 2])
    expect(copies.hold(x, false)).not.toBe(copy)
    const fake: Tensor = withMode(new FakeTensorMode(), () => torch.ones([2]))
    expect(() => copies.hold(fake, false)).toThrow('flightRecorder: a fake tensor has no data to record')
  })
})
