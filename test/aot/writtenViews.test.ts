// Arguments that are views, written to while gradients are recorded: aotFunction gives what eager mode gives, and gradients are laid out as there. CopySlices gives what was written a gradient with memory of
// its own; that of a tensor that is no view may be expanded.
import { describe, expect, it, test } from 'vitest'
import { noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { aotFunction } from 'tensorfx/aot'
import { tenth, turn } from '../helpers/rotation.ts'
import { differences, interpreted } from './asInEager.ts'

/** Arguments of shape [2, 3], made of a tensor of 24 elements. */
const layouts: Readonly<Record<string, (base: Tensor) => Tensor>> = {
  'no view': (base) => base.view([-1]).narrow(0, 0, 6).view([2, 3]).mul(1),
  'all of a tensor': (base) => base.view([-1]).narrow(0, 0, 6).mul(1).view([2, 3]),
  rows: (base) => base.view([8, 3]).narrow(0, 2, 2),
  'columns, with gaps': (base) => base.view([3, 8]).narrow(0, 1, 2).narrow(1, 2, 3),
  'every other column': (base) => base.view([4, 6]).slice(1, 0, 6, 2).narrow(0, 1, 2),
  transposed: (base) => base.view([8, 3]).narrow(0, 3, 3).narrow(1, 0, 2).t(),
  'transposed, all of a tensor': (base) => base.view([-1]).narrow(0, 0, 6).mul(1).view([3, 2]).t(),
  'one of several': (base) => torch.unbind(base.view([4, 2, 3]), 0)[1] ?? base,
  'made inside noGrad': (base) => noGrad(() => base.view([8, 3]).narrow(0, 2, 2)),
}

const writes: Readonly<Record<string, (x: Tensor, w: Tensor) => unknown>> = {
  add_: (x, w) => x.add_(w),
  mul_: (x, w) => x.mul_(w),
  'sin_ of a sum': (x, w) => x.add_(w).sin_(),
  copy_: (x, w) => x.copy_(w),
  'add_ to its transpose': (x, w) => x.t().add_(w.t()),
  'add_ to a row': (x, w) => x.select(0, 1).add_(w.select(0, 0)),
  'copy_ to a column': (x, w) => x.select(1, 1).copy_(w.select(1, 0)),
  'add_ inside noGrad': (x, w) => noGrad(() => x.add_(w)),
  nothing: () => null,
}

const results: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  itself: (x) => x,
  'a row': (x) => x.select(0, 1),
  'its transpose': (x) => x.t(),
  'its square': (x) => x.square(),
}

const tables = Object.keys(layouts).flatMap((layout) => Object.keys(writes).map((write) => [layout, write] as const))

describe.each([
  ['without a history', false],
  ['with a history', true],
] as const)('arguments %s', (_, hasHistory) => {
  test.each(tenth(tables, String))('%s, %s', (layout, write) => {
    for (const [name, result] of turn(Object.entries(results))) {
      const fn = (w: Tensor, x: Tensor): unknown => {
        const before = x.t()
        writes[write]?.(x, w)
        const read = result(x)
        const [inside = null] = torch.autograd.grad(read.sum(), w, { retainGraph: true, allowUnused: true })
        return [inside, read, before.cos(), x.sum()]
      }
      const made = (): { leaves: Tensor[]; args: Tensor[] } => {
        const w = torch.arange(1, 7, { dtype: 'float32' }).view([2, 3]).requiresGrad_()
        const leaf = torch.arange(0, 24, { dtype: 'float32' }).div(24).requiresGrad_(hasHistory)
        const x = layouts[layout]?.(hasHistory ? leaf.mul(2) : leaf) ?? leaf
        return { leaves: [w, leaf], args: [w, x] }
      }
      expect(differences(fn, made), name).toEqual([])
    }
  })
})

describe('a function that is called with a view after a tensor that is none', () => {
  it('is traced again, and gives gradients with memory of their own', () => {
    const fn = (w: Tensor, x: Tensor): Tensor | null | undefined => {
      x.add_(w)
      return torch.autograd.grad(x.sum(), w)[0]
    }
    const compiled = aotFunction(fn, { fwCompiler: interpreted })
    const call = (x: Tensor): readonly number[] | undefined => compiled(torch.ones([2, 3]).requiresGrad_(), x)?.strides
    const plain = torch.ones([2, 3])
    const view = torch.ones([6]).view([2, 3])
    expect([call(plain), call(view), call(plain.detach()), call(view)]).toEqual([
      [0, 0],
      [3, 1],
      [0, 0],
      [3, 1],
    ])
  })

  it('leaves the graph of a view that is not written as it is for other tensors', () => {
    const codes: string[] = []
    const compiled = aotFunction((x: Tensor) => x.sin().add(x.t().cos().t()), {
      fwCompiler: (gm) => {
        codes.push(gm.code)
        return interpreted(gm)
      },
    })
    const leaf = torch.ones([24]).requiresGrad_()
    const strided = torch.ones([2, 3]).mul(leaf.sum())
    for (const x of [strided, leaf.mul(2).narrow(0, 0, 6).view([2, 3])]) compiled(x).sum().backward()
    expect(codes.slice(0, 2)).toEqual(codes.slice(2))
    expect(codes.length).toBe(4)
  })
})

describe('a view from outside that the function writes to', () => {
  const kinds: Readonly<Record<string, (base: Tensor) => Tensor>> = {
    'without gaps': (base) => base.view([4, 6]),
    'with gaps': (base) => base.view([4, 6]).narrow(1, 1, 3),
    detached: (base) => base.view([4, 6]).detach(),
  }
  test.each(Object.keys(kinds).flatMap((kind) => [false, true].map((hasHistory) => [kind, hasHistory] as const)))(
    '%s, base with a history: %s',
    (kind, hasHistory) => {
      const seen = [(f: (w: Tensor) => Tensor) => f, (f: (w: Tensor) => Tensor) => aotFunction(f, { fwCompiler: interpreted })].map((wrap) => {
        const leaf = torch.arange(0, 24, { dtype: 'float32' }).div(24).requiresGrad_(hasHistory)
        const base = hasHistory ? leaf.mul(2) : leaf
        const view = kinds[kind]?.(base) ?? base
        const w = torch.full(view.shape, 2).requiresGrad_()
        const f = wrap((w) => {
          view.mul_(w)
          return view.sin().sum()
        })
        // The second call is answered from the cache.
        const results = [f(w), f(w)].map((result) => result.item())
        torch
          .stack([view.cos().sum(), ...(base.requiresGrad ? [base.square().sum()] : [])])
          .sum()
          .backward()
        return [results, base.toArray(), view.requiresGrad, base.requiresGrad, w.grad?.toArray(), leaf.grad?.toArray()]
      })
      expect(seen[1]).toEqual(seen[0])
    },
  )
})
