// torch.where with the condition alone.
import { expect, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'

const condition = torch.tensor([
  [0, 2],
  [3, 0],
])

test('where(condition) gives the positions where it is not 0, a tensor for each dimension', () => {
  const positions = torch.where(condition)
  expect(positions.map((t) => [t.dtype, t.toArray()])).toEqual([
    ['int64', [0, 1]],
    ['int64', [1, 0]],
  ])
  expect(compile((x: Tensor) => torch.where(x.gt(1)))(condition).map((t) => t.toArray())).toEqual([
    [0, 1],
    [1, 0],
  ])
})

test('a symbolic trace records it as where, as in PyTorch', () => {
  const traced = symbolicTrace((x: Tensor) => torch.where(x))
  expect(String(traced.graph)).toContain('target=torch.where](args = (%x,), kwargs = {})')
  expect((traced.call(condition) as readonly Tensor[]).map((t) => t.toArray())).toEqual([
    [0, 1],
    [1, 0],
  ])
})

test('where still takes all of its arguments by name', () => {
  const byName: unknown = Reflect.apply(torch.where, null, [{ condition: torch.tensor([true]), input: torch.tensor([1]), other: torch.tensor([2]) }])
  expect((byName as Tensor).toArray()).toEqual([1])
})
