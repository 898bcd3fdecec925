// Views made before a value that requires grad is written into their base: they have its history afterwards, as in PyTorch. Eager, compiled, and through aotFunction.
import { describe, expect, test } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { aotFunction } from 'tensorfx/aot'
import { compile } from 'tensorfx/compile'

const leaf = (): Tensor => torch.tensor([1, 2, 3, 4], { requiresGrad: true })

describe('a view follows an in-place write to its base', () => {
  test('the view requires grad, is no leaf, and passes the gradient on', () => {
    const w = leaf()
    const z = torch.zeros([4])
    const v = z.view([2, 2])
    expect(v.requiresGrad).toBe(false)
    z.add_(w)
    expect([v.requiresGrad, v.isLeaf, v.gradFn?.name]).toEqual([true, false, 'AsStridedBackward0'])
    v.mul(
      torch.tensor([
        [1, 2],
        [3, 4],
      ]),
    )
      .sum()
      .backward()
    expect(w.grad?.toArray()).toEqual([1, 2, 3, 4])
  })

  test('the gradient arrives if nothing has asked for requiresGrad before', () => {
    const w = leaf()
    const z = torch.zeros([4])
    const v = z.view([2, 2])
    z.add_(w)
    v.square().sum().backward()
    expect(w.grad?.toArray()).toEqual([2, 4, 6, 8])
  })

  test('a view of a view, a window with gaps, and one that repeats elements', () => {
    const w = leaf()
    const z = torch.zeros([4])
    const row = z.view([2, 2]).select(0, 1)
    const column = z.view([2, 2]).t().select(0, 0)
    const repeated = z.narrow(0, 1, 1).expand([3])
    z.add_(w)
    torch
      .cat([row, column.mul(10), repeated.mul(100)])
      .sum()
      .backward()
    expect(w.grad?.toArray()).toEqual([10, 300, 11, 1])
  })

  test('a second write to the base gives a second history', () => {
    const w = leaf()
    const z = torch.zeros([4])
    const v = z.view([2, 2])
    z.add_(w)
    expect(v.requiresGrad).toBe(true)
    z.mul_(3)
    v.sum().backward()
    expect(w.grad?.toArray()).toEqual([3, 3, 3, 3])
  })

  test('the view of a base without a write stays without history', () => {
    const z = torch.zeros([4])
    const v = z.view([2, 2])
    z.add_(1)
    expect([v.requiresGrad, v.isLeaf]).toEqual([false, true])
  })

  test('detached views, views of them, and views made under noGrad do not follow', () => {
    const w = leaf()
    const z = torch.zeros([4])
    const views = [z.detach(), z.detach().view([2, 2]), torch.noGrad(() => z.view([2, 2])), torch.noGrad(() => z.view([2, 2])).view([4])]
    z.add_(w)
    expect(views.map((v) => v.requiresGrad)).toEqual([false, false, false, false])
    expect(views[1]?.toArray()).toEqual([
      [1, 2],
      [3, 4],
    ])
  })

  test('requiresGrad_ works on a view without history, and back', () => {
    const z = torch.zeros([4])
    const v = z.narrow(0, 0, 2)
    expect(v.requiresGrad_(true).isLeaf).toBe(true)
    expect(v.requiresGrad_(false).requiresGrad).toBe(false)
  })

  const program = (w: Tensor): Tensor => {
    const z = torch.zeros([4])
    const v = z.view([2, 2])
    const fixed = z.detach()
    z.add_(w)
    return v.square().add(fixed.view([2, 2]))
  }

  test('in a compiled function, at every call', () => {
    const compiled = compile(program)
    for (let call = 0; call < 3; call++) {
      const w = leaf()
      compiled(w).sum().backward()
      expect(w.grad?.toArray()).toEqual([2, 4, 6, 8])
    }
  })

  test('when compiled code returns the view', () => {
    const compiled = compile((w: Tensor) => {
      const z = torch.zeros([4])
      const v = z.view([2, 2])
      z.add_(w)
      return v
    })
    for (let call = 0; call < 3; call++) {
      const w = leaf()
      const v = compiled(w)
      expect(v.requiresGrad).toBe(true)
      v.square().sum().backward()
      expect(w.grad?.toArray()).toEqual([2, 4, 6, 8])
    }
  })

  test('in aotFunction', () => {
    const traced = aotFunction(program, {
      fwCompiler:
        (graph) =>
        (...args) =>
          graph(...args),
    })
    for (let call = 0; call < 2; call++) {
      const w = leaf()
      traced(w).sum().backward()
      expect(w.grad?.toArray()).toEqual([2, 4, 6, 8])
    }
  })
})
