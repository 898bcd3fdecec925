// The memory plan: no overlap, no waste where lifetimes allow, and a check that notices a plan that is wrong.
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { InternalError } from '../../src/errors/index.ts'
import { planMemory, verifyPlan } from '../../src/inductor/memoryPlan.ts'
import type { Lifetime } from '../../src/inductor/memoryPlan.ts'
import type { Buffer } from '../../src/inductor/ir.ts'

const buffer = (name: string, numel: number, dtype: Buffer['dtype'] = 'float32'): Buffer => ({
  name,
  shape: [numel],
  dtype,
  numel,
  input: -1,
  producer: null,
})
const alive = (name: string, numel: number, first: number, last: number): Lifetime => ({ buffer: buffer(name, numel), first, last })

describe('planMemory', () => {
  it('shares the bytes of temporaries that are not alive together', () => {
    const [a, b, c] = [alive('a', 16, 0, 1), alive('b', 16, 1, 2), alive('c', 16, 2, 3)]
    const { offsets, bytes } = planMemory([a, b, c])
    expect(bytes).toBe(128)
    expect([offsets.get(a.buffer), offsets.get(b.buffer), offsets.get(c.buffer)]).toEqual([0, 64, 0])
  })

  it('aligns to cache lines, and counts bytes by dtype', () => {
    const one = { buffer: buffer('one', 1), first: 0, last: 0 }
    const doubles = { buffer: buffer('doubles', 17, 'float64'), first: 0, last: 0 }
    expect(planMemory([one, doubles])).toEqual({
      offsets: new Map([
        [doubles.buffer, 0],
        [one.buffer, 192],
      ]),
      bytes: 256,
    })
  })

  it('puts a small one into a gap between larger ones', () => {
    const [low, gap, high] = [alive('low', 64, 0, 9), alive('gap', 48, 0, 1), alive('high', 32, 0, 9)]
    const small = alive('small', 16, 5, 6)
    const { offsets } = planMemory([low, gap, high, small])
    expect(offsets.get(gap.buffer)).toBe(256)
    expect(offsets.get(small.buffer)).toBe(256)
    expect(offsets.get(high.buffer)).toBe(448)
  })

  it('gives plans that verify, for random lifetimes', () => {
    const lifetime = fc.tuple(fc.integer({ min: 0, max: 200 }), fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 5 }))
    fc.assert(
      fc.property(fc.array(lifetime, { maxLength: 12 }), (list) => {
        const lifetimes = list.map(([numel, first, length], i) => alive(`b${i}`, numel, first, first + length))
        const plan = planMemory(lifetimes)
        verifyPlan(lifetimes, plan)
        expect(plan.offsets.size).toBe(lifetimes.length)
      }),
    )
  })
})

describe('verifyPlan', () => {
  const [a, b] = [alive('a', 16, 0, 1), alive('b', 16, 1, 2)]
  const wrong = (offsets: readonly (readonly [Lifetime, number])[], bytes: number, rule: string): void => {
    const plan = { offsets: new Map(offsets.map(([lifetime, offset]) => [lifetime.buffer, offset])), bytes }
    expect(() => verifyPlan([a, b], plan)).toThrow(InternalError)
    expect(() => verifyPlan([a, b], plan)).toThrow(rule)
  }

  it('names the temporaries that break a rule', () => {
    wrong([[a, 0]], 64, 'the temporary b has no place in the arena')
    wrong(
      [
        [a, 0],
        [b, 8],
      ],
      128,
      'the temporary b at byte 8 is not aligned',
    )
    wrong(
      [
        [a, 0],
        [b, 64],
      ],
      64,
      'the temporary b at byte 64 is not aligned, or reaches past the arena of 64 bytes',
    )
    wrong(
      [
        [a, 64],
        [b, 64],
      ],
      128,
      'the temporaries a and b share memory while both are alive',
    )
    const later = { ...b, first: 2 }
    expect(() =>
      verifyPlan([a, later], {
        offsets: new Map([
          [a.buffer, 0],
          [b.buffer, 0],
        ]),
        bytes: 64,
      }),
    ).not.toThrow()
  })
})
