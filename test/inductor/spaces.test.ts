// Iteration spaces against brute force: an access walks the same elements over any dimensions that it is brought to.
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { InternalError } from '../../src/errors/index.ts'
import { isFlatIdentity, product, refine, split, splitSpace, stridesOver } from '../../src/inductor/spaces.ts'

/** The elements that an access walks, in order. */
function walk(dims: readonly number[], strides: readonly number[], offset = 0): number[] {
  return dims.reduce<number[]>(
    (positions, size, i) => positions.flatMap((p) => Array.from({ length: size }, (_, k) => p + k * (strides[i] ?? 0))),
    [offset],
  )
}

const sizes = fc.array(fc.constantFrom(1, 2, 3, 4, 6), { maxLength: 4 })
const joins = fc.array(fc.boolean(), { minLength: 5, maxLength: 5 })
/** Two ways to write one number of elements: factors, with neighbours joined in two ways. */
const twoViews = fc.tuple(fc.array(fc.constantFrom(2, 2, 3, 5), { maxLength: 5 }), joins, joins).map(([factors, a, b]) => {
  const joined = (flags: readonly boolean[]): readonly number[] => {
    const dims: number[] = []
    factors.forEach((factor, i) => {
      const last = flags[i] === true ? dims.pop() : undefined
      dims.push((last ?? 1) * factor)
    })
    return dims
  }
  return [joined(a), joined(b)] as const
})

describe('refine', () => {
  it('gives the coarsest dimensions that both split into', () => {
    expect(refine([32, 64], [32, 8, 8])).toEqual([32, 8, 8])
    expect(refine([6, 4], [2, 12])).toEqual([2, 3, 4])
    expect(refine([1, 4, 1], [2, 2])).toEqual([2, 2])
    expect(refine([], [1, 1])).toEqual([])
    expect(refine([2, 3], [3, 2])).toBeNull()
    expect(refine([4], [4, 2])).toBeNull()
    expect(refine([], [2])).toBeNull()
    expect(refine([0, 3], [0, 3])).toEqual([0, 3])
    expect(refine([0], [3])).toBeNull()
  })

  it('gives dimensions into which both split, and of the same number of elements', () => {
    fc.assert(
      fc.property(twoViews, ([a, b]) => {
        const fine = refine(a, b)
        if (fine === null) return
        expect(product(fine)).toBe(product(a))
        for (const dims of [a, b]) split(dims, fine).forEach((parts, i) => expect(product(parts)).toBe(dims[i]))
        expect(split(a, fine).flat()).toEqual(fine)
      }),
    )
  })
})

describe('split', () => {
  it('gives the parts of each dimension', () => {
    expect(split([6, 1, 4], [2, 3, 4])).toEqual([[2, 3], [], [4]])
    expect(split([], [])).toEqual([])
    expect(split([0, 3], [0, 3])).toEqual([[0], [3]])
    expect(
      splitSpace(
        [
          { size: 6, reduced: true },
          { size: 4, reduced: false },
        ],
        [2, 3, 4],
      ),
    ).toEqual([
      { size: 2, reduced: true },
      { size: 3, reduced: true },
      { size: 4, reduced: false },
    ])
  })

  it('refuses dimensions that do not refine', () => {
    for (const [dims, fine] of [
      [[6], [4, 2]],
      [[6], [2]],
      [[2], [2, 3]],
      [[4], [3]],
    ] as const) {
      expect(() => split(dims, fine)).toThrow(InternalError)
      expect(() => split(dims, fine)).toThrow(`the dimensions [${fine.join(', ')}] do not refine [${dims.join(', ')}]`)
    }
  })
})

describe('stridesOver', () => {
  it('walks the same elements over other dimensions, or says that it cannot', () => {
    fc.assert(
      fc.property(twoViews, fc.array(fc.integer({ min: -3, max: 9 }), { minLength: 5, maxLength: 5 }), ([iter, dims], numbers) => {
        const strides = iter.map((_, i) => numbers[i] ?? 0)
        const over = stridesOver(iter, strides, dims)
        if (over === null) return
        expect(over).toHaveLength(dims.length)
        expect(walk(dims, over)).toEqual(walk(iter, strides))
      }),
      { numRuns: 500 },
    )
  })

  it('finds strides wherever a contiguous access has them', () => {
    fc.assert(
      fc.property(twoViews, ([iter, dims]) => {
        const flat = iter.map((_, i) => product(iter.slice(i + 1)))
        expect(walk(dims, stridesOver(iter, flat, dims) ?? [])).toEqual(Array.from({ length: product(dims) }, (_, k) => k))
      }),
    )
  })

  it('is null where a merged dimension is not walked in one step size', () => {
    expect(stridesOver([2, 3], [3, 1], [6])).toEqual([1])
    expect(stridesOver([2, 3], [4, 1], [6])).toBeNull()
    expect(stridesOver([2, 3], [0, 1], [6])).toBeNull()
    expect(stridesOver([6], [1], [1, 2, 3])).toEqual([0, 3, 1])
    expect(stridesOver([2, 3], [3, 1], [3, 2])).toBeNull()
  })
})

describe('isFlatIdentity', () => {
  it('says whether element f of the loop is element f of the buffer', () => {
    fc.assert(
      fc.property(
        sizes,
        fc.array(fc.integer({ min: 0, max: 12 }), { minLength: 4, maxLength: 4 }),
        fc.integer({ min: 0, max: 1 }),
        (dims, numbers, offset) => {
          const strides = dims.map((_, i) => numbers[i] ?? 0)
          const identity = walk(dims, strides, offset).every((position, k) => position === k)
          expect(isFlatIdentity(dims, strides, offset, product(dims))).toBe(identity)
          expect(isFlatIdentity(dims, strides, offset, product(dims) + 1)).toBe(false)
        },
      ),
    )
    expect(isFlatIdentity([2, 1, 3], [3, 77, 1], 0, 6)).toBe(true)
  })
})
