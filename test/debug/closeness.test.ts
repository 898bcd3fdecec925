// How near is near enough: the functions that a judge's verdict comes from, on numbers that can be checked by hand, and properties.
import { describe, expect, it } from 'vitest'
import type { DType } from 'tensorfx'
import { torch } from 'tensorfx'
import { elementsOf, farApart, misplaced, rmseOf, unexplained } from '../../src/debug/closeness/closeness.ts'
import type { Expected } from '../../src/debug/closeness/closeness.ts'

/** Numbers of many sizes and signs, with some that are none. */
const SPREAD = [0, -0, 1, -1, 1e-30, -3e-6, 0.25, 7, -1e4, 1e30, NaN, Infinity, -Infinity]

describe('elements', () => {
  it('are numbers, of int64 too, in row-major order', () => {
    expect([...Array.from(elementsOf(torch.tensor([2n ** 53n, -1n])))]).toEqual([2 ** 53, -1])
    expect(Array.from(elementsOf(torch.arange(6).reshape([2, 3]).t()))).toEqual([0, 3, 1, 4, 2, 5])
    expect(Array.from(elementsOf(torch.tensor([true, false])))).toEqual([1, 0])
  })

  it('have a root mean square error, of all or of the chosen ones', () => {
    expect(rmseOf([1, 2, 3, 4], [1, 2, 3, 6])).toBe(1)
    expect(rmseOf([1, 2, 3, 4], [1, 9, 3, 6], (i) => i >= 2)).toBe(Math.SQRT2)
    expect(rmseOf([1, 2], [1, 2], () => false)).toBeNaN()
    expect(rmseOf([1, 2], [1])).toBeNaN()
  })
})

describe('NaN and infinities', () => {
  const at = (
    res: readonly number[],
    ref: readonly number[],
    fp64: readonly number[] | null = null,
    dtype: DType = 'float32',
    equalNan = true,
  ): number => misplaced(res, { ref, fp64 }, dtype, equalNan)

  it('are in place exactly where both have the same', () => {
    for (const want of SPREAD)
      for (const got of SPREAD) {
        const isPlaced = (Number.isFinite(want) && Number.isFinite(got)) || Object.is(want, got)
        expect([want, got, at([1, got], [1, want])]).toEqual([want, got, isPlaced ? -1 : 1])
        expect([want, got, at([got], [want], null, 'float32', false)]).toEqual([want, got, isPlaced && !Number.isNaN(want) ? -1 : 0])
      }
  })

  it('are in place where float64 has the same number, rounded, or one that is near', () => {
    expect([at([1], [NaN], [1.04]), at([1], [NaN], [1.09])]).toEqual([-1, 0])
    expect([at([NaN], [1], [NaN]), at([NaN], [1], [NaN], 'float32', false)]).toEqual([-1, 0])
    expect([at([-0.04], [NaN], [0]), at([-0.041], [NaN], [0])]).toEqual([-1, 0])
    // The greatest number of float16 is 65504; what lies half a unit above it is an infinity.
    for (const sign of [1, -1])
      expect([65_519.999, 65_520, 65_521].map((value) => at([sign * Infinity], [NaN], [sign * value], 'float16'))).toEqual([0, -1, -1])
    expect(at([-Infinity], [NaN], [65_521], 'float16')).toBe(0)
    expect(at([Number.MAX_VALUE], [NaN], [Number.MAX_VALUE], 'float64')).toBe(-1)
    expect([at([Infinity], [NaN], [1e39]), at([Infinity], [NaN], [1e39], 'float64'), at([Infinity], [NaN], [Infinity], 'float64')]).toEqual([
      -1, 0, -1,
    ])
  })
})

