// Copies and pointwise operators between layouts whose neighbours lie along different dimensions: large enough for tiles, against the same elements one by one.
import { compile } from 'tensorfx/compile'
import { torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import { describe, expect, test } from 'vitest'

/** Elements of a contiguous tensor with dimensions in another order. */
function permuted(values: readonly unknown[], sizes: readonly number[], order: readonly number[]): unknown[] {
  const strides = sizes.map((_, d) => sizes.slice(d + 1).reduce((product, size) => product * size, 1))
  const walk = (d: number, at: number): unknown[] => {
    const dim = order[d]
    if (dim === undefined) return [values[at]]
    return Array.from({ length: sizes[dim] ?? 0 }, (_, i) => walk(d + 1, at + i * (strides[dim] ?? 0))).flat()
  }
  return walk(0, 0)
}

const flat = (x: Tensor): unknown[] => Array.from(x.contiguous().toTypedArray() as ArrayLike<unknown>)
const filled = (sizes: readonly number[], dtype: DType): Tensor =>
  torch
    .arange(sizes.reduce((product, size) => product * size, 1))
    .remainder(113)
    .to(dtype)
    .reshape(sizes)

/** The first place where two lists differ, -1 if there is none. Lists of these lengths are compared slowly by `toEqual`. */
const difference = (a: readonly unknown[], b: readonly unknown[]): number => (a.length === b.length ? a.findIndex((x, i) => !Object.is(x, b[i])) : 0)

/** One for each size of element, and those that kernels convert. */
const SOME: readonly DType[] = ['bool', 'int16', 'bfloat16', 'float32', 'float64', 'int64']

const CASES: readonly (readonly [sizes: readonly number[], order: readonly number[]])[] = [
  [
    [97, 101],
    [1, 0],
  ],
  [
    [3, 8192],
    [1, 0],
  ],
  [
    [5, 41, 43],
    [0, 2, 1],
  ],
  [
    [21, 22, 23],
    [2, 1, 0],
  ],
  [
    [21, 22, 23],
    [2, 0, 1],
  ],
  [
    [17, 4, 9, 16],
    [0, 2, 1, 3],
  ],
]

describe('copies into another order of dimensions', () => {
  test.each(CASES)('of %j permuted to %j have the elements, in each dtype, eager and compiled', (sizes, order) => {
    for (const dtype of SOME) {
      const x = filled(sizes, dtype)
      const expected = permuted(flat(x), sizes, order)
      expect(difference(flat(x.permute(order)), expected), dtype).toBe(-1)
      const copy = compile((from: Tensor) => from.permute(order).contiguous())
      expect(difference(flat(copy(x)), expected), dtype).toBe(-1)
      // The same the other way round: the target's neighbours are apart.
      const shape = order.map((d) => sizes[d] ?? 0)
      const target = torch.zeros(shape, { dtype })
      target.permute(order.map((_, d) => order.indexOf(d))).copy_(x)
      expect(difference(flat(target), expected), dtype).toBe(-1)
    }
  })

  test('in place, an operand that is the same memory in another layout is read before it is written', () => {
    const x = filled([96, 96], 'float32')
    const expected = flat(x.add(x.t().contiguous()))
    expect(flat(x.clone().add_(x.t()))).toEqual(expected)
    const y = x.clone()
    y.add_(y.t())
    expect(flat(y)).toEqual(expected)
    const z = x.clone()
    compile((t: Tensor) => t.add_(t.t()))(z)
    expect(flat(z)).toEqual(expected)
  })

  test('pointwise operators read transposed operands and write transposed results', () => {
    const [x, y] = [filled([120, 130], 'float32'), filled([130, 120], 'float32')]
    const expected = flat(x.mul(2).add(y.t().contiguous()).relu())
    expect(flat(x.mul(2).add(y.t()).relu())).toEqual(expected)
    expect(flat(compile((a: Tensor, b: Tensor) => a.mul(2).add(b.t()).relu())(x, y))).toEqual(expected)
    const into = torch.zeros([130, 120]).t()
    into.add_(y.t()).add_(x)
    expect(flat(into)).toEqual(flat(x.add(y.t().contiguous())))
  })
})
