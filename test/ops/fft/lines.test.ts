// Discrete Fourier transforms of lines against their definition, in float64: drawn lengths whose factors have stages, primes and products of primes that have none, and as many lines as do not
// go through the stages together.
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

type Line = readonly (readonly [number, number])[]

/** Result k of a line, by definition. The index of the root is kept below n, where it is exact. */
function resultOf(line: Line, k: number, inverse: boolean): readonly [number, number] {
  let [re, im] = [0, 0]
  line.forEach(([a, b], j) => {
    const angle = ((inverse ? 2 : -2) * Math.PI * ((j * k) % line.length)) / line.length
    re += a * Math.cos(angle) - b * Math.sin(angle)
    im += a * Math.sin(angle) + b * Math.cos(angle)
  })
  return [re, im]
}

/** The largest difference from the definition at some results of some lines, as a part of the size of the results: the root of the sum of squares of what they come from. */
function errorOf(x: Tensor, inverse: boolean, checks: readonly (readonly [line: number, k: number])[]): number {
  const got = torch.ops.tensorfx.fftLines(x, inverse).toArray() as unknown as readonly Line[]
  const from = x.toArray() as unknown as readonly Line[]
  return Math.max(
    ...checks.map(([l, k]) => {
      const line = from[l] ?? []
      const scale = Math.sqrt(line.reduce((sum, [a, b]) => sum + a * a + b * b, 0))
      const [[re, im], [a = Number.NaN, b = Number.NaN]] = [resultOf(line, k, inverse), got[l]?.[k] ?? []]
      return Math.hypot(a - re, b - im) / scale
    }),
  )
}

const factor = fc.constantFrom(2, 3, 4, 5, 7, 8, 9, 11, 13)
const smooth = fc.array(factor, { maxLength: 4 }).map((factors) => factors.reduce((a, b) => a * b, 1))
const rough = fc.constantFrom(17, 19, 34, 97, 17 * 13, 251, 509, 1009, 17 * 64)
/** Sums of n terms, by the definition and by the stages, each rounded to 1.1e-16 of the largest. */
const BOUND = 2e-14

describe('fftLines', () => {
  it('is the transform by its definition, and its inverse', () => {
    const lengths = fc.oneof(fc.integer({ min: 1, max: 40 }), smooth, rough)
    fc.assert(
      fc.property(lengths, fc.integer({ min: 1, max: 5 }), fc.boolean(), fc.nat(), (n, lines, inverse, place) => {
        const x = torch.randn([lines, n, 2], { dtype: torch.float64 })
        const checks = Array.from({ length: 6 }, (_, i) => [(place + i) % lines, (place + i * i) % n] as const)
        expect(errorOf(x, inverse, checks)).toBeLessThan(BOUND)
        const back = torch.ops.tensorfx.fftLines(torch.ops.tensorfx.fftLines(x, inverse), !inverse).div(n)
        expect(back.sub(x).abs().amax().item()).toBeLessThan(BOUND)
      }),
      { numRuns: 60 },
    )
  })

  it.each([
    [3000, 12],
    [100, 300],
    [41, 1009],
  ])('%i lines of %i numbers, which do not go through the stages together', (lines, n) => {
    const x = torch.randn([lines, n, 2], { dtype: torch.float64 })
    const checks = [0, 1, Math.floor(8192 / n) - 1, Math.floor(8192 / n), lines - 2, lines - 1].map((l) => [l % lines, (7 * l) % n] as const)
    expect(errorOf(x, false, checks)).toBeLessThan(BOUND)
  })

  it('of a part of a larger tensor reads that part only', () => {
    const whole = torch.randn([6, 30, 2], { dtype: torch.float64 })
    const part = whole.narrow(0, 2, 3)
    expect(torch.ops.tensorfx.fftLines(part, false).toArray()).toEqual(torch.ops.tensorfx.fftLines(part.clone(), false).toArray())
  })

  it('has NaN in every result of a line with one, and in no other line', () => {
    const x = torch.randn([3, 20, 2])
    x.select(0, 1).select(0, 4).fill_(Number.NaN)
    const counts = torch.ops.tensorfx.fftLines(x, false).isnan().sum([1, 2]).toArray()
    expect(counts).toEqual([0n, 40n, 0n].map(Number))
  })
})
