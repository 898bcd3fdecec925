// reinplace and FakeTensorProp: PyTorch's test_fx_reinplace_pass, and shapes without data.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { FakeTensorProp, makeFx, reinplace } from 'tensorfx/aot'
import { Graph, GraphModule, symbolicTrace } from 'tensorfx/fx'

const values = (value: unknown): number[] =>
  Array.isArray(value) ? (value as unknown[]).flatMap(values) : Array.from((value as Tensor).contiguous().toTypedArray(), Number)

/** The graph of a function after reinplace; it still computes what the function does, and leaves its inputs alone. */
function inPlace(fn: (...xs: Tensor[]) => unknown, ...inputs: Tensor[]): string[] {
  const before = values(inputs)
  const want = values(fn(...inputs))
  const gm = reinplace(makeFx(fn)(...inputs) as GraphModule, ...inputs)
  for (let run = 0; run < 2; run++) expect(values(gm.call(...inputs))).toEqual(want)
  expect(values(inputs)).toEqual(before)
  return [...gm.graph.nodes]
    .filter((n) => n.op === 'call_function')
    .map((n) => n.formatNode().replace(/.*target=([\w.]+).*args = (.*), kwargs.*/, '$1 $2'))
}

describe('reinplace', () => {
  it('test_reinplace_basic', () => {
    expect(inPlace((x) => x.clone().add(1), torch.ones([2]))).toEqual(['torch.clone (%x_1,)', 'torch.Tensor.add_ (%clone, 1)'])
  })

  it('test_reinplace_sym_input: a symbol is an argument of the graph', () => {
    const f = (x: Tensor, index: number): Tensor => torch.select(x, 0, index).clone().add(1)
    const x = torch.rand([4, 8, 16, 16])
    const gm = reinplace(makeFx(f, { tracingMode: 'symbolic' })(x, 2), x, 2)
    expect([...gm.graph.nodes].filter((node) => node.op === 'call_function').map((node) => String(node.target.name))).toEqual([
      'select',
      'clone',
      'add_',
    ])
    // The index is no constant of the graph.
    for (const index of [2, 3]) expect(torch.equal(gm.call(x, index) as Tensor, f(x, index))).toBe(true)
  })

  it('a result keeps its layout, so that callers can make the same views of it', () => {
    const half = (x: Tensor): Tensor => x.mul(2).slice(1, 0, 2).sin()
    const gm = reinplace(makeFx(half)(torch.ones([2, 4])) as GraphModule, torch.ones([2, 4]))
    expect((gm.call(torch.ones([2, 4])) as Tensor).strides).toEqual(half(torch.ones([2, 4])).strides)
  })

  it('test_reinplace_with_view: a value whose view is used later stays', () => {
    const calls = inPlace(
      (x) => {
        const a = x.clone()
        const view = a.view([-1])
        a.add(1)
        return view.add(1)
      },
      torch.ones([2]),
    )
    expect(calls.filter((c) => c.includes('add'))).toEqual(['torch.add (%clone, 1)', 'torch.Tensor.add_ (%view, 1)'])
  })

  it('test_reinplace_different_metadata: another dtype, and another shape, need memory of their own', () => {
    expect(inPlace((x) => x.clone().add(1).ge(0.5), torch.ones([2])).at(-1)).toContain('ge (')
    expect(inPlace((x, y) => x.clone().add(y), torch.ones([2, 1]), torch.ones([1, 2])).at(-1)).toContain('torch.add (')
  })

  it('test_reinplace_overlapping_memory: elements that share memory are not written', () => {
    expect(inPlace((x) => x.clone().expand([4, 4]).add(1), torch.ones([1])).at(-1)).toContain('torch.add (')
    expect(inPlace((x) => torch.asStrided(x.clone(), [3, 2], [1, 1]).add(1), torch.tensor([1, 2, 3, 4])).at(-1)).toContain('torch.add (')
  })

  it('test_reinplace_with_view, of a value that was itself written: a view of the result is a view of the input', () => {
    const later = (x: Tensor): Tensor => {
      const b = x.clone().add(1)
      const view = b.view([-1])
      return view.add(b.mul(2))
    }
    expect(inPlace(later, torch.tensor([1, 2, 3])).find((c) => c.includes('mul'))).toBe('torch.mul (%clone, 2)')
    const throughView = (x: Tensor): Tensor => {
      const b = x.clone().add(1)
      return b.add(b.view([-1]).mul(2))
    }
    expect(inPlace(throughView, torch.tensor([1, 2, 3])).find((c) => c.includes('mul'))).toBe('torch.mul (%view, 2)')
    const transposed = (x: Tensor): Tensor => {
      const b = x.clone().add(1)
      return b.t().mul(b)
    }
    expect(
      inPlace(
        transposed,
        torch.tensor([
          [1, 2],
          [3, 4],
        ]),
      ).at(-1),
    ).toContain('torch.mul (')
  })

  it('a result with other strides is not written into the input: views of it would fail', () => {
    const x = torch.tensor([
      [1, 2, 3],
      [4, 5, 6],
    ])
    inPlace((a) => a.clone().t().add(1).reshape([-1]), x)
    inPlace((a) => torch.asStrided(a.clone(), [2, 3], [1, 2]).add(1).contiguous().view([-1]), x)
  })

  it('test_out_node_updated: the value that was written is returned', () => {
    const gm = reinplace(makeFx((x: Tensor) => [x.clone().mul(2), x.neg()])(torch.ones([2])) as GraphModule, torch.ones([2]))
    expect(String(gm.graph)).toContain('return [clone, neg]')
    expect(values(gm.call(torch.tensor([1, 2])))).toEqual([2, 4, -1, -2])
  })

  const grid = (): Tensor => torch.arange(16).reshape([4, 4])

  it('test_reinplace_scatter_op: the write to a view is a write to the view again', () => {
    const calls = inPlace(
      (x) => {
        const a = x.clone()
        const e = a.view([-1])
        const c = a.view([-1])[0]
        c?.view([-1]).add_(1)
        return a.add(e)
      },
      torch.tensor([1, 2, 3, 4]),
    )
    expect(calls.filter((c) => /add|scatter|copy/.test(c))).toEqual(['torch.Tensor.add_ (%view_2, 1)', 'torch.add (%clone, %clone)'])
  })

  it('test_reinplace_scatter_twice: scatters into views of views disappear', () => {
    const calls = inPlace((x) => {
      const a = x.clone()
      a.select(1, 1).select(0, 1).add_(1)
      return a
    }, grid())
    expect(calls).toEqual([
      'torch.clone (%x_1,)',
      'torch.select (%clone, 1, 1)',
      'torch.select (%select, 0, 1)',
      'torch.Tensor.add_ (%select_1, 1)',
      'torch.select (%clone, 1, 1)',
    ])
  })

  /** A value computed from one place, scattered into a view made by asStrided. */
  const mirrored = (offset: number, index: number): string[] =>
    inPlace((x) => {
      const a = x.clone()
      const updated = a.select(1, 1).select(0, 1).add(1)
      return torch.selectScatter(torch.asStrided(a, [4], [4], offset), updated, 0, index)
    }, grid())

  it('test_reinplace_scatter_twice_with_different_view_op_valid: another view of the same place', () => {
    expect(mirrored(1, 1).slice(3)).toEqual(['torch.Tensor.add_ (%select_1, 1)', 'torch.as_strided (%clone, [4], [4], 1)'])
  })

  it('test_reinplace_scatter_twice_with_different_view_op_invalid: another place in the same view', () => {
    expect(mirrored(1, 0).slice(3)).toEqual([
      'torch.add (%select_1, 1)',
      'torch.as_strided (%clone, [4], [4], 1)',
      'torch.select (%as_strided, 0, 0)',
      'torch.Tensor.copy_ (%select_2, %add)',
    ])
  })

  it('test_reinplace_scatter_twice_with_different_view_op_invalid2: the same place in another view', () => {
    expect(mirrored(0, 1).slice(3)).toEqual([
      'torch.add (%select_1, 1)',
      'torch.as_strided (%clone, [4], [4], 0)',
      'torch.select (%as_strided, 0, 1)',
      'torch.Tensor.copy_ (%select_2, %add)',
    ])
  })

  it('test_reinplace_index_mutation: a slice that is assigned', () => {
    const calls = inPlace(() => {
      const a = torch.zeros([4, 4, 4])
      a.slice(1, 2).copy_(torch.ones([4, 2, 4]))
      return a
    })
    expect(calls.map((c) => c.split(' ')[0])).not.toContain('torch.slice_scatter')
    expect(calls.some((c) => /^torch.Tensor.copy_ \(%slice_\d, /.test(c))).toBe(true)
  })

  it('test_out_node_updated, with a scatter: the tensor that was scattered into is returned', () => {
    const calls = inPlace(() => {
      const x = torch.zeros([2, 2])
      return [torch.diagonalScatter(x, x.diagonal().add(1))]
    })
    expect(calls.at(-1)).toBe('torch.Tensor.add_ (%diagonal, 1)')
  })

  it('a scatter into what is read later, or into an input, stays', () => {
    const stays = (fn: (...xs: Tensor[]) => unknown): void =>
      expect(inPlace(fn, grid(), torch.ones([4])).filter((c) => c.startsWith('torch.select_scatter'))).toHaveLength(1)
    stays((x, y) => torch.selectScatter(x, y, 0, 1))
    stays((x, y) => {
      const a = x.clone()
      return [torch.selectScatter(a, y, 0, 1), a.mul(2)]
    })
    stays((x, y) => {
      const a = x.clone().t()
      return torch.selectScatter(a, y, 0, 1).view([-1])
    })
  })

  it('inputs, parameters and values that occur twice among the arguments are not written', () => {
    expect(inPlace((x) => x.add(1), torch.ones([2]))).toEqual(['torch.add (%x_1, 1)'])
    expect(
      inPlace(
        (x) => {
          const a = x.clone()
          return a.mul(a)
        },
        torch.tensor([2, 3]),
      ).at(-1),
    ).toContain('torch.mul (')
    const gm = symbolicTrace(
      new (class extends nn.Module {
        w = new nn.Parameter(torch.ones([2]), { requiresGrad: false })
        override forward(x: Tensor): Tensor {
          return torch.add(this.w, x)
        }
      })(),
    )
    reinplace(gm, torch.ones([2]))
    expect(String(gm.graph)).toContain('torch.add]')
  })

  it('whole chains work in one memory', () => {
    expect(inPlace((x) => torch.relu(x.add(1).mul(2).sub(3)).sqrt(), torch.tensor([1, 2, 3])).map((c) => c.split(' ')[0])).toEqual([
      'torch.add',
      'torch.Tensor.mul_',
      'torch.Tensor.sub_',
      'torch.relu_',
      'torch.sqrt_',
    ])
  })

  it('needs a GraphModule', () => {
    expect(() => reinplace((() => 1) as never)).toThrow('capture the function with makeFx first')
  })
})

describe('FakeTensorProp', () => {
  it('notes shapes, dtypes and strides without computing', () => {
    const model = new nn.Sequential(new nn.Linear(4, 3), new nn.ReLU())
    const gm = symbolicTrace(model)
    const out = new FakeTensorProp(gm).propagate(torch.ones([2, 4])) as Tensor
    expect(out.isFake).toBe(true)
    const val = [...gm.graph.nodes].map((n) => n.meta['val'] as { shape: number[]; dtype: string; strides: number[] } | undefined)
    expect(val.map((v) => v?.shape)).toEqual([
      [2, 4],
      [2, 3],
      [2, 3],
      [2, 3],
    ])
    expect(val[1]).toEqual({ shape: [2, 3], dtype: 'float32', strides: [3, 1], requiresGrad: true })
    expect(gm.printReadable({ print: false })).toContain('f32[2, 3]')
  })

  it('costs nothing for shapes that would not fit into memory', () => {
    const gm = symbolicTrace((x: Tensor) => x.expand([1_000_000, 1_000_000]).add(1).sum())
    expect((new FakeTensorProp(gm).propagate(torch.ones([1, 1])) as Tensor).shape).toEqual([])
  })

  it('shapes that do not fit, and results that depend on values, are errors at the node', () => {
    const bad = symbolicTrace((x: Tensor, y: Tensor) => x.matmul(y))
    expect(() => new FakeTensorProp(bad).propagate(torch.ones([2, 3]), torch.ones([2, 3]))).toThrow(/While executing %matmul/)
    const graph = new Graph()
    const x = graph.placeholder('x')
    graph.output(graph.callMethod('item', [x]))
    expect(() => new FakeTensorProp(new GraphModule({}, graph)).propagate(torch.ones([]))).toThrow(
      /this tensor is fake.*no data[\s\S]*While executing %item/,
    )
  })
})
