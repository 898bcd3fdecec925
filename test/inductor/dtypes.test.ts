// Compiled programs on every dtype: fused operators round where PyTorch's operators round, integers wrap around, int64 keeps all bits.
import { describe, expect, it } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import type { DType } from '../../src/kernels/numbers/dtype.ts'
import { converted } from '../../src/kernels/numbers/numbers.ts'

const tensor = (values: readonly number[], dtype: DType): Tensor => torch.tensor([...values], { dtype })

const kindsOf = (fast: { kernels(): readonly { readonly kind: string }[] }): readonly string[] => fast.kernels().map(({ kind }) => kind)

/** Values with a fraction, the same at each call. */
const fractions = (count: number, salt: number): readonly number[] =>
  Array.from({ length: count }, (_, k) => (((Math.imul(k + salt, 2654435761) >>> 8) % 20001) - 10000) / 997)

describe('fused operators on half precisions', () => {
  it.each(['float16', 'bfloat16'] as const)('round each result to %s, in one kernel', (dtype) => {
    const round = (value: number): number => Number(converted(dtype, Math.fround(value)))
    const fast = compile((x: Tensor, y: Tensor) => x.add(y).mul(x).div(y).sub(x))
    const [left, right] = [fractions(77, 1).map(round), fractions(77, 9).map(round)]
    const out = fast(tensor(left, dtype), tensor(right, dtype))
    expect(kindsOf(fast)).toEqual(['loops'])
    expect(out.dtype).toBe(dtype)
    const pairs = left.map((a, k) => [a, right[k] ?? NaN] as const)
    expect(Array.from(out.toTypedArray())).toEqual(pairs.map(([a, b]) => round(round(round(round(a + b) * a) / b) - a)))
    // Rounded only once, the results are others.
    expect(pairs.map(([a, b]) => round(((a + b) * a) / b - a))).not.toEqual(pairs.map(([a, b]) => round(round(round(round(a + b) * a) / b) - a)))
  })
})

describe('fused operators on integers', () => {
  it.each([
    ['int8', 8],
    ['uint8', 8],
    ['int16', 16],
    ['int32', 32],
  ] as const)('wrap around to %s', (dtype, bits) => {
    const wrap = (value: bigint): number => Number(dtype === 'uint8' ? BigInt.asUintN(bits, value) : BigInt.asIntN(bits, value))
    const values = Array.from({ length: 77 }, (_, k) => wrap(BigInt(Math.imul(k + 3, 2654435761) >>> 3)))
    const fast = compile((x: Tensor) => x.mul(x).add(x).sub(100))
    const out = fast(tensor(values, dtype))
    expect(kindsOf(fast)).toEqual(['loops'])
    expect(out.dtype).toBe(dtype)
    expect(Array.from(out.toTypedArray())).toEqual(values.map((x) => wrap(BigInt(x) * BigInt(x) + BigInt(x) - 100n)))
  })

  it('keep all bits of int64', () => {
    const huge = (x: Tensor): Tensor => x.mul(2 ** 31).mul(2 ** 31)
    const fast = compile((x: Tensor) => huge(x).add(x).sub(huge(x)))
    const values = Array.from({ length: 77 }, (_, k) => k - 38)
    const out = fast(tensor(values, 'int64'))
    expect(kindsOf(fast)).toEqual(['loops'])
    expect(out.dtype).toBe('int64')
    expect(out.toArray()).toEqual(values)
  })

  it('mix with floats of another width in one kernel', () => {
    const fast = compile((x: Tensor, y: Tensor) => x.to('float64').div(3).to('float16').add(y.to('int64').to('float16')))
    const [left, right] = [fractions(77, 5).map(Math.fround), fractions(77, 2)]
    const round = (value: number): number => Number(converted('float16', Math.fround(value)))
    const out = fast(tensor(left, 'float32'), tensor(right, 'float64'))
    expect(kindsOf(fast)).toEqual(['loops'])
    expect(Array.from(out.toTypedArray())).toEqual(left.map((a, k) => round(round(a / 3) + Math.trunc(right[k] ?? NaN))))
  })
})

it('the templates leave matrix products of other dtypes than float32 to loops', () => {
  const product = (dtype: DType): readonly string[] => {
    const fast = compile((x: Tensor, y: Tensor) => torch.mm(x, y))
    const out = fast(tensor([1, 2, 3, 4, 5, 6], dtype).view([2, 3]), tensor([1, 0, 2, 1, 0, 3], dtype).view([3, 2]))
    expect(out.toArray(), dtype).toEqual([
      [5, 11],
      [14, 23],
    ])
    return kindsOf(fast)
  }
  expect(product('float32')).toEqual(['template'])
  for (const dtype of ['int8', 'int32', 'int64', 'float16', 'bfloat16', 'float64'] as const) expect(product(dtype), dtype).not.toContain('template')
})
