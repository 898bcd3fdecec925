// gather and the scatters along every dimension, with indices of every integer dtype and layout: in a row, with strides, expanded in some or all of the other dimensions.
import { describe, expect, test } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const [A, B, C] = [3, 5, 6]
const N = 7

/** Indices below `size` of the shape of [A, B, C] with N in `dim`, in different layouts. */
function layouts(dim: number, size: number): [string, Tensor][] {
  torch.manualSeed(dim)
  const shape = [A, B, C].with(dim, N)
  const line = torch.randint(0, size, [N])
  const alone = shape.map((_, d) => (d === dim ? N : 1))
  const other = dim === 0 ? 1 : 0
  const rows = torch.randint(
    0,
    size,
    shape.map((s, d) => (d === dim || d === other ? s : 1)),
  )
  return [
    ['in a row', torch.randint(0, size, shape)],
    [
      'with strides',
      torch
        .randint(0, size, [...shape.slice(1), (shape[0] ?? 0) * 2])
        .slice(2, 1, 99, 2)
        .permute(2, 0, 1),
    ],
    ['expanded in all other dimensions', line.view(...alone).expand(shape)],
    ['expanded in one', rows.expand(shape)],
  ]
}

const at = (t: Tensor): number[] => Array.from(t.contiguous().toTypedArray(), Number)
const flat = (i: number, j: number, k: number, shape: readonly number[]): number => (i * (shape[1] ?? 0) + j) * (shape[2] ?? 0) + k

/** Calls `visit` with each place of the index as a flat position of it, and the flat position that it names in a tensor of shape [A, B, C]. */
function forEach(index: Tensor, dim: number, visit: (from: number, to: number) => void): void {
  const positions = at(index)
  const [a = 0, b = 0, c = 0] = index.shape
  for (let i = 0; i < a; i++)
    for (let j = 0; j < b; j++)
      for (let k = 0; k < c; k++) {
        const from = flat(i, j, k, index.shape)
        const [x = 0, y = 0, z = 0] = [i, j, k].with(dim, positions[from] ?? 0)
        visit(from, flat(x, y, z, [A, B, C]))
      }
}

describe.each([0, 1, 2])('along dimension %i', (dim) => {
  const size = [A, B, C][dim] ?? 0
  describe.each(layouts(dim, size))('an index %s', (_, index) => {
    test.each(['int64', 'int32', 'int16', 'int8', 'uint8'] as const)('of %s', (dtype) => {
      const positions = index.dtype === dtype ? index : index.to(dtype)
      const own = torch.arange(A * B * C, { dtype: 'float32' }).view(A, B, C)
      const source = torch.arange(index.numel, { dtype: 'float32' }).add(1000).view(index.shape)
      const values = at(source)
      const wanted = { gather: Array.from({ length: index.numel }, () => NaN), add: at(own), set: at(own), max: at(own) }
      forEach(index, dim, (from, to) => {
        const value = values[from] ?? NaN
        wanted.gather[from] = at(own)[to] ?? NaN
        wanted.add[to] = (wanted.add[to] ?? NaN) + value
        wanted.set[to] = value
        wanted.max[to] = Math.max(wanted.max[to] ?? NaN, value)
      })
      expect(at(own.gather(dim, positions))).toEqual(wanted.gather)
      expect(at(own.scatterAdd(dim, positions, source))).toEqual(wanted.add)
      expect(at(own.scatter(dim, positions, source))).toEqual(wanted.set)
      expect(at(own.scatterReduce(dim, positions, source, 'amax'))).toEqual(wanted.max)
    })
  })
})

describe('many indices, which a kernel checks', () => {
  test.each(['int64', 'int32'] as const)('of %s: one outside is refused by its position', (dtype) => {
    const x = torch.arange(10, { dtype: 'float32' })
    for (const at_ of [0, 4096, 9999])
      for (const wrong of [-1, 10, ...(dtype === 'int64' ? [2 ** 32] : [])]) {
        const index = torch.zeros([10000], { dtype })
        expect(x.gather(0, index).sum().item()).toBe(0)
        index.narrow(0, at_, 1).fill_(wrong)
        expect(() => x.gather(0, index)).toThrow(new RegExp(`index ${wrong} at flat position ${at_}`))
      }
  })

  test('an ignored class is not refused', () => {
    const target = torch.zeros([5000]).long()
    target.narrow(0, 17, 1).fill_(-100)
    expect(torch.nn.functional.nllLoss(torch.ones([5000, 3]), target).item()).toBe(-1)
    target.narrow(0, 17, 1).fill_(-101)
    expect(() => torch.nn.functional.nllLoss(torch.ones([5000, 3]), target)).toThrow(/-101/)
  })
})

test('a view of a larger index with an offset, and 64-bit values at 64-bit indices', () => {
  const index = torch.tensor([9, 9, 2, 0, 1, 2]).long().narrow(0, 2, 4)
  const x = torch.tensor([1n << 40n, 2n, -3n])
  expect(x.gather(0, index).toBigIntArray()).toEqual(BigInt64Array.of(-3n, 1n << 40n, 2n, -3n))
  expect(
    torch
      .zeros([3])
      .double()
      .scatterAdd(0, index, torch.tensor([1, 2, 3, 4]).double())
      .toArray(),
  ).toEqual([2, 3, 5])
  expect(torch.zeros([3, 0]).gather(0, torch.zeros([2, 0]).long()).shape).toEqual([2, 0])
})
