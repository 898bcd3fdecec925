// Views share memory; reshaping copies only where it must; joining and splitting; indexing by tensors.
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ArgumentError, DTypeError, ShapeError, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { expand, slice, view } from '../../src/ops/index.ts'
import type { SliceLike } from '../../src/ops/index.ts'

const {
  arange,
  cat,
  flatten,
  gather,
  indexSelect,
  narrow,
  ones,
  permute,
  reshape,
  scatterAdd,
  select,
  split,
  stack,
  tensor,
  transpose,
  unbind,
  zeros,
} = torch

const int = (data: number[] | number[][]): Tensor => tensor(data, { dtype: 'int32' })

describe('views', () => {
  const x = arange(24).view(2, 3, 4)
  test('share the storage and know their base', () => {
    for (const y of [
      x.view(6, 4),
      x.t === undefined ? x : x.transpose(0, 1),
      x.select(0, 1),
      x.slice(2, 1, 4, 2),
      x.unsqueeze(1),
      x.detach(),
      x.select(0, 0).expand(2, 3, 4),
    ]) {
      expect(y.storage).toBe(x.storage)
      expect(y.viewBase?.storage).toBe(x.storage)
    }
    expect(x.select(0, 0).select(0, 0).viewBase).toBe(x.viewBase)
  })
  test('what is written through one is seen through the other', () => {
    const base = zeros([2, 3])
    base.transpose(0, 1).select(0, 2).fill_(7)
    expect(base.toArray()).toEqual([
      [0, 0, 7],
      [0, 0, 7],
    ])
    expect(base.slice(1, 1).toArray()).toEqual([
      [0, 7],
      [0, 7],
    ])
  })
  test('shapes, strides and offsets', () => {
    const table: [Tensor, number[], number[], number][] = [
      [view(x, 4, 6), [4, 6], [6, 1], 0],
      [view(x, [-1, 12]), [2, 12], [12, 1], 0],
      [permute(x, 2, 0, 1), [4, 2, 3], [1, 12, 4], 0],
      [transpose(x, -1, 0), [4, 3, 2], [1, 4, 12], 0],
      [select(x, 1, -1), [2, 4], [12, 1], 8],
      [slice(x, 2, 1, -1, 2), [2, 3, 1], [12, 4, 2], 1],
      [slice(x, 1, 5), [2, 0, 4], [12, 4, 1], 12],
      [narrow(x, 0, 1, 1), [1, 3, 4], [12, 4, 1], 12],
      [x.unsqueeze(-1), [2, 3, 4, 1], [12, 4, 1, 1], 0],
      [x.select(0, 0).unsqueeze(0).squeeze(0), [3, 4], [4, 1], 0],
      [expand(x.select(2, 0).unsqueeze(2), 2, -1, 5), [2, 3, 5], [12, 4, 0], 0],
      [x.asStrided([2, 2], [4, 1], 3), [2, 2], [4, 1], 3],
      [flatten(x, 1), [2, 12], [12, 1], 0],
    ]
    for (const [y, shape, strides, offset] of table) expect([y.shape, y.strides, y.offset]).toEqual([shape, strides, offset])
  })
  test('as_strided refuses windows beyond the storage', () => {
    const x = arange(6)
    expect(() => torch.asStrided(x, [2, 4], [4, 1])).toThrow(/reach from element 0 to 7, but the storage of self .* has 6 elements/)
    expect(() => torch.asStrided(x, [2], [-1])).toThrow(/'stride' must hold integers of at least 0/)
    expect(() => torch.asStrided(x, [1], [1], 6)).toThrow(/from element 6/)
    expect(() => torch.asStrided(x, [2], [1, 1])).toThrow(/same length/)
    expect(torch.asStrided(x.slice(0, 0, 4), [3], [2]).toArray()).toEqual([0, 2, 4])
    expect(torch.asStrided(x.slice(0, 0, 4), [3], [2], 1).toArray()).toEqual([1, 3, 5])
    expect(torch.asStrided(x, [0], [1], 6).shape).toEqual([0])
    expect(() => torch.asStridedScatter(x, torch.ones([2]), [2], [6])).toThrow(/reach from element 0 to 6/)
  })
  test('view refuses what needs a copy, reshape makes it', () => {
    const turned = x.permute(2, 1, 0)
    expect(() => turned.view(24)).toThrow(/cannot be seen as \[24\] without a copy; use reshape/)
    const y = reshape(turned, -1)
    expect(y.storage).not.toBe(x.storage)
    expect((y.toArray() as number[]).slice(0, 6)).toEqual([0, 12, 4, 16, 8, 20])
    expect(reshape(x, 24).storage).toBe(x.storage)
    // Some dimensions of a transposed tensor still merge.
    expect(x.permute(2, 0, 1).view(4, 6).storage).toBe(x.storage)
    expect(x.slice(1, 0, 2).view(2, 8).strides).toEqual([12, 1])
  })
  test('reshape of any layout keeps the order of elements', () => {
    fc.assert(
      fc.property(
        fc.shuffledSubarray([0, 1, 2, 3], { minLength: 4 }),
        fc.constantFrom([24], [2, 12], [3, 8], [4, 3, 2], [1, 24], [2, 1, 3, 4], [6, 4]),
        fc.boolean(),
        (order, target, cut) => {
          const base = cut ? arange(48).view(1, 2, 3, 8).slice(3, 0, 8, 2) : arange(24).view(1, 2, 3, 4)
          const y = base.permute(order)
          expect(Array.from(y.reshape(target).toTypedArray())).toEqual(Array.from(y.toTypedArray()))
        },
      ),
    )
  })
  test('contiguous returns itself where it can; clone never does', () => {
    expect(x.contiguous()).toBe(x)
    expect(x.transpose(0, 1).contiguous().strides).toEqual([8, 4, 1])
    expect(x.clone().storage).not.toBe(x.storage)
  })
  test('errors', () => {
    expect(() => x.view(5, 5)).toThrow(ShapeError)
    expect(() => x.view(-1, -1)).toThrow(ShapeError)
    expect(() => x.view(-1, 7)).toThrow(/torch\.Tensor\.view: the shape \[-1, 7\] does not hold the 24 elements/)
    expect(() => permute(x, 0, 0, 1)).toThrow(/must name each of the 3 dimensions/)
    expect(() => expand(x, 2, 3, 5)).toThrow(/does not expand/)
    expect(() => select(x, 0, 2)).toThrow(ArgumentError)
    expect(() => x.narrow(0, 1, 2)).toThrow(/torch\.narrow/)
    expect(() => x.t()).toThrow(/at most 2 dimensions/)
    expect(() => x.transpose(0, 3)).toThrow(/dim 3 is out of range/)
    expect(() => x.slice(0, 0, 2, 0)).toThrow(/step must be positive/)
  })
})

