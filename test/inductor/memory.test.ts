// What compiled programs do with memory: disposed tensors are refused, nested programs have arenas of their own, and a failing call leaves nothing behind.
import { describe, expect, onTestFinished, test } from 'vitest'
import { ArgumentError, compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { heapStats, setSoftLimit, setSynchronousCollection } from 'tensorfx/kernels'
import { customOp } from 'tensorfx/library'

const ones = (): Tensor => torch.ones([4])
const gone = (): Tensor => {
  const x = ones()
  x.dispose()
  return x
}
const DISPOSED = /^this tensor has been disposed, so its data is gone/

describe('disposed tensors are refused in compiled code as in eager mode', () => {
  test('as arguments, also of a call that skips the function', () => {
    for (const skipReplay of [false, true]) {
      const f = compile((x: Tensor, y: Tensor) => x.add(1).mul(y), { skipReplay })
      for (let i = 0; i < 3; i++) expect(f(ones(), ones()).toArray()).toEqual([2, 2, 2, 2])
      expect(() => f(gone(), ones()).toArray()).toThrow(DISPOSED)
      expect(() => f(ones(), gone()).toArray()).toThrow(DISPOSED)
      expect(f(ones(), ones()).toArray()).toEqual([2, 2, 2, 2])
    }
  })

  test('as views of what was disposed', () => {
    const f = compile((x: Tensor) => x.add(1))
    expect(f(ones().view([2, 2])).toArray()).toEqual([
      [2, 2],
      [2, 2],
    ])
    const base = ones()
    const view = base.view([2, 2])
    base.dispose()
    expect(() => f(view).toArray()).toThrow(DISPOSED)
  })

  test('as tensors around the function, and as parameters', () => {
    const outside = ones()
    const f = compile((x: Tensor) => x.add(outside))
    const layer = new nn.Linear(4, 2)
    const g = compile(layer)
    f(ones())
    g(ones())
    outside.dispose()
    layer.weight.dispose()
    expect(() => f(ones()).toArray()).toThrow(DISPOSED)
    expect(() => g(ones()).toArray()).toThrow(DISPOSED)
  })

  test('as what is written to', () => {
    const f = compile((x: Tensor, y: Tensor) => x.copy_(y.mul(2)))
    expect(f(ones(), ones()).toArray()).toEqual([2, 2, 2, 2])
    expect(() => f(gone(), ones())).toThrow(DISPOSED)
  })

  test('as what the backward pass saved', () => {
    const x = ones().requiresGrad_()
    const factor = ones()
    const loss = compile((leaf: Tensor) => leaf.mul(factor).exp().sum())(x)
    factor.dispose()
    expect(() => loss.backward()).toThrow(DISPOSED)
  })
})

describe('programs', () => {
  test('that run inside others, in an operator that a user wrote, leave their temporaries alone', () => {
    const inner = compile((y: Tensor) => y.exp().sum(0, true).add(y).sum(0, true).mul(y).sum())
    const twice = customOp('memoryTest::twice', {
      schema: '(Tensor x) -> Tensor',
      forward: (x) => {
        inner(x.add(5))
        return x.mul(2)
      },
      fake: (x) => torch.emptyLike(x),
    })
    const outer = (x: Tensor): Tensor => {
      const sums = x.exp().sum(1, true)
      const means = x.div(sums).sum(0, true)
      return means.mul(twice(x)).add(sums)
    }
    const x = torch.arange(12).div(10).reshape([3, 4])
    const expected = torch.stack([outer(x)]).flatten()
    const compiled = compile(outer)
    for (let i = 0; i < 2; i++) expect(torch.allclose(compiled(x).flatten(), expected)).toBe(true)
  })

  test('that fail free their copies of tensors outside the heap', () => {
    const { softLimit } = heapStats()
    const before = setSynchronousCollection(false)
    onTestFinished(() => {
      setSoftLimit(softLimit)
      setSynchronousCollection(before)
    })
    const f = compile((table: Tensor, at: Tensor) => table.add(1).gather(0, at).mul(2))
    const good = torch.tensor([0, 1]).long()
    expect(f(ones(), good).toArray()).toEqual([4, 4])
    setSoftLimit(0)
    const [table, bad] = [ones(), torch.tensor([0, 7]).long()]
    const { inUse } = heapStats()
    for (let i = 0; i < 5; i++) expect(() => f(table, bad).toArray()).toThrow(ArgumentError)
    expect(heapStats().inUse).toBe(inUse)
  })
})
