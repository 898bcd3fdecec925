// Shapes and strides, against brute force.
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ShapeError } from '../../src/errors/index.ts'
import { broadcastShapes, collapseDims, contiguousStrides, isContiguous, numelOf, sameShape, wrapDim } from '../../src/tensor/index.ts'

/** The elements that an access walks, in order. */
function walk(dims: readonly number[], strides: readonly number[]): number[] {
  return dims.reduce<number[]>(
    (positions, size, i) => positions.flatMap((p) => Array.from({ length: size }, (_, k) => p + k * (strides[i] ?? 0))),
    [0],
  )
}

const shapes = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 4 })

describe('strides', () => {
  test('of a contiguous tensor walk its elements in order', () => {
    fc.assert(
      fc.property(shapes, (shape) => {
        const strides = contiguousStrides(shape)
        expect(walk(shape, strides)).toEqual(Array.from({ length: numelOf(shape) }, (_, k) => k))
        expect(isContiguous(shape, strides)).toBe(true)
      }),
    )
    expect(contiguousStrides([2, 3, 4])).toEqual([12, 4, 1])
    expect(contiguousStrides([2, 0, 3])).toEqual([3, 3, 1])
    expect(numelOf([])).toBe(1)
  })

  test('are contiguous when they walk the elements in order; those of a size of 1 do not matter', () => {
    fc.assert(
      fc.property(shapes, fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 4, maxLength: 4 }), (shape, strides) => {
        expect(isContiguous(shape, strides)).toBe(walk(shape, strides).every((position, k) => position === k))
      }),
    )
    expect(isContiguous([2, 1, 3], [3, 99, 1])).toBe(true)
    expect(isContiguous([2, 3], [1, 2])).toBe(false)
  })
})

describe('sameShape', () => {
  test('compares sizes and their number', () => {
    const shape = [2, 3]
    expect([sameShape(shape, shape), sameShape([2, 3], [2, 3]), sameShape([2, 3], [2]), sameShape([2, 3], [2, 4])]).toEqual([
      true,
      true,
      false,
      false,
    ])
  })
})

describe('broadcastShapes', () => {
  test('takes the larger size where one is 1', () => {
    expect(broadcastShapes('op', [2, 1, 4], [3, 1])).toEqual([2, 3, 4])
    expect(broadcastShapes('op', [], [2])).toEqual([2])
    expect(broadcastShapes('op', [1], [0])).toEqual([0])
    expect(broadcastShapes('op', [5, 1], [5, 1])).toEqual([5, 1])
  })
  test('names both shapes and the sizes that differ', () => {
    expect(() => broadcastShapes('torch.add', [2, 3], [4, 3, 2])).toThrow(ShapeError)
    expect(() => broadcastShapes('torch.add', [2, 3], [4, 3, 2])).toThrow(
      'torch.add: the shapes [2, 3] (self) and [4, 3, 2] (other) do not broadcast: size 3 of self must equal size 2 of other at dimension 2 ' +
        '(or one of them must be 1). Reshape or unsqueeze one of them.',
    )
    expect(() => broadcastShapes('torch.add', [2, 3], [3, 3])).toThrow('size 2 of self must equal size 3 of other at dimension 0')
  })
})

describe('wrapDim', () => {
  test('counts negative dimensions from the end', () => {
    expect([wrapDim('op', -1, 3), wrapDim('op', -3, 3), wrapDim('op', 0, 3), wrapDim('op', 2, 3), wrapDim('op', -1, 0)]).toEqual([2, 0, 0, 2, 0])
  })
  test('refuses what is out of range', () => {
    for (const dim of [3, -4, 1.5, NaN])
      expect(() => wrapDim('op', dim, 3)).toThrow(`op: dim ${dim} is out of range for a tensor of 3 dimensions; expected -3 to 2.`)
    expect(() => wrapDim('op', 1, 0)).toThrow('op: dim 1 is out of range for a tensor of 0 dimensions; expected -1 to 0.')
  })
})

describe('collapseDims', () => {
  test('merges neighbours that all operands walk as one', () => {
    expect(collapseDims([2, 3, 4], [[12, 4, 1]])).toEqual({ dims: [24], strides: [[1]], reduced: [false] })
    expect(
      collapseDims(
        [2, 3, 4],
        [
          [12, 4, 1],
          [0, 0, 1],
        ],
      ),
    ).toEqual({
      dims: [6, 4],
      strides: [
        [4, 1],
        [0, 1],
      ],
      reduced: [false, false],
    })
    expect(collapseDims([2, 3], [[1, 2]])).toEqual({ dims: [2, 3], strides: [[1, 2]], reduced: [false, false] })
    expect(collapseDims([1, 1], [[5, 7]])).toEqual({ dims: [], strides: [[]], reduced: [] })
    expect(collapseDims([2, 1, 3], [[3, 88, 1]])).toEqual({ dims: [6], strides: [[1]], reduced: [false] })
  })

  test('keeps reduced and kept dimensions apart', () => {
    expect(collapseDims([2, 3, 4], [[12, 4, 1]], [false, true, true])).toEqual({ dims: [2, 12], strides: [[12, 1]], reduced: [false, true] })
    expect(collapseDims([2, 3, 4], [[12, 4, 1]], [true, false, true])).toEqual({
      dims: [2, 3, 4],
      strides: [[12, 4, 1]],
      reduced: [true, false, true],
    })
  })

  test('walks the same elements, in as few dimensions as can be', () => {
    const sizes = fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 4 })
    const strides = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 4, maxLength: 4 })
    fc.assert(
      fc.property(sizes, fc.array(strides, { minLength: 1, maxLength: 3 }), (dims, operands) => {
        const own = operands.map((operand) => operand.slice(0, dims.length))
        const collapsed = collapseDims(dims, own)
        own.forEach((operand, k) => expect(walk(collapsed.dims, collapsed.strides[k] ?? [])).toEqual(walk(dims, operand)))
        // No two neighbours could still be merged.
        collapsed.dims.slice(1).forEach((inner, i) => {
          expect(collapsed.strides.every((operand) => operand[i] === (operand[i + 1] ?? 0) * inner)).toBe(false)
        })
      }),
      { numRuns: 300 },
    )
  })
})
