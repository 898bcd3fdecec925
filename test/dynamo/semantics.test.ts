// What captured code must keep of eager's meaning: writes, views, noGrad parts, values that outlive their graph.
import { describe, expect, it } from 'vitest'
import { compile, fx, nn, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { disable } from 'tensorfx/compile'

const close = (a: Tensor, b: Tensor, tol = 1e-5): void => expect(torch.allclose(a, b, { rtol: tol, atol: tol })).toBe(true)
describe.each(['eager', 'inductor'])('%s', (backend) => {
  it('noGrad part is not differentiated', () => {
    const w = torch.randn([3]).requiresGrad_()
    const f = (x: Tensor): Tensor =>
      x
        .mul(w)
        .add(noGrad(() => w.mul(3)))
        .sum()
    const x = torch.randn([3])
    f(x).backward()
    const e = w.grad as Tensor
    w.grad = null
    compile(f, { backend })(x).backward()
    close(w.grad as unknown as Tensor, e)
  })
  it('the same code with and without noGrad', () => {
    const w = torch.randn([3]).requiresGrad_()
    let off = false
    const f = (x: Tensor): Tensor => {
      const g = (): Tensor => w.mul(3)
      return x
        .mul(w)
        .add(off ? noGrad(g) : g())
        .sum()
    }
    const x = torch.randn([3])
    const fast = compile(f, { backend })
    for (const o of [true, false, true]) {
      off = o
      w.grad = null
      f(x).backward()
      const e = w.grad as unknown as Tensor
      w.grad = null
      fast(x).backward()
      close(w.grad as unknown as Tensor, e)
    }
  })
  it('view made before the write sees it', () => {
    const f = (x: Tensor): Tensor => {
      const v = x.select(0, 1)
      x.add_(1)
      return v.mul(1)
    }
    const fast = compile(f, { backend })
    for (let i = 0; i < 2; i++) expect(fast(torch.zeros([2, 2])).toArray()).toEqual([1, 1])
  })
  it('outside view of a written tensor', () => {
    const base = torch.zeros([2, 2])
    const v = base.select(0, 1)
    const fast = compile(
      (x: Tensor) => {
        base.add_(x)
        return v.mul(1)
      },
      { backend },
    )
    for (let i = 0; i < 2; i++) expect(fast(torch.ones([2, 2])).toArray()).toEqual([i + 1, i + 1])
  })
  it('a value from before a graph break, read after its input was written to', () => {
    const f = (x: Tensor): Tensor => {
      const y = x.mul(2)
      const z = y.add(1)
      if ((z.sum().item() as number) > 0) x.zero_()
      return y
    }
    const fast = compile(f, { backend })
    for (let i = 0; i < 3; i++) expect(fast(torch.ones([2])).toArray()).toEqual([2, 2])
  })
  it('a value kept outside whose input is written to', () => {
    const kept: Tensor[] = []
    const f = (x: Tensor): Tensor => {
      const y = x.mul(2)
      kept.push(y)
      x.add_(1)
      return x
    }
    const fast = compile(f, { backend })
    for (let i = 0; i < 2; i++) {
      fast(torch.ones([2]))
      expect(kept.at(-1)?.toArray()).toEqual([2, 2])
    }
  })
  it('returned views alias', () => {
    const fast = compile(
      (x: Tensor) => {
        const y = x.mul(2)
        return [y, y.t()] as const
      },
      { backend },
    )
    for (let i = 0; i < 2; i++) {
      const [y, t] = fast(torch.ones([2, 2]))
      y.add_(1)
      expect(t.toArray()).toEqual([
        [3, 3],
        [3, 3],
      ])
    }
  })
  it('two equal outputs are two tensors', () => {
    const fast = compile((x: Tensor) => [x.mul(2), x.mul(2)] as const, { backend })
    for (let i = 0; i < 2; i++) {
      const [y, t] = fast(torch.ones([2, 2]))
      y.add_(1)
      expect(t.toArray()).toEqual([
        [2, 2],
        [2, 2],
      ])
    }
  })
  it('inputs at other offsets of one storage', () => {
    const data = torch.arange(12).reshape([6, 2])
    const fast = compile((x: Tensor) => x.select(0, 0), { backend })
    for (let i = 0; i < 3; i++) expect(fast(data.narrow(0, i * 2, 2)).toArray()).toEqual(data.select(0, i * 2).toArray())
  })
  it('a disabled function that writes to an argument', () => {
    const part = disable((x: Tensor) => {
      x.add_(1)
    })
    const f = (x: Tensor): Tensor => {
      const y = x.mul(2)
      part(x)
      return y.add(x)
    }
    const fast = compile(f, { backend })
    for (let i = 0; i < 2; i++) expect(fast(torch.ones([2])).toArray()).toEqual([4, 4])
  })
  it('a number argument that differs becomes an input of the second graph', () => {
    const fast = compile((x: Tensor, s: number) => x.mul(s), { backend })
    for (let i = 0; i < 12; i++) expect(fast(torch.ones([2]), i).toArray()).toEqual([i, i])
    expect(fast.graphs().length).toBe(2)
  })
  it('dropout with a backward outside of the compiled function', () => {
    const w = torch.randn([3]).requiresGrad_()
    const f = (x: Tensor): Tensor => torch.nn.functional.dropout(x.mul(w)).sum()
    const x = torch.randn([3])
    const fast = compile(f, { backend })
    for (let i = 0; i < 3; i++) {
      torch.manualSeed(i)
      w.grad = null
      f(x).backward()
      const e = w.grad as unknown as Tensor
      w.grad = null
      torch.manualSeed(i)
      const l = fast(x)
      l.backward()
      close(w.grad as unknown as Tensor, e)
    }
  })
  it('a compiled function under symbolicTrace is traced into', () => {
    const fast = compile((x: Tensor) => torch.relu(x), { backend })
    class M extends nn.Module {
      forward(x: Tensor): Tensor {
        return fast(x)
      }
    }
    expect(String(fx.symbolicTrace(new M()).graph)).toContain('%relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})')
  })
  it('two leaves through views with grads', () => {
    const w = torch.randn([3, 2]).requiresGrad_()
    const f = (x: Tensor): Tensor => x.mul(w).t()
    const x = torch.randn([3, 2])
    f(x).sum().backward()
    const e = w.grad as unknown as Tensor
    w.grad = null
    const fast = compile(f, { backend })
    for (let i = 0; i < 2; i++) {
      w.grad = null
      fast(x).sum().backward()
      close(w.grad as unknown as Tensor, e)
    }
  })
})
