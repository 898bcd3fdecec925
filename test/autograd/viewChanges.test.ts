// Operators that give a tensor another shape in place (t_, squeeze_, as_strided_, resize_, set_, …): in eager mode with gradients, versions and views; compiled, traced and under vmap.
import { describe, expect, it } from 'vitest'
import { AutogradError, DTypeError, ShapeError, UnsupportedError, fx, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { makeFx } from 'tensorfx/aot'
import { compile, explain } from 'tensorfx/compile'
import { grad, jvp, vmap } from 'tensorfx/func'

const leaf = (): Tensor =>
  torch.tensor(
    [
      [1, 2, 3],
      [4, 5, 6],
    ],
    { requiresGrad: true },
  )
const weights = torch.arange(6, { dtype: 'float32' })
const values = (t: Tensor | null | undefined): unknown => t?.detach().toArray()

/** Each operator, and the view that it makes of a tensor of shape [2, 3]. */
const CHANGES: readonly (readonly [string, (x: Tensor) => Tensor, (x: Tensor) => Tensor])[] = [
  ['t_', (x) => x.t_(), (x) => x.t()],
  ['transpose_', (x) => x.transpose_(0, -1), (x) => x.transpose(0, -1)],
  ['swapaxes_', (x) => x.swapaxes_(0, 1), (x) => x.swapaxes(0, 1)],
  ['swapdims_', (x) => x.swapdims_(1, 0), (x) => x.swapdims(1, 0)],
  ['unsqueeze_', (x) => x.unsqueeze_(1), (x) => x.unsqueeze(1)],
  ['unsqueeze_ and squeeze_', (x) => x.unsqueeze_(0).squeeze_(0), (x) => x],
  ['squeeze_ of what has no such dimension', (x) => x.squeeze_(), (x) => x.squeeze()],
  ['as_strided_', (x) => x.asStrided_([3, 2], [1, 3]), (x) => x.asStrided([3, 2], [1, 3])],
]

describe.each(CHANGES)('%s', (_, change, view) => {
  it('returns the tensor itself, on the same memory, without a history', () => {
    const x = leaf().detach().clone()
    const before = x.view(-1)
    expect(change(x)).toBe(x)
    const expected = view(leaf().detach())
    expect([x.shape, values(x), x.requiresGrad, x.isLeaf]).toEqual([expected.shape, values(expected), false, true])
    x.mul_(2)
    expect(values(before)).toEqual([2, 4, 6, 8, 10, 12])
  })

  it('has the gradient of the view, and of views made before and after, also after writes', () => {
    const program = (x: Tensor, change: (x: Tensor) => Tensor, w: Tensor): Tensor => {
      const flat = x.view(-1)
      const y = change(x)
      const row = y.select(0, 1)
      y.mul_(w)
      row.mul_(3)
      return y.mul(weights.reshape(y.shape)).sum().add(row.square().sum()).add(flat.sin().mul(weights).sum())
    }
    const [a, b] = [leaf(), leaf()]
    const [u, v] = [torch.tensor(2, { requiresGrad: true, dtype: 'float32' }), torch.tensor(2, { requiresGrad: true, dtype: 'float32' })]
    const [ours, theirs] = [program(a.mul(0.5), change, u), program(b.mul(0.5), view, v)]
    ours.backward()
    theirs.backward()
    expect([values(ours), values(a.grad), values(u.grad)]).toEqual([values(theirs), values(b.grad), values(v.grad)])
  })

  it('of a view changes that view only (difference: view-changes-view)', () => {
    const a = leaf()
    const whole = a.mul(2)
    const part = whole.view(2, 3)
    change(part)
    part.mul_(3)
    whole
      .mul(weights.reshape([2, 3]))
      .sum()
      .backward()
    expect([whole.shape, values(a.grad)]).toEqual([[2, 3], values(weights.mul(6).reshape([2, 3]))])
  })

  it('refuses a leaf that requires grad, and views of one, as a write does', () => {
    const a = leaf()
    expect(() => change(a)).toThrow(AutogradError)
    expect(() => change(a.view(2, 3))).toThrow(/view of a leaf that requires grad/)
    expect([a.shape, values(a.mul(1))]).toEqual([[2, 3], values(leaf())])
    noGrad(() => change(a))
    expect([a.isLeaf, a.requiresGrad]).toEqual([true, true])
    a.sum().backward()
    expect(a.grad?.shape).toEqual(a.shape)
  })

  it('compiled, of what the graph computes: a part of it, with the same results and gradients', () => {
    const program = (w: Tensor): Tensor[] => {
      const x = w.mul(2)
      const [flat, product] = [x.view(-1), x.mul(3)]
      const y = change(x).exp()
      return [x, y, product, x.mul(weights.reshape(x.shape)).sum().add(flat.square().sum())]
    }
    const compiled = compile(program)
    for (let call = 0; call < 3; call++)
      for (const last of [1, 2, 3, 0]) {
        const [a, b] = [leaf(), leaf()]
        const [ours, theirs] = [compiled(a), program(b)]
        const seen = ours.map((t) => [t.shape, values(t)])
        ours[last]?.sum().backward()
        theirs[last]?.sum().backward()
        expect([seen, values(a.grad)]).toEqual([theirs.map((t) => [t.shape, values(t)]), values(b.grad)])
      }
    expect(explain(program)(leaf()).breakReasons).toEqual([])
  })

  it('compiled, of what the graph computes: writes before and after, and views that share the memory', () => {
    const program = (w: Tensor): Tensor[] => {
      const x = w.mul(2)
      const flat = x.view(-1)
      x.add_(1)
      change(x)
      flat.mul_(3)
      x.mul_(1.5)
      const twice = change(x.clone())
      return [x.mul(weights.reshape(x.shape)), flat, x, twice.mul(2)]
    }
    const compiled = compile(program)
    for (let call = 0; call < 3; call++) expect(compiled(leaf().detach()).map(values)).toEqual(program(leaf().detach()).map(values))
    expect(explain(program)(leaf().detach()).breakReasons.map(({ code }) => code)).not.toContain('viewChange')
    const [a, b] = [leaf(), leaf()]
    for (const [of, run] of [
      [a, compiled],
      [b, program],
    ] as const)
      run(of)
        .reduce((sum, t) => sum.add(t.sum()), torch.zeros([]))
        .backward()
    expect(values(a.grad)).toEqual(values(b.grad))
  })

  it('compiled, of an argument: a graph break with its reason, and the argument has the new shape afterwards (difference: view-change-breaks)', () => {
    const compiled = compile((x: Tensor) => change(x.add_(0)).mul(2))
    expect(explain((x: Tensor) => change(x.add_(0)).mul(2))(leaf().detach().clone()).breakReasons.map(({ code }) => code)).toContain('viewChange')
    for (let call = 0; call < 3; call++) {
      const [x, y] = [leaf().detach().clone(), leaf().detach().clone()]
      expect([values(compiled(x)), x.shape]).toEqual([values(change(y).mul(2)), y.shape])
    }
  })

  it('under vmap, and in derivatives of functions', () => {
    const f = (x: Tensor): Tensor => {
      const y = x.mul(2)
      change(y)
      y.mul_(y.clone())
      return y.mul(weights.reshape(y.shape)).sum()
    }
    const batch = torch.stack([leaf().detach(), leaf().detach().mul(2)])
    expect(values(vmap(f)(batch) as Tensor)).toEqual(batch.unbind().map((x) => f(x).item()))
    expect(values(vmap(grad(f))(batch) as Tensor)).toEqual(batch.unbind().map((x) => values(grad(f)(x) as Tensor)))
    const [, tangent] = jvp(f, [leaf().detach()], [torch.ones([2, 3])])
    expect((tangent as Tensor).item()).toBeCloseTo((grad(f)(leaf().detach()) as Tensor).sum().item() as number, 3)
  })

  it('in makeFx: views, and the argument gets its shape at the end', () => {
    const program = (x: Tensor): Tensor => {
      change(x)
      x.mul_(2)
      return x.add(1)
    }
    const gm = makeFx(program)(leaf().detach().clone())
    const [x, y] = [leaf().detach().clone(), leaf().detach().clone()]
    expect([values(gm.forward(x) as Tensor), values(x), x.shape]).toEqual([values(program(y)), values(y), y.shape])
  })

  it('in symbolicTrace: a call of the method', () => {
    const gm = fx.symbolicTrace((x: Tensor) => change(x).mul(2))
    const [x, y] = [leaf().detach().clone(), leaf().detach().clone()]
    expect([values(gm.forward(x) as Tensor), x.shape]).toEqual([values(change(y).mul(2)), y.shape])
  })
})

describe('what autograd has saved', () => {
  it('is stale after a change of shape, as after a write, but its shape is known', () => {
    const a = leaf()
    const x = a.mul(2)
    const [square, sum] = [x.mul(x), x.sum()]
    x.t_()
    expect(() => square.sum().backward()).toThrow(/modified in place after the call: argument 'other', of shape \[2, 3\]/)
    sum.backward()
    expect(values(a.grad)).toEqual(values(torch.ones([2, 3]).mul(2)))
  })

  it('is stale in a view of the memory, and in other memory', () => {
    const a = leaf()
    const x = a.mul(2)
    const flat = x.view(-1)
    const square = flat.mul(flat)
    x.unsqueeze_(0)
    expect(() => square.sum().backward()).toThrow(/modified in place/)
    const c = torch.ones([3])
    const product = a.mul(c)
    c.set_(torch.ones([3]).mul(5))
    expect(() => product.sum().backward()).toThrow(/modified in place/)
  })
})

describe('detach_', () => {
  it('cuts a result from its history, and refuses views', () => {
    const x = leaf().mul(2).t_().detach_()
    expect([x.requiresGrad, x.isLeaf, x.shape]).toEqual([false, true, [3, 2]])
    expect(() => leaf().mul(2).view(-1).detach_()).toThrow(/is a view/)
    expect(() => noGrad(() => torch.zeros([2]).view(-1)).detach_()).toThrow(AutogradError)
    expect(leaf().mul(2).detach().detach_().requiresGrad).toBe(false)
  })
})

describe('resize_', () => {
  it('shows fewer elements, and more of the same memory for all that share it', () => {
    const x = torch.tensor([1, 2, 3, 4])
    const view = x.view(2, 2)
    expect(values(x.resize_([3]))).toEqual([1, 2, 3])
    expect(values(x.resize_(2, 3))).toEqual([
      [1, 2, 3],
      [4, 0, 0],
    ])
    view.mul_(10)
    expect(values(x)).toEqual([
      [10, 20, 30],
      [40, 0, 0],
    ])
    expect(torch.resizeAs_(x, torch.zeros([1, 2])).shape).toEqual([1, 2])
  })

  it('refuses what requires grad, negative sizes, and growth in a trace', () => {
    expect(() => noGrad(() => leaf().resize_(2))).toThrow(UnsupportedError)
    expect(() => torch.zeros([2]).resize_([-1])).toThrow(ShapeError)
    expect(() => makeFx((x: Tensor) => x.resize_(3).mul(2))(torch.zeros([2]))).toThrow(/cannot grow/)
  })

  it('in a compiled function', () => {
    const compiled = compile((x: Tensor) => x.resize_(3).add(1))
    for (let call = 0; call < 2; call++) {
      const x = torch.ones([2])
      expect([values(compiled(x)), x.shape]).toEqual([[2, 2, 1], [3]])
    }
  })
})

describe('set_', () => {
  it('takes the memory of another tensor, or a window on it, without its history', () => {
    const source = torch.tensor([1, 2, 3, 4])
    const x = torch.zeros([1]).set_(source)
    x.mul_(2)
    expect([values(source), values(torch.zeros([2]).set_(source, 1, [2], [2]))]).toEqual([
      [2, 4, 6, 8],
      [4, 8],
    ])
    x.mul_(torch.tensor(2, { dtype: 'float32', requiresGrad: true }))
    expect([x.requiresGrad, source.requiresGrad]).toEqual([true, false])
    expect(torch.zeros([2]).set_().shape).toEqual([0])
  })

  it('has no derivative, and keeps the dtype', () => {
    expect(() => torch.zeros([2]).set_(leaf().mul(1))).toThrow(/has no derivative/)
    expect(() => leaf().set_(torch.zeros([2]))).toThrow(AutogradError)
    expect(() => torch.zeros([2]).set_(torch.zeros([2], { dtype: 'float64' }))).toThrow(DTypeError)
  })
})