describe('joining and splitting', () => {
  const [a, b] = [
    tensor([[1, 2]]),
    tensor([
      [3, 4],
      [5, 6],
    ]),
  ]
  test('cat and stack', () => {
    expect(cat([a, b]).toArray()).toEqual([
      [1, 2],
      [3, 4],
      [5, 6],
    ])
    expect(cat([b, b.t()], { dim: 1 }).toArray()).toEqual([
      [3, 4, 3, 5],
      [5, 6, 4, 6],
    ])
    expect(stack([b, b], -1).shape).toEqual([2, 2, 2])
    expect(cat([a, int([[7, 8]])]).dtype).toBe('float32')
    expect(cat([a, zeros([0, 2])]).shape).toEqual([1, 2])
  })
  test('cat errors name the tensor that does not fit', () => {
    expect(() => cat([])).toThrow(/at least one tensor/)
    expect(() => cat([a, b], 1)).toThrow(/tensors\[0\] has shape \[1, 2\] but tensors\[1\] has \[2, 2\]/)
    expect(() => cat(a as never)).toThrow(/'tensors' must be an array of Tensors/)
    expect(() => cat([a, 1 as never])).toThrow(/'tensors\[1\]' must be a Tensor/)
  })
  test('split, chunk and unbind give views', () => {
    const x = arange(10)
    expect(split(x, 4).map((t) => t.toArray())).toEqual([
      [0, 1, 2, 3],
      [4, 5, 6, 7],
      [8, 9],
    ])
    expect(x.split([1, 9])[1]?.storage).toBe(x.storage)
    expect(x.chunk(3).map((t) => t.shape)).toEqual([[4], [4], [2]])
    expect(unbind(b, 1).map((t) => t.toArray())).toEqual([
      [3, 5],
      [4, 6],
    ])
    expect(() => split(x, [1, 2])).toThrow(/do not add up to 10/)
  })
  test('repeat, flip, roll, pad, triangles', () => {
    expect(a.repeat(2, 2).toArray()).toEqual([
      [1, 2, 1, 2],
      [1, 2, 1, 2],
    ])
    expect(a.repeat(2, 1, 1).shape).toEqual([2, 1, 2])
    expect(b.flip(0).toArray()).toEqual([
      [5, 6],
      [3, 4],
    ])
    expect(torch.roll(arange(4), 1).toArray()).toEqual([3, 0, 1, 2])
    expect(torch.roll(b, -3, 1).toArray()).toEqual([
      [4, 3],
      [6, 5],
    ])
    expect(torch.nn.functional.pad(a, [1, -1, 0, 1], { value: 9 }).toArray()).toEqual([
      [9, 1],
      [9, 9],
    ])
    expect(() => torch.nn.functional.pad(a, [1, 1], { mode: 'mirror' as never })).toThrow(
      /mode must be 'constant', 'reflect', 'replicate' or 'circular', got 'mirror'/,
    )
    expect(ones([2, 3]).triu(1).toArray()).toEqual([
      [0, 1, 1],
      [0, 0, 1],
    ])
  })
})

