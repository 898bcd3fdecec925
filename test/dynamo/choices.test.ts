// Where graphs need not end, and how many there are: choices that comparing values does not show.
import { afterEach, describe, expect, it } from 'vitest'
import { compile, fx, nn, torch } from 'tensorfx'
import type { FunctionContext, Tensor } from 'tensorfx'
import { allowInGraph, explain, reset } from 'tensorfx/compile'
import { agree, attempt, times } from './against.ts'

afterEach(() => reset())

const backend = 'eager'
const ones = (...shape: number[]): Tensor => torch.ones(shape)
const breaksOf = (fn: (x: Tensor) => unknown, x: Tensor): number => explain(fn)(x).breakReasons.length

describe('one graph holds', () => {
  it('a write to the first tensor of the function, with gradients or by indices', () => {
    const w = ones(2).requiresGrad_()
    expect(breaksOf(() => torch.zeros([2]).add_(w).mul_(2).sum(), ones(1))).toBe(0)
    const indices = torch.tensor([0, 1], { dtype: 'int64' })
    expect(breaksOf((x) => [x.mul(2), x.indexAdd_(0, indices, ones(2)), x.add(1)], ones(2))).toBe(0)
  })

  it('a write to a tensor that was an operand where the path was left', () => {
    const box = { w: ones(2) }
    const f = compile((x: Tensor) => [torch.add(x, box.w), x.add_(1)], { backend, fullgraph: true })
    for (box.w of [ones(2), ones(1), ones(2), ones(1)]) {
      const x = ones(2)
      expect(f(x).map((value) => value.toArray())).toEqual([
        [2, 2],
        [2, 2],
      ])
    }
    expect(f.graphs()).toHaveLength(2)
  })

  it('a write to a row of a memory of 4,096 elements, but not of more', () => {
    const fn = (x: Tensor): unknown => [x.select(0, 1).add_(1), x.sum()]
    expect(breaksOf(fn, ones(16, 256))).toBe(0)
    expect(breaksOf(fn, ones(17, 256))).toBe(1)
    // A quarter of the memory may be larger.
    expect(breaksOf(fn, ones(4, 2048))).toBe(0)
    expect(breaksOf(fn, ones(5, 2048))).toBe(1)
  })

  it('a write to one of several equal parts, but not to parts that lie across them', () => {
    const rows =
      (from: number, count: number) =>
      (x: Tensor): unknown => [x.mul(1), x.narrow(0, from, count).add_(1), x.mul(2)]
    const large = ones(9, 4).narrow(0, 1, 8)
    expect(times(3, (i) => breaksOf(rows(i, 2), ones(4, 4)))).toEqual([0, 1, 0])
    expect(breaksOf(rows(2, 2), ones(5, 4))).toBe(1)
    expect([0, 1, 4].map((from) => breaksOf(rows(from, 4), large))).toEqual([0, 1, 0])
    expect(breaksOf((x) => [x.mul(1), x.narrow(0, 0, 2).narrow(1, 2, 2).add_(1), x.mul(2)], ones(4, 4))).toBe(0)
  })
})

it('a number that has changed on one path is an input of later ones from the start', () => {
  const f = compile((x: Tensor, p: number, k: number) => x.pow(p).mul(k), { backend })
  for (const [p, k] of [
    [2, 2],
    [2, 3],
    [3, 2],
    [3, 5],
    [3, 7],
  ] as const)
    expect(f(torch.tensor([2]), p, k).item()).toBe(2 ** p * k)
  expect(f.graphs()).toHaveLength(3)
})

