// makeFx: what really runs, below autograd.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compileDifferentiable, decomposeGraph, makeFx } from 'tensorfx/aot'
import { Interpreter } from 'tensorfx/fx'
import { treeMap } from 'tensorfx/pytree'

const { grad } = torch.autograd

describe('makeFx', () => {
  it('records operators with shapes, and runs', () => {
    const gm = makeFx((a: Tensor) => a.sin().mul(2).sum(0))(torch.ones([3, 4]))
    gm.graph.lint()
    expect([...gm.graph.nodes].map((n) => n.name)).toEqual(['a_1', 'sin', 'mul', 'sum_1', 'output'])
    const [total] = gm.graph.findNodes({ op: 'call_function', target: torch.sum })
    expect(total?.meta['val']).toMatchObject({ shape: [4] })
    const x = torch.randn([3, 4])
    expect(torch.allclose(gm.forward(x) as Tensor, x.sin().mul(2).sum(0))).toBe(true)
  })

  it('gradients that are computed inside are in the graph', () => {
    const gm = makeFx((x: Tensor) => grad(x.sin().sum(), x)[0])(torch.ones([3]).requiresGrad_())
    expect(gm.code).toContain('torch.cos(')
    const x = torch.randn([3])
    expect(torch.allclose(gm.forward(x) as Tensor, x.cos())).toBe(true)
  })

  it.each<[string, (...args: never[]) => unknown, () => readonly unknown[]]>([
    [
      'an object',
      (d: { a: Tensor; b: readonly Tensor[] }) => ({ sum: d.a.add(d.b[0] ?? 0), all: d.b }),
      () => [{ a: torch.ones([2]), b: [torch.ones([2])] }],
    ],
    ['a list beside a tensor', ([a, b]: [Tensor, Tensor], y: Tensor) => [a.mul(y), [b]], () => [[torch.ones([2]), torch.ones([1])], torch.ones([2])]],
    [
      'numbers, texts and null in it',
      (d: { x: Tensor; k: number; how: string; no: null }) => [d.x.mul(d.k), d.how, d.no],
      () => [{ x: torch.ones([2]), k: 3, how: 'sum', no: null }],
    ],
    ['a write to a nested tensor', ({ x }: { x: Tensor }) => [x.add_(1), x.view([2, 1])], () => [{ x: torch.ones([2]) }]],
    ['one tensor as the result', ([x]: [Tensor]) => x.sin(), () => [[torch.ones([2])]]],
  ])('a graph for nested arguments, %s, is called as the function is', (_, fn, make) => {
    const gm = makeFx(fn)(...make())
    gm.graph.lint()
    const [ours, theirs] = [make(), make()]
    const plain = (value: unknown): unknown => treeMap(value, (leaf) => (leaf instanceof torch.Tensor ? leaf.toArray() : leaf))
    const call = fn as (...args: readonly unknown[]) => unknown
    expect(plain(gm.forward(...ours))).toEqual(plain(call(...theirs)))
    expect(plain(new Interpreter(gm).run(...make()))).toEqual(plain(call(...make())))
    expect(plain(ours)).toEqual(plain(theirs))
    expect(() => gm.forward([])).toThrow(/pytree/)
  })

  it('tensors from outside are constants of the module', () => {
    const w = torch.tensor([1, 2, 3])
    const gm = makeFx((x: Tensor) => x.mul(w))(torch.ones([3]))
    expect(gm.graph.findNodes({ op: 'get_attr' })).toHaveLength(1)
    expect((gm.forward(torch.ones([3])) as Tensor).toArray()).toEqual([1, 2, 3])
  })

  it('in-place operators become functional ones', () => {
    const gm = makeFx((x: Tensor) => {
      const y = x.clone()
      y.add_(1)
      return y.mul(2)
    })(torch.ones([2]))
    expect(gm.code).not.toContain('add_')
    expect((gm.forward(torch.ones([2])) as Tensor).toArray()).toEqual([4, 4])
  })
})

describe('writes to tensors from outside', () => {
  it('happen when the graph runs, also after decomposition', () => {
    const total = torch.zeros([2])
    const made = makeFx((x: Tensor) => {
      x.add_(1)
      total.add_(x)
      return x.mul(2)
    })(torch.ones([2]))
    for (const gm of [made, decomposeGraph(made)]) {
      gm.graph.lint()
      torch.nn.init.zeros_(total)
      const x = torch.ones([2])
      expect((gm.forward(x) as Tensor).toArray()).toEqual([4, 4])
      expect([x.toArray(), total.toArray()]).toEqual([
        [2, 2],
        [2, 2],
      ])
    }
  })
})

describe('joint graphs', () => {
  it('are split into a forward that saves and a backward that uses it', () => {
    const x = torch.randn([3]).requiresGrad_()
    const gm = makeFx((a: Tensor) => [a.sin().tanh()])(x)
    const seen: string[] = []
    const { forwardGraph, backwardGraph } = compileDifferentiable(gm, [x], [0], {
      fwCompiler: (part) => {
        seen.push(part.className)
        return (...inputs) => part.forward(...inputs) as readonly unknown[]
      },
    })
    expect(seen).toHaveLength(1)
    const saved = (forwardGraph.graph.outputNode().args[0] as readonly unknown[]).length - 1
    expect(backwardGraph.graph.findNodes({ op: 'placeholder' })).toHaveLength(saved + 1)
  })
})