describe('NaN and infinities that rounding makes', () => {
  const at = (res: number, ref: number, fp64: number | null, ...others: readonly number[]): number =>
    misplaced([res], { ref: [ref], fp64: fp64 === null ? null : [fp64], others: others.map((other) => [other]) }, 'float16', true)

  it('are in place where a run with moved inputs has the same, or a number that is near', () => {
    for (const fp64 of [null, 1]) {
      expect([at(Infinity, 1, fp64, 1, Infinity), at(-Infinity, 1, fp64, 1, Infinity), at(NaN, 1, fp64, NaN), at(NaN, 1, fp64, 2)]).toEqual([
        -1, 0, -1, 0,
      ])
      expect([at(1, NaN, null, 1.04), at(1, NaN, null, 1.09), at(1, NaN, null, NaN, 0.99)]).toEqual([-1, 0, -1])
    }
  })

  it('are in place where runs divide by what rounding makes of zero, with a sign that they have', () => {
    // One of them is infinite, or they differ by more than a factor of 16.
    expect([at(Infinity, 0.1, 0.1, 5, -Infinity), at(Infinity, 0, 0, 5, -Infinity), at(-Infinity, Infinity, Infinity, -2, -3)]).toEqual([-1, -1, -1])
    expect([at(Infinity, 0.1, 0.1, 1.7, 0.1), at(Infinity, 0.1, 0.1, 1.5, 0.1), at(-Infinity, 0.1, 0.1, 1.7, 0.1)]).toEqual([-1, 0, 0])
    // What cancels to nothing beside other elements is no pole, nor is a jump from zero.
    expect(misplaced([Infinity, 1], { ref: [1e-9, 1], fp64: null, others: [[1e-7, 1]] }, 'float32', true)).toBe(0)
    expect([at(Infinity, 0, 0, 3, 0), at(NaN, 0.1, 0.1, 1.7, 0.1), at(Infinity, 0.1, 0.1)]).toEqual([0, 0, 0])
  })

  it('are no worse than others where only float64, or another run, has a number', () => {
    expect([at(-Infinity, Infinity, 1, Infinity), at(NaN, -Infinity, 1, 3), at(NaN, -Infinity, -Infinity, 3), at(-Infinity, NaN, null, 3)]).toEqual([
      -1, -1, -1, -1,
    ])
    // Not without runs to show what rounding does, and not where float64 has none, or the reference has one.
    expect([at(-Infinity, Infinity, 1), at(-Infinity, Infinity, 1e9, Infinity), at(NaN, 1, 1, 1), at(-Infinity, Infinity, null, Infinity)]).toEqual([
      0, 0, 0, 0,
    ])
  })
})

describe('elements that are far apart', () => {
  const far = (res: readonly number[], ref: readonly number[], tol = 0.1, scaled = true): number[] => farApart(res, ref, { tol, scaled })

  it('are those beyond the tolerance, absolute and relative', () => {
    expect(far([1.19, 1.21, 1.01], [1, 1, -1], 0.1, false)).toEqual([1, 2])
    expect(farApart([0.19], [0], { tol: 0.1 })).toEqual([0])
    expect(farApart([0.09, 0.5], [0, 0.5], { tol: 0.1 })).toEqual([])
    expect(far([0.75], [0.5], 0.25, false)).toEqual([])
    expect(far([0.875], [0.5], 0.25, false)).toEqual([])
    expect(far([0.876], [0.5], 0.25, false)).toEqual([0])
  })

  it('are judged by the size of the others, if scaled: up to a mean square of a quarter', () => {
    // Of the size 0.001, absolute 0.1 * 0.004 and relative 0.1 * 0.001.
    expect(far([0.00149], [0.001])).toEqual([])
    expect(far([0.00151], [0.001])).toEqual([0])
    expect(far([0.00149], [0.001], 0.1, false)).toEqual([])
    expect(far([0.00151], [0.001], 0.1, false)).toEqual([])
    expect([far([11.09], [10]), far([11.11], [10])]).toEqual([[], [0]])
    // Infinities have no size.
    expect(far([0.00151, Infinity], [0.001, Infinity])).toEqual([0])
    expect(far([0.00149, NaN], [0.001, NaN])).toEqual([])
    // Among two, the size is that of both.
    expect(far([0.003, 0.1], [0, 0.1], 0.01)).toEqual([0])
    expect(far([0.0028, 0.1], [0, 0.1], 0.01)).toEqual([])
  })

  it('scales: results and references times any small number are far apart at the same places', () => {
    torch.manualSeed(3)
    const ref = torch.randn([64]).mul(0.1).toArray() as number[]
    const res = ref.map((value, i) => value * (1 + (i % 7) * 0.02))
    const places = far(res, ref, 0.01)
    expect(places.length).toBeGreaterThan(10)
    for (const factor of [2 ** -4, 2 ** -20, 2 ** -60])
      expect(
        far(
          res.map((x) => x * factor),
          ref.map((x) => x * factor),
          0.01,
        ),
      ).toEqual(places)
  })

  it('are finite: places of NaN and infinities are judged by themselves', () => {
    for (const x of [NaN, Infinity, -Infinity]) expect([far([x], [1]), far([1], [x])]).toEqual([[], []])
  })
})

