// The neighbours of floating-point numbers: nextafter, in every floating-point dtype, eager and compiled.
import { describe, expect, it } from 'vitest'
import { DTypeError, ShapeError, compile, torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'

const DTYPES: readonly DType[] = ['float16', 'bfloat16', 'float32', 'float64']

describe.each(DTYPES)('nextafter of %s', (dtype) => {
  const { eps, max, tiny } = torch.finfo(dtype)
  const least = tiny * eps
  const cases: readonly (readonly [from: number, toward: number, next: number])[] = [
    [1, 2, 1 + eps],
    [1, 0, 1 - eps / 2],
    [-1, -2, -1 - eps],
    [-1, 5, -1 + eps / 2],
    [1.5, 2, 1.5 + eps],
    [6, 0, 6 - 4 * eps],
    [8, Infinity, 8 + 8 * eps],
    [0, 1, least],
    [0, -1, -least],
    [least, 0, 0],
    [least, 1, 2 * least],
    [tiny, 0, tiny - least],
    [tiny, 1, tiny + least],
    [max, Infinity, Infinity],
    [max, 0, max - max * (eps / (2 - eps))],
    [Infinity, 0, max],
    [-Infinity, 0, -max],
    [3, 3, 3],
  ]
  const column = (k: 0 | 1): Tensor =>
    torch.tensor(
      cases.map((one) => one[k]),
      { dtype },
    )

  it.each([
    ['eager', torch.nextafter],
    ['compiled', compile((x: Tensor, y: Tensor) => torch.nextafter(x, y))],
  ] as const)('%s', (_, fn) => {
    const got = Array.from(fn(column(0), column(1)).toTypedArray(), Number)
    cases.forEach(([from, toward, next], i) => expect(got[i], `from ${from} toward ${toward}`).toBe(next))
  })

  it('leads back', () => {
    const x = torch.tensor([1, -3.25, 0.0625, 1000, 2, -0.5], { dtype })
    const [above, below] = [torch.full([6], Infinity, { dtype }), torch.full([6], -Infinity, { dtype })]
    expect(torch.nextafter(torch.nextafter(x, above), below).toArray()).toEqual(x.toArray())
    expect(torch.nextafter(torch.nextafter(x, below), above).toArray()).toEqual(x.toArray())
  })

  it('frexp gives back what ldexp takes', () => {
    const x = torch.tensor([1, -3.25, 0.0625, tiny, -least, 3 * least, max, 0], { dtype })
    const [mantissa, exponent] = torch.frexp(x)
    const parts = Array.from(mantissa.toTypedArray(), Number)
    expect(parts.slice(0, -1).every((m) => Math.abs(m) >= 0.5 && Math.abs(m) < 1)).toBe(true)
    const powers = Array.from(exponent.toTypedArray(), Number)
    // In two steps, as 2^1024 is infinite.
    const whole = (m: number, e: number): number => m * 2 ** Math.floor(e / 2) * 2 ** Math.ceil(e / 2)
    expect(parts.map((m, i) => whole(m, powers[i] ?? 0))).toEqual(Array.from(x.toTypedArray(), Number))
  })
})

describe('nextafter', () => {
  it('refuses integers, two dtypes and shapes that do not broadcast', () => {
    const x = torch.ones([2])
    expect(() => torch.nextafter(x.int(), x.int())).toThrow(DTypeError)
    expect(() => torch.nextafter(x, x.double())).toThrow(/self is float32, but other is float64/)
    expect(() => torch.nextafter(x, torch.ones([3]))).toThrow(ShapeError)
    expect(() => torch.frexp(x.int())).toThrow(/Convert it: x.float\(\)/)
  })
})
