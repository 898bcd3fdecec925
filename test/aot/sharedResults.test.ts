// Results of traced functions that share memory share it in every run of the graph; writes between forward and backward matter where they do in eager.
import { describe, expect, it } from 'vitest'
import { compile, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { aotFunction, decomposeGraph, makeFx, reinplace } from 'tensorfx/aot'

describe('a base and a view that was written through', () => {
  const programs: readonly (readonly [string, (x: Tensor) => readonly Tensor[]])[] = [
    [
      'select',
      (x) => {
        const y = x.mul(2)
        const row = y.select(0, 1).add_(10)
        return [y, row]
      },
    ],
    [
      'one of several views',
      (x) => {
        const y = x.abs()
        const [first = y] = y.chunk(2)
        torch.relu_(first)
        return [first, y]
      },
    ],
    [
      'a window',
      (x) => {
        const y = x.matmul(x)
        return [y, torch.asStrided(y, [2], [1]).zero_()]
      },
    ],
    [
      'two views, without the base',
      (x) => {
        const y = x.neg()
        y.t().add_(1)
        return [y.view(-1), y.select(1, 0)]
      },
    ],
  ]
  const square = (): Tensor => torch.arange(4).reshape([2, 2]).float()
  /** The results after a write to each of them in turn. */
  const afterWrites = (results: readonly Tensor[]): unknown => {
    results.forEach((t, i) =>
      t
        .flatten()
        .select(0, 0)
        .add_(i + 1),
    )
    return results.map((t) => t.toArray())
  }

  it.each(programs)('%s', (_name, fn) => {
    const expected = afterWrites(fn(square()))
    const run = (graph: { forward: (...inputs: Tensor[]) => unknown }): unknown => afterWrites(graph.forward(square()) as readonly Tensor[])
    const gm = makeFx(fn)(square())
    expect(run(gm)).toEqual(expected)
    expect(run(reinplace(makeFx(fn)(square()), square()))).toEqual(expected)
    const whole = aotFunction(fn, {
      fwCompiler:
        (graph) =>
        (...inputs) =>
          graph.forward(...inputs),
    })
    for (let i = 0; i < 2; i++) expect(afterWrites(whole(square()))).toEqual(expected)
    // Operators alone keep the values.
    expect((decomposeGraph(gm).forward(square()) as Tensor[]).map((t) => t.toArray())).toEqual(fn(square()).map((t) => t.toArray()))
  })
})

it('a write to an empty expanded view writes nothing', () => {
  const gm = makeFx((x: Tensor) => {
    const y = x.sum().reshape([1])
    y.expand([0]).add_(1)
    return y
  })(torch.ones([2]))
  expect((gm.forward(torch.ones([2])) as Tensor).toArray()).toEqual([2])
})

it('a write to an argument or result that the gradient does not need does not stop the backward', () => {
  const fn = (a: Tensor): readonly [Tensor, Tensor] => [a.mul(0.5).abs().pow(-1), a.sub(a.mul(2)).abs()]
  const whole = aotFunction(fn, {
    fwCompiler:
      (graph) =>
      (...inputs) =>
        graph.forward(...inputs),
  })
  const gradient = (f: typeof fn): unknown => {
    const a = torch.tensor([1, -2]).requiresGrad_()
    const [p, q] = f(a)
    noGrad(() => a.detach().add_(1))
    noGrad(() => q.detach().add_(1))
    p.add(q).sum().backward()
    return a.grad?.toArray()
  }
  expect(gradient(whole)).toEqual(gradient(fn))
})

describe.each(['float16', 'bfloat16'] as const)('normalization of %s', (dtype) => {
  const F = torch.nn.functional
  it.each([
    ['layerNorm', (x: Tensor) => F.layerNorm(x, [2])],
    ['batchNorm', (x: Tensor) => F.batchNorm(x, null, null, null, null, true)],
  ])('%s computes in float32 when it is compiled, as in eager', (_name, norm) => {
    const x = torch.tensor([1.71875, 1.6875, -1.96875, 1.953125, 0.5, 0.501953125], { dtype }).reshape([3, 2])
    const [eager, compiled] = [norm(x), compile(norm)(x)]
    const ulp = dtype === 'float16' ? 2 ** -10 : 2 ** -7
    const gap = eager.float().sub(compiled.float()).abs().max().item()
    expect(gap).toBeLessThanOrEqual(2 * ulp)
  })
})
