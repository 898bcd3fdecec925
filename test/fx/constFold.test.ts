// splitConstSubgraphs against PyTorch's results.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import { splitConstSubgraphs } from 'tensorfx/fx/experimental'
import { expectGraph, readExtra } from './golden.ts'
import type { GoldenGraph } from './golden.ts'

interface Folded {
  readonly before: GoldenGraph
  readonly folded: GoldenGraph
  readonly const_subgraph?: GoldenGraph
  readonly attrs_name?: string
}

const golden = readExtra<Readonly<Record<'A' | 'B' | 'C' | 'D', Folded>> & { skip: GoldenGraph }>('const_fold')

class A extends nn.Module {
  attr_1 = new nn.Parameter(torch.tensor([[-0.9]]))
  attr_2 = new nn.Parameter(torch.tensor([[17.1]]))
  override forward(x: Tensor, y: Tensor): Tensor {
    const a = this.attr_1.add(this.attr_1)
    return x.sub(a).mul(y).add(this.attr_2)
  }
}
class B extends nn.Module {
  x = new nn.Parameter(torch.ones([2, 2]))
  override forward(i: Tensor): Tensor[] {
    const w = this.x.t().mul(2).add(1)
    const v = torch.relu(this.x)
    return [i.matmul(w).add(v), torch.neg(v)]
  }
}
class C extends nn.Module {
  lin = new nn.Linear(3, 3)
  p = new nn.Parameter(torch.ones([4, 3]))
  override forward(x: Tensor): Tensor {
    return this.lin.call(this.p).add(x)
  }
}
class D extends nn.Module {
  override forward(x: Tensor): Tensor {
    return x.add(1)
  }
}

const cases: readonly [keyof typeof golden & ('A' | 'B' | 'C' | 'D'), () => nn.Module, () => Tensor[]][] = [
  ['A', () => new A(), () => [torch.randn([2, 2]), torch.randn([2, 2])]],
  ['B', () => new B(), () => [torch.randn([2, 2])]],
  ['C', () => new C(), () => [torch.randn([4, 3])]],
  ['D', () => new D(), () => [torch.randn([2])]],
]

describe('splitConstSubgraphs', () => {
  it.each(cases)('%s is folded as PyTorch does, and computes the same', (name, make, inputs) => {
    const model = make()
    const gm = symbolicTrace(model)
    expectGraph(gm, golden[name].before)
    const folded = splitConstSubgraphs(gm)
    expectGraph(folded, golden[name].folded)
    if (golden[name].const_subgraph === undefined) expect(folded.constSubgraphModule).toBeNull()
    else {
      expectGraph(folded.constSubgraphModule as GraphModule, golden[name].const_subgraph)
      expect(folded.fxConstFoldedAttrsName).toBe(golden[name].attrs_name)
    }
    const args = inputs()
    const flat = (value: unknown): Tensor[] => (Array.isArray(value) ? (value as Tensor[]) : [value as Tensor])
    const want = flat((model.call as (...a: Tensor[]) => unknown)(...args))
    for (let run = 0; run < 2; run++) flat(folded.call(...args)).forEach((value, i) => expect(torch.allclose(value, want[i] as Tensor)).toBe(true))
  })

  it('folds once, before the first run or when told', () => {
    const folded = splitConstSubgraphs(new A())
    expect(folded.hasFoldingBeenRun).toBe(false)
    folded.runFolding()
    expect([...folded.namedParameters()].map(([name]) => name)).toContain('_FX_CONST_FOLDED_ATTRS')
    expect(() => folded.runFolding()).toThrow('the constants of this module have been computed already')
  })

  it('test_check_skip_folding_quant_dequant_pattern: leaves what it is told to', () => {
    const gm = symbolicTrace(new A())
    expectGraph(
      splitConstSubgraphs(gm, (node) => node.target === 'add'),
      golden.skip,
    )
  })

  it('test_const_fold_basic_one_attr_name_collision: finds a free name', () => {
    class Taken extends A {
      _FX_CONST_FOLDED_ATTRS = new nn.Parameter(torch.ones([1]))
      override forward(x: Tensor, y: Tensor): Tensor {
        return super.forward(x, y).add(this._FX_CONST_FOLDED_ATTRS)
      }
    }
    const model = new Taken()
    const folded = splitConstSubgraphs(model)
    expect(folded.fxConstFoldedAttrsName).toBe('_FX_CONST_FOLDED_ATTRS_0')
    const [x, y] = [torch.randn([2]), torch.randn([2])]
    expect(torch.allclose(folded.call(x, y) as Tensor, model.call(x, y))).toBe(true)
  })

  it('test_const_fold_unused_placeholder: parameters that nobody uses stay', () => {
    const folded = splitConstSubgraphs(symbolicTrace(new A()))
    expect(folded.graph.findNodes({ op: 'placeholder' })).toHaveLength(2)
  })

  it('does not fold random operators, nor layers whose mode matters', () => {
    class Noisy extends nn.Module {
      p = new nn.Parameter(torch.ones([50]))
      drop = new nn.Dropout()
      override forward(x: Tensor): Tensor {
        return x.add(this.drop.call(this.p))
      }
    }
    expect(splitConstSubgraphs(new Noisy()).constSubgraphModule).toBeNull()
    const still = new Noisy()
    still.eval()
    expect(splitConstSubgraphs(still).constSubgraphModule).not.toBeNull()
  })

  it('test_retain_node_meta: the folded value has the meta of what it replaces', () => {
    const gm = symbolicTrace(new A())
    for (const node of gm.graph.nodes) node.meta['note'] = node.name
    const folded = splitConstSubgraphs(gm)
    expect(folded.graph.findNodes({ op: 'call_method', target: 'sub' })[0]?.meta['note']).toBe('sub')
  })
})