it('calls with a tensor of a part of the memory of another one have paths of their own', () => {
  const f = compile((x: Tensor, y: Tensor) => [x.add_(1), y.mul(2)], { backend })
  const memory = ones(4)
  for (let i = 0; i < 2; i++) {
    expect(f(ones(2), ones(2))[1]?.toArray()).toEqual([2, 2])
    const before = memory.toArray()
    expect(f(memory.narrow(0, 0, 2), memory.narrow(0, 0, 2))[1]?.toArray()).toEqual([4 + 2 * i, 4 + 2 * i])
    expect(memory.narrow(0, 2, 2).toArray()).toEqual((before as number[]).slice(2))
  }
})

it('a compiled function has the name of the function, a compiled module that of its class', () => {
  const names = [
    compile(function scaled(x: Tensor) {
      return x
    }),
    compile(new nn.ReLU()),
    compile((x: Tensor) => x),
  ].map(({ name }) => name)
  expect(names).toEqual(['scaled', 'ReLU', ''])
})

it('a write whose result does not fit its tensor is the error that it is eagerly, also after calls where it fits', () => {
  agree(backend, (c) => {
    const box = { v: ones(1) }
    const f = c((x: Tensor) => x.add_(box.v).mul(2))
    return [1, 3, 1, 3].map((n) => {
      box.v = ones(n)
      const x = ones(1)
      return [attempt(() => f(x)), x]
    })
  })
})

it('proxies are traced through a compiled function, in any structure, and leave nothing in it', () => {
  const f = compile((x: Tensor, more: { list: Tensor[] }) => x.add(more.list[0] ?? x), { backend })
  f(ones(1), { list: [ones(1)] })
  const traced = fx.symbolicTrace((x: Tensor, y: Tensor) => f(x, { list: [y] }))
  expect(traced.forward(ones(1), torch.tensor([4])).toArray()).toEqual([5])
  expect([f.recompileReasons(), f.graphs().length]).toEqual([[], 1])
})

describe('a Function that allowInGraph names', () => {
  class Plus extends torch.autograd.Function {
    static override forward(_ctx: FunctionContext, x: Tensor): Tensor {
      return x.mul(2)
    }
    static override backward(_ctx: FunctionContext, g: Tensor): Tensor {
      return g.mul(10)
    }
  }
  class Minus extends Plus {
    static override backward(_ctx: FunctionContext, g: Tensor): Tensor {
      return g.mul(-10)
    }
  }
  for (const fn of [Plus, Minus]) allowInGraph(fn)

  it('has a compiled backward of its own, also beside one with an equal forward', () => {
    const w = ones(2).requiresGrad_()
    const f = compile((plus: boolean) => (plus ? Plus : Minus).apply(w).mul(1).sum(), { backend })
    const seen = [true, false, true, false].map((plus) => torch.autograd.grad(f(plus), [w])[0]?.toArray())
    expect(seen).toEqual([
      [10, 10],
      [-10, -10],
      [10, 10],
      [-10, -10],
    ])
    expect(f.graphs()).toHaveLength(2)
  })

  it('and whose unread argument comes from another Function before a graph break: that one runs its backward once, when the program walks there', () => {
    let walks = 0
    class Counted extends Plus {
      static override backward(_ctx: FunctionContext, g: Tensor): Tensor {
        walks++
        return g.mul(2)
      }
    }
    class First extends torch.autograd.Function {
      static override forward(_ctx: FunctionContext, x: Tensor, y: Tensor): readonly Tensor[] {
        return [x.sin(), y]
      }
      static override backward(_ctx: FunctionContext, g: Tensor, h: Tensor): readonly Tensor[] {
        return [g, h]
      }
    }
    allowInGraph(First)
    const f = compile(
      (x: Tensor) => {
        const y = Counted.apply(x)
        y.sum().item()
        return (First.apply(x, y) as readonly Tensor[])[0]
      },
      { backend },
    )
    for (let call = 1; call < 4; call++) {
      const x = ones(2).requiresGrad_()
      const result = f(x)
      expect(walks).toBe(call - 1)
      result?.sum().backward()
      expect([x.grad?.toArray(), walks]).toEqual([[1, 1], call])
    }
  })
})