describe('what rounding does not explain', () => {
  const worst = (res: readonly number[], expected: Expected, { multiplier = 2, tol = 0, scaled = true, dtype = 'float64' as DType } = {}): number =>
    unexplained([...res.keys()], res, expected, dtype, multiplier, { tol, scaled })
  const ref = [1, 1, 1]

  it('is farther from float64 than the reference is there, times the multiplier', () => {
    const fp64 = [1.01, 1.01, 1.01]
    expect(worst([1.0299, 1, 1], { ref, fp64 })).toBe(-1)
    expect(worst([1.0301, 1, 1], { ref, fp64 })).toBe(0)
    expect(worst([0.9901, 1, 1], { ref, fp64 })).toBe(-1)
    expect(worst([0.9899, 1, 1], { ref, fp64 })).toBe(0)
    expect(worst([1, 1, 1.0301], { ref, fp64 }, { multiplier: 3 })).toBe(-1)
  })

  it('is named by its worst element', () => {
    const fp64 = [1.01, 1.01, 1.01]
    expect(worst([1.04, 1.06, 1.05], { ref, fp64 })).toBe(1)
    expect(worst([1.06, 1.04, 1.05], { ref, fp64 })).toBe(0)
    expect(unexplained([0, 2], [1.04, 1.06, 1.05], { ref, fp64 }, 'float64', 2, { tol: 0 })).toBe(2)
    expect(unexplained([], [1.04, 1.06, 1.05], { ref, fp64 }, 'float64', 2, { tol: 0 })).toBe(-1)
  })

  it('is not what the reference usually is off, where it is exact by luck; few that jump do not count', () => {
    const usual = (off: number, many: number): readonly number[] => Array.from({ length: 21 }, (_, i) => (i === 0 ? 1 : i <= many ? 1 + off : 1))
    const exact = Array.from({ length: 21 }, () => 1)
    const res = exact.map((x, i) => (i === 0 ? 1.015 : x))
    // Nine in ten of 21 are 19: the distance of the one in place 18.
    expect(worst(res, { ref: usual(0.01, 20), fp64: exact })).toBe(-1)
    expect(worst(res, { ref: usual(0.01, 3), fp64: exact })).toBe(-1)
    expect(worst(res, { ref: usual(0.01, 2), fp64: exact })).toBe(0)
    // What overflows has no distance.
    for (const none of [NaN, Infinity])
      for (const [off, place] of [
        [0.01, -1],
        [0.001, 0],
      ] as const)
        expect(unexplained([0], res, { ref: usual(off, 20).map((x, i) => (i % 2 === 1 ? none : x)), fp64: exact }, 'float64', 2, { tol: 0 })).toBe(
          place,
        )
  })

  it('is not what other runs differ by', () => {
    const fp64 = ref
    expect(worst([1.015, 1, 1], { ref, fp64 })).toBe(0)
    expect(worst([1.015, 1, 1], { ref, fp64, others: [[1.01, 1, 1]] })).toBe(-1)
    expect(
      worst([1.015, 1, 1], {
        ref,
        fp64,
        others: [
          [0.99, 1, 1],
          [1, 1, 1],
        ],
      }),
    ).toBe(-1)
    expect(worst([1.021, 1, 1], { ref, fp64, others: [[1.01, 1, 1]] })).toBe(0)
    // A run that overflows there says nothing.
    expect(worst([1.015, 1, 1], { ref, fp64, others: [[Infinity, 1, 1]] })).toBe(0)
    expect(worst([1.015, 1, 1], { ref, fp64: null, others: [[1.01, 1, 1]] })).toBe(-1)
  })

  it('is not what lies within a tenth of the tolerance, and within eight roundings', () => {
    expect(worst([1.0099, 1, 1], { ref, fp64: ref }, { tol: 0.1 })).toBe(-1)
    expect(worst([1.0101, 1, 1], { ref, fp64: ref }, { tol: 0.1 })).toBe(0)
    const small = [0.001, 0.001]
    // A tenth of 0.1, times 0.001 / 0.25.
    expect(worst([0.001039, 0.001], { ref: small, fp64: small }, { tol: 0.1 })).toBe(-1)
    expect(worst([0.001041, 0.001], { ref: small, fp64: small }, { tol: 0.1 })).toBe(0)
    expect(worst([0.001041, 0.001], { ref: small, fp64: small }, { tol: 0.1, scaled: false })).toBe(-1)
    expect(unexplained([0], [0.001041, 0.001], { ref: small, fp64: small }, 'float64', 2, { tol: 0.1 })).toBe(-1)
    const eps = 2 ** -23
    expect(worst([1 + 8 * eps, 1, 1], { ref, fp64: ref }, { dtype: 'float32' })).toBe(-1)
    expect(worst([1 + 9 * eps, 1, 1], { ref, fp64: ref }, { dtype: 'float32' })).toBe(0)
    // Integers have no roundings.
    expect(unexplained([0], [2, 1, 1], { ref, fp64: ref }, 'int32', 2, { tol: 0 })).toBe(0)
  })

  it('is measured from the reference where float64 has no number', () => {
    const fp64 = [NaN, 1, 1]
    expect(worst([1, 1, 1], { ref, fp64 })).toBe(-1)
    expect(worst([1.5, 1, 1], { ref, fp64 })).toBe(0)
    const none = [NaN, NaN, NaN]
    expect(unexplained([0], [1.015, 1, 1], { ref, fp64: none, others: [[1.01, 1, 1]] }, 'float64', 2, { tol: 0 })).toBe(-1)
    expect(unexplained([0], [1.021, 1, 1], { ref, fp64: none, others: [[1.01, 1, 1]] }, 'float64', 2, { tol: 0 })).toBe(0)
  })
})