describe('indexing by tensors', () => {
  const x = arange(12).view(3, 4)
  test('getitem reads an index as Python does', () => {
    const range = (start: number | null, stop: number | null, step: number | null = null): SliceLike => ({ start, stop, step })
    expect(x.getitem(-1).toArray()).toEqual([8, 9, 10, 11])
    expect(x.getitem([range(1, null), range(null, null, 2)]).toArray()).toEqual([
      [4, 6],
      [8, 10],
    ])
    expect(x.getitem([range(null, null), [0, 0, -1]]).toArray()).toEqual([
      [0, 0, 3],
      [4, 4, 7],
      [8, 8, 11],
    ])
    expect(x.getitem([null, '...', 0]).toArray()).toEqual([[0, 4, 8]])
    expect(x.getitem(int([[2], [0]])).shape).toEqual([2, 1, 4])
    expect(x.T.getitem([0, 1]).item()).toBe(4)
    expect(() => x.getitem([0, 0, 0])).toThrow(/3 indices for a tensor of 2 dimensions/)
    expect(x.getitem(x.gt(3)).toArray()).toEqual(x.maskedSelect(x.gt(3)).toArray())
    expect(() => x.getitem('a' as never)).toThrow(ArgumentError)
  })
  test('gather, indexSelect, scatterAdd', () => {
    expect(
      gather(
        x,
        1,
        int([
          [0, 3],
          [1, 1],
          [2, 0],
        ]),
      ).toArray(),
    ).toEqual([
      [0, 3],
      [5, 5],
      [10, 8],
    ])
    expect(gather(x, 0, int([[2, 0]])).toArray()).toEqual([[8, 1]])
    expect(indexSelect(x, 1, int([3, 0, 0])).toArray()).toEqual([
      [3, 0, 0],
      [7, 4, 4],
      [11, 8, 8],
    ])
    expect(scatterAdd(zeros([3]), 0, int([0, 2, 2]), tensor([1, 2, 3])).toArray()).toEqual([1, 0, 5])
    expect(
      scatterAdd(
        zeros([2, 2]),
        1,
        int([
          [1, 1],
          [0, 1],
        ]),
        ones([2, 2]),
      ).toArray(),
    ).toEqual([
      [0, 2],
      [1, 1],
    ])
    expect(gather(x.t(), 0, int([[1, 2, 3]])).toArray()).toEqual([[1, 6, 11]])
  })
  test('an index smaller than the tensors reaches only its part, also backwards', () => {
    const w = ones([3, 4], { requiresGrad: true })
    gather(w, 0, int([[2, 0]]))
      .sum()
      .backward()
    expect(w.grad?.toArray()).toEqual([
      [0, 1, 0, 0],
      [0, 0, 0, 0],
      [1, 0, 0, 0],
    ])
    const src = tensor(
      [
        [1, 2],
        [3, 4],
      ],
      { requiresGrad: true },
    )
    const y = scatterAdd(zeros([3, 3]), 0, int([[2, 2]]), src)
    expect(y.toArray()).toEqual([
      [0, 0, 0],
      [0, 0, 0],
      [1, 2, 0],
    ])
    y.sum().backward()
    expect(src.grad?.toArray()).toEqual([
      [1, 1],
      [0, 0],
    ])
  })
  test('indices are checked', () => {
    expect(() => gather(x, 1, int([[4], [0], [0]]))).toThrow(/torch\.gather: index has the index 4 at flat position 0, but only 0 to 3 exist/)
    expect(() => gather(x, 1, tensor([[0]]))).toThrow(DTypeError)
    expect(() => gather(x, 1, int([0]))).toThrow(ShapeError)
    expect(() => scatterAdd(zeros([3]), 0, int([0, 1]), ones([1]))).toThrow(/torch\.scatter_add: .*'src'/)
  })
})
